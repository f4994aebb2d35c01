"""Kinds of values that users hand over, and the doors at which they enter.

A kind makes a value of an array and says what of it survives: an array of float64 or complex
numbers that is all of it, or nothing, where it must be refused. A door computes with the value,
and says what NumPy gives for that array.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import difflab as dl
import difflab.interop.jax
import difflab.interop.scipy
import difflab.interop.torch
from difflab import testing
from tests.support import standin

__all__ = ["ALSO", "DOORS", "KINDS", "MAKERS", "POINT", "Door", "Kind", "left_out"]

POINT = np.array([1.5, 2.25])
"""Exact in every dtype, also in bfloat16."""
X = np.array([0.75, 1.125])
Array = Any


@dataclass(frozen=True)
class Kind:
    """A kind of values.

    Attributes
    ----------
    make : callable
        Makes the value of an array.
    word : str
        A regular expression for the reason of its refusal.
    kept : callable or None
        The array that is all of the value; None where it must be refused everywhere.
    packages : tuple of str
        What makes the value.
    half : bool
        Whether it is of a dtype in which nothing is computed: a result in float64 is no right one.
    everywhere : bool
        Whether every door takes it.
    parts : bool
        Whether it is an array of NumPy that is more than its elements.
    """

    make: Callable[[Array], Any]
    word: str = ""
    kept: Callable[[Array], Array] | None = None
    packages: tuple[str, ...] = ()
    half: bool = False
    everywhere: bool = False
    parts: bool = False


def _itself(array: Array) -> Array:
    return array


def _spread(array: Array) -> Array:
    """Return a view of every second element."""
    return np.repeat(np.asarray(array), 2)[::2].reshape(np.shape(array))


def _read_only(array: Array) -> Array:
    found = np.array(array)
    found.flags.writeable = False
    return found


def _mapped(array: Array) -> Array:
    with tempfile.NamedTemporaryFile() as file:
        found = np.memmap(file.name, float, "w+", shape=np.shape(array))
        found[...] = array
        return found


def _matrix(array: Array) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy advises against it
        return np.matrix(array)


def _module(name: str) -> Any:
    return import_module(name)


def _bfloat16(array: Array) -> Array:
    return np.asarray(array).astype(_module("ml_dtypes").bfloat16)


def _torch(array: Array, **more: Any) -> Any:
    return _module("torch").tensor(np.array(array), **more)


def _negative(array: Array) -> Any:
    """Return a tensor with PyTorch's negative bit: the imaginary part of a conjugate."""
    return _torch(1j * -np.asarray(array)).conj().imag


def _quantity(array: Array) -> Any:
    return _module("pint").UnitRegistry().Quantity(np.array(array), "m")


def _like(kind: Callable[[Any], Any]) -> Callable[[Array], Any]:
    """Return what makes an array of objects, or one of them where there is no axis."""
    return lambda array: np.vectorize(kind, otypes=[object])(array)[()]


class Subclass(np.ndarray):  # type: ignore[type-arg]
    """An array of a class of its own, which may hold more than its elements."""


KINDS: dict[str, Kind] = {
    "float64": Kind(np.array, kept=_itself, everywhere=True),
    "big-endian": Kind(lambda a: np.asarray(a, ">f8"), kept=_itself, everywhere=True),
    "read-only": Kind(_read_only, kept=_itself, everywhere=True),
    "not contiguous": Kind(_spread, kept=_itself, everywhere=True),
    "reversed": Kind(lambda a: np.array(a[::-1])[::-1], kept=_itself, everywhere=True),
    "mapped": Kind(_mapped, kept=_itself, everywhere=True),
    "float32": Kind(lambda a: np.asarray(a, np.float32), kept=_itself, everywhere=True),
    "no masked element": Kind(np.ma.array, "mask", kept=_itself),
    "exact longdouble": Kind(lambda a: np.asarray(a, np.longdouble), "float", kept=_itself),
    "longdouble": Kind(
        lambda a: np.asarray(a, np.longdouble) * (1 + np.finfo(np.longdouble).eps),
        "digits|float128|float96|wrong",
    ),
    "complex": Kind(lambda a: a + 1000j, "real|imaginary|complex", kept=lambda a: a + 1000j),
    "complex with imaginary part 0": Kind(lambda a: a + 0j, "real|complex", kept=lambda a: a + 0j),
    "clongdouble": Kind(
        lambda a: np.asarray(a + 1j, np.clongdouble) / 7, "digits|real|imaginary|complex"
    ),
    "masked": Kind(lambda a: np.ma.array(a, mask=[False, True]), "mask", parts=True),
    "matrix": Kind(_matrix, "matrix", parts=True),
    "subclass": Kind(lambda a: np.array(a).view(Subclass), "Subclass", parts=True),
    "objects": Kind(lambda a: np.array(a, object), "object|real|number", kept=_itself),
    "objects that are no numbers": Kind(
        lambda a: np.array([a[0], {}], object), "object|number|real|dict"
    ),
    "float16": Kind(lambda a: np.asarray(a, np.float16), "float16|wrong", kept=_itself, half=True),
    "bfloat16": Kind(_bfloat16, "bfloat16|wrong", _itself, ("ml_dtypes",), half=True),
    "bool": Kind(
        lambda a: np.array([True, False]),
        "bool|integers|wrong|no array or number",
        lambda a: np.array([1.0, 0.0]),
    ),
    "integers": Kind(
        lambda a: np.asarray(a).astype(int), "integers|wrong|no array or number", np.trunc
    ),
    "huge integers": Kind(
        lambda a: np.array([2**53 + 1, 1]), "digits|integers|wrong|too large for"
    ),
    "unsigned": Kind(lambda a: np.array([2**64 - 1, 1], np.uint64), "digits|integers|wrong"),
    "Decimals": Kind(_like(Decimal), "Decimal|real|object"),
    "list of Decimals": Kind(lambda a: list(map(Decimal, a)), "Decimal|list"),
    "Fractions": Kind(_like(Fraction), "Fraction|real|object"),
    "text": Kind(lambda a: "1.5", "text|str|structure|number"),
    "texts": Kind(lambda a: np.array(["1.5", "2"]), "text|<U3|number"),
    "None in an array": Kind(lambda a: np.array([a[0], None]), "None|real|object"),
    "dates": Kind(lambda a: np.array(["2020-01-01", "2021-01-01"], "M8[D]"), "datetime64"),
    "durations": Kind(lambda a: np.array([1, 2], "m8[s]"), "timedelta64|real|shape"),
    "records": Kind(lambda a: np.array([(1.5,), (2.25,)], [("a", float)]), "fields|'a'"),
    "recarray": Kind(
        lambda a: np.rec.array([(1.5,), (2.25,)], [("a", float)]), "recarray|fields|'a'"
    ),
    "sparse array": Kind(
        lambda a: _module("scipy.sparse").csr_array(np.diag(a)), "sparse|shape|Sparse"
    ),
    "sparse matrix": Kind(
        lambda a: _module("scipy.sparse").csr_matrix(np.diag(a)), "sparse|shape|Sparse"
    ),
    "Series": Kind(lambda a: _module("pandas").Series(a), "Series|labels", _itself, ("pandas",)),
    "labelled Series": Kind(
        lambda a: _module("pandas").Series(a, index=[1, 0]), "labels|Series", None, ("pandas",)
    ),
    "Series with missing values": Kind(
        lambda a: _module("pandas").Series([a[0], None], dtype="Float64"),
        "missing|Series",
        None,
        ("pandas",),
    ),
    "DataFrame": Kind(
        lambda a: _module("pandas").DataFrame({"a": a}), "labels|DataFrame", None, ("pandas",)
    ),
    "DataArray": Kind(
        lambda a: _module("xarray").DataArray(a, dims="t"), "labels|DataArray", None, ("xarray",)
    ),
    "Quantity": Kind(_quantity, "unit|Quantity", None, ("pint",)),
    "PyTorch": Kind(_torch, "PyTorch|torch|Tensor", _itself, ("torch",)),
    "PyTorch with gradient": Kind(
        lambda a: _torch(a, requires_grad=True), "PyTorch|torch|Tensor", _itself, ("torch",)
    ),
    "PyTorch's negative bit": Kind(_negative, "PyTorch|torch|Tensor", _itself, ("torch",)),
    "PyTorch's bfloat16": Kind(
        lambda a: _torch(a, dtype=_module("torch").bfloat16),
        "wrong|PyTorch|torch|Tensor|bfloat16",
        _itself,
        ("torch",),
        half=True,
    ),
    "JAX": Kind(
        lambda a: _module("jax.numpy").asarray(a), "wrong|JAX|jax|ArrayImpl", _itself, ("jax",)
    ),
    "JAX's bfloat16": Kind(
        lambda a: _module("jax.numpy").asarray(a, "bfloat16"),
        "bfloat16|JAX|jax|ArrayImpl|wrong",
        _itself,
        ("jax",),
        half=True,
    ),
    "CuPy's stand-in": Kind(standin.asarray, "device|numpy|cupy|ndarray", _itself),
}


def sum_of_squares(x: Any) -> Any:
    return (x * x).sum()


def _flat(*parts: Any) -> Array:
    return np.concatenate([np.ravel(p.get() if hasattr(p, "get") else p) for p in parts])


SQUARE = dl.parse("x*x")
SCALAR = dl.compile(SQUARE)
TOTAL = dl.value_and_gradient(dl.parse("x: [2]; sum(x*x)"))
WHOLE = dl.compile(TOTAL)
PACKED = dl.compile(TOTAL, packed=True)
PROBLEM = difflab.interop.scipy.problem(dl.parse("x: [2]; sum(x*x)"))


def _eager(value: Any) -> Any:
    x = dl.tensor(value, requires_grad=True)
    sum_of_squares(x).backward()
    assert x.grad is not None
    return x.grad.numpy()


def _operand(compute: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """Return the gradient at X of the sum of a tensor combined with the value."""

    def door(value: Any) -> Any:
        x = dl.tensor(X, requires_grad=True)
        found = compute(x, value)
        if isinstance(found, dl.arrays.ComplexArray):  # which has a real and an imaginary part
            again = dl.tensor(X, requires_grad=True)
            imaginary = np.sum(compute(again, value).imag)
            if imaginary.requires_grad:  # 0 is a constant
                imaginary.backward()
            np.sum(found.real).backward()
            return x.grad.numpy() + 1j * (0.0 if again.grad is None else again.grad.numpy())
        np.sum(found).backward()
        return x.grad.numpy()  # type: ignore[union-attr]

    return door


def _pulled(value: Any) -> Any:
    x = dl.tensor(X, requires_grad=True)
    (x * x).backward(value)
    return x.grad.numpy()  # type: ignore[union-attr]


def _applied(value: Any) -> Any:
    rows = value.reshape(-1, 1) if hasattr(value, "reshape") else value
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "y.npy")
        dl.apply(SCALAR, rows, path)
        return np.load(path).ravel()


class Squared(dl.CustomFunction):
    """A user's own operation."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, bar: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2.0 * x * bar


def _compared(value: Any) -> Any:
    return dl.compare(
        "x: [2]; sum(x*x)", at={"x": value}, timing=False, methods=["finite-forward"]
    ).value


def _by_torch(value: Any) -> Any:
    return difflab.interop.torch.wrap(SQUARE)(value).detach()


def _by_jax(value: Any) -> Any:
    return difflab.interop.jax.wrap(SQUARE)(value)


@dataclass(frozen=True)
class Door:
    """A door: what it computes with a value, and what NumPy gives for the same array."""

    enter: Callable[[Any], Any]
    expected: Callable[[Array], Any]


def _nothing(array: Array) -> None:
    """A check that passes."""
    return


def _traced_shape(value: Any) -> Any:
    return dl.trace(sum_of_squares, value)(X)


def _checks() -> dict[str, Door]:
    """Return every check of a derivative, which is the value, and right."""
    half = 0.5 * POINT  # where the gradient of the sum of squares is POINT

    def times(make: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
        return lambda x, other: make(POINT * other)

    def of(name: str, *arguments: Any) -> Callable[[Any], Any]:
        return lambda value: getattr(testing, name)(*arguments, value)

    def line(x: Any) -> Any:
        return POINT * x

    def bowl(x: Any) -> Any:
        return (0.5 * POINT * x * x).sum()

    return {
        "check_gradient at": Door(of("check_gradient", sum_of_squares, lambda x: 2 * x), _nothing),
        "check_gradient of": Door(
            lambda v: testing.check_gradient(sum_of_squares, lambda x: v, half), _nothing
        ),
        "check_gradient of a tree": Door(
            lambda v: testing.check_gradient(
                lambda p: sum_of_squares(p["x"]), lambda p: {"x": v}, {"x": half}
            ),
            _nothing,
        ),
        "check_gradient at a tree": Door(
            lambda v: testing.check_gradient(
                lambda p: sum_of_squares(p["x"]), lambda p: {"x": 2 * p["x"]}, {"x": v}
            ),
            _nothing,
        ),
        "check_gradient, f": Door(
            lambda v: testing.check_gradient(lambda x: v, lambda x: np.zeros((2, 2)), half),
            _nothing,
        ),
        "check_jacobian": Door(
            lambda v: testing.check_jacobian(sum_of_squares, lambda x: v, half), _nothing
        ),
        "check_hessian": Door(
            lambda v: testing.check_hessian(
                lambda x: (0.5 * POINT[1] * x * x).sum(), lambda x: v[1:], np.ones(1)
            ),
            _nothing,
        ),
        "check_jvp": Door(lambda make: testing.check_jvp(line, times(make), X), _nothing),
        "check_vjp": Door(lambda make: testing.check_vjp(line, times(make), X), _nothing),
        "check_hvp": Door(lambda make: testing.check_hvp(bowl, times(make), X), _nothing),
    }


ALSO = {
    "jvp": "have the structure",
    "vjp": "have the structure",
    "apply": "cannot tell the format|has the shape",
    "v * tensor": "converted to a NumPy array implicitly|numpy.sum used this way",
    "np.multiply(v, tensor)": "numpy.sum used this way",
    "closure of grad, left": "turned into a NumPy array|numpy.sum used this way",
    "np.multiply in grad": "numpy.sum used this way",
    "check_gradient of a tree": "has the structure",
    "check_gradient at a tree": "no array or number of a floating-point or complex dtype",
    "check_jvp": "has the structure",
    "check_vjp": "has the structure",
    "check_hvp": "has the structure",
}
"""Other reasons of a door: lists are trees there, or another library calls NumPy first."""
MAKERS = frozenset({"check_jvp", "check_vjp", "check_hvp"})
"""Doors that make values themselves."""
PLAIN = frozenset({"custom function", "scan"})
"""Doors where the user's own code computes with the arrays of NumPy that enter."""
DOORS: dict[str, Door] = {
    "grad": Door(dl.grad(sum_of_squares), lambda a: 2 * a),
    "value_and_grad": Door(
        lambda v: _flat(*dl.value_and_grad(sum_of_squares)(v)),
        lambda a: _flat(np.sum(a * a), 2 * a),
    ),
    "jit": Door(lambda v: dl.jit(sum_of_squares)(v), lambda a: np.sum(a * a)),
    "vmap": Door(dl.vmap(lambda x: x * x), lambda a: a * a),
    "jvp": Door(lambda v: dl.jvp(sum_of_squares, (X,), (v,))[1], lambda a: np.sum(2 * X * a)),
    "vjp": Door(lambda v: dl.vjp(lambda x: x * x, X)[1](v)[0], lambda a: 2 * X * a),
    "trace": Door(_traced_shape, lambda a: np.sum(X * X)),
    "scan": Door(
        lambda v: dl.scan(lambda carry, x: (carry + x * x, carry), 0.0, v)[0],
        lambda a: np.sum(a * a),
    ),
    "Function": Door(SQUARE, lambda a: a * a),
    "evaluate": Door(lambda v: dl.evaluate(SQUARE, [v])[0], lambda a: a * a),
    "compile": Door(SCALAR, lambda a: a * a),
    "compile of arrays": Door(lambda v: _flat(*WHOLE(v)), lambda a: _flat(np.sum(a * a), 2 * a)),
    "packed": Door(lambda v: _flat(*PACKED(v)), lambda a: _flat(np.sum(a * a), 2 * a)),
    "apply": Door(_applied, lambda a: a * a),
    "problem.fun": Door(PROBLEM.fun, lambda a: np.sum(a * a)),
    "problem.jac": Door(PROBLEM.jac, lambda a: 2 * a),
    "problem.pack": Door(lambda v: PROBLEM.pack(x=v), lambda a: a),
    "constants of a problem": Door(
        lambda v: difflab.interop.scipy.problem(
            dl.parse("x: [2]; c: [2]; sum(x*c)"), constants={"c": v}
        ).jac(X),
        lambda a: a,
    ),
    "compare": Door(_compared, lambda a: [np.sum(a * a)]),
    "differentiate": Door(
        lambda v: np.round(dl.differentiate(sum_of_squares, v, method="richardson").value, 9),
        lambda a: 2 * a,
    ),
    "tensor": Door(_eager, lambda a: 2 * a),
    "tensor * v": Door(_operand(lambda x, v: x * v), lambda a: a),
    "v * tensor": Door(_operand(lambda x, v: v * x), lambda a: a),
    "np.multiply(v, tensor)": Door(_operand(lambda x, v: np.multiply(v, x)), lambda a: a),
    "backward": Door(_pulled, lambda a: 2 * X * a),
    "custom function": Door(Squared.apply, lambda a: a * a),
    "closure of grad": Door(lambda v: dl.grad(lambda x: np.sum(x * v))(X), lambda a: a),
    "closure of grad, left": Door(lambda v: dl.grad(lambda x: np.sum(v * x))(X), lambda a: a),
    "np.multiply in grad": Door(
        lambda v: dl.grad(lambda x: np.sum(np.multiply(v, x)))(X), lambda a: a
    ),
    "closure of jit": Door(lambda v: dl.jit(lambda x: np.sum(x * v))(X), lambda a: np.sum(X * a)),
    "closure of vmap": Door(
        lambda v: dl.vmap(lambda x: np.sum(x * v))(X[:, None]), lambda a: X * np.sum(a)
    ),
    "constant of trace": Door(
        lambda v: dl.trace(lambda x: np.sum(x * v), X)(X), lambda a: np.sum(X * a)
    ),
    "result of jit": Door(lambda v: dl.jit(lambda x: v)(X), lambda a: a),
    "result of grad": Door(
        lambda v: dl.grad(lambda x: (np.sum(x) + v).sum())(X), lambda a: np.full(2, 2.0)
    ),
    "torch.wrap": Door(_by_torch, lambda a: a * a),
    "jax.wrap": Door(_by_jax, lambda a: a * a),
    **_checks(),
}


def left_out(kind: str, door: str) -> str:
    """Return why a pair is none: the value does not enter difflab there; empty if it does."""
    if kind == "Quantity" and "tensor" in door and "v" in door:
        return "pint holds the tensor in a quantity, with the unit"
    if kind == "CuPy's stand-in" and (door.startswith(("check", "np.multiply", "jax", "torch"))):
        return "the stand-in has neither DLPack nor NumPy's protocols"
    if door.endswith(".wrap") and not find_spec(door.removesuffix(".wrap")):
        return "the library is not installed"
    if door in PLAIN and KINDS[kind].kept is None and not KINDS[kind].parts:
        return "the user's own code computes with it"
    if kind == "float32" and door in MAKERS:
        return "a product that is rounded to float32 is wrong in float64"
    return ""
