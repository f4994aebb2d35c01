"""Reports of checks along directions: what is wrong, where, and what it looks like."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.testing.components.message import (
    Component,
    GradientMismatch,
    GradientUnjudged,
    table_of,
)
from difflab.testing.components.mistakes import factor_text, guesses
from difflab.testing.lines.directions import Directional, at_random, judged_along
from difflab.testing.lines.locate import WrongPart, located
from difflab.testing.slopes.window import central_difference, sampled
from difflab.testing.trees.several import OfSeveral

if TYPE_CHECKING:
    from difflab.testing.lines.trees import GradientCheck

__all__ = ["report_directional"]

Array = NDArray[float64]

_KINKS = 8
"""Components at a kink, or not confirmed as wrong, that are left out before an error is given."""
_ROUNDINGS = 8.0
_ALIKE = 1e-3
_CLEARER = 20.0


def report_directional(
    check: GradientCheck, gradient: Array, found: list[Directional], unjudged: str
) -> None:
    """Raise an error about the last direction if it is wrong, or if none could be judged."""
    __tracebackhide__ = True
    if not np.isfinite(gradient).all():
        index = int(np.flatnonzero(~np.isfinite(gradient))[0])
        raise GradientMismatch(f"the gradient is {gradient[index]} at {check.point.name(index)}")
    if found[-1].wrong:
        _accuse(check, gradient, found[-1])
    elif all(each.unjudged for each in found):
        bar, size = float(found[0].error.bar[0]), abs(found[0].yours)
        message = (
            "could not judge the gradient: along a direction in which its terms add up, the"
            f" derivative is {size:.3g} with an error bar of {bar:.1g}\n"
            f"numeric values: {check.probe.count} evaluations of f, whose rounding or noise is"
            " too large"
        )
        if unjudged == "fail":
            raise GradientUnjudged(message)
        warnings.warn(message, stacklevel=5)


def _accuse(check: GradientCheck, gradient: Array, found: Directional) -> None:
    """Raise an error with the component that is wrong; return if every one is right."""
    __tracebackhide__ = True
    seen, part = found, None
    for _ in range(_KINKS):
        before = check.probe.count
        part = located(check.probe, gradient, seen, check.cotangent)
        if not part.single or _confirmed(check, gradient, part):
            raise _mismatch(check, gradient, seen, part, check.probe.count - before)
        along = seen.along.copy()
        along[part.start] = 0.0
        seen = judged_along(check.probe, gradient, along, check.cotangent, doubted=seen)
        # What neighbouring arguments change was part of the first verdict.
        seen = replace(seen, room=max(seen.room, found.room))
        if not seen.wrong:
            return
    raise _mismatch(check, gradient, found, WrongPart(0, check.point.n, None), 0)


def _confirmed(check: GradientCheck, gradient: Array, part: WrongPart) -> bool:
    """Whether the derivative with respect to one number is wrong on its own."""
    error = part.error
    if error is None:
        return True
    room = float(error.bar[0] + error.half_jump[0])
    room += _ROUNDINGS * check.probe.eps * abs(float(gradient[part.start]))
    return not abs(float(error.value[0])) <= room


def _mismatch(
    check: GradientCheck, gradient: Array, found: Directional, part: WrongPart, spent: int
) -> GradientMismatch:
    """Return the error: the component, the likely mistake, the costs, a line to repeat it."""
    point, n = check.point, check.point.n
    components: tuple[Component, ...] = ()
    if part.single and part.error is not None:
        components = (_component(check, gradient, found, part),)
        lines = [
            f"the gradient is wrong: of {n} components, bisection found this one",
            *table_of(components),
        ]
    else:
        first, last = point.name(part.start), point.name(part.stop - 1)
        lines = [
            f"the gradient is wrong between {first} and {last}, in no single component above noise"
        ]
    lines.append(
        f"along a direction, the derivative is {found.numeric:.6g} ± {found.room:.1g};"
        f" by the gradient it is {found.yours:.6g}"
    )
    hint = _hint(check, gradient, found, part.start)
    if hint:
        lines.append(hint)
    count = check.probe.count
    lines.append(f"numeric values: {count} evaluations of f, {spent} of them to find the component")
    if components and check.cotangent is None and not isinstance(check.f, OfSeveral):
        call = f"numeric_derivative(f, {point.root or '(module, x)'}, {part.start})"
        lines.append(f"to repeat: from difflab.testing import numeric_derivative; print({call})")
    return GradientMismatch("\n".join(lines), components)


def _component(
    check: GradientCheck, gradient: Array, found: Directional, part: WrongPart
) -> Component:
    error, yours = part.error, float(gradient[part.start])
    assert error is not None
    if check.cotangent is not None:
        return _element(check, part.start, found.error.half)
    return Component.along(check.point.name(part.start), yours, error)


def _element(check: GradientCheck, index: int, half: float) -> Component:
    """Return the wrong element of a column of a Jacobian."""
    probe, n = check.probe, check.point.n
    column, along = check.column(index), np.zeros(n)
    along[index] = length = check.point.magnitude(index)
    changes = probe.residual(along, np.zeros((1, n)), start=index, stop=index + 1)

    def residual(moves: Array) -> Array:
        found: Array = changes(moves) - length * moves[:, None] * column
        return found

    found = sampled(residual, probe.rounding, half).slope().per(length)
    row = int(np.argmax(np.abs(found.value) - found.bar))
    name = f"d{probe.outputs.name(row)}/d{check.point.name(index)}"
    return Component.along(name, float(column[row]), found, row)


def _hint(check: GradientCheck, gradient: Array, found: Directional, index: int) -> str:
    """Return the likely mistake in the array that holds a wrong component; empty if unknown.

    What the gradient would be right for is compared along two directions in that array.
    """
    point = check.point
    which, _ = point.leaf_at(index)
    leaf, start = point.leaves[which], int(point.starts[which])
    stop = start + leaf.size
    part = gradient[start:stop]
    name = point.path(point.positions[which])
    step, noise = found.error.closest()
    sides, slopes = [], []
    for seed in (11, 12):
        along = at_random(point, seed, floor=True)
        changes = check.probe.residual(along, gradient[None], check.cotangent, start, stop)
        error = central_difference(changes, step)
        sides.append(along[start:stop])
        slopes.append(error + float(part @ along[start:stop]))
    actual = np.array(slopes)
    yours = np.array([float(part @ side) for side in sides])
    room = _ALIKE * np.abs(actual) + noise
    if not np.isfinite(actual).all() or not (np.abs(actual - yours) > _CLEARER * noise).any():
        return ""
    if not part.any():
        return f"likely a missing or detached part: all of the gradient of {name} is zero"
    for text, right in guesses(part, leaf.shape, complex_=leaf.complex):
        there = np.array([float(right @ side) for side in sides])
        if (np.abs(there - actual) <= room).all() and (np.abs(there - yours) > 2 * room).any():
            return f"in {name}, likely {text}"
    ratio = yours / actual
    if abs(ratio[0] - ratio[1]) <= _ALIKE * abs(ratio[0]) and abs(ratio[0] - 1) > 4 * _ALIKE:
        sizes = {f"the number of elements of {name}": leaf.size}
        mean = float(ratio.mean())
        text = factor_text(mean if abs(mean) > 1e-6 else 0.0, sizes)
        return f"in {name}, likely a wrong factor: yours is {text} times the numeric value"
    return ""
