"""The five verdicts: agree, disagree, convention, declared, inconclusive.

Every element is judged on its own scale, so an error in a tiny element is found however large
its neighbours are; an absolute tolerance exists only where the true derivative is zero.

- An *exact* method (symbolic, automatic) agrees if half of the digits of float64 are right:
  ``|v - g| <= 2⁻²⁶ |g|``, or within 4 ULPs where the derivative is subnormal. A difference up to
  1e-6 is wrong by rounding rather than by a rule, and the reason says so.
- A *numeric* method agrees if its relative error is one that forward differences can reach,
  ``<= 1e-6``, or if its error is within ten of its own error bars and ten bars are less than
  half of the derivative. A wider bar determines nothing, so the verdict is inconclusive.
- If the true derivative is zero, the tolerance is the rounding error of the function's values
  (for numeric methods as amplified by differences, or their own error bar).
- A remaining difference is *inconclusive* if the true derivative changes by as much when the
  inputs and the decimal constants change by half an ULP.
- At a kink, a jump or a pole with two signs, a value between the one-sided derivatives is a
  *convention*; nan is inconclusive there.
- A derivative that a rule of the function states, such as `stop_gradient`, is *declared* where it
  differs from the derivative: `difflab.lab.judge` decides that, since it takes derivative rules.
- Where every element is proved, the reason ends with a rigorous bound of the method's error.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from enum import StrEnum

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.dtypes import DOUBLE, FloatFormat
from difflab.core.wording import error
from difflab.methods.protocol import Estimate, Family
from difflab.referee.limits import Regularity
from difflab.referee.referee import Reference
from difflab.referee.ulp import Errors, errors, exact, largest_errors, nearest

EntryIndex = tuple[int, int]
Sensitivity = Callable[[Iterable[EntryIndex]], Mapping[EntryIndex, float]]

EPS = sys.float_info.epsilon
RTOL = {
    Family.SYMBOLIC: math.sqrt(EPS),
    Family.AUTOMATIC: math.sqrt(EPS),
    Family.NUMERIC: 1e-6,
}
WIDEST = 0.125
"""The largest relative tolerance, of formats with few digits."""
ULPS = 4.0
BARS = 10.0  # factor by which a method's own error estimate is widened
CONCLUSIVE = 0.5  # largest conclusive ratio of the widened bar to the derivative
# Rounding of the values relative to the input's length; for numeric methods divided by √eps.
FLOOR = {
    Family.SYMBOLIC: 16 * EPS,
    Family.AUTOMATIC: 16 * EPS,
    Family.NUMERIC: 16 * math.sqrt(EPS),
}
EXPLAINS = 4.0  # safety factor: four sampled neighbours do not show the largest change


class Verdict(StrEnum):
    """The referee's verdict on a method, in order of severity."""

    AGREE = "agree"
    CONVENTION = "convention"
    DECLARED = "declared"
    INCONCLUSIVE = "inconclusive"
    DISAGREE = "disagree"


_GRAVITY = list(Verdict)


@dataclass(frozen=True)
class Judgement:
    """A method's verdict and its largest errors.

    Attributes
    ----------
    verdict : Verdict
        The verdict on the most severe element.
    reason : str
        The reason for the verdict; may be empty for agreement.
    entry : (int, int) or None
        The index of the most severe element.
    max_abs_error, max_rel_error, max_ulp_error : float or None
        The largest errors over the elements where a derivative exists; the relative error and
        the error in ULPs over those where it is not zero. None if there is no such element;
        nan if the method returned nan for one.
    """

    verdict: Verdict
    reason: str
    entry: EntryIndex | None
    max_abs_error: float | None
    max_rel_error: float | None
    max_ulp_error: float | None


def judge(
    estimate: Estimate,
    reference: Reference,
    family: Family,
    *,
    sensitivity: Sensitivity | None = None,
    dtype: FloatFormat = DOUBLE,
) -> Judgement:
    """Judge a method's derivative against the referee.

    Parameters
    ----------
    estimate : Estimate
        The method's derivative and its own error bars.
    reference : Reference
        The referee's derivative.
    family : Family
        Determines the expected accuracy.
    sensitivity : callable, optional
        `Referee.sensitivity`: called only for elements that would otherwise disagree.
    dtype : FloatFormat
        The format in which the method computes: the tolerances are those of its rounding, and the
        errors are counted in its units in the last place.

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
    verdicts = _Entries(estimate, reference, family, dtype).judged()
    accused = [
        index
        for index, (verdict, _) in verdicts.items()
        if verdict is Verdict.DISAGREE and _excusable(index, reference)
    ]
    if accused and sensitivity is not None:
        verdicts.update(_excused(accused, sensitivity, estimate.value, reference, dtype.eps / EPS))
    index = max(verdicts, key=lambda key: _GRAVITY.index(verdicts[key][0]), default=None)
    verdict, reason = verdicts[index] if index is not None else (Verdict.AGREE, "")
    distances = errors(
        np.asarray(estimate.value, dtype=float64).reshape(reference.exact.shape),
        reference.exact,
        dtype,
    )
    proof = _proof(verdict, distances, reference) if dtype is DOUBLE else ""
    reason = "; ".join(filter(None, (reason, proof)))
    largest = largest_errors(distances, reference.exact, reference.jacobian, reference.bounds)
    sizes = (None if np.isneginf(size) else float(size) for size in largest)
    return Judgement(verdict, reason, index, *sizes)


def _proof(verdict: Verdict, distances: Errors, reference: Reference) -> str:
    """Return a text of the proved bound on the error: of every element, or of a wrong one.

    The bounds are rounded outward. Where the derivative is zero they are absolute.
    """
    if not reference.proved.all():
        return ""
    truth = reference.jacobian
    spacing = np.where(truth == 0, 1.0, np.spacing(np.abs(truth)))
    distance = np.where(truth == 0, distances.absolute, distances.ulps)
    own = reference.bounds / spacing  # of the referee
    if not np.isfinite(distance + own).all():
        return ""
    wrong = verdict is Verdict.DISAGREE
    proved = distance - own if wrong else distance + own
    word, rounding = ("wrong by", ROUND_FLOOR) if wrong else ("within", ROUND_CEILING)
    parts = [
        f"{word} {_outward(size, rounding)} {unit}"
        for among, unit in ((truth != 0, "ULP"), (truth == 0, "where the derivative is zero"))
        if (size := float(np.max(proved, where=among, initial=0.0))) > 0
    ]
    return f"proved {' and '.join(parts) or 'exact'}"


def _outward(number: float, rounding: str) -> str:
    """Return a number with the digits that `error` shows, rounded up or down.

    Examples
    --------
    >>> _outward(0.2411, ROUND_CEILING), _outward(31999.0, ROUND_FLOOR), _outward(2e-9, ROUND_FLOOR)
    ('0.242', '3.1e4', '2.0e-9')
    """
    digits = Context(prec=3 if 0.01 <= number < 1000 else 2, rounding=rounding)
    return error(float(digits.create_decimal_from_float(number)))


def tolerance(family: Family, dtype: FloatFormat = DOUBLE) -> float:
    """Return the relative error that a method of a family may have in a format."""
    return min(RTOL[family] * math.sqrt(dtype.eps / EPS), WIDEST)


def reproduced(value: NDArray[float64], truth: NDArray[float64], rtol: float) -> NDArray[np.bool_]:
    """Return the mask of finite derivatives that a method reproduces.

    Examples
    --------
    >>> truth = np.array([1.0 + 1e-7, 2.0])
    >>> reproduced(np.array([1.0, 2.0]), truth, RTOL[Family.NUMERIC]).tolist()
    [True, True]
    >>> reproduced(np.array([1.0, 2.0]), truth, RTOL[Family.AUTOMATIC]).tolist()
    [False, True]
    """
    with np.errstate(invalid="ignore", over="ignore"):
        close = np.abs(value - truth) <= rtol * np.abs(truth)
    close &= np.isfinite(truth)
    same: NDArray[np.bool_] = close | (value == truth)
    return same


def _excusable(index: EntryIndex, reference: Reference) -> bool:
    """Return whether the derivative is two-sided and finite, and so may be ill-conditioned."""
    return reference.regularity[index] == Regularity.SMOOTH and not math.isinf(
        nearest(reference.exact[index])
    )


def _excused(
    accused: list[EntryIndex],
    sensitivity: Sensitivity,
    value: NDArray[float64],
    reference: Reference,
    scale: float,
) -> dict[EntryIndex, tuple[Verdict, str]]:
    """Return the elements whose difference the rounding of the inputs explains, or may.

    `scale` is the rounding of the inputs over that of float64. The elements are checked in order
    up to the first that it does not explain.
    """
    excused: dict[EntryIndex, tuple[Verdict, str]] = {}
    truth = reference.jacobian
    for index in accused:
        change = sensitivity([index]).get(index)
        change = None if change is None else scale * change
        gap = abs(value[index] - truth[index])
        if change is None:
            reason = "the referee's time limit ended before the conditioning was known"
        elif change > 0 and not math.isnan(gap) and gap <= EXPLAINS * change:
            reason = f"ill-conditioned: half an ULP of the inputs changes it by {change:.1e}"
        else:
            break  # one unexplained difference decides the verdict
        excused[index] = (Verdict.INCONCLUSIVE, reason)
    return excused


class _Entries:
    """The elements of one method's derivative, each with its verdict."""

    def __init__(
        self, estimate: Estimate, reference: Reference, family: Family, dtype: FloatFormat
    ) -> None:
        self.reference = reference
        self.dtype = dtype
        self.truth = dtype.rounded(reference.jacobian)  # infinite beyond the largest number
        self.value = np.asarray(estimate.value, dtype=float64).reshape(self.truth.shape)
        self.family = family
        self.numeric = family is Family.NUMERIC
        rounding = math.sqrt(dtype.eps / EPS)
        self.rtol = tolerance(family, dtype)
        self.bars = (
            np.full(self.truth.shape, math.nan)
            if estimate.error is None
            else BARS * np.asarray(estimate.error, dtype=float64).reshape(self.truth.shape)
        )
        floor = FLOOR[family] * (rounding if self.numeric else rounding**2)
        self.floors = floor * _rounding(reference)

    def judged(self) -> dict[EntryIndex, tuple[Verdict, str]]:
        """Return a verdict and its reason for every element that does not agree."""
        regular = np.isin(self.reference.regularity, (Regularity.SMOOTH, Regularity.ONE_SIDED))
        plain = regular & reproduced(self.value, self.truth, self.rtol)
        verdicts: dict[EntryIndex, tuple[Verdict, str]] = {}
        for row, column in np.argwhere(~plain).tolist():
            verdict, reason = self._entry((row, column))
            if verdict is not Verdict.AGREE:
                verdicts[row, column] = (verdict, reason)
        return verdicts

    def _entry(self, index: EntryIndex) -> tuple[Verdict, str]:
        regularity = Regularity(self.reference.regularity[index])
        if regularity is Regularity.UNRESOLVED:
            return Verdict.INCONCLUSIVE, self._unresolved()
        if regularity is Regularity.UNDEFINED:
            return self._at_undefined(index)
        if math.isnan(self.truth[index]):
            return self._between(index, regularity)
        if math.isinf(self.truth[index]):
            return self._at_infinity(index)
        return self._at_smooth(index)

    def _unresolved(self) -> str:
        if self.reference.contradiction:
            return self.reference.contradiction
        judged, components = self.reference.judged, self.reference.components
        if judged == components:
            return "the referee did not converge"
        return f"the referee's time limit ended after {judged:,} of {components:,} components"

    def _at_smooth(self, index: EntryIndex) -> tuple[Verdict, str]:
        """Judge an element that has a derivative and is outside the relative tolerance."""
        value, truth = float(self.value[index]), float(self.truth[index])
        # The spacing of float64 matters only for subnormal numbers.
        gap = nearest(abs(exact(value) - exact(self.reference.exact[index])))
        if gap <= ULPS * self.dtype.spacing(truth):
            return Verdict.AGREE, ""
        doubt = BARS * float(self.reference.bounds[index])  # large for values of float64 only
        if gap <= doubt < math.inf:
            known = doubt <= CONCLUSIVE * abs(truth) or doubt <= EPS
            verdict = Verdict.AGREE if known else Verdict.INCONCLUSIVE
            return verdict, f"the referee knows this derivative to {doubt:.1e} only"
        if not self.reference.linear[index[0] if self.reference.order == 1 else 0]:
            return (
                Verdict.INCONCLUSIVE,
                "not differentiable, although the partial derivatives exist",
            )
        bar = float(self.bars[index])
        if truth == 0 and gap <= max(float(self.floors[index]), bar if self.numeric else 0.0):
            return Verdict.AGREE, ""
        if self.numeric:
            allowed = float(self.floors[index]) if math.isnan(bar) else bar
            if gap <= allowed <= CONCLUSIVE * abs(truth):
                return Verdict.AGREE, ""
            if gap <= allowed or (math.isnan(value) and math.isinf(bar)):
                return Verdict.INCONCLUSIVE, "its error bar is too wide for this derivative"
        reason = f"{value:.17g} where the derivative is {truth:.17g}"
        if self.dtype is DOUBLE and not self.numeric and gap <= RTOL[Family.NUMERIC] * abs(truth):
            reason += (
                f": inaccurate, the relative error {gap / abs(truth):.1e} is above 2⁻²⁶, but too"
                " small for a wrong rule"
            )
        return Verdict.DISAGREE, reason

    def _between(self, index: EntryIndex, regularity: Regularity) -> tuple[Verdict, str]:
        """Judge an element whose one-sided derivatives differ or belong to different pieces."""
        value = float(self.value[index])
        left, right = nearest(self.reference.left[index]), nearest(self.reference.right[index])
        if math.isnan(value) or math.isnan(left) or math.isnan(right):
            return Verdict.INCONCLUSIVE, f"no derivative at this point: {_NOUN[regularity]}"
        low, high = min(left, right), max(left, right)
        # An infinite side has no scale of its own.
        finite = [abs(side) for side in (left, right) if math.isfinite(side)]
        slack = self.rtol * max(finite, default=0.0) + float(np.nan_to_num(self.floors[index]))
        if low - slack <= value <= high + slack:
            sides = f"one-sided derivatives {left:.6g} and {right:.6g}"
            return Verdict.CONVENTION, f"{_NOUN[regularity]}, {sides}"
        outside = max(low - value, value - high)
        if self.numeric and outside <= self.bars[index]:
            return Verdict.INCONCLUSIVE, f"no derivative at this point: {_NOUN[regularity]}"
        return (
            Verdict.DISAGREE,
            f"{value:.6g} is outside the one-sided derivatives {left:.6g} and {right:.6g}",
        )

    def _at_infinity(self, index: EntryIndex) -> tuple[Verdict, str]:
        """Judge an element at a pole, or beyond the largest float64."""
        value, truth = float(self.value[index]), float(self.truth[index])
        if value == truth:
            return Verdict.AGREE, ""
        pole = math.isinf(self.reference.jacobian[index])
        fact = "infinite" if pole else f"above {self.dtype.largest:.6g}"
        if math.isnan(value):
            return Verdict.INCONCLUSIVE, f"the derivative is {fact} at this point"
        if self.numeric and self.bars[index] >= abs(value):
            return Verdict.INCONCLUSIVE, "its error bar is wider than its value"
        return Verdict.DISAGREE, f"{value:.6g} where the derivative is {fact}"

    def _at_undefined(self, index: EntryIndex) -> tuple[Verdict, str]:
        value, limit = float(self.value[index]), nearest(self.reference.left[index])
        if not math.isfinite(value):
            return Verdict.AGREE, "undefined at this point, as the method reported"
        row = index[0] if self.reference.order == 1 else 0
        if not math.isnan(nearest(self.reference.value[row])):
            return Verdict.INCONCLUSIVE, "the function is defined only at this point"
        if abs(value - limit) <= self.rtol * abs(limit) + float(self.floors[index]):
            return Verdict.CONVENTION, "undefined at this point; the value is the limit"
        if self.reference.rounded_in:
            return Verdict.INCONCLUSIVE, "the point is in the domain only because of rounding"
        return Verdict.DISAGREE, f"{value:.6g} where the function is undefined"


_NOUN = {
    Regularity.KINK: "a kink",
    Regularity.SINGULAR: "a singular point",
    Regularity.JUMP: "a jump",
}


def _rounding(reference: Reference) -> NDArray[float64]:
    """Return the magnitude of the function's values over the lengths of the inputs."""
    lengths = np.array([abs(x) for x in reference.point], dtype=float64)
    lengths[lengths == 0] = 1.0
    if reference.order == 2:
        lengths = np.multiply.outer(lengths, lengths)
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.broadcast_to(reference.magnitude / lengths, reference.exact.shape)
    return np.array(np.nan_to_num(sizes, nan=0.0, posinf=sys.float_info.max))
