"""The language's array functions: arguments, bracketed integers and implementation of each.

Static integers (axes, sizes, indices) are written in brackets after the arguments:
``sum(x, [0])``. An axis beside a list follows it, ``take(x, [2, 0] along 1)``, and where a part of
an array is put follows the part: ``scatter(a at [0], b at [1:], [3])``. The names are functions
only before a parenthesis, so that a variable may be called `mean`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from difflab import arrays
from difflab.arrays import trigonometric
from difflab.core.primitive import Primitive
from difflab.errors import ShapeError
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.language import placing
from difflab.language.placing import RawKey
from difflab.primitives import (
    eigenvalues,
    eigh,
    maximum,
    minimum,
    pinv,
    qr,
    random_keys,
    random_normal,
    random_uniform,
    singular_values,
    slogdet,
    svd,
)

Compute = Callable[..., Any]
Integers = tuple[int, ...]


@dataclass(slots=True)
class Statics:
    """Static arguments of a call: integers, axis, shape and indices.

    Attributes
    ----------
    integers : tuple of int or None
        The list in brackets.
    axis : int
        The integer behind ``along``.
    shape : tuple of int or None
        The second list.
    places : list
        The indices behind ``at``, for each argument.
    """

    integers: Integers | None = None
    axis: int = 0
    shape: Integers | None = None
    places: list[RawKey] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ArrayCall:
    """An array function of the language.

    Attributes
    ----------
    name : str
        The name in the language.
    compute : callable
        ``(nodes, statics) -> node``.
    least, most : int, int or None
        Minimum and maximum number of arguments; None is unlimited.
    lists : str
        Meaning of the integers in brackets, such as ``"axes"``; empty if none are allowed.
    needs_list : bool
        Whether the brackets are required.
    along, second, placed : bool
        Whether an axis may follow the list, a second list must follow it, and indices follow
        the arguments.
    """

    name: str
    compute: Callable[[Sequence[Node], Statics], Any]
    least: int
    most: int | None
    lists: str = ""
    needs_list: bool = False
    along: bool = False
    second: bool = False
    placed: bool = False

    @property
    def takes(self) -> str:
        """The number of arguments, in words."""
        if self.most is None:
            return f"at least {self.least} argument{'s' * (self.least > 1)}"
        if self.most > self.least:
            return f"{self.least} to {self.most} arguments"
        return f"{self.least} argument{'s' * (self.least > 1)}"


def _reduction(name: str, compute: Compute) -> ArrayCall:
    """Return a reduction, along all axes by default."""
    return ArrayCall(name, lambda nodes, static: compute(nodes[0], static.integers), 1, 1, "axes")


def _normalization(name: str, compute: Compute) -> ArrayCall:
    """Return a function that keeps the shape, along the last axis by default."""
    return ArrayCall(
        name, lambda nodes, static: compute(nodes[0], static.integers or (-1,)), 1, 1, "axes"
    )


def _plain(name: str, compute: Compute, least: int, most: int | None = None) -> ArrayCall:
    return ArrayCall(name, lambda nodes, _: compute(*nodes), least, most or least)


def _factorisation(
    row: Any, *, square: bool = False, tall: bool = False, factors: Any = None
) -> ArrayCall:
    """Return the call of a row of a matrix and, if `factors` is given, of its factorization."""

    def factorised(*nodes: Node) -> Node:
        shape = nodes[0].shape
        if len(shape) < 2 or 0 in shape:
            raise ShapeError(f"{row.name} takes matrices that are not empty, not {list(shape)}")
        if square and shape[-1] != shape[-2]:
            raise ShapeError(f"{row.name} takes square matrices, not {list(shape)}")
        if tall and shape[-2] < shape[-1]:
            raise ShapeError(
                f"{row.name} takes matrices with as many rows as columns, not {list(shape)}"
            )
        if factors is not None and nodes[1].shape != (wanted := factors.shape([shape])):
            raise ShapeError(
                f"{row.name} takes a matrix A and {factors.name}(A), of shape {list(wanted)},"
                f" not {list(nodes[1].shape)}",
                hint=f"write {row.name}(A, {factors.name}(A))",
            )
        node: Node = row(*nodes)
        return node

    return _plain(row.name, factorised, 1 if factors is None else 2)


def _joining(name: str, compute: Compute) -> ArrayCall:
    """Return a function that joins arrays, along the first axis by default."""
    return ArrayCall(
        name,
        lambda nodes, static: compute(nodes, (static.integers or (0,))[0]),
        1,
        None,
        "the axis",
    )


def _with_integers(name: str, compute: Compute, what: str) -> ArrayCall:
    return ArrayCall(
        name, lambda nodes, static: compute(nodes[0], static.integers), 1, 1, what, True
    )


def _extreme(name: str, compute: Compute, pairwise: Compute) -> ArrayCall:
    """Return max or min: a reduction of one array, elementwise for several values."""

    def extreme(nodes: Sequence[Node], static: Statics) -> Any:
        if len(nodes) == 1:
            return compute(nodes[0], static.integers)
        if static.integers is not None:
            raise ShapeError(f"{name} along axes takes one array, not {len(nodes)} values")
        result = nodes[0]
        for other in nodes[1:]:
            result = pairwise(result, other)
        return result

    return ArrayCall(name, extreme, 1, None, "axes")


def _transpose(nodes: Sequence[Node], static: Statics) -> Any:
    return arrays.transpose(nodes[0], static.integers)


def _cross_entropy(nodes: Sequence[Node], static: Statics) -> Any:
    classes = static.integers
    if (classes is None) != (len(nodes) == 2):
        raise ShapeError(
            "cross_entropy takes the classes in brackets, or an array of probabilities",
            hint="write cross_entropy(x, [2]), or cross_entropy(x, p)",
        )
    return arrays.cross_entropy(nodes[0], nodes[1] if classes is None else classes)


def _max_pool(nodes: Sequence[Node], static: Statics) -> Any:
    size = static.integers
    if size is None or len(size) > 2 or min(size) < 1:
        raise ShapeError("max_pool takes a size and an optional stride, both at least 1")
    return arrays.max_pool(nodes[0], *size)


def _single(compute: Compute) -> Callable[[Sequence[Node], Statics], Any]:
    """Return a function that works along one axis, or on all elements in row-major order."""

    def computed(nodes: Sequence[Node], static: Statics) -> Any:
        axes = static.integers
        if axes is not None and len(axes) > 1:
            raise ShapeError(f"expected one axis, not {len(axes)}")
        return compute(nodes[0], None if axes is None else axes[0])

    return computed


def _random(row: Primitive, compute: Callable[[Node, Shape], Node]) -> ArrayCall:
    """Return a function of a key, of the shape in brackets."""
    return ArrayCall(
        row.name,
        lambda nodes, static: compute(nodes[0], static.integers or ()),
        1,
        1,
        "the shape",
    )


def _transform(name: str, compute: Compute) -> ArrayCall:
    """Return a Fourier transform, of an axis and whether it is transposed."""
    return ArrayCall(
        name, lambda nodes, static: compute(nodes[0], static.integers or ()), 1, 1, "the axis"
    )


def _last(compute: Compute) -> Callable[[Sequence[Node], Statics], Any]:
    """Return a function that works along one axis, the last one by default."""

    def computed(nodes: Sequence[Node], static: Statics) -> Any:
        axes = (-1,) if static.integers is None else static.integers
        if len(axes) != 1:
            raise ShapeError(f"expected one axis, not {len(axes)}")
        return compute(*nodes, axes[0])

    return computed


def _put_along(nodes: Sequence[Node], static: Statics) -> Any:
    integers = static.integers or ()
    if len(integers) != 2:
        raise ShapeError("put_along takes an axis and its size, as in put_along(x, i, [0, 4])")
    return placing.put_along(nodes[0], nodes[1], integers[0], integers[1])


def _taken(nodes: Sequence[Node], static: Statics) -> Any:
    return arrays.take(nodes[0], static.integers or (), static.axis)


def _put(nodes: Sequence[Node], static: Statics) -> Any:
    return placing.put(nodes[0], static.integers or (), static.axis, static.shape or ())


def _scattered(nodes: Sequence[Node], static: Statics) -> Any:
    return placing.scattered(nodes, static.places, static.integers or ())


def _in_order(nodes: Sequence[Node], static: Statics) -> Any:
    return placing.sum_in_order(nodes, static.places)


def _table(*calls: ArrayCall) -> Mapping[str, ArrayCall]:
    return {call.name: call for call in calls}


ALIASES: Mapping[str, str] = {
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "absolute": "abs",
    "fabs": "abs",
    "maximum": "max",
    "minimum": "min",
    "lgamma": "loggamma",
    "gammaln": "loggamma",
}
"""NumPy's and SciPy's other names of functions of the language."""

CALLS: Mapping[str, ArrayCall] = _table(
    _reduction("sum", arrays.sum),
    _reduction("prod", arrays.prod),
    _reduction("mean", arrays.mean),
    _reduction("norm", arrays.norm),
    _reduction("logsumexp", arrays.logsumexp),
    _reduction("squeeze", arrays.squeeze),
    _extreme("max", arrays.max, maximum),
    _extreme("min", arrays.min, minimum),
    ArrayCall("argmax", _single(arrays.argmax), 1, 1, "the axis"),
    ArrayCall("cumprod", _single(arrays.cumprod), 1, 1, "the axis"),
    ArrayCall("cumsum", _single(arrays.cumsum), 1, 1, "the axis"),
    ArrayCall("linear_recurrence", _last(arrays.linear_recurrence), 2, 2, "the axis"),
    ArrayCall("argsort", _last(arrays.argsort), 1, 1, "the axis"),
    ArrayCall("sort", _last(arrays.sort), 1, 1, "the axis"),
    ArrayCall("take_along", _last(arrays.take_along_axis), 2, 2, "the axis"),
    ArrayCall("put_along", _put_along, 2, 2, "the axis and its size", True),
    _plain("convolve", arrays.convolve, 2),
    _plain("correlate", arrays.correlate, 2),
    _transform("fft", placing.fft),
    _transform("rfft", placing.rfft),
    _transform("irfft", placing.irfft),
    _normalization("softmax", arrays.softmax),
    _normalization("log_softmax", arrays.log_softmax),
    _plain("dot", arrays.dot, 2),
    _plain("matmul", arrays.matmul, 2),
    _plain("outer", arrays.outer, 2),
    _plain("solve", arrays.solve, 2),
    _plain("inv", arrays.inv, 1),
    _plain("det", arrays.det, 1),
    _plain("cofactor", arrays.cofactor, 1),
    _plain("logdet", arrays.logdet, 1),
    _plain("expm", arrays.expm, 1),
    _plain("expm_frechet", arrays.expm_frechet, 2),
    _plain("cholesky", arrays.cholesky, 1),
    _factorisation(eigenvalues, square=True, factors=eigh),
    _factorisation(eigh, square=True),
    _factorisation(pinv),
    _factorisation(qr, tall=True),
    _factorisation(singular_values, factors=svd),
    _factorisation(slogdet, square=True),
    _factorisation(svd),
    *(_plain(name, getattr(arrays, name), 1) for name in ("eigvalsh", "svdvals", "matrix_rank")),
    _plain("trace", arrays.trace, 1),
    _plain("diag", arrays.diag, 1),
    _plain("diagonal", arrays.diagonal, 1),
    ArrayCall("transpose", _transpose, 1, 1, "the order of the axes"),
    _with_integers("reshape", arrays.reshape, "the shape"),
    _with_integers("broadcast", arrays.broadcast_to, "the shape"),
    ArrayCall("take", _taken, 1, 1, "the indices", True, along=True),
    ArrayCall("put", _put, 1, 1, "the indices", True, along=True, second=True),
    ArrayCall("scatter", _scattered, 1, None, "the shape", True, placed=True),
    ArrayCall("sum_in_order", _in_order, 1, None, placed=True),
    _reduction("is_maximum", placing.is_maximum),
    _joining("concatenate", arrays.concatenate),
    _joining("stack", arrays.stack),
    _plain("leaky_relu", arrays.leaky_relu, 1),
    _plain("gelu", arrays.gelu, 1),
    _plain("mse", arrays.mse, 2),
    *(_plain(name, getattr(arrays, name), 1) for name in trigonometric.__all__),
    ArrayCall("cross_entropy", _cross_entropy, 1, 2, "the classes"),
    _plain("layer_norm", arrays.layer_norm, 1, 3),
    _plain("batch_norm", arrays.batch_norm, 1, 3),
    _plain("conv2d", arrays.conv2d, 2, 3),
    ArrayCall("max_pool", _max_pool, 1, 1, "the size", True),
    _random(random_keys, placing.random_keys),
    _random(random_normal, partial(placing.drawn, random_normal)),
    _random(random_uniform, partial(placing.drawn, random_uniform)),
)

LIST = ArrayCall("[…]", lambda nodes, _: placing.listed(nodes), 1, None)
"""The list of an array's elements."""


def _no_call(nodes: Sequence[Node], static: Statics) -> Node:
    raise AssertionError("a loop is no function of its operands")


ITERATE = ArrayCall("iterate", _no_call, 1, None)
"""A loop, whose parentheses hold clauses."""
ROOT = ArrayCall("root", _no_call, 3, 3)
"""A solution of an equation, whose first argument is an expression of a name of its own."""
CLAUSED = (ITERATE, ROOT)
"""The calls that have a scope of their own, whose parentheses may hold definitions."""
