"""Difference rules, the policies of the ladder's users, and first derivatives."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from difflab.differences.extrapolation import Weights
from difflab.differences.sampling import FLOATS, Arithmetic, NoiseEstimate

Array = NDArray[np.float64]

# Error allowed to a derivative of zero: this many roundings of the value over the scale.
ROUNDINGS = 256.0


@dataclass(frozen=True)
class DifferenceRule:
    """A family of stencils and the ladders of steps at which they are evaluated.

    Attributes
    ----------
    units : ndarray (K, 1)
        Steps of the first ladder, relative to the component's scale.
    central : Weights or None
        Candidates from central quotients on the first ladder; None for a
        one-sided rule.
    onesided : Weights
        Candidates from one-sided quotients on the first ladder.
    tolerance : float
        A component has converged if its relative error is below this.
    fine_units : ndarray (K', 1)
        Steps of the second ladder, relative to the step found for the component.
    fine_central, fine_onesided
        Candidates on the second ladder.
    strict : bool
        A component without relative accuracy has converged only at the level of rounding,
        because a short ladder of long steps is no sufficient evidence otherwise.
    from_onset : bool
        The second ladder starts from the largest step at which quotients converge
        (extrapolation works best with large steps), not from the best single step.
    """

    units: Array
    central: Weights | None
    onesided: Weights
    tolerance: float
    strict: bool
    fine_units: Array
    fine_central: Weights | None
    fine_onesided: Weights
    from_onset: bool

    def wanted(
        self, near: NoiseEstimate, value: Array, scale: Array, on: Arithmetic = FLOATS
    ) -> Array:
        """Return the error of derivatives ``(n, m)`` that are as accurate as can be expected."""
        floor = (ROUNDINGS * near.eps if self.strict else self.tolerance) * np.abs(near.center)
        relative = self.tolerance * np.abs(value)
        found: Array = on.larger(relative, floor / on.larger(scale, 1.0)[:, None])
        return found

    @cached_property
    def signed_units(self) -> Array:
        """Steps of the first ladder: to the right and, for central quotients, to the left."""
        if self.central is None:
            return self.units
        return np.concatenate([self.units, -self.units])


@dataclass(frozen=True)
class SecondRule:
    """The ladder and the candidates for second derivatives; fields as in `DifferenceRule`."""

    units: Array
    central: Weights | None
    onesided: Weights
    tolerance: float


@dataclass
class FirstDerivatives:
    """First derivatives and the properties of the function found with them.

    Attributes
    ----------
    value, error : ndarray (n, m)
    flat : ndarray (n, m)
        Whether the function seems constant, possibly because its changes round to zero.
    scale : ndarray (n,)
        A length over which the function is resolved, for each component.
    center, noise, eps
        See `NoiseEstimate`.
    unit : ndarray (m,)
        Factor by which huge values are divided in intermediate steps.
    """

    value: Array
    error: Array
    flat: NDArray[np.bool_]
    scale: Array
    center: Array
    noise: Array
    eps: float
    unit: Array = field(default_factory=lambda: np.ones(1))
