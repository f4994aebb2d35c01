"""Reports of checks along directions: the fault, its location and the likely mistake."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from difflab.differences.window import Changes, Slope, central_difference, sampled, slope_along
from difflab.testing.checker.directions import Directional, at_random, judged_along
from difflab.testing.checker.given import OfSeveral
from difflab.testing.checker.leaves import Array
from difflab.testing.checker.message import (
    COARSE,
    ROUNDINGS,
    Component,
    GradientMismatch,
    GradientUnjudged,
    coarse_dtype,
    factor_text,
    guesses,
    precision_text,
    table_of,
)
from difflab.testing.checker.probe import Probe
from difflab.testing.checker.truth import CheckSettings

if TYPE_CHECKING:
    from difflab.testing.checker.check import GradientCheck


_SHOWN = 10
"""Wrong components that are named."""
_MANY = 50.0
"""Ratio of the remaining error to that of one component beyond which the others are too many."""
_KINKS = 8
"""Components at a kink, or not confirmed as wrong, that are left out before an error is given."""
_ROUNDINGS = 8.0
_ALIKE = 1e-3
_OF_ERROR = 0.05
"""Share of the error that a named mistake may leave unexplained."""
_CLEARER = 20.0
_MISSING = "likely a missing or detached part"


def report_directional(
    check: GradientCheck, gradient: Array, derivatives: list[Directional], settings: CheckSettings
) -> None:
    """Raise an error about the last direction if it is wrong, or if none could be judged."""
    __tracebackhide__ = True
    if not np.isfinite(gradient).all():
        index = int(np.flatnonzero(~np.isfinite(gradient))[0])
        raise GradientMismatch(f"the gradient is {gradient[index]} at {check.point.name(index)}")
    if derivatives[-1].wrong:
        _accuse(check, gradient, derivatives[-1])
    elif all(each.unjudged for each in derivatives):
        bar, size = float(derivatives[0].error.bar[0]), abs(derivatives[0].yours)
        message = (
            "could not judge the gradient: along a direction in which its terms add up, the"
            f" derivative is {size:.3g} with an error bar of {bar:.1g}\n"
            f"numeric values: {check.probe.count} evaluations of f, whose rounding or noise is"
            " too large"
        )
        if settings.unjudged == "fail":
            raise GradientUnjudged(message)
        warnings.warn(message, stacklevel=5)


def _accuse(check: GradientCheck, gradient: Array, derivative: Directional) -> None:
    """Raise an error with the components that are wrong; return if every one is right."""
    __tracebackhide__ = True
    seen, before = derivative, check.probe.count
    parts: list[_WrongPart] = []
    hint = ""
    for _ in range(_SHOWN + _KINKS):
        part = _located(check.probe, gradient, seen, check.cotangent)
        if not part.single:
            parts = parts or [part]
            hint = hint or _hint(check, gradient, derivative, part.start)
            break
        if seen.along[part.start] == 0.0:  # named before: the remainder is in no other component
            break
        along = seen.along.copy()
        along[part.start] = 0.0
        if _confirmed(check, gradient, part):
            parts.append(part)
            seen = _without(seen, part, along)
            if not hint and seen.wrong and len(parts) == 1:
                hint = _hint(check, gradient, derivative, part.start)
            many = abs(seen.off) > _MANY * abs(derivative.off - seen.off)
            if not seen.wrong or hint or len(parts) == _SHOWN or (many and len(parts) == 1):
                break
            continue
        if parts:
            break
        seen = judged_along(check.probe, gradient, along, check.cotangent, doubted=seen)
        # Changes by neighbouring arguments were part of the first verdict.
        seen = replace(seen, margin=max(seen.margin, derivative.margin))
        if not seen.wrong:
            return
    parts = parts or [_WrongPart(0, check.point.n, None)]
    spent = check.probe.count - before
    raise _mismatch(check, gradient, derivative, parts, spent, hint, more=seen.wrong)


def _without(seen: Directional, part: _WrongPart, along: Array) -> Directional:
    """Return the error along a direction without that of one component."""
    assert part.error is not None
    length = float(seen.along[part.start])
    error = replace(seen.error, value=seen.error.value - part.error.value[0] * length)
    # Bars are upper bounds: a second one of the same size is the error of the subtraction.
    margin = seen.margin + float(part.error.bar[0]) * abs(length)
    return replace(seen, along=along, error=error, margin=margin)


def _confirmed(check: GradientCheck, gradient: Array, part: _WrongPart) -> bool:
    """Whether the derivative with respect to one number is wrong on its own."""
    error = part.error
    if error is None:
        return True
    margin = float(error.bar[0] + error.half_jump[0])
    margin += _ROUNDINGS * check.probe.eps * abs(float(gradient[part.start]))
    return not abs(float(error.value[0])) <= margin


def _mismatch(
    check: GradientCheck,
    gradient: Array,
    derivative: Directional,
    parts: list[_WrongPart],
    spent: int,
    hint: str,
    *,
    more: bool,
) -> GradientMismatch:
    """Return the error: the components, the likely mistake, the costs, a line to repeat it."""
    point, n, part = check.point, check.point.n, parts[0]
    components: tuple[Component, ...] = ()
    if part.single and part.error is not None:
        components = tuple(_component(check, gradient, derivative, each) for each in parts)
        these = "this one" if len(parts) == 1 else f"these {len(parts)}"
        lines = [
            f"the gradient is wrong: of {n} components, bisection found {these}",
            *table_of(components),
        ]
        if more:
            lines.append("other components are wrong too")
    else:
        first, last = point.name(part.start), point.name(part.stop - 1)
        lines = [
            f"the gradient is wrong between {first} and {last}, in no single component above noise"
        ]
    numeric, yours = _telling_digits(derivative.numeric, derivative.yours)
    lines.append(
        f"along a direction, the derivative is {numeric} ± {derivative.margin:.1g};"
        f" by the gradient it is {yours}"
    )
    if not hint or hint.startswith(_MISSING):
        hint = check.explained(gradient[None]) or hint or _hint_of_one(components)
    if hint:
        lines.append(hint)
    count = check.probe.count
    noun = "component" if len(parts) == 1 else "components"
    lines.append(f"numeric values: {count} evaluations of f, {spent} of them to find the {noun}")
    if components and check.cotangent is None and not isinstance(check.f, OfSeveral):
        call = f"numeric_derivative(f, {point.root or '(module, x)'}, {part.start})"
        lines.append(f"to repeat: from difflab.testing import numeric_derivative; print({call})")
    return GradientMismatch("\n".join(lines), components)


def _telling_digits(one: float, other: float) -> tuple[str, str]:
    """Return the texts of two floats with enough digits to show their difference.

    Examples
    --------
    >>> _telling_digits(794862.35, 794862.355)
    ('794862.350000', '794862.355000')
    """
    gap = abs(one - other) / max(abs(one), abs(other), 5e-324)
    digits = 6 if not 0.0 < gap < np.inf else min(17, max(6, 3 - int(np.floor(np.log10(gap)))))
    return f"{one:#.{digits}g}".rstrip("."), f"{other:#.{digits}g}".rstrip(".")


def _hint_of_one(components: tuple[Component, ...]) -> str:
    """Return the likely mistake in the only component that is wrong; empty if unknown."""
    if len(components) != 1 or not components[0].numeric:
        return ""
    only = components[0]
    if only.yours == 0.0:
        return f"{_MISSING}: yours is zero at {only.name}"
    ratio = only.yours / only.numeric
    near = Fraction(ratio).limit_denominator(16)
    if not near or abs(ratio - near) > min(_ALIKE, max(1e-6, only.bar / abs(only.numeric))):
        return ""
    if near == -1:
        return f"in {only.name}, likely a sign error: yours is minus the numeric value"
    if near == 1:
        return ""
    return f"in {only.name}, likely a wrong factor: yours is {near} times the numeric value"


def _component(
    check: GradientCheck, gradient: Array, derivative: Directional, part: _WrongPart
) -> Component:
    error, yours = part.error, float(gradient[part.start])
    assert error is not None
    if check.cotangent is not None:
        return _element(check, part.start, derivative.error.half)
    return Component.along(check.point.name(part.start), yours, error, eps=check.probe.eps)


def _element(check: GradientCheck, index: int, half: float) -> Component:
    """Return the wrong element of a column of a Jacobian."""
    probe, n = check.probe, check.point.n
    column, along = check.column(index), np.zeros(n)
    along[index] = length = check.point.magnitude(index)
    changes = probe.residual(along, np.zeros((1, n)), start=index, stop=index + 1)

    def residual(moves: Array) -> Array:
        residuals: Array = changes(moves) - length * moves[:, None] * column
        return residuals

    slope = sampled(residual, probe.rounding, half).slope().per(length)
    row = int(np.argmax(np.abs(slope.value) - slope.bar))
    name = f"d{probe.outputs.name(row)}/d{check.point.name(index)}"
    return Component.along(name, float(column[row]), slope, row, probe.eps)


def _hint(check: GradientCheck, gradient: Array, derivative: Directional, index: int) -> str:
    """Return the likely mistake in the array that holds a wrong component; empty if unknown.

    The derivatives for which the gradient would be correct are compared along two directions.
    """
    point = check.point
    which, _ = point.leaf_at(index)
    leaf, start = point.leaves[which], int(point.starts[which])
    stop = start + leaf.size
    part = gradient[start:stop]
    name = point.path(point.positions[which])
    coarser = coarse_dtype(part)
    off = abs(derivative.off) / max(derivative.size, abs(derivative.yours))
    if coarser and check.probe.eps < 1e-12 and off <= ROUNDINGS * COARSE[coarser]:
        return precision_text(coarser, name)
    sides, slopes, noise = [], [], 0.0
    rounding = check.probe.rounding_of(check.cotangent)
    for seed in (11, 12):
        along = at_random(point, seed, floor=True)
        changes = check.probe.residual(along, gradient[None], check.cotangent, start, stop)
        error = sampled(changes, rounding, derivative.error.half).slope()
        noise = max(noise, float(error.bar[0] + error.half_jump[0]))
        sides.append(along[start:stop])
        slopes.append(float(error.value[0]) + float(part @ along[start:stop]))
    actual = np.array(slopes)
    yours = np.array([float(part @ side) for side in sides])
    margin = np.minimum(_ALIKE * np.abs(actual), _OF_ERROR * np.abs(actual - yours)) + noise
    if not np.isfinite(actual).all() or not (np.abs(actual - yours) > _CLEARER * noise).any():
        return ""
    if not part.any():
        return f"{_MISSING}: all of the gradient of {name} is zero"
    for text, right in guesses(part, leaf.shape, complex_=leaf.complex):
        there = np.array([float(right @ side) for side in sides])
        if (np.abs(there - actual) <= margin).all() and (np.abs(there - yours) > 2 * margin).any():
            return f"in {name}, likely {text}"
    ratio = yours / actual
    spread = abs(ratio[0] - ratio[1])
    # A factor reproduces the gradient if it is the same along both directions.
    if spread <= min(_ALIKE * abs(ratio[0]), _OF_ERROR * abs(ratio[0] - 1)) + _same(noise, actual):
        sizes = {f"the number of elements of {name}": leaf.size}
        mean = float(ratio.mean())
        text = factor_text(mean if abs(mean) > 1e-6 else 0.0, sizes)
        return f"in {name}, likely a wrong factor: yours is {text} times the numeric value"
    return ""


def _same(noise: float, actual: Array) -> float:
    """Return how far noise moves the ratio to a derivative."""
    return float(2.0 * noise / np.abs(actual).min())


_CLEAR = 16.0  # factor by which the error exceeds the noise of a central difference
_SMALLEST, _LARGEST = 2.0**-6, 0.5  # steps, relative to the window
_INTERPOLATED = 4  # divisions in a row by interpolants
_NONE = 0.125  # share of the error that is none in one of two halves


@dataclass(frozen=True)
class _WrongPart:
    """The part of the arguments in which a gradient is wrong.

    Attributes
    ----------
    start, stop : int
        The components; one, unless the values are not finite.
    error : Slope or None
        The derivative of f minus the gradient's, with respect to the only component.
    """

    start: int
    stop: int
    error: Slope | None

    @property
    def single(self) -> bool:
        """Whether the part is one component."""
        return self.stop == self.start + 1


def _located(
    probe: Probe, gradient: Array, derivative: Directional, cotangent: Array | None
) -> _WrongPart:
    """Return where a gradient is wrong that is wrong along a direction.

    The error along one half of the components is measured; that along the other half is the rest.
    The half with the larger error is divided again.
    """

    def changes_of(start: int, stop: int) -> Changes:
        return probe.residual(derivative.along, gradient[None], cotangent, start, stop)

    halves = _Halves(changes_of, probe.rounding_of(cotangent), derivative)
    start, stop = _bisected(halves, probe.point.n, derivative.off)
    part = _WrongPart(start, stop, None)
    if not part.single:
        return part
    return _WrongPart(start, stop, _single(probe, gradient, derivative, cotangent, start))


class _Halves:
    """The errors of a gradient along parts of a direction.

    A central difference, of two evaluations, tells two halves apart if only one has an error. Its
    step is the smallest at which rounding does not hide the error, so that truncation is small.
    Where the difference leaves both halves in question, an interpolant of 8 evaluations decides,
    there and in the next three divisions.
    """

    def __init__(
        self, changes_of: Callable[[int, int], Changes], rounding: Array, derivative: Directional
    ) -> None:
        self.changes_of = changes_of
        self.rounding = rounding
        self.half = derivative.error.half
        self.bar = float(derivative.error.bar[0])
        self.interpolated = 0

    def left(self, start: int, middle: int, total: float) -> float:
        """Return the error along the first part of one whose error is `total`."""
        changes = self.changes_of(start, middle)
        step = self.half * max(_CLEAR * self.bar / abs(total), _SMALLEST)
        if not self.interpolated and step <= _LARGEST * self.half:
            error = central_difference(changes, step)
            if min(abs(error), abs(total - error)) <= _NONE * abs(total):
                return error
        self.interpolated = (self.interpolated + 1) % _INTERPOLATED
        return float(sampled(changes, self.rounding, self.half).slope().value[0])


def _bisected(halves: _Halves, n: int, total: float) -> tuple[int, int]:
    start, stop = 0, n
    while stop - start > 1 and total != 0.0:
        middle = (start + stop) // 2
        left = halves.left(start, middle, total)
        if not np.isfinite(left):
            break
        right = total - left
        if abs(left) >= abs(right):
            stop, total = middle, left
        else:
            start, total = middle, right
    return start, stop


def _single(
    probe: Probe, gradient: Array, derivative: Directional, cotangent: Array | None, index: int
) -> Slope:
    """Return the error with respect to one component."""
    length = float(derivative.along[index])
    changes = probe.residual(derivative.along, gradient[None], cotangent, index, index + 1)
    least = np.array([1e-3 * abs(gradient[index] * length)])
    rounding = probe.rounding_of(cotangent)
    return slope_along(changes, rounding, derivative.error.half, least, 2).per(length)
