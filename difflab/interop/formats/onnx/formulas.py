"""Elementwise rows in ONNX's operators: those that are one, and accurate formulas of several."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from inspect import signature
from typing import Any, Protocol

from difflab import primitives as rows
from difflab.core.primitive import Primitive, Shape
from difflab.graph.evaluate import fold
from difflab.graph.function import Function
from difflab.graph.ir import Number
from difflab.graph.node import Node
from difflab.graph.rewritten import composed
from difflab.lower.recorded import recorded
from difflab.primitives import TABLE

Spelling = Callable[..., str]


class Emitter(Protocol):
    """Interface by which spellings append operators to the model that is written."""

    def operator(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Append an operator, and return the name of its result."""

    def number(self, value: float) -> str:
        """Return the name of a stored number."""

    def as_number(self, value: str) -> str:
        """Append a cast of booleans or integers to floating point."""

    def integers(self, values: Any) -> str:
        """Return the name of stored integers."""

    def array(self, values: Any) -> str:
        """Return the name of a stored array."""

    def shaped(self, value: str, shape: Shape) -> str:
        """Return a value in another shape."""


def operator(kind: str, **attributes: Any) -> Spelling:
    """Return the spelling of a row that is one operator."""
    return lambda model, names, *_, **__: model.operator(kind, *names, **attributes)


class _Steps:
    """Interpreter whose values are names in a model: its operations append operators."""

    def __init__(self, model: Emitter) -> None:
        self.model = model

    def operation(self, primitive: Primitive) -> Callable[..., str]:
        """Return the spelling of an elementwise row."""
        return lambda *names: ELEMENTWISE[primitive.name](self.model, names)

    def constant(self, value: Number, name: str | None) -> str:
        """Return the name of a stored number."""
        return self.model.number(float(value))


def _formula(compute: str | Callable[..., Any]) -> Spelling:
    """Return the spelling of a row by a formula of other ones, or by the kernel of that name."""

    @cache
    def formula() -> Function:
        if isinstance(compute, str):
            kernel = recorded(TABLE[compute])
            assert kernel is not None
            return kernel
        shapes = [()] * len(signature(compute).parameters)
        return composed(lambda nodes: [compute(*nodes)], shapes)

    def spell(model: Emitter, names: Sequence[str], *_: Any, **__: Any) -> str:
        function = formula()
        environment = dict(zip(function.input_nodes, names, strict=True))
        output: str = fold(function.graph, environment, function.outputs, _Steps(model))[0]
        return output

    return spell


def _negative_part(x: Node) -> Any:
    """Return exp(-|x|), which never overflows."""
    return rows.exp(-rows.absolute(x))


def _sinh(x: Node) -> Any:
    """By expm1 of half of |x| where exp(|x|) would overflow or cancel."""
    size = rows.absolute(x)
    below = rows.expm1(size)
    near = (below + below / (below + 1.0)) * 0.5
    half = rows.exp(size * 0.5)
    return rows.sign(x) * rows.where(size > 20.0, half * 0.5 * half, near)


def _cosh(x: Node) -> Any:
    half = rows.exp(rows.absolute(x) * 0.5)
    return half * 0.5 * half + _negative_part(x) * 0.5


def _asinh(x: Node) -> Any:
    size = rows.absolute(x)
    square = size * size
    near = rows.log1p(size + square / (rows.sqrt(square + 1.0) + 1.0))
    return _signed(x, rows.where(size > 1e8, rows.log(size) + math.log(2), near))


def _acosh(x: Node) -> Any:
    above = x - 1.0
    near = rows.log1p(above + rows.sqrt(above * (x + 1.0)))
    value = rows.where(x > 1e8, rows.log(x) + math.log(2), near)
    return rows.where(x < 1.0, math.nan, value)


def _atanh(x: Node) -> Any:
    """Half of log1p(2|x|/(1 - |x|)); nan beyond 1."""
    size = rows.absolute(x)
    inside = rows.log1p(size * 2.0 / (1.0 - size)) * 0.5
    outside = rows.where(size > 1.0, math.nan, rows.where(rows.equal(size, 1.0), math.inf, inside))
    return _signed(x, outside)


def _signed(x: Node, size: Node) -> Any:
    """Return an odd function of x, by its value at |x|; a zero keeps its sign."""
    return rows.where(rows.equal(x, 0.0), x, rows.sign(x) * size)


def _atan(x: Node) -> Any:
    """Two steps of Newton's method for sin(y) = x cos(y), below the diagonal.

    The first approximation is within 0.005, and each step leaves a third of the error's cube.
    """
    size = rows.absolute(x)
    steep = size > 1.0
    ratio = rows.where(steep, 1.0 / rows.where(steep, size, 1.0), size)
    first = ratio * (math.pi / 4) - ratio * (ratio - 1.0) * (ratio * 0.0663 + 0.2447)
    length = rows.sqrt(ratio * ratio + 1.0)
    for _ in range(2):
        first = first + (ratio * rows.cos(first) - rows.sin(first)) / length
    return _signed(x, rows.where(steep, math.pi / 2 - first, first))


def _asin(x: Node) -> Any:
    """By the tangent of half of the angle, which is exact at both ends."""
    root = rows.sqrt((1.0 - x) * (x + 1.0))
    return rows.where(rows.equal(x, 0.0), x, rows.atan(x / (root + 1.0)) * 2.0)


def _acos(x: Node) -> Any:
    ratio = rows.sqrt((1.0 - x) / (x + 1.0))
    return rows.atan(ratio) * 2.0


def _tan(x: Node) -> Any:
    return rows.sin(x) / rows.cos(x)


def _expm1(x: Node) -> Any:
    """W. Kahan's formula, in which the errors of both factors cancel."""
    y = rows.exp(x)
    below = y - 1.0
    near = below * x / rows.log(y)
    plain = rows.absolute(x) > 1.0
    return rows.where(rows.equal(y, 1.0), x, rows.where(plain, below, near))


def _log1p(x: Node) -> Any:
    """W. Kahan's formula, in which the errors of both factors cancel."""
    above = x + 1.0
    near = x * (rows.log(above) / (above - 1.0))
    return rows.where(rows.equal(above, 1.0), x, rows.where(x > 1.0, rows.log(above), near))


def _cbrt(x: Node) -> Any:
    """A power, and one step of Newton's method for the digits that it lacks."""
    size = rows.absolute(x)
    rough = rows.power(size, 1 / 3)
    better = rough - (rough - size / rough / rough) / 3.0
    plain = rows.logical_or(rows.equal(size, 0.0), rows.equal(size, math.inf))
    return rows.where(plain, x, rows.sign(x) * better)


def _hypot(a: Node, b: Node) -> Any:
    a, b = rows.absolute(a), rows.absolute(b)
    large, small = rows.maximum(a, b), rows.minimum(a, b)
    ratio = small / large
    infinite = rows.logical_or(rows.equal(a, math.inf), rows.equal(b, math.inf))
    finite = rows.where(rows.equal(large, 0.0), large, large * rows.sqrt(ratio * ratio + 1.0))
    return rows.where(infinite, math.inf, finite)


def _atan2(y: Node, x: Node) -> Any:
    """The arc tangent, turned where x is negative."""
    below = rows.logical_or(y < 0.0, 1.0 / y < 0.0)  # -0.0, too
    angle = rows.atan(y / x)
    turned = angle + rows.where(below, -math.pi, math.pi)
    upright = rows.sign(y) * (math.pi / 2) + x * 0.0  # x is 0, or nan
    finite = rows.where(x > 0.0, angle, rows.where(x < 0.0, turned, upright))
    diagonal = rows.sign(y) * rows.where(x > 0.0, math.pi / 4, 3 * math.pi / 4)
    infinite = rows.equal(rows.minimum(rows.absolute(x), rows.absolute(y)), math.inf)
    origin = rows.logical_and(rows.equal(x, 0.0), rows.equal(y, 0.0))
    behind = rows.where(1.0 / x < 0.0, rows.where(below, -math.pi, math.pi), y)
    return rows.where(origin, behind, rows.where(infinite, diagonal, finite))


_BY_KERNEL = (
    *("clip", "datan2", "datanh", "dhypot", "dlog", "dpower", "dpower_exponent", "heaviside"),
    *("logaddexp", "mod", "sech", "sigmoid", "softplus", "square_difference", "versine"),
)
"""Rows that are written as their kernels compute them."""
OPERATORS = {
    "absolute": "Abs",
    "add": "Add",
    "divide": "Div",
    "equal": "Equal",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
    "less": "Less",
    "less_equal": "LessOrEqual",
    "logical_and": "And",
    "logical_not": "Not",
    "logical_or": "Or",
    "maximum": "Max",
    "minimum": "Min",
    "multiply": "Mul",
    "negative": "Neg",
    "power": "Pow",
    "stop_gradient": "Identity",
    "subtract": "Sub",
    "where": "Where",
    **{
        name: name.capitalize()
        for name in (
            *("ceil", "cos", "erf", "exp", "floor", "log"),
            *("relu", "round", "sign", "sin", "sqrt", "tanh"),
        )
    },
}
"""The operators of ONNX that are a row, by its name."""
ELEMENTWISE: Mapping[str, Spelling] = {
    **{name: operator(kind) for name, kind in OPERATORS.items()},
    **{name: _formula(name) for name in _BY_KERNEL},
    "fmod": operator("Mod", fmod=1),
    "acos": _formula(_acos),
    "acosh": _formula(_acosh),
    "asin": _formula(_asin),
    "asinh": _formula(_asinh),
    "atan": _formula(_atan),
    "atan2": _formula(_atan2),
    "atanh": _formula(_atanh),
    "cbrt": _formula(_cbrt),
    "cosh": _formula(_cosh),
    "exp2": _formula(lambda x: rows.power(2.0, x)),
    "expm1": _formula(_expm1),
    "hypot": _formula(_hypot),
    "log10": _formula(lambda x: rows.log(x) / math.log(10)),
    "log1p": _formula(_log1p),
    "log2": _formula(lambda x: rows.log(x) / math.log(2)),
    "not_equal": _formula(lambda a, b: rows.logical_not(rows.equal(a, b))),
    "sinh": _formula(_sinh),
    "tan": _formula(_tan),
}
"""What is written for each elementwise row, by its name."""
