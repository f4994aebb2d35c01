"""The errors that an assignment of dtypes may make in value and Jacobian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

Array = NDArray[float64]


def shares(errors: Any, allowed: Any) -> Array:
    """Return errors as parts of what is allowed; infinite if one is nan.

    Examples
    --------
    >>> shares(np.array([1.0, 0.0, np.nan]), np.array([4.0, 0.0, 1.0])).tolist()
    [0.25, 0.0, inf]
    """
    with np.errstate(all="ignore"):
        found = np.where(errors == 0, 0.0, errors / allowed)
    return np.where(np.isnan(found), np.inf, found)


@dataclass(frozen=True, eq=False)
class Tolerance:
    """The error allowed relative to the size of a result, and to `floors` where it is smaller.

    The elements of a row of the Jacobian share the size of the largest.

    Attributes
    ----------
    relative : float
    groups : array of int
        For each number of the flattened value and Jacobian, the results whose size it shares.
    floors : array
        The least size of each group.
    """

    relative: float
    groups: NDArray[np.int64]
    floors: Array

    @classmethod
    def over(cls, relative: float, m: int, reference: Array, floor: float | None) -> Tolerance:
        """Return a tolerance over a domain.

        Parameters
        ----------
        relative : float
        m : int
            The number of values; the Jacobian follows them.
        reference : array (N, m + m n)
            The results at points of the domain.
        floor : float or None
            The least size; by default the median over the points.
        """
        n = reference.shape[1] // m - 1
        groups = np.array([*range(m), *np.repeat(np.arange(m, 2 * m), n)])
        sizes = _grouped(np.abs(reference), groups)
        fixed = np.full(2 * m, 0.0 if floor is None else floor)
        return cls(relative, groups, np.median(sizes, axis=0) if floor is None else fixed)

    def allowed(self, reference: Array) -> Array:
        """Return the error that is allowed for every number of results ``(N, m + m n)``."""
        sizes = np.maximum(_grouped(np.abs(reference), self.groups), self.floors)
        found: Array = self.relative * sizes[:, self.groups]
        return found

    def parts(self, found: Array, reference: Array) -> Array:
        """Return the error of every number, as a part of what is allowed."""
        with np.errstate(invalid="ignore"):
            errors = np.where(found == reference, 0.0, np.abs(found - reference))
        return shares(errors, self.allowed(reference))


def _grouped(sizes: Array, groups: NDArray[np.int64]) -> Array:
    """Return the largest size of each group, at each point."""
    found = np.zeros((int(groups[-1]) + 1, len(sizes)))
    np.maximum.at(found, groups, sizes.T)
    return found.T
