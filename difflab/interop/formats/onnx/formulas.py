"""Functions that ONNX lacks, as accurate formulas of several of its operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from difflab.core.primitive import Shape

__all__ = ["FORMULAS", "Emitter", "Spelling"]

Spelling = Callable[..., str]


class Emitter(Protocol):
    """Interface by which spellings append operators to the model that is written."""

    def operator(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Append an operator, and return the name of its result."""

    def number(self, value: float) -> str:
        """Return the name of a stored number."""

    def as_number(self, value: str) -> str:
        """Append the conversion of truth values or integers to numbers."""

    def places(self, values: Any) -> str:
        """Return the name of stored integers."""

    def array(self, values: Any) -> str:
        """Return the name of a stored array."""

    def shaped(self, value: str, shape: Shape) -> str:
        """Return a value in another shape."""


class _Value:
    """A value in a formula: Python's operators append ONNX's."""

    def __init__(self, model: Emitter, name: str) -> None:
        self.model = model
        self.name = name

    def of(self, kind: str, *others: _Value | float) -> _Value:
        """Return an operator of this value and others."""
        names = [
            other.name if isinstance(other, _Value) else self.model.number(other)
            for other in others
        ]
        return _Value(self.model, self.model.operator(kind, self.name, *names))

    def __add__(self, other: _Value | float) -> _Value:
        return self.of("Add", other)

    def __sub__(self, other: _Value | float) -> _Value:
        return self.of("Sub", other)

    def __rsub__(self, other: float) -> _Value:
        return _Value(self.model, self.model.number(other)).of("Sub", self)

    def __mul__(self, other: _Value | float) -> _Value:
        return self.of("Mul", other)

    def __truediv__(self, other: _Value | float) -> _Value:
        return self.of("Div", other)

    def __neg__(self) -> _Value:
        return self.of("Neg")

    def __gt__(self, other: _Value | float) -> _Value:
        return self.of("Greater", other)

    def __lt__(self, other: _Value | float) -> _Value:
        return self.of("Less", other)

    def equals(self, other: _Value | float) -> _Value:
        """Return where the values are equal."""
        return self.of("Equal", other)

    def choose(self, yes: _Value | float, no: _Value | float) -> _Value:
        """Return `yes` where this truth value holds, else `no`."""
        return self.of("Where", yes, no)


def _negative_part(x: _Value) -> _Value:
    """Return exp(-|x|), which never overflows."""
    return (-x.of("Abs")).of("Exp")


def _sigmoid(x: _Value) -> _Value:
    """By exponentials: onnxruntime's Sigmoid is 0 below -37, and off by 1e-16 above."""
    decay = _negative_part(x)
    return (x < 0.0).choose(decay, 1.0) / (decay + 1.0)


def _softplus(x: _Value) -> _Value:
    """Onnxruntime's Softplus is 0 below -37, and infinite above 710."""
    return x.of("Max", 0.0) + _log1p(_negative_part(x))


def _sinh(x: _Value) -> _Value:
    """By expm1 of half of |x| where exp(|x|) would overflow or cancel."""
    size = x.of("Abs")
    below = _expm1(size)
    near = (below + below / (below + 1.0)) * 0.5
    half = (size * 0.5).of("Exp")
    return x.of("Sign") * (size > 20.0).choose(half * 0.5 * half, near)


def _cosh(x: _Value) -> _Value:
    half = (x.of("Abs") * 0.5).of("Exp")
    return half * 0.5 * half + _negative_part(x) * 0.5


def _asinh(x: _Value) -> _Value:
    size = x.of("Abs")
    square = size * size
    near = _log1p(size + square / ((square + 1.0).of("Sqrt") + 1.0))
    return _signed(x, (size > 1e8).choose(size.of("Log") + math.log(2), near))


def _acosh(x: _Value) -> _Value:
    above = x - 1.0
    near = _log1p(above + (above * (x + 1.0)).of("Sqrt"))
    found = (x > 1e8).choose(x.of("Log") + math.log(2), near)
    return (x < 1.0).choose(math.nan, found)


def _atanh(x: _Value) -> _Value:
    """Half of log1p(2|x|/(1 - |x|)); nan beyond 1."""
    size = x.of("Abs")
    found = _log1p(size * 2.0 / (1.0 - size)) * 0.5
    outside = (size > 1.0).choose(math.nan, size.equals(1.0).choose(math.inf, found))
    return _signed(x, outside)


def _signed(x: _Value, size: _Value) -> _Value:
    """Return an odd function of x, by its value at |x|; a zero keeps its sign."""
    return x.equals(0.0).choose(x, x.of("Sign") * size)


def _atan(x: _Value) -> _Value:
    """Two steps of Newton's method for sin(y) = x cos(y), below the diagonal.

    The first approximation is within 0.005, and each step leaves a third of the error's cube.
    """
    size = x.of("Abs")
    steep = size > 1.0
    ratio = steep.choose(steep.choose(size, 1.0).of("Reciprocal"), size)
    first = ratio * (math.pi / 4) - ratio * (ratio - 1.0) * (ratio * 0.0663 + 0.2447)
    length = (ratio * ratio + 1.0).of("Sqrt")
    for _ in range(2):
        first = first + (ratio * first.of("Cos") - first.of("Sin")) / length
    return _signed(x, steep.choose(math.pi / 2 - first, first))


def _asin(x: _Value) -> _Value:
    """By the tangent of half of the angle, which is exact at both ends."""
    root = ((1.0 - x) * (x + 1.0)).of("Sqrt")
    return x.equals(0.0).choose(x, _atan(x / (root + 1.0)) * 2.0)


def _acos(x: _Value) -> _Value:
    ratio = ((1.0 - x) / (x + 1.0)).of("Sqrt")
    return _atan(ratio) * 2.0


def _tan(x: _Value) -> _Value:
    return x.of("Sin") / x.of("Cos")


def _dpower(x: _Value, p: _Value) -> _Value:
    return p.equals(0.0).choose(0.0, p * x.of("Pow", p - 1.0))


def _dpower_exponent(x: _Value, p: _Value) -> _Value:
    nothing = x.equals(0.0).of("And", p > 0.0)
    return nothing.choose(0.0, x.of("Pow", p) * x.of("Log"))


def _dhypot(a: _Value, b: _Value) -> _Value:
    origin = a.equals(0.0).of("And", b.equals(0.0))
    return origin.choose(0.0, a / _hypot(a, b))


def _datanh(x: _Value) -> _Value:
    square = (1.0 - x) * (x + 1.0)
    return (square < 0.0).choose(math.nan, square.of("Reciprocal"))


def _expm1(x: _Value) -> _Value:
    """W. Kahan's formula, in which the errors of both factors cancel."""
    y = x.of("Exp")
    below = y - 1.0
    near = below * x / y.of("Log")
    plain = x.of("Abs") > 1.0
    return y.equals(1.0).choose(x, plain.choose(below, near))


def _log1p(x: _Value) -> _Value:
    """W. Kahan's formula, in which the errors of both factors cancel."""
    above = x + 1.0
    near = x * (above.of("Log") / (above - 1.0))
    return above.equals(1.0).choose(x, (x > 1.0).choose(above.of("Log"), near))


def _cbrt(x: _Value) -> _Value:
    """A power, and one step of Newton's method for the digits that it lacks."""
    size = x.of("Abs")
    rough = size.of("Pow", 1 / 3)
    better = rough - (rough - size / rough / rough) / 3.0
    plain = size.equals(0.0).of("Or", size.equals(math.inf))
    return plain.choose(x, x.of("Sign") * better)


def _hypot(a: _Value, b: _Value) -> _Value:
    a, b = a.of("Abs"), b.of("Abs")
    large, small = a.of("Max", b), a.of("Min", b)
    ratio = small / large
    infinite = a.equals(math.inf).of("Or", b.equals(math.inf))
    found = large.equals(0.0).choose(large, large * (ratio * ratio + 1.0).of("Sqrt"))
    return infinite.choose(math.inf, found)


def _atan2(y: _Value, x: _Value) -> _Value:
    """The arc tangent, turned where x is negative."""
    below = (y < 0.0).of("Or", y.of("Reciprocal") < 0.0)  # -0.0, too
    angle = _atan(y / x)
    turned = angle + below.choose(-math.pi, math.pi)
    upright = y.of("Sign") * (math.pi / 2) + x * 0.0  # x is 0, or nan
    found = (x > 0.0).choose(angle, (x < 0.0).choose(turned, upright))
    diagonal = y.of("Sign") * (x > 0.0).choose(math.pi / 4, 3 * math.pi / 4)
    infinite = x.of("Abs").equals(math.inf).of("And", y.of("Abs").equals(math.inf))
    origin = x.equals(0.0).of("And", y.equals(0.0))
    behind = (x.of("Reciprocal") < 0.0).choose(below.choose(-math.pi, math.pi), y)
    return origin.choose(behind, infinite.choose(diagonal, found))


def _logaddexp(a: _Value, b: _Value) -> _Value:
    large = a.of("Max", b)
    return a.equals(b).choose(a + math.log(2), large + _log1p((-(a - b).of("Abs")).of("Exp")))


def _mod(x: _Value, y: _Value) -> _Value:
    """The remainder with the sign of the divisor, from that with the sign of the dividend."""
    rest = _Value(x.model, x.model.operator("Mod", x.name, y.name, fmod=1))
    other = (rest < 0.0).of("Xor", y < 0.0).of("And", rest.equals(0.0).of("Not"))
    return other.choose(rest + y, rest)


def _heaviside(x: _Value) -> _Value:
    step = (x > 0.0).choose(1.0, (x < 0.0).choose(0.0, 0.5))
    return x.equals(x).choose(step, x)


def _sech(x: _Value) -> _Value:
    """By exponentials, which onnxruntime has in 64 bits, unlike cosh."""
    decay = (-x.of("Abs")).of("Exp")
    return decay * 2.0 / (decay * decay + 1.0)


def _halved_sine(x: _Value) -> _Value:
    """1 - cos(x), which would cancel."""
    sine = (x * 0.5).of("Sin")
    return sine * sine * 2.0


def _formula(compute: Callable[..., _Value]) -> Spelling:
    """Return the spelling of an elementwise row by a formula of its values."""
    return lambda model, names, *_, **__: compute(*[_Value(model, name) for name in names]).name


FORMULAS: Mapping[str, Spelling] = {
    "acos": _formula(_acos),
    "acosh": _formula(_acosh),
    "asin": _formula(_asin),
    "asinh": _formula(_asinh),
    "atan": _formula(_atan),
    "atan2": _formula(_atan2),
    "atanh": _formula(_atanh),
    "cbrt": _formula(_cbrt),
    "clip": _formula(lambda x, low, high: x.of("Max", low).of("Min", high)),
    "cosh": _formula(_cosh),
    "datan2": _formula(lambda a, b: a / _hypot(a, b) / _hypot(a, b)),
    "datanh": _formula(_datanh),
    "dhypot": _formula(_dhypot),
    "dlog": _formula(lambda x: (x < 0.0).choose(math.nan, x.of("Reciprocal"))),
    "dpower": _formula(_dpower),
    "dpower_exponent": _formula(_dpower_exponent),
    "exp2": _formula(lambda x: _Value(x.model, x.model.number(2.0)).of("Pow", x)),
    "expm1": _formula(_expm1),
    "heaviside": _formula(_heaviside),
    "hypot": _formula(_hypot),
    "log10": _formula(lambda x: x.of("Log") / math.log(10)),
    "log1p": _formula(_log1p),
    "log2": _formula(lambda x: x.of("Log") / math.log(2)),
    "logaddexp": _formula(_logaddexp),
    "mod": _formula(_mod),
    "not_equal": _formula(lambda a, b: a.equals(b).of("Not")),
    "sech": _formula(_sech),
    "sigmoid": _formula(_sigmoid),
    "sinh": _formula(_sinh),
    "softplus": _formula(_softplus),
    "square_difference": _formula(lambda a, b: (a - b) * (a + b)),
    "tan": _formula(_tan),
    "versine": _formula(_halved_sine),
}
"""What is written, by the name of the row."""
