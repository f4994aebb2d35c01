"""Verdicts on the components of a gradient: right, wrong, or impossible to judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.errors import InputError
from difflab.testing.components.truth import TRUSTED, Doubt, NumericJacobian

Array = NDArray[float64]
BoolArray = NDArray[np.bool_]

_OF_RISE = 0.01
"""Share of the slopes around the point below which they set the scale of a derivative."""

_FINE = 1e-4
"""Relative error bar above which more values are sampled."""


@dataclass(frozen=True)
class CheckSettings:
    """What a check of a gradient allows, and how it is made.

    Attributes
    ----------
    rtol, atol : float
        Tolerances beside the error bar: relative to the derivative, and absolute.
    unjudged : str
        What follows if a component cannot be judged: ``"fail"`` or ``"warn"``.
    method : str
        The numeric method.
    """

    rtol: float = 1e-8
    atol: float = 0.0
    unjudged: str = "fail"
    method: str = "richardson"

    def __post_init__(self) -> None:
        if self.unjudged not in ("fail", "warn"):
            raise InputError(f"unjudged must be 'fail' or 'warn', not {self.unjudged!r}")


DEFAULT = CheckSettings()


class Verdicts(NamedTuple):
    """Which components are wrong, and which could not be judged; the others are right."""

    wrong: BoolArray
    unjudged: BoolArray


def judged(
    yours: Array, truth: NumericJacobian, allowed: CheckSettings, sensitivity: Array
) -> Verdicts:
    r"""Return the verdicts on a Jacobian ``(m, n)``.

    A component within its tolerance is right only if the tolerance is small: less than a tenth
    of the derivative, or a thousandth of the slopes around the point, or `atol`. Otherwise a
    wrong value would lie within it as well.

    Parameters
    ----------
    yours : ndarray (m, n)
        The Jacobian under test; nan is wrong.
    truth : NumericJacobian
        The numeric derivatives to compare with.
    allowed : CheckSettings
        The relative and the absolute tolerance.
    sensitivity : ndarray (m, n)
        How far the Jacobian itself changes between neighbouring inputs, added to the tolerance.
        It is ignored next to a kink, where the Jacobian jumps.
    """
    room = truth.bar + allowed.atol
    excuse = np.where(truth.smooth, sensitivity, 0.0)
    low = np.fmin(truth.left, truth.right)  # at the edge of the domain one side is nan
    high = np.fmax(truth.left, truth.right)
    low, high = low - allowed.rtol * np.abs(low) - room, high + allowed.rtol * np.abs(high) + room
    unknown = np.isnan(low) | np.isnan(high)
    strict = (low <= yours) & (yours <= high)
    inside = (low - excuse <= yours) & (yours <= high + excuse)
    same = yours == truth.value
    size = np.fmax(np.fmax(np.abs(yours), np.abs(truth.value)), _OF_RISE * truth.rise)
    limit = np.fmax(max(TRUSTED, allowed.rtol) * size, allowed.atol)
    vague = inside & ~truth.final & ~(truth.bar <= limit)
    excused = inside & ~strict & (np.abs(yours - truth.value) > limit)
    unjudged = np.isfinite(yours) & (vague | (~same & (excused | unknown)))
    return Verdicts(wrong=~(inside | same | unjudged), unjudged=unjudged)


def doubt(yours: Array, truth: NumericJacobian, verdicts: Verdicts, atol: float) -> Doubt:
    """Return the elements that a numeric method alone cannot judge, or only coarsely."""
    size = np.abs(yours - truth.value) / (truth.bar + np.abs(truth.value))
    coarse = ~(truth.bar <= np.fmax(_FINE * np.abs(truth.value), atol))
    open_ = ~truth.final & ~np.isnan(yours)
    return Doubt(
        wrong=verdicts.wrong & open_,
        entries=(verdicts.wrong | verdicts.unjudged | coarse) & open_,
        zero=(yours == 0) & (truth.value == 0),
        size=np.nan_to_num(size, nan=np.inf),
    )
