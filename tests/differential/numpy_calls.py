"""Random calls of NumPy's functions, with random arguments, on every carrier.

A program is one to three calls on one to three small arrays, each of the array of numbers before
it. NumPy itself, on plain arrays, is the other implementation: its values are those of traced code
and of tensors; derivatives are held to differences of its values, and where a value has ties or
what is not finite, the modes to one another. What NumPy refuses is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from difflab.errors import DifflabError
from tests.differential.search import Family

OF_VALUES = ("Singular matrix", "SVD did not converge", "Eigenvalues did not converge")
STEPS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
"""Of differences; a smaller one where a kink lies between, a larger one where rounding counts."""
NEAR = 1e-5
"""How near, of the terms of a slope, a difference must be."""
LARGE = 1e6
LARGEST = 80
"""Numbers of an array."""
SQUARES = ((2, 2), (3, 3), (2, 3, 3))
SHAPES = ((), (1,), (2,), (3,), (5,), (1, 1), (2, 3), (3, 2), (3, 3), (1, 4), (2, 1, 3), (2, 3, 3))


@dataclass(frozen=True)
class Value:
    """An array of the program, by its number: the inputs, then the results of the calls."""

    number: int

    def __repr__(self) -> str:
        return f"v{self.number}"


@dataclass(frozen=True)
class Complex:
    """An argument with an imaginary part, which depends on an array of the program."""

    of: Value

    def fill(self, values: list[Any]) -> Any:
        """Return the argument on the values so far."""
        x = values[self.of.number]
        return x + 1j * (x * x)

    def __repr__(self) -> str:
        return f"complex({self.of})"


@dataclass(frozen=True)
class Symmetric(Complex):
    """A symmetric argument: NumPy reads half of it, and derivatives are of both."""

    def fill(self, values: list[Any]) -> Any:
        """Return the argument on the values so far."""
        x = values[self.of.number]
        return x + np.swapaxes(x, -1, -2)

    def __repr__(self) -> str:
        return f"symmetric({self.of})"


@dataclass(frozen=True)
class Regular(Complex):
    """A matrix of full rank, by its diagonal: of others, Q is not defined by the values."""

    def fill(self, values: list[Any]) -> Any:
        """Return the argument on the values so far."""
        x = np.tanh(values[self.of.number])
        return x if len(x.shape) < 2 else x + np.eye(*x.shape[-2:]) * (1.0 + x.shape[-1])

    def __repr__(self) -> str:
        return f"regular({self.of})"


PARTS: Mapping[str, Callable[[Any], Any]] = {
    "absolute": lambda z: np.abs(z + (0.25 + 0.5j)),
    "imag": lambda z: np.imag(z),
    "real": lambda z: np.real(z),
    "power": lambda z: np.real(z * np.conj(z)),
}
"""Real values of complex results; absolute values away from 0, where they have a kink."""


@dataclass(frozen=True)
class Call:
    """One call of a function, and the part of its result that is used."""

    name: str
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    part: int | str | None = None

    def run(self, values: list[Any], xp: Any) -> Any:
        """Return the result on the values so far, by functions of an array module."""
        function = reduce(getattr, self.name.split("."), xp)
        found = function(*_filled(self.arguments, values), **_filled(self.keywords, values))
        if isinstance(self.part, str):
            found = PARTS[self.part](found)
        elif self.part is not None:
            found = found[self.part]
        return _indexed(values, found) if self.name == "argsort" else found

    def __repr__(self) -> str:
        words = [repr(a) for a in self.arguments]
        words += [f"{name}={value!r}" for name, value in self.keywords.items()]
        part = "" if self.part is None else f"[{self.part!r}]"
        return f"{self.name}({', '.join(words)}){part}"


def _filled(tree: Any, values: list[Any]) -> Any:
    if isinstance(tree, Value):
        return values[tree.number]
    if isinstance(tree, Complex):
        return tree.fill(values)
    if isinstance(tree, dict):
        return {key: _filled(item, values) for key, item in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(_filled(item, values) for item in tree)
    return tree


def _indexed(values: list[Any], order: Any) -> Any:
    """Return the numbers of the last value in an order, which has no derivative itself."""
    return np.take_along_axis(values[-1], order, axis=-1)


@dataclass(frozen=True)
class Program:
    """Calls on inputs of given shapes.

    Points are "normal", "even" (with ties), "infinite", "wild", or "dependent": singular matrices.
    """

    shapes: tuple[tuple[int, ...], ...]
    points: str
    seed: int
    calls: tuple[Call, ...] = ()

    def inputs(self) -> list[Any]:
        """Return the arrays that the program is run on."""
        rng = np.random.default_rng(self.seed)
        return [self._numbers(rng, shape) for shape in self.shapes]

    def _numbers(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        numbers = np.asarray(rng.normal(size=shape))
        if self.points == "even":  # ties and zeros
            return np.round(2 * numbers) / 2 + 0.0
        if self.points == "dependent":
            numbers[..., -1, :] = numbers[..., :-1, :].sum(-2)
        if self.points == "infinite":
            share = rng.choice([0.2, 0.7])
            infinite = rng.choice([np.inf, np.inf, -np.inf], shape)
            return np.where(rng.random(shape) < share, infinite, numbers)
        if self.points == "wild":
            wild = rng.choice([np.nan, np.nan, 0.0, 1e100], shape)
            return np.where(rng.random(shape) < 0.2, wild, numbers)
        return numbers

    def values(self, *inputs: Any) -> list[Any]:
        """Return the inputs and the results of the calls."""
        values = list(inputs)
        for call in self.calls:
            values.append(call.run(values, np))
        return values

    def result(self, *inputs: Any) -> Any:
        """Return the last result."""
        return self.values(*inputs)[-1]

    def total(self, *inputs: Any) -> Any:
        """Return a number that all of the last result takes part in, not linearly."""
        last = self.result(*inputs)
        shape = np.shape(last)
        weights = np.cos(np.arange(np.prod(shape))).reshape(shape)
        return np.sum(np.sin(last) * weights)


class Draw:
    """Draws the arguments of calls."""

    def __init__(self, draw: Callable[..., Any], values: list[Any]) -> None:
        self.draw = draw
        self.values = values

    def one(self, *choices: Any) -> Any:
        """Return one of the choices."""
        return self.draw(st.sampled_from(choices))

    def whole(self, low: int, high: int) -> int:
        """Return an integer from low to high."""
        return int(self.draw(st.integers(low, high)))

    def other(self) -> Value:
        """Return any value so far."""
        return Value(self.whole(0, len(self.values) - 1))

    @property
    def last(self) -> Value:
        """The last value."""
        return Value(len(self.values) - 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the last value."""
        return np.shape(self.values[-1])

    def axis(self) -> int | None:
        """Return an axis of the last value; of a number None."""
        rank = len(self.shape)
        return self.whole(-rank, rank - 1) if rank else None

    def axes(self) -> Any:
        """Return None, an axis or several."""
        form = self.one("none", "one", "one", "several")
        if form == "none":
            return None
        if form == "one":
            return self.axis()
        return tuple(self.draw(st.permutations(range(len(self.shape)))))[: self.whole(1, 2)]

    def any(self, **keywords: Any) -> dict[str, Any]:
        """Return some of the keywords."""
        return {name: value for name, value in keywords.items() if self.one(True, False)}

    def flags(self, *names: str) -> dict[str, bool]:
        """Return some flags, set or not."""
        return self.any(**{name: self.one(True, False) for name in names})

    def square(self) -> Value | None:
        """Return the last value if it is square, as the functions of linear algebra need."""
        return self.last if len(self.shape) >= 2 and self.shape[-1] == self.shape[-2] else None


Drawn = tuple[tuple[Any, ...], Mapping[str, Any], int | str | None]
Drawer = Callable[[Draw], Drawn]


def _alone(d: Draw) -> Drawn:
    return (d.last,), {}, None


def _pair(d: Draw) -> Drawn:
    return (d.other(), d.last), {}, None


def _reduced(*flags: str) -> Drawer:
    return lambda d: ((d.last,), {**d.any(axis=d.axes()), **d.flags(*flags)}, None)


def _along(d: Draw) -> Drawn:
    return (d.last,), d.any(axis=d.axis()), None


def _spread(d: Draw) -> Drawn:
    return (d.last,), {**d.any(axis=d.axes(), ddof=d.one(0, 1, 0.5)), **d.flags("keepdims")}, None


def _quantiles(scale: float, *methods: str) -> Drawer:
    def drawn(d: Draw) -> Drawn:
        # NumPy 2.4 puts the axes of a matrix of shares in the wrong places where it ignores nan.
        several = [[0.25, 0.9], [[0.1, 0.2], [0.6, 0.7]]][: 1 + bool(methods)]
        q = d.one(0.0, 0.3, 0.5, 1.0, *several)
        method = d.any(method=d.one("linear", *methods))
        settings = {**d.any(axis=d.axes()), **d.flags("keepdims"), **method}
        return (d.last, np.multiply(q, scale).tolist()), settings, None

    return drawn


def _offset(d: Draw) -> Drawn:
    return (d.last,), d.any(k=d.whole(-3, 3)), None


def _diagonal(d: Draw) -> Drawn:
    axes = d.draw(st.permutations(range(max(len(d.shape), 2))))[:2]
    return (d.last,), d.any(offset=d.whole(-2, 2)) | {"axis1": axes[0], "axis2": axes[1]}, None


def _roll(d: Draw) -> Drawn:
    if d.one(True, False):
        return (d.last, (d.whole(-4, 4), d.whole(-4, 4))), {"axis": (d.axis(), d.axis())}, None
    return (d.last, d.whole(-7, 7)), d.any(axis=d.axis()), None


def _pad(d: Draw) -> Drawn:
    pair = (d.whole(0, 3), d.whole(0, 4))
    widths = d.one(pair[0], pair, tuple((pair[0], d.whole(0, 2)) for _ in d.shape))
    mode = d.one("constant", "edge", "reflect", "symmetric", "wrap")
    return (d.last, widths), {"mode": mode}, None


def _joined(d: Draw) -> Drawn:
    return ([d.other() for _ in range(d.whole(1, 2))] + [d.last],), {}, None


def _joined_along(d: Draw) -> Drawn:
    (parts,), _, _ = _joined(d)
    return (parts,), d.any(axis=d.one(None, d.axis())), None


def _stacked(d: Draw) -> Drawn:
    return ([d.last, d.last, d.last][: d.whole(1, 3)],), d.any(axis=d.axis()), None


def _split(d: Draw) -> Drawn:
    where = d.one(1, 2, 3, [1], [1, 2], [-1], [0, 4])
    parts = where if isinstance(where, int) else len(where) + 1
    return (d.last, where), d.any(axis=d.axis()), d.whole(0, parts - 1)


def _tile(d: Draw) -> Drawn:
    return (d.last, d.one(1, 2, (2,), (1, 2), (2, 1, 2))), {}, None


def _repeat(d: Draw) -> Drawn:
    times = d.one(0, 1, 2, 3, [2], [1, 0, 2])
    return (d.last, times), d.any(axis=d.axis()), None


def _insert(d: Draw) -> Drawn:
    where = d.one(0, -1, 1, [0, 1], [1, 1, 0], slice(0, 2))
    return (d.last, where, d.one(7.0, d.other())), d.any(axis=d.axis()), None


def _delete(d: Draw) -> Drawn:
    return (d.last, d.one(0, -1, 1, [0, 1], [0, 0], slice(0, 2), [])), d.any(axis=d.axis()), None


def _meshgrid(d: Draw) -> Drawn:
    settings = {**d.flags("sparse"), **d.any(indexing=d.one("xy", "ij"))}
    return (d.other(), d.last), settings, d.whole(0, 1)


def _rotated(d: Draw) -> Drawn:
    return (d.last,), d.any(k=d.whole(-5, 5), axes=(d.axis(), d.axis())), None


def _moved(d: Draw) -> Drawn:
    return (d.last, d.axis(), d.axis()), {}, None


def _expanded(d: Draw) -> Drawn:
    rank = len(d.shape)
    return (d.last, d.one(0, -1, rank, (0, rank + 1), (1, -1))), {}, None


def _weights(d: Draw) -> Drawn:
    axis = d.axis()
    count = d.shape[axis] if d.shape else 1
    weights = d.one(None, np.linspace(0.5, 1.5, count).tolist())
    return (d.last,), {"axis": axis, "weights": weights, **d.flags("keepdims")}, None


def _covariance(d: Draw) -> Drawn:
    return (d.last,), {**d.flags("rowvar", "bias"), **d.any(ddof=d.whole(0, 1))}, None


def _contracted(d: Draw) -> Drawn:
    return (
        (d.other(), d.last),
        {"axes": d.one(0, 1, 2, ([0], [0]), ([-1], [0]), ([0, 1], [1, 0]))},
        None,
    )


def _einsum(d: Draw) -> Drawn:
    """Draw subscripts with two letters for each size, which may recur, and with an ellipsis."""
    operands = [d.last, *(d.other() for _ in range(d.whole(0, 2)))]
    terms = []
    for operand in operands:
        shape = np.shape(d.values[operand.number])
        named = d.one(shape, shape[d.whole(0, len(shape)) :])
        letters = "".join(chr(ord("a") + (2 * size + d.whole(0, 1)) % 26) for size in named)
        hidden = len(named) < len(shape)
        terms.append(("..." if hidden or d.whole(0, 4) == 0 else "") + letters)
    subscripts = ",".join(terms)
    if d.whole(0, 3):
        kept = [c for c in sorted({*subscripts} - {*",."}) if d.whole(0, 1)]
        subscripts += "->" + d.one("".join(kept), "".join(reversed(kept)))
        subscripts += "..." if "..." in subscripts else ""
    return (subscripts, *operands), d.any(optimize=d.one(False, True, "optimal")), None


def _cross(d: Draw) -> Drawn:
    vectors = [k for k, v in enumerate(d.values) if np.shape(v)[-1:] == (3,)]
    return (Value(d.one(*vectors)), Value(d.one(*vectors))), {}, None


def _polynomial(d: Draw) -> Drawn:
    return ([1.0, -0.5, 2.0][: d.whole(1, 3)], d.last), {}, None


def _powers(d: Draw) -> Drawn:
    return (d.last,), {**d.any(N=d.whole(1, 4)), **d.flags("increasing")}, None


def _differences(d: Draw) -> Drawn:
    ends = d.any(prepend=d.one(0.5, d.last), append=d.one(-1.0, d.last))
    return (d.last,), {**d.any(n=d.whole(1, 3), axis=d.axis()), **ends}, None


def _slopes(d: Draw) -> Drawn:
    return (
        (d.last, d.one(0.5, 2.0)),
        {"axis": d.axis() or 0, **d.any(edge_order=d.whole(1, 2))},
        None,
    )


def _trapezoid(d: Draw) -> Drawn:
    return (d.last,), d.any(dx=0.25, axis=d.axis()), None


def _linspace(d: Draw) -> Drawn:
    return (
        (d.other(), d.last, d.whole(1, 4)),
        {**d.flags("endpoint"), **d.any(axis=d.one(0, -1))},
        None,
    )


def _interpolated(d: Draw) -> Drawn:
    points, values = [-1.5, -0.25, 0.5, 0.75, 2.0], [1.0, -2.0, 0.5, 0.25, 3.0]
    return (d.last, points, values), d.any(left=9.0, right=-9.0), None


def _convolved(d: Draw) -> Drawn:
    return (d.other(), d.last), d.any(mode=d.one("full", "same", "valid")), None


def _clipped(d: Draw) -> Drawn:
    return (d.last, d.one(None, -0.3, d.other()), d.one(0.6, d.other())), {}, None


def _norm(d: Draw) -> Drawn:
    order = d.one(None, 1, 2, 3.5, np.inf, -np.inf, -1, 0.5, "fro", "nuc")
    return (d.last,), {"ord": order, **d.any(axis=d.axes()), **d.flags("keepdims")}, None


def _matrix(part: int | None = None) -> Drawer:
    return lambda d: ((d.last,), {}, part)


def _triangular(d: Draw) -> Drawn:
    return (Regular(d.last),), {}, d.whole(0, 1)


def _symmetric(d: Draw) -> Drawn:
    return (Symmetric(d.last),), d.any(UPLO=d.one("L", "U")), None


def _power(d: Draw) -> Drawn:
    return (d.last, d.whole(-3, 4)), {}, None


NORMS = (None, "backward", "ortho", "forward")


def _transformed(real: bool) -> Drawer:
    """Draw a Fourier transform along an axis, whose result is real or complex."""

    def drawn(d: Draw) -> Drawn:
        x = d.one(d.last, Complex(d.last))
        settings = d.any(n=d.whole(0, 9), axis=d.axis(), norm=d.one(*NORMS))
        return (x,), settings, None if real else d.one(*PARTS)

    return drawn


def _transformed_along_several(real: bool) -> Drawer:
    def drawn(d: Draw) -> Drawn:
        x = d.one(d.last, Complex(d.last))
        axes = d.one((0, 1), (-1, -2), (1,), (0, -1), (2, 0))
        sizes = tuple(d.whole(-1, 5) for _ in axes)
        settings = d.any(axes=axes, norm=d.one(*NORMS)) | d.any(s=sizes)
        return (x,), settings, None if real else d.one(*PARTS)

    return drawn


def _recentred(d: Draw) -> Drawn:
    x, part = d.one((d.last, None), (Complex(d.last), d.one(*PARTS)))
    return (x,), d.any(axes=d.axes()), part


FUNCTIONS: Mapping[str, Drawer] = {
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d", "ravel", "transpose"), _alone),
    **dict.fromkeys(("fliplr", "flipud", "matrix_transpose", "squeeze", "nan_to_num"), _alone),
    **dict.fromkeys(("sum", "mean", "prod", "max", "min", "ptp", "median"), _reduced("keepdims")),
    **dict.fromkeys(("nansum", "nanmean", "nanprod", "nanmax", "nanmin"), _reduced("keepdims")),
    "nanmedian": _reduced("keepdims"),
    **dict.fromkeys(("cumsum", "cumprod", "nancumsum", "nancumprod", "sort"), _along),
    "argsort": _alone,
    **dict.fromkeys(("std", "var", "nanstd", "nanvar"), _spread),
    "quantile": _quantiles(1.0, "lower", "higher", "midpoint", "hazen", "weibull"),
    "percentile": _quantiles(100.0, "nearest", "inverted_cdf", "median_unbiased"),
    "nanquantile": _quantiles(1.0),
    "nanpercentile": _quantiles(100.0),
    **dict.fromkeys(("diag", "diagflat", "tril", "triu"), _offset),
    **dict.fromkeys(("diagonal", "trace"), _diagonal),
    "flip": _reduced(),
    "roll": _roll,
    "pad": _pad,
    "concatenate": _joined_along,
    "stack": _stacked,
    **dict.fromkeys(("hstack", "vstack", "dstack", "column_stack"), _joined),
    **dict.fromkeys(("split", "array_split"), _split),
    "tile": _tile,
    "repeat": _repeat,
    "insert": _insert,
    "delete": _delete,
    "meshgrid": _meshgrid,
    "rot90": _rotated,
    **dict.fromkeys(("moveaxis", "swapaxes"), _moved),
    "expand_dims": _expanded,
    "average": _weights,
    "cov": _covariance,
    "corrcoef": lambda d: ((d.last,), d.flags("rowvar"), None),
    "einsum": _einsum,
    "tensordot": _contracted,
    "cross": _cross,
    **dict.fromkeys(("dot", "inner", "outer", "kron", "vdot", "matmul", "append"), _pair),
    **dict.fromkeys(("fmax", "fmin", "logaddexp", "logaddexp2", "fmod"), _pair),
    **dict.fromkeys(("maximum", "minimum", "multiply", "vecdot"), _pair),
    "polyval": _polynomial,
    "vander": _powers,
    "diff": _differences,
    "ediff1d": _alone,
    "gradient": _slopes,
    "trapezoid": _trapezoid,
    "unwrap": _along,
    "linspace": _linspace,
    "interp": _interpolated,
    **dict.fromkeys(("convolve", "correlate"), _convolved),
    "clip": _clipped,
    "linalg.norm": _norm,
    **dict.fromkeys(("linalg.det", "linalg.inv", "linalg.svdvals", "linalg.pinv"), _matrix()),
    **dict.fromkeys(("linalg.trace", "linalg.matrix_norm", "linalg.diagonal"), _matrix()),
    "linalg.vector_norm": _reduced("keepdims"),
    "linalg.slogdet": _matrix(1),
    "linalg.matrix_power": _power,
    "linalg.qr": _triangular,
    "linalg.eigvalsh": _symmetric,
    **dict.fromkeys(("fft.fft", "fft.ifft", "fft.rfft", "fft.ihfft"), _transformed(real=False)),
    **dict.fromkeys(("fft.irfft", "fft.hfft"), _transformed(real=True)),
    **dict.fromkeys(
        ("fft.fft2", "fft.ifft2", "fft.fftn", "fft.ifftn", "fft.rfft2", "fft.rfftn"),
        _transformed_along_several(real=False),
    ),
    **dict.fromkeys(("fft.irfft2", "fft.irfftn"), _transformed_along_several(real=True)),
    **dict.fromkeys(("fft.fftshift", "fft.ifftshift"), _recentred),
}


WILD = [name for name in FUNCTIONS if not name.startswith("fft.") and name != "einsum"]
"""Which results of a transform, or of several factors, are nan depends on the order of terms."""
WITH_INFINITIES = [
    *(name for name in WILD if not name.startswith("linalg.") and "ntile" not in name),
    *["median", "nanmedian"] * 4,
]
"""NumPy's quantiles between an infinity and a number depend on how it interpolates."""
OF_DEPENDENT = ["linalg.det", "linalg.slogdet", "linalg.trace", *["linalg.det"] * 4]
"""Determinants and traces of singular matrices; what has no finite slope there is not compared."""


@st.composite
def programs(draw: Callable[..., Any]) -> Program:
    """Draw a program; the last of its calls may be one that NumPy refuses."""
    points = draw(st.sampled_from(("normal",) * 6 + ("even", "infinite", "wild", "dependent")))
    drawn = st.sampled_from(SHAPES if points != "dependent" else SQUARES)
    shapes = tuple(draw(drawn) for _ in range(draw(st.integers(1, 3))))
    program = Program(shapes, points, draw(st.integers(0, 2**20)))
    values, calls = program.inputs(), []
    for _ in range(draw(st.integers(1, 3))):
        chosen = {"infinite": WITH_INFINITIES, "dependent": OF_DEPENDENT, "wild": WILD}
        names = chosen.get(points, [*FUNCTIONS])
        of_three = any(np.shape(v)[-1:] == (3,) for v in values)
        name = draw(st.sampled_from([name for name in names if name != "cross" or of_three]))
        arguments, keywords, part = FUNCTIONS[name](Draw(draw, values))
        call = Call(name, arguments, keywords, part)
        calls.append(call)
        result = _of_numpy(lambda call=call: call.run(values, np))
        if not isinstance(result, np.ndarray) or not 0 < result.size <= LARGEST:
            break
        values.append(result)
    return Program(shapes, points, program.seed, tuple(calls))


def _of_numpy(compute: Callable[[], Any]) -> Any:
    """Return an array of NumPy's, or the error that it raises."""
    try:
        with _silence():
            return np.asarray(compute())
    except (ValueError, TypeError, IndexError, ArithmeticError) as error:
        return error


def check(program: Program) -> None:
    """Hold the carriers to NumPy, and derivatives to differences or to one another."""
    with _silence():
        _check(program)


@contextmanager
def _silence() -> Iterator[None]:
    """Ignore what NumPy warns of: values that are not finite are compared like all others."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _check(program: Program) -> None:
    inputs = program.inputs()
    wanted = _of_numpy(lambda: program.result(*inputs))
    carriers: Mapping[str, Callable[[], Any]] = {
        "traced": lambda: dl.trace(program.result, *inputs)(*inputs),
        "tensors": lambda: program.result(*map(dl.tensor, inputs)).numpy(),
    }
    if isinstance(wanted, Exception):
        if isinstance(wanted, np.linalg.LinAlgError) and wanted.args[0] in OF_VALUES:
            return  # what depends on the values is nan where nobody can refuse it beforehand
        for name, compute in carriers.items():
            _check_refusal(compute, f"{name}: {wanted}")
        return
    of_matrices = any(call.name.startswith("linalg.") for call in program.calls)
    if of_matrices and any(np.abs(v).max(initial=0) > LARGE for v in program.values(*inputs)):
        return  # of a nearly singular matrix: most digits are rounding errors
    for name, compute in carriers.items():
        _check_near(compute(), wanted, name, 1e-9)
    _check_derivatives(program, inputs, of_matrices)


def _check_refusal(compute: Callable[[], Any], what: str) -> None:
    try:
        found = compute()
    except DifflabError:
        return
    raise AssertionError(f"{what}: not refused, but {found}")


def _check_near(found: Any, wanted: Any, what: str, tolerance: float) -> None:
    found, wanted = np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)
    assert found.shape == wanted.shape, f"{what}: {found.shape}, not {wanted.shape}"
    largest = max(1.0, np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0))
    near = np.isclose(found, wanted, tolerance, tolerance * largest, equal_nan=True)
    assert near.all(), f"{what}: {found[~near][0]}, not {wanted[~near][0]}"


def _check_derivatives(program: Program, inputs: list[Any], of_matrices: bool) -> None:
    along = [np.sin(1.0 + np.arange(x.size)).reshape(x.shape) for x in inputs]
    places = tuple(range(len(inputs)))
    value, slope = dl.jvp(program.total, inputs, along)
    if not all(np.isfinite(each).all() for each in (value, *program.values(*inputs))):
        return  # a slope through what is not finite is nan, also where a zero follows
    gradient = dl.grad(program.total, places)
    slopes = gradient(*inputs)
    leaves = [dl.tensor(x, requires_grad=True) for x in inputs]
    total = program.total(*leaves)
    if total.requires_grad:
        total.backward()
    for leaf, wanted in zip(leaves, slopes, strict=True):
        eager = np.zeros(leaf.shape) if leaf.grad is None else leaf.grad
        _check_near(eager, wanted, "gradient of tensors", 1e-9)
    if program.points == "wild":
        return  # a step beside 1e100 changes nothing
    reverse, scale = _along(slopes, along)
    if of_matrices and not np.isfinite(reverse):
        return  # singular
    _check_near(slope / (1 + scale), reverse / (1 + scale), "forward mode", 1e-9)
    if program.points == "even":
        return
    _check_difference(program.total, inputs, along, reverse, scale)
    if program.points == "dependent" or any("det" in call.name for call in program.calls):
        return  # second derivatives of `det` have no digits where the matrix is nearly singular
    _, bends = dl.jvp(lambda *x: dl.grad(program.total, places)(*x), inputs, along)
    bend, steep = _along(bends, along)
    if not of_matrices or np.isfinite(bend):
        leaning = lambda *x: _along(gradient(*x), along)[0]  # noqa: E731
        _check_difference(leaning, inputs, along, bend, steep + scale)


def _along(gradients: Any, along: list[Any]) -> tuple[Any, Any]:
    """Return a directional derivative, and the sum of the sizes of its terms."""
    terms = [g * d for g, d in zip(gradients, along, strict=True)]
    return sum(map(np.sum, terms)), sum(np.sum(np.abs(term)) for term in terms)


def _check_difference(
    f: Callable[..., Any], inputs: list[Any], along: list[Any], found: Any, scale: float
) -> None:
    """Hold a slope to central differences with two steps that agree: kinks may lie between."""
    wanted: list[Any] = []
    for step in STEPS:
        low, high = (
            f(*(x + t * d for x, d in zip(inputs, along, strict=True))) for t in (-step, step)
        )
        wanted.append((high - low) / (2 * step))
        if abs(found - wanted[-1]) <= NEAR * (1 + scale):
            return
    trusted = any(abs(a - b) <= NEAR * (1 + abs(a)) for a, b in pairwise(wanted))
    assert not trusted, f"slope {found}, not one of {wanted}"


FAMILY = Family("numpy_calls", programs(), check, fixed=600, fresh=100)
