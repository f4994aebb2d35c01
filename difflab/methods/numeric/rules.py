"""What the finite-difference methods share: a rule (their ladders) and what was found."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from difflab.methods.numeric.extrapolation import Extrapolation, Weights

__all__ = ["ROUNDINGS", "DifferenceRule", "FirstDerivatives", "SecondRule"]

Array = NDArray[np.float64]

# Roundings of the value, over the scale, that a derivative of zero may be off by.
ROUNDINGS = 256.0


@dataclass(frozen=True)
class DifferenceRule:
    """A family of stencils and the ladders of steps on which it is tried.

    Attributes
    ----------
    units : ndarray (K, 1)
        Steps of the first ladder, relative to the component's scale.
    central : Weights or None
        Candidates from central quotients on the first ladder; None for a rule that
        looks to one side only.
    onesided : Weights
        Candidates from one-sided quotients on the first ladder.
    tolerance : float
        A component is settled when its error, relative, is below this.
    fine_units : ndarray (K', 1)
        Steps of the second ladder, relative to the step found for the component.
    fine_central, fine_onesided
        Candidates on the second ladder.
    strict : bool
        A component with no relative accuracy is settled only at the level of rounding: a
        short ladder of long steps sees too little to trust it otherwise.
    from_onset : bool
        The second ladder starts from the largest step at which quotients converge
        (extrapolation wants large steps), not from the best single step.
    tableau : Extrapolation or None
        The tableau that `central` has its candidates from, where it is one.
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
    tableau: Extrapolation | None = None

    def settles(self, found: FirstDerivatives) -> NDArray[np.bool_]:
        """Tell which derivatives are known as well as can be expected, ``(n, m)``."""
        if self.strict:
            floor = ROUNDINGS * found.eps * np.abs(found.center)
        else:
            floor = self.tolerance * np.abs(found.center)
        wanted = np.maximum(
            self.tolerance * np.abs(found.value), floor / np.maximum(found.scale, 1.0)[:, None]
        )
        return np.asarray(found.error <= wanted)

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
    """First derivatives and what was learnt on the way to them.

    Attributes
    ----------
    value, error : ndarray (n, m)
    flat : ndarray (n, m)
        Where the function seems constant, but may only be unable to show its changes.
    scale : ndarray (n,)
        A length that resolves the function, for each component.
    center : ndarray (m,)
        The function's values at the point.
    noise : ndarray (m,)
        A bound on the errors of those values.
    eps : float
        The relative rounding of the values' type.
    unit : ndarray (m,)
        What the values are divided by while huge ones are looked at.
    """

    value: Array
    error: Array
    flat: NDArray[np.bool_]
    scale: Array
    center: Array
    noise: Array
    eps: float
    unit: Array = field(default_factory=lambda: np.ones(1))
