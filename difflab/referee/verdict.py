"""The four verdicts: agree, disagree, convention, inconclusive.

Every entry is judged on its own scale, so a tiny component that is wholly wrong is wrong,
however large its neighbours are; an absolute tolerance exists only where the truth is zero.

- An *exact* method (symbolic, automatic) agrees when half of a double's digits are right:
  ``|v - g| <= 2⁻²⁶ |g|``, or within 4 ULPs where the derivative is subnormal. Up to 1e-6 it
  is inconclusive: too far off for its arithmetic, too close for a wrong rule.
- A *numeric* method agrees when its relative error is one that forward differences can
  reach, ``<= 1e-6``, or when it lies within ten of its own error bars and the bar itself
  says something: ten bars are less than half of the derivative. A wider bar is honest and
  empty, hence inconclusive.
- Where the truth is zero, the allowance is the rounding of the function's own values (for
  numeric methods as differences amplify it, or their own bar).
- A difference that remains is *inconclusive* when the true derivative itself changes by as
  much under half an ULP of the inputs and of the decimal constants.
- At a kink, a jump or a pole with two signs, a value between the one-sided derivatives is a
  *convention*; nan is inconclusive there, since it is no value.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.methods.protocol import Estimate, Family
from difflab.referee.limits import Regularity
from difflab.referee.referee import Reference
from difflab.referee.ulp import errors, exact, nearest

__all__ = ["Judgement", "Verdict", "judge"]

Place = tuple[int, int]
Sensitivity = Callable[[Iterable[Place]], Mapping[Place, float]]

EPS = sys.float_info.epsilon
RTOL = {
    Family.SYMBOLIC: math.sqrt(EPS),
    Family.AUTOMATIC: math.sqrt(EPS),
    Family.NUMERIC: 1e-6,
}
ULPS = 4.0
BARS = 10.0  # a method's own error estimate may be off by this factor
TELLING = 0.5  # the share of the derivative that the widened bar may fill
# Rounding of the values over the length of the input, and what a step of √eps makes of it.
FLOOR = {
    Family.SYMBOLIC: 16 * EPS,
    Family.AUTOMATIC: 16 * EPS,
    Family.NUMERIC: 16 * math.sqrt(EPS),
}
EXPLAINS = 4.0  # four sampled neighbours do not find the largest change


class Verdict(StrEnum):
    """What the referee says of a method, in order of gravity."""

    AGREE = "agree"
    CONVENTION = "convention"
    INCONCLUSIVE = "inconclusive"
    DISAGREE = "disagree"


_GRAVITY = list(Verdict)


@dataclass(frozen=True)
class Judgement:
    """A method's verdict and its largest errors.

    Attributes
    ----------
    verdict : Verdict
        That of the gravest entry.
    reason : str
        Why, where it is not simply agreement.
    entry : (int, int) or None
        The gravest entry.
    max_abs_error, max_rel_error, max_ulp_error : float or None
        Over the entries where a derivative exists; the relative error and the one in ULPs
        over those where it is not zero. None where there is no such entry; nan when the
        method gave nan for one.
    """

    verdict: Verdict
    reason: str
    entry: Place | None
    max_abs_error: float | None
    max_rel_error: float | None
    max_ulp_error: float | None


def judge(
    estimate: Estimate,
    reference: Reference,
    family: Family,
    *,
    sensitivity: Sensitivity | None = None,
) -> Judgement:
    """Judge a method's float64 derivative against the referee.

    Parameters
    ----------
    estimate : Estimate
        The method's derivative and its own error bars.
    reference : Reference
        The referee's derivative.
    family : Family
        Sets the accuracy that may be expected.
    sensitivity : callable, optional
        `Referee.sensitivity`: asked only about entries that would otherwise disagree.

    Examples
    --------
    >>> import numpy as np
    >>> from difflab.referee.referee import Referee
    >>> truth = Referee(lambda x: [x[0] ** 2 * 1e-12], [3.0]).reference()
    >>> judge(Estimate(np.array([[6e-12]]), None, 0), truth, Family.AUTOMATIC).verdict.value
    'agree'
    >>> judge(Estimate(np.array([[12e-12]]), None, 0), truth, Family.AUTOMATIC).verdict.value
    'disagree'
    """
    found = _Entries(estimate, reference, family).judged()
    accused = [
        place
        for place, (verdict, _) in found.items()
        if verdict is Verdict.DISAGREE and _excusable(place, reference)
    ]
    if accused and sensitivity is not None:
        found.update(_excused(accused, sensitivity, estimate.value, reference))
    place = max(found, key=lambda key: _GRAVITY.index(found[key][0]), default=None)
    verdict, reason = found[place] if place is not None else (Verdict.AGREE, "")
    return Judgement(verdict, reason, place, *_largest(estimate.value, reference))


def _largest(value: NDArray[float64], reference: Reference) -> tuple[float | None, ...]:
    """Return the largest absolute error, relative error and error in ULPs."""
    kinds = errors(value, reference.exact)
    # A difference within the referee's own error cannot be told from none.
    told = ~(np.isfinite(reference.bounds) & (kinds.absolute <= reference.bounds))
    truth = reference.jacobian
    exists = ~np.isnan(truth)
    nonzero = exists & np.array([exact(t) != 0 for t in reference.exact.flat]).reshape(truth.shape)
    found = ((kinds.absolute, exists), (kinds.relative, nonzero), (kinds.ulps, nonzero))
    return tuple(
        float(np.where(told, part, 0.0)[place].max()) if place.any() else None
        for part, place in found
    )


def _excusable(place: Place, reference: Reference) -> bool:
    """Return whether there is a two-sided finite derivative, which can be ill-conditioned."""
    return reference.regularity[place] == Regularity.SMOOTH and not math.isinf(
        nearest(reference.exact[place])
    )


def _excused(
    accused: list[Place],
    sensitivity: Sensitivity,
    value: NDArray[float64],
    reference: Reference,
) -> dict[Place, tuple[Verdict, str]]:
    """Return the entries whose difference the rounding of the inputs explains, or may.

    They are taken in turn up to one that it does not explain.
    """
    excused: dict[Place, tuple[Verdict, str]] = {}
    truth = reference.jacobian
    for place in accused:
        change = sensitivity([place]).get(place)
        gap = abs(value[place] - truth[place])
        if change is None:
            reason = "the referee's time ended before it knew how the derivative is conditioned"
        elif change > 0 and not math.isnan(gap) and gap <= EXPLAINS * change:
            reason = f"ill-conditioned: half an ULP of the inputs changes it by {change:.1e}"
        else:
            break  # one that nothing excuses is enough
        excused[place] = (Verdict.INCONCLUSIVE, reason)
    return excused


class _Entries:
    """One method's entries, each with its verdict."""

    def __init__(self, estimate: Estimate, reference: Reference, family: Family) -> None:
        self.reference = reference
        self.truth = reference.jacobian
        self.value = np.asarray(estimate.value, dtype=float64).reshape(self.truth.shape)
        self.numeric = family is Family.NUMERIC
        self.rtol = RTOL[family]
        self.bars = (
            np.full(self.truth.shape, math.nan)
            if estimate.error is None
            else BARS * np.asarray(estimate.error, dtype=float64).reshape(self.truth.shape)
        )
        self.floors = FLOOR[family] * _rounding(reference)

    def judged(self) -> dict[Place, tuple[Verdict, str]]:
        """Return a verdict and its reason for every entry that does not plainly agree."""
        found: dict[Place, tuple[Verdict, str]] = {}
        for row, column in np.argwhere(~self._plain()).tolist():
            verdict, reason = self._entry((row, column))
            if verdict is not Verdict.AGREE:
                found[row, column] = (verdict, reason)
        return found

    def _plain(self) -> NDArray[np.bool_]:
        """Return where the derivative is a finite number and the method has it."""
        regular = np.isin(self.reference.regularity, (Regularity.SMOOTH, Regularity.ONE_SIDED))
        with np.errstate(invalid="ignore", over="ignore"):
            close = np.abs(self.value - self.truth) <= self.rtol * np.abs(self.truth)
        close &= np.isfinite(self.truth)
        plain: NDArray[np.bool_] = regular & (close | (self.value == self.truth))
        return plain

    def _entry(self, place: Place) -> tuple[Verdict, str]:
        regularity = Regularity(self.reference.regularity[place])
        if regularity is Regularity.UNSETTLED:
            return Verdict.INCONCLUSIVE, self._unsettled()
        if regularity is Regularity.UNDEFINED:
            return self._at_undefined(place)
        if math.isnan(self.truth[place]):
            return self._between(place, regularity)
        if math.isinf(self.truth[place]):
            return self._at_infinity(place)
        return self._at_smooth(place)

    def _unsettled(self) -> str:
        judged, components = self.reference.judged, self.reference.components
        if judged == components:
            return "the referee did not settle"
        return f"the referee's time ended after {judged:,} of {components:,} components"

    def _at_smooth(self, place: Place) -> tuple[Verdict, str]:
        """Judge an entry that has a derivative and is not plainly right."""
        value, truth = float(self.value[place]), float(self.truth[place])
        # The spacing of doubles matters only among the subnormal ones.
        gap = nearest(abs(exact(value) - exact(self.reference.exact[place])))
        if gap <= ULPS * math.ulp(truth):
            return Verdict.AGREE, ""
        if not self.reference.linear[place[0] if self.reference.order == 1 else 0]:
            return Verdict.INCONCLUSIVE, "the partial derivatives exist, but no derivative does"
        bar = float(self.bars[place])
        if truth == 0 and gap <= max(float(self.floors[place]), bar if self.numeric else 0.0):
            return Verdict.AGREE, ""
        if self.numeric:
            allowed = float(self.floors[place]) if math.isnan(bar) else bar
            if gap <= allowed <= TELLING * abs(truth):
                return Verdict.AGREE, ""
            if gap <= allowed or (math.isnan(value) and math.isinf(bar)):
                return Verdict.INCONCLUSIVE, "its error bar is wider than the derivative"
        elif gap <= RTOL[Family.NUMERIC] * abs(truth):
            return Verdict.INCONCLUSIVE, f"rounding: a relative error of {gap / abs(truth):.1e}"
        return Verdict.DISAGREE, f"{value:.17g} where the derivative is {truth:.17g}"

    def _between(self, place: Place, regularity: Regularity) -> tuple[Verdict, str]:
        """Judge an entry whose one-sided derivatives differ, or belong to pieces."""
        value = float(self.value[place])
        left, right = nearest(self.reference.left[place]), nearest(self.reference.right[place])
        if math.isnan(value) or math.isnan(left) or math.isnan(right):
            return Verdict.INCONCLUSIVE, f"no derivative here: {_NOUN[regularity]}"
        low, high = min(left, right), max(left, right)
        # An infinite side has no scale of its own.
        finite = [abs(side) for side in (left, right) if math.isfinite(side)]
        slack = self.rtol * max(finite, default=0.0) + float(np.nan_to_num(self.floors[place]))
        if low - slack <= value <= high + slack:
            sides = f"one-sided derivatives {left:.6g} and {right:.6g}"
            return Verdict.CONVENTION, f"{_NOUN[regularity]}, {sides}"
        outside = max(low - value, value - high)
        if self.numeric and outside <= self.bars[place]:
            return Verdict.INCONCLUSIVE, f"no derivative here: {_NOUN[regularity]}"
        return (
            Verdict.DISAGREE,
            f"{value:.6g} is outside the one-sided derivatives {left:.6g} and {right:.6g}",
        )

    def _at_infinity(self, place: Place) -> tuple[Verdict, str]:
        """Judge an entry at a pole, or beyond the largest double."""
        value, truth = float(self.value[place]), float(self.truth[place])
        if value == truth:
            return Verdict.AGREE, ""
        if math.isnan(value):
            return Verdict.INCONCLUSIVE, "the derivative is infinite here"
        if self.numeric and self.bars[place] >= abs(value):
            return Verdict.INCONCLUSIVE, "its error bar is wider than its value"
        return Verdict.DISAGREE, f"{value:.6g} where the derivative is infinite"

    def _at_undefined(self, place: Place) -> tuple[Verdict, str]:
        value, limit = float(self.value[place]), nearest(self.reference.left[place])
        if not math.isfinite(value):
            return Verdict.AGREE, "undefined here, and said so"
        row = place[0] if self.reference.order == 1 else 0
        if not math.isnan(nearest(self.reference.value[row])):
            return Verdict.INCONCLUSIVE, "the function is defined at this point alone"
        if abs(value - limit) <= self.rtol * abs(limit) + float(self.floors[place]):
            return Verdict.CONVENTION, "undefined here; the value is the limit"
        if self.reference.rounded_in:
            return Verdict.INCONCLUSIVE, "only rounding brings the point into the domain"
        return Verdict.DISAGREE, f"{value:.6g} where the function is undefined"


_NOUN = {
    Regularity.KINK: "a kink",
    Regularity.SINGULAR: "a singular point",
    Regularity.JUMP: "a jump",
}


def _rounding(reference: Reference) -> NDArray[float64]:
    """Return the size of the function's values over the lengths of the inputs."""
    lengths = np.array([abs(x) for x in reference.point], dtype=float64)
    lengths[lengths == 0] = 1.0
    if reference.order == 2:
        lengths = np.multiply.outer(lengths, lengths)
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.broadcast_to(reference.magnitude / lengths, reference.exact.shape)
    return np.array(np.nan_to_num(sizes, nan=0.0, posinf=sys.float_info.max))
