"""Truncated Taylor expansions whose coefficients are balls: value, gradient and Hessian.

Sums, products and compositions of expansions are those of polynomials; the coefficients of the
elementary functions are FLINT's (`difflab.balls.elementary`). Where a function has no derivative,
or none can be proved, the expansion carries the reason instead of one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from difflab.balls.library import (
    Ball,
    Series,
    arb,
    exactly,
    expanded,
    fmpq,
    fmpq_series,
    product,
    shown,
)
from difflab.balls.slopes import Recorded, Slopes, add_into, plus, summed, times

ObstacleKind = Literal["kink", "jump", "edge", "pole", "undecided"]
Curves = dict[tuple[int, int], Ball]

LARGEST_FRACTION = 20_000
"""Bits of a fraction's numerator or denominator beyond which it becomes a ball."""


@dataclass(frozen=True, eq=False, slots=True)
class Fault:
    """Why there is no derivative.

    Attributes
    ----------
    kind : str
        ``"kink"``: the function is continuous and its derivative jumps; ``"jump"``: the function
        jumps; ``"edge"``: its domain ends; ``"pole"``: it is unbounded; ``"undecided"``: neither
        could be excluded.
    reason : str
        The function, and where its argument lies.
    certain : bool
        Whether it is so at this very point, at any precision.
    """

    kind: ObstacleKind
    reason: str
    certain: bool = False


def worse(one: Fault | None, two: Fault | None) -> Fault | None:
    """Return the fault of a result of two operands: a kink, where values are bounded, is less."""
    if one is None or (two is not None and one.kind == "kink"):
        return two
    return one


class Jet:
    """A value and its derivatives by the inputs.

    Attributes
    ----------
    value : arb or fmpq
        The value; nan if undefined.
    slopes : dict of int to ball, or Recorded
        The derivatives by each input on which the value depends; recorded ones without `curves`.
    curves : dict of (int, int) to ball, or None
        The second derivatives by pairs of inputs in order; None if not requested.
    fault : Fault or None
        Why there are no derivatives.
    """

    __slots__ = ("curves", "fault", "slopes", "value")

    def __init__(
        self,
        value: Ball,
        slopes: Slopes | None = None,
        curves: Curves | None = None,
        fault: Fault | None = None,
    ) -> None:
        self.value = value
        self.slopes: Any = {} if slopes is None or fault is not None else slopes
        self.curves = None if fault is not None else curves
        self.fault = fault

    @property
    def varies(self) -> bool:
        """Whether the value depends on an input near the point."""
        return bool(self.slopes) or self.fault is not None

    def __bool__(self) -> bool:
        """Return whether the value is not 0, for the control flow of loops and branches.

        Raises
        ------
        Undecided
            It is not decided, or not in a neighbourhood.
        """
        sign, fault = sign_of(self), self.fault
        if fault is None and (sign is None or (sign == 0 and self.varies)):
            fault = Fault("jump", f"a condition is {shown(self.value)}", sign == 0)
        if fault is not None:
            raise Undecided(fault)
        return sign != 0

    def __repr__(self) -> str:
        return f"Jet({self.value}, {self.slopes}, {self.curves}, {self.fault})"

    def __neg__(self) -> Jet:
        return Jet(-self.value, times(self.slopes, -1), _negated(self.curves), self.fault)

    def __add__(self, other: Any) -> Jet:
        return self._combined(jet(other), operator.add, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Jet:
        return self._combined(jet(other), operator.sub, -1)

    def _combined(self, b: Jet, operation: Callable[[Ball, Ball], Ball], sign: int) -> Jet:
        """Return a sum, or a difference for the sign -1."""
        value = _operated(operation, self.value, b.value)
        if not b.varies:
            return Jet(value, self.slopes, self.curves, self.fault)
        if not self.varies:
            b = b if sign > 0 else -b
            return Jet(value, b.slopes, b.curves, b.fault)
        if self.fault is not None or b.fault is not None:
            return Jet(value, fault=worse(self.fault, b.fault))
        slopes = plus(self.slopes, b.slopes, sign)
        if b.curves is None:
            return Jet(value, slopes)
        curves = dict(self.curves or {})
        add_into(curves, b.curves, sign)
        return Jet(value, slopes, curves)

    def __rsub__(self, other: Any) -> Jet:
        return jet(other) + -self

    def __mul__(self, other: Any) -> Jet:
        if other is self:
            return integer_power(self, 2)
        b = jet(other)
        if not b.varies:
            return self._scaled(b.value)
        if not self.varies:
            return b._scaled(self.value)
        value = _operated(product, self.value, b.value)
        if self.fault or b.fault:
            return Jet(value, fault=worse(self.fault, b.fault))
        slopes = plus(times(self.slopes, b.value), times(b.slopes, self.value))
        curves = None
        if self.curves is not None:
            curves = {key: curve * b.value for key, curve in self.curves.items()}
            add_into(curves, {key: c * self.value for key, c in (b.curves or {}).items()})
            for i, s in self.slopes.items():
                for j, t in b.slopes.items():
                    key = (i, j) if i <= j else (j, i)
                    add_into(curves, {key: s * t * 2 if i == j else s * t})
        return Jet(value, slopes, curves)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Jet:
        b = jet(other)
        if sign_of(b) not in (-1, 1):
            return self * inverse(b)
        if not b.varies:
            return self._scaled(b.value, operator.truediv)
        quotient = self * inverse(b)
        quotient.value = _operated(operator.truediv, self.value, b.value)  # 6/3 is exact, 6·⅓ not
        return quotient

    def __rtruediv__(self, other: Any) -> Jet:
        return jet(other) / self

    def __pow__(self, exponent: int) -> Jet:
        return integer_power(self, exponent)

    def _scaled(self, by: Ball, operation: Callable[[Ball, Ball], Ball] = product) -> Jet:
        """Return the product with a number, or the quotient."""
        value = _operated(operation, self.value, by)
        if not self.slopes:
            return Jet(value, fault=self.fault)
        curves = self.curves
        if isinstance(self.slopes, Recorded):
            return Jet(
                value, times(self.slopes, _operated(operation, arb(1), by)), None, self.fault
            )
        return Jet(
            value,
            {key: _operated(operation, slope, by) for key, slope in self.slopes.items()},
            None
            if curves is None
            else {key: _operated(operation, curve, by) for key, curve in curves.items()},
            self.fault,
        )


def _negated(curves: Curves | None) -> Curves | None:
    return None if curves is None else {key: -curve for key, curve in curves.items()}


def added(numbers: Sequence[Jet]) -> Jet:
    """Return the sum of jets, in time linear in the number of their derivatives."""
    value, fault = arb(0), None
    curves: Curves | None = None
    for number in numbers:
        value = _operated(operator.add, value, number.value)
        fault = worse(fault, number.fault)
        if number.curves is not None:
            curves = {} if curves is None else curves
            add_into(curves, number.curves)
    return Jet(value, summed(number.slopes for number in numbers), curves, fault)


def _operated(operation: Callable[[Ball, Ball], Ball], a: Ball, b: Ball) -> Ball:
    """Return a sum, product or quotient; exactly where both are exact and one is a fraction."""
    if type(a) is not fmpq and type(b) is not fmpq:
        return operation(a, b)
    one, two = aligned(a, b)
    value = one * two if operation is product else operation(one, two)
    too_long = type(value) is fmpq and value.height_bits() > LARGEST_FRACTION
    return arb(value) if too_long else value


def aligned(a: Ball, b: Ball) -> tuple[Ball, Ball]:
    """Return two values as fractions if both are exact, else as balls."""
    if type(a) is type(b):
        return a, b
    one, two = exactly(a), exactly(b)
    return (one, two) if type(one) is type(two) else (arb(one), arb(two))


def composed(x: Jet, coefficients: Sequence[Ball], fault: Fault | None = None) -> Jet:
    """Return φ(x) from the Taylor coefficients of φ at the value of x: φ, φ′, φ″/2."""
    value = coefficients[0]
    if type(x.value) is fmpq:
        coefficients = [exactly(entry) for entry in coefficients]
        value = coefficients[0]
    if fault is not None or x.fault is not None or not x.slopes:
        return Jet(value, fault=worse(x.fault, fault))
    first = coefficients[1]
    slopes = times(x.slopes, first)
    if x.curves is None or isinstance(x.slopes, Recorded):
        return Jet(value, slopes)
    second = coefficients[2] * 2
    curves = {key: first * curve for key, curve in x.curves.items()}
    for i, s in x.slopes.items():
        for j, t in x.slopes.items():
            if i <= j:
                add_into(curves, {(i, j): second * s * t})
    return Jet(value, slopes, curves)


TERMS = 3
"""Taylor coefficients of a function that second derivatives need."""


def terms(x: Jet) -> int:
    """Return how many Taylor coefficients of a function of `x` are needed."""
    return 1 if not x.slopes else 2 if x.curves is None else TERMS


def _rational(series: Series, x: Jet) -> list[Ball]:
    """Return the coefficients of a rational function, exactly where the value is."""
    if type(x.value) is fmpq:
        coefficients = series(fmpq_series([x.value, 1], prec=terms(x)))
        return [coefficients[k] for k in range(terms(x))]
    return expanded(series, x.value, terms(x))


def integer_power(x: Jet, exponent: int) -> Jet:
    """Return a power with an integer exponent."""
    if exponent == 0:
        return Jet(arb(1))
    if exponent < 0:
        return inverse(integer_power(x, -exponent))
    if type(x.value) is fmpq and x.value.height_bits() * exponent > LARGEST_FRACTION:
        x = Jet(arb(x.value), x.slopes, x.curves, x.fault)
    return composed(x, _rational(lambda s: s**exponent, x))


def inverse(x: Jet) -> Jet:
    """Return 1/x."""
    value = x.value
    if value != 0 and (value > 0 or value < 0):
        return composed(x, _rational(lambda s: s.inv(), x))
    fault = Fault("pole", f"the divisor is {shown(value)}", bool(value == 0))
    return Jet(arb.nan(), fault=worse(x.fault, fault))


@dataclass(frozen=True, eq=False, slots=True)
class Truth:
    """A truth value, and why it may change near the point.

    Attributes
    ----------
    value : bool or None
        None if undecided.
    fault : Fault or None
        Why it is undecided, or does not hold in a neighbourhood.
    """

    value: bool | None
    fault: Fault | None = None

    def __bool__(self) -> bool:
        """Return a decided truth value, for the control flow of loops and branches.

        Raises
        ------
        Undecided
            It is not decided, or not in a neighbourhood.
        """
        if self.value is None or self.fault is not None:
            raise Undecided(self.fault)
        return self.value

    def map(self, change: Callable[[bool], bool]) -> Truth:
        """Return a function of the truth value."""
        return Truth(None if self.value is None else change(self.value), self.fault)


class Undecided(Exception):
    """Control flow depends on a truth value that is not decided."""

    def __init__(self, fault: Fault | None) -> None:
        super().__init__()
        self.fault = fault


def sign_of(x: Jet) -> int | None:
    """Return the proved sign of a value; None if it is not decided."""
    value = x.value
    if value > 0:
        return 1
    if value < 0:
        return -1
    return 0 if value == 0 else None


def jet(value: Any) -> Jet:
    """Return a value as an expansion: scalars are constants, truth values 0 or 1."""
    if isinstance(value, Jet):
        return value
    if isinstance(value, Truth):
        number = arb(0).union(1) if value.value is None else arb(int(value.value))
        return Jet(number, fault=value.fault)
    if isinstance(value, np.ndarray):  # NumPy nests those of one object where it joins arrays
        return jet(value.item())
    return Jet(arb(value if isinstance(value, int) else float(value)))
