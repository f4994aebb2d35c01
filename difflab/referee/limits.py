"""Limits of differences over shrinking steps, and the regularity that they show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from numpy.typing import NDArray

from difflab.referee.differences import CONFIRMING, Sample

MpReal = Any  # an mpmath number

DIGITS = 25  # to which two successive precisions must agree
_ALIKE = 20  # to which left and right derivatives must agree to be equal
_DECAY = 10  # powers of ten by which a difference must fall per level, twice, to tend to zero
_GROWTH = 1.5  # steps of 10^-k: a logarithmic pole grows with k, which doubles


class Regularity(StrEnum):
    """Regularity of the function at the point, for one element of its derivative."""

    SMOOTH = "smooth"
    ONE_SIDED = "one-sided"
    KINK = "kink"
    SINGULAR = "singular"
    JUMP = "jump"
    UNDEFINED = "undefined"
    UNRESOLVED = "unresolved"


def worst(regularity: NDArray[Any]) -> str:
    """Return the last of the kinds that occur, in the order of `Regularity`."""
    kinds = list(Regularity)
    return str(max(map(Regularity, set(regularity.flat)), key=kinds.index, default=kinds[0]))


@dataclass(frozen=True)
class Limit:
    """Limit of the differences on one side: finite, ±inf, undefined, or not yet known.

    Attributes
    ----------
    value : mpf or None
        The limit; nan if the side is undefined; None if not yet known.
    bound : mpf
        The difference of the last two levels.
    """

    value: MpReal | None
    bound: MpReal


@dataclass(frozen=True)
class DerivativeEntry:
    """One resolved element of the derivative.

    Attributes
    ----------
    regularity : Regularity
        The regularity of the function for this element.
    value : mpf
        The derivative; at the edge of the domain the one-sided one; nan if it does not exist.
    left, right : mpf
        The left and right derivatives; at a jump those of the pieces.
    bound : mpf
        Bound on the error of `value`.
    """

    regularity: Regularity
    value: MpReal
    left: MpReal
    right: MpReal
    bound: MpReal


def smooth(mp: Any, sample: Sample) -> bool:
    """Return whether both sides of one sample show the same nonzero derivative."""
    if not mp.isfinite(sample.left + sample.right + sample.centre):
        return False
    size = abs(sample.centre)
    alike = mp.mpf(10) ** -_ALIKE * size
    return bool(
        size > sample.noise
        and abs(sample.right - sample.left) <= alike
        and abs(sample.right - sample.centre) <= alike
    )


def limit(mp: Any, values: Sequence[MpReal], noises: Sequence[MpReal], *, final: bool) -> Limit:
    """Return the limit of `values` over successive levels.

    Parameters
    ----------
    mp : module or context
        mpmath's.
    values, noises : sequence of mpf
        One value per level, and a bound on its rounding error.
    final : bool
        Whether the last step is short enough to conclude a limit of zero or infinity.
    """
    new, old = values[-1], values[-2]
    if mp.isnan(new) or mp.isnan(old):
        missing = mp.isnan(new) and mp.isnan(old)
        return Limit(mp.nan if missing else None, mp.inf)
    change = abs(new - old)
    if change <= mp.mpf(10) ** -DIGITS * abs(new) and abs(new) > noises[-1]:
        return Limit(new, change)
    if final:
        return _extreme(mp, values, noises)
    return Limit(None, mp.inf)


def _extreme(mp: Any, values: Sequence[MpReal], noises: Sequence[MpReal]) -> Limit:
    """Return the limit zero or infinity if the last three values show it."""
    new = values[-1]
    if abs(new) <= noises[-1]:
        return Limit(mp.mpf(0), noises[-1])
    if len(values) < 3 or mp.isnan(values[-3]):
        return Limit(None, mp.inf)
    sizes = [abs(value) for value in values[-3:]]
    drop = mp.mpf(10) ** -_DECAY
    if sizes[2] <= drop * sizes[1] and (sizes[1] <= drop * sizes[0] or not sizes[0]):
        return Limit(mp.mpf(0), sizes[2])
    signs = {mp.sign(value) for value in values[-3:]}
    # Growth may end at the function's own scale, so it must continue at the next level.
    lasting = len(values) > CONFIRMING + 1 and len(signs) == 1
    if lasting and sizes[2] >= _GROWTH * sizes[1] and sizes[1] >= _GROWTH * sizes[0]:
        return Limit(mp.inf * signs.pop(), mp.mpf(0))
    return Limit(None, mp.inf)


def classify(mp: Any, history: Sequence[Sample], *, final: bool) -> DerivativeEntry | None:
    """Return the element that the samples of successive levels show; None if undecided.

    Kinks, poles and jumps are reported only at a `final` level, whose step is shorter than any
    distance between two float64 values: √(x² + 1e-300) is smooth at 0.
    """
    noises = [sample.noise for sample in history]
    left, right, centre = (
        limit(mp, [getattr(sample, side) for sample in history], noises, final=final)
        for side in ("left", "right", "centre")
    )
    if left.value is None or right.value is None:
        return None
    both = _equal(mp, left.value, right.value)
    if both and centre.value is not None and _equal(mp, left.value, centre.value):
        bound = max(centre.bound, abs(right.value - left.value))
        return DerivativeEntry(Regularity.SMOOTH, centre.value, left.value, right.value, bound)
    return _rough(mp, history, left, right) if final else None


def _equal(mp: Any, a: MpReal, b: MpReal) -> bool:
    """Return whether two limits are finite and equal."""
    if not mp.isfinite(a + b):
        return False
    return bool(abs(a - b) <= mp.mpf(10) ** -_ALIKE * max(abs(a), abs(b)))


def _rough(mp: Any, history: Sequence[Sample], left: Limit, right: Limit) -> DerivativeEntry:
    """Return the element at a point without a two-sided finite derivative."""
    sides = [(side.value, side.bound) for side in (left, right) if not mp.isnan(side.value)]
    if not sides:
        return DerivativeEntry(Regularity.UNDEFINED, mp.nan, mp.nan, mp.nan, mp.inf)
    if any(mp.isinf(value) for value, _ in sides):
        same = len({value for value, _ in sides}) == 1
        value = sides[0][0] if same else mp.nan
        jumps = _jumps(mp, [sample.gap_left for sample in history]) or _jumps(
            mp, [sample.gap_right for sample in history]
        )
        regularity = Regularity.JUMP if jumps else Regularity.SINGULAR
        value = mp.nan if jumps else value
        return DerivativeEntry(regularity, value, left.value, right.value, mp.mpf(0))
    bound = max(bound for _, bound in sides)
    if len(sides) == 1:
        return DerivativeEntry(Regularity.ONE_SIDED, sides[0][0], left.value, right.value, bound)
    return DerivativeEntry(Regularity.KINK, mp.nan, left.value, right.value, bound)


def _jumps(mp: Any, gaps: Sequence[MpReal]) -> bool:
    """Return whether the gap to the value persists: 1/log h halves, √h shrinks faster."""
    new, old = gaps[-1], gaps[-2]
    return bool(mp.isfinite(new) and new > 0 and new >= 0.75 * old)
