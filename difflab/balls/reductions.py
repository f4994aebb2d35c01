"""Selections, rounding, comparisons and logic on expansions, reductions and orders along axes.

A comparison gives a `Truth`, which knows whether it holds in a neighbourhood. Where a selection
or a rounding cannot be decided, the value bounds all cases, and there is no derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.balls.elementary import exp, log, root_of_squares
from difflab.balls.jets import Fault, Jet, ObstacleKind, Truth, added, aligned, jet, sign_of, worse
from difflab.balls.library import Ball, arb, fmpq, shown, whole

Array = NDArray[Any]
Axes = tuple[int, ...]


def _jumps(*operands: Jet) -> Fault | None:
    """Return why operands are not continuous near the point."""
    faults = (operand.fault for operand in operands)
    return next((fault for fault in faults if fault and fault.kind != "kink"), None)


def _order(a: Jet, b: Jet, name: str, kind: ObstacleKind) -> tuple[int | None, Fault | None]:
    """Return the sign of a - b, and why it is not that in a neighbourhood."""
    one, two = aligned(a.value, b.value)
    sign = -1 if one < two else 1 if one > two else 0 if one == two else None
    if sign in (-1, 1) or (sign == 0 and not a.varies and not b.varies):
        return sign, _jumps(a, b)
    where = f"{name} changes where its arguments are equal; they are {shown(one)} and {shown(two)}"
    if not (arb(one).is_finite() and arb(two).is_finite()):
        kind = "undecided"
    return sign, worse(_jumps(a, b), Fault(kind, where, sign == 0))


# --- comparisons and logic --------------------------------------------------------------------


def _comparison(name: str, holds: Callable[[int], bool]) -> Callable[[Any, Any], Truth]:
    def compare(a: Any, b: Any) -> Truth:
        sign, fault = _order(jet(a), jet(b), name, "jump")
        return Truth(None if sign is None else holds(sign), fault)

    return compare


less = _comparison("<", lambda sign: sign < 0)
less_equal = _comparison("<=", lambda sign: sign <= 0)
greater = _comparison(">", lambda sign: sign > 0)
greater_equal = _comparison(">=", lambda sign: sign >= 0)
equal = _comparison("==", lambda sign: sign == 0)
not_equal = _comparison("!=", lambda sign: sign != 0)


def _truth(value: Any) -> Truth:
    """Return a truth value; a number holds where it is not 0."""
    if isinstance(value, np.ndarray):
        value = value.item()
    if isinstance(value, Jet):
        return not_equal(value, 0)
    return value if isinstance(value, Truth) else Truth(bool(value))


def logical_and(a: Any, b: Any) -> Truth:
    """Return whether both hold: not, as soon as one does not."""
    one, two = _truth(a), _truth(b)
    for side in (one, two):
        if side.value is False and side.fault is None:
            return side
    value = False if False in (one.value, two.value) else None
    if one.value and two.value:
        value = True
    return Truth(value, worse(one.fault, two.fault))


def logical_not(a: Any) -> Truth:
    """Return whether it does not hold."""
    return _truth(a).map(lambda value: not value)


def logical_or(a: Any, b: Any) -> Truth:
    """Return whether one holds."""
    return logical_not(logical_and(logical_not(a), logical_not(b)))


def as_number(condition: Any) -> Jet:
    """Return a truth value as 0 or 1."""
    return jet(_truth(condition))


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return one of two values; a bound of both where the condition is undecided."""
    truth = _truth(condition)
    if isinstance(a, Truth) or isinstance(b, Truth):
        yes, no = logical_and(truth, a), logical_and(logical_not(truth), b)
        return logical_or(yes, no)
    if truth.value is None:
        return Jet(_either(jet(a), jet(b)), fault=truth.fault)
    chosen = jet(a if truth.value else b)
    if truth.fault is None:
        return chosen
    return Jet(chosen.value, fault=worse(chosen.fault, truth.fault))


def _either(a: Jet, b: Jet) -> Ball:
    return arb(a.value).union(arb(b.value))


# --- selections -------------------------------------------------------------------------------


def _selection(name: str, keeps: int) -> Callable[[Any, Any], Jet]:
    """Return a function that selects the smaller of two numbers (-1) or the larger one (1)."""

    def select(one: Any, two: Any) -> Jet:
        a, b = jet(one), jet(two)
        order, fault = _order(a, b, name, "kink")
        if order is None:
            # At an undecided comparison the value is either one: the sharper bound holds.
            p, q = arb(a.value), arb(b.value)
            value = p.max(q) if keeps > 0 else p.min(q)
            return Jet(value, fault=worse(worse(a.fault, b.fault), fault))
        chosen = a if order == keeps else b
        if fault is None:
            return chosen
        return Jet(chosen.value, fault=worse(chosen.fault, fault))

    return select


minimum = _selection("min", -1)
maximum = _selection("max", 1)


def relu(x: Any) -> Jet:
    """Return max(x, 0)."""
    return maximum(x, 0)


def clip(x: Any, low: Any, high: Any) -> Jet:
    """Return min(max(x, low), high)."""
    return minimum(maximum(x, low), high)


def fabs(argument: Any) -> Jet:
    """Return |x|."""
    x = jet(argument)
    sign = sign_of(x)
    if sign == 1 or (sign == 0 and not x.varies):
        return x
    if sign == -1:
        return -x
    fault = Fault("kink", f"abs has a kink at 0; its argument is {shown(x.value)}", sign == 0)
    value = x.value if sign == 0 else arb(0).union(abs(x.value).upper())
    return Jet(value if arb(x.value).is_finite() else arb.nan(), fault=worse(x.fault, fault))


def _steps(name: str, at_zero: Any, low: int) -> Callable[[Any], Jet]:
    """Return a function of the sign: `low` below 0, `at_zero` there, 1 above."""

    def step(x: Any) -> Jet:
        order, fault = _order(jet(x), jet(0), name, "jump")
        value = arb(low).union(1) if order is None else (low, at_zero, 1)[order + 1]
        return Jet(arb(value), fault=fault)

    return step


sign = _steps("sign", 0, -1)
heaviside = _steps("heaviside", 0.5, 0)


# --- rounding ---------------------------------------------------------------------------------


def _floor(value: Ball) -> Ball:
    return fmpq(value.floor()) if type(value) is fmpq else value.floor()


def _stepped(x: Jet, name: str) -> Jet:
    """Return the largest integer up to x."""
    integer, exact = whole(x.value), type(x.value) is fmpq
    if integer is None and (exact or not x.value.contains_integer()):
        return Jet(_floor(x.value), fault=_jumps(x))
    value = _floor(x.value) if integer is None else arb(integer)
    if integer is not None and not x.varies:
        return Jet(value)
    fault = Fault("jump", f"{name} jumps; its argument is {shown(x.value)}", integer is not None)
    return Jet(value, fault=worse(x.fault, fault))


def floor(x: Any) -> Jet:
    """Return the largest integer up to x."""
    return _stepped(jet(x), "floor")


def ceil(x: Any) -> Jet:
    """Return the smallest integer from x."""
    return -_stepped(-jet(x), "ceil")


def nint(x: Any) -> Jet:
    """Return the nearest integer, the even one of two."""
    above = jet(x) + 0.5
    nearest, tie = _stepped(above, "round"), whole(above.value)
    return nearest - 1 if tie is not None and tie % 2 else nearest


def mod(dividend: Any, divisor: Any) -> Jet:
    """Return a - b⌊a/b⌋."""
    a, b = jet(dividend), jet(divisor)
    return a - b * floor(a / b)


# --- reductions and orders along axes ---------------------------------------------------------


def _reduction(fold: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """Return a row that maps the elements along the axes, in order, to one."""

    def row(x: Array, *, axes: Axes, rank: int) -> Any:
        lines, shape = _lines(x, axes)
        folded = np.fromiter(map(fold, lines), dtype=object)
        return folded.reshape(shape[: len(shape) - len(axes)])[()]

    return row


def mapping(change: Callable[[list[Any]], list[Any]]) -> Callable[..., Array]:
    """Return a row that maps the elements along the axes, in order, to as many."""

    def row(x: Array, *, axes: Axes, rank: int) -> Array:
        lines, shape = _lines(x, axes)
        changed = np.fromiter(chain.from_iterable(map(change, lines)), dtype=object)
        return np.moveaxis(changed.reshape(shape), tuple(range(-len(axes), 0)), axes)

    return row


def _lines(x: Array, axes: Axes) -> tuple[list[list[Any]], tuple[int, ...]]:
    """Return the elements along the axes for each of the other indices, and the moved shape."""
    moved = np.moveaxis(np.asarray(x, dtype=object), axes, tuple(range(-len(axes), 0)))
    kept = moved.shape[: moved.ndim - len(axes)]
    size = int(np.prod(moved.shape[len(kept) :]))
    return moved.reshape((int(np.prod(kept)), size)).tolist(), moved.shape


def _added(parts: Sequence[Any]) -> Jet:
    return added([jet(part) for part in parts])


def _shifted(line: list[Any]) -> tuple[Jet, list[Jet]]:
    """Return a constant near the largest element, and the others less it."""
    numbers = [jet(entry) for entry in line]
    middles = [arb(number.value).mid() for number in numbers]
    top = reduce(lambda p, q: q if q > p else p, middles)
    constant = Jet(top if top.is_finite() else arb(0))
    return constant, [number - constant for number in numbers]


def _log_sum(line: list[Any]) -> tuple[Jet, Jet, list[Jet]]:
    """Return log Σeˣ⁻ᵐ, m, and every x - m."""
    top, rest = _shifted(line)
    return log(_added([exp(entry) for entry in rest])), top, rest


def _log_sum_exp(line: list[Any]) -> Jet:
    logarithm, top, _ = _log_sum(line)
    return logarithm + top


def _log_softmax(line: list[Any]) -> list[Jet]:
    logarithm, _, rest = _log_sum(line)
    return [entry - logarithm for entry in rest]


def _softmax(line: list[Any]) -> list[Jet]:
    parts = [exp(entry) for entry in _shifted(line)[1]]
    whole = _added(parts)
    return [part / whole for part in parts]


def _marks(line: list[Any]) -> list[Truth]:
    """Mark the last maximum."""
    marks = []
    for place, entry in enumerate(line):
        mark = Truth(True)
        for other, value in enumerate(line):
            if other != place:
                beats = greater_equal if other < place else greater
                mark = logical_and(mark, beats(entry, value))
        marks.append(mark)
    return marks


def _first_maximum(line: list[Any]) -> Jet:
    """Return the index of the first maximum."""
    marks = _marks(line[::-1])[::-1]
    index = jet(0)
    for place in range(len(line) - 1, -1, -1):
        index = jet(where(marks[place], place, index))
    return index


total = _reduction(_added)
largest = _reduction(lambda line: reduce(maximum, line))
smallest = _reduction(lambda line: reduce(minimum, line))
norm = _reduction(lambda line: root_of_squares(_added([jet(entry) ** 2 for entry in line])))
logsumexp = _reduction(_log_sum_exp)
argmax = _reduction(_first_maximum)
softmax = mapping(_softmax)
log_softmax = mapping(_log_softmax)
is_maximum = mapping(_marks)
