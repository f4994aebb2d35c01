"""The language's functions of arrays: what each word is, how many arguments, what stands in [ ].

Static integers (axes, sizes, places) stand in brackets behind the arguments: ``sum(x, [0])``.
The words are functions only before a parenthesis, so that a variable may be called `mean`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from difflab import arrays
from difflab.errors import ShapeError
from difflab.graph.node import Node
from difflab.primitives import maximum, minimum

__all__ = ["CALLS", "Call"]

Compute = Callable[..., Any]
Integers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A word of the language.

    Attributes
    ----------
    name : str
        The word.
    compute : callable
        ``(nodes, integers) -> node``; `integers` is None where no brackets were written.
    least, most : int, int or None
        How many arguments it takes; None is any number.
    lists : str
        What the brackets hold, such as ``"axes"``; empty where none can be written.
    needs_list : bool
        Whether the brackets must be written.
    """

    name: str
    compute: Callable[[Sequence[Node], Integers | None], Any]
    least: int
    most: int | None
    lists: str = ""
    needs_list: bool = False

    @property
    def takes(self) -> str:
        """How many arguments it takes, in words."""
        if self.most is None:
            return f"at least {self.least} argument{'s' * (self.least > 1)}"
        if self.most > self.least:
            return f"{self.least} to {self.most} arguments"
        return f"{self.least} argument{'s' * (self.least > 1)}"


def _along(name: str, compute: Compute) -> Call:
    """Return a reduction, along all axes where none are given."""
    return Call(name, lambda nodes, axes: compute(nodes[0], axes), 1, 1, "axes")


def _mixing(name: str, compute: Compute) -> Call:
    """Return what keeps the shape, along the last axis where none is given."""
    return Call(name, lambda nodes, axes: compute(nodes[0], axes or (-1,)), 1, 1, "axes")


def _plain(name: str, compute: Compute, least: int, most: int | None = None) -> Call:
    return Call(name, lambda nodes, _: compute(*nodes), least, most or least)


def _joined(name: str, compute: Compute) -> Call:
    """Return what joins arrays, along the first axis where none is given."""
    return Call(name, lambda nodes, axes: compute(nodes, (axes or (0,))[0]), 1, None, "the axis")


def _given(name: str, compute: Compute, what: str) -> Call:
    return Call(name, lambda nodes, integers: compute(nodes[0], integers), 1, 1, what, True)


def _extreme(name: str, compute: Compute, pairwise: Compute) -> Call:
    """Return max or min: of one array a reduction, of several values elementwise."""

    def extreme(nodes: Sequence[Node], axes: Integers | None) -> Any:
        if len(nodes) == 1:
            return compute(nodes[0], axes)
        if axes is not None:
            raise ShapeError(f"{name} along axes takes one array, not {len(nodes)} values")
        found = nodes[0]
        for other in nodes[1:]:
            found = pairwise(found, other)
        return found

    return Call(name, extreme, 1, None, "axes")


def _turned(nodes: Sequence[Node], axes: Integers | None) -> Any:
    return arrays.transpose(nodes[0], axes)


def _entropy(nodes: Sequence[Node], classes: Integers | None) -> Any:
    if (classes is None) != (len(nodes) == 2):
        raise ShapeError(
            "cross_entropy takes the classes in brackets, or an array of probabilities",
            hint="write cross_entropy(x, [2]), or cross_entropy(x, p)",
        )
    return arrays.cross_entropy(nodes[0], nodes[1] if classes is None else classes)


def _pooled(nodes: Sequence[Node], size: Integers | None) -> Any:
    if size is None or len(size) > 2 or min(size) < 1:
        raise ShapeError("max_pool takes a size and a stride, both at least 1")
    return arrays.max_pool(nodes[0], *size)


def _single(compute: Compute) -> Callable[[Sequence[Node], Integers | None], Any]:
    """Return what works along one axis, or on all numbers in order."""

    def computed(nodes: Sequence[Node], axes: Integers | None) -> Any:
        if axes is not None and len(axes) > 1:
            raise ShapeError(f"one axis is taken, not {len(axes)}")
        return compute(nodes[0], None if axes is None else axes[0])

    return computed


def _table(*calls: Call) -> Mapping[str, Call]:
    return {call.name: call for call in calls}


RECIPROCALS = (
    *("sec", "csc", "cot", "csch", "coth"),
    *("asec", "acsc", "acot", "asech", "acsch", "acoth"),
)
"""Functions of `arrays.trigonometric`, under their own names."""

CALLS: Mapping[str, Call] = _table(
    _along("sum", arrays.sum),
    _along("prod", arrays.prod),
    _along("mean", arrays.mean),
    _along("norm", arrays.norm),
    _along("logsumexp", arrays.logsumexp),
    _along("squeeze", arrays.squeeze),
    _extreme("max", arrays.max, maximum),
    _extreme("min", arrays.min, minimum),
    Call("argmax", _single(arrays.argmax), 1, 1, "the axis"),
    Call("cumsum", _single(arrays.cumsum), 1, 1, "the axis"),
    _mixing("softmax", arrays.softmax),
    _mixing("log_softmax", arrays.log_softmax),
    _plain("dot", arrays.dot, 2),
    _plain("matmul", arrays.matmul, 2),
    _plain("outer", arrays.outer, 2),
    _plain("solve", arrays.solve, 2),
    _plain("inv", arrays.inv, 1),
    _plain("det", arrays.det, 1),
    _plain("cofactor", arrays.cofactor, 1),
    _plain("logdet", arrays.logdet, 1),
    _plain("cholesky", arrays.cholesky, 1),
    _plain("trace", arrays.trace, 1),
    _plain("diag", arrays.diag, 1),
    _plain("diagonal", arrays.diagonal, 1),
    Call("transpose", _turned, 1, 1, "the order of the axes"),
    _given("reshape", arrays.reshape, "the shape"),
    _given("broadcast", arrays.broadcast_to, "the shape"),
    _given("take", arrays.take, "the places"),
    _joined("concatenate", arrays.concatenate),
    _joined("stack", arrays.stack),
    _plain("leaky_relu", arrays.leaky_relu, 1),
    _plain("gelu", arrays.gelu, 1),
    _plain("mse", arrays.mse, 2),
    *(_plain(name, getattr(arrays, name), 1) for name in RECIPROCALS),
    Call("cross_entropy", _entropy, 1, 2, "the classes"),
    _plain("layer_norm", arrays.layer_norm, 1, 3),
    _plain("batch_norm", arrays.batch_norm, 1, 3),
    _plain("conv2d", arrays.conv2d, 2, 3),
    Call("max_pool", _pooled, 1, 1, "the size", True),
)
