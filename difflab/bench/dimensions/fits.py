"""Power laws fitted to costs by least squares on logarithms, with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy import float64
from numpy.typing import NDArray

Array = NDArray[float64]
Sample = tuple[int, int, float]
"""n, m and a positive figure."""

CONFIDENCE = 0.95


class Exponent(NamedTuple):
    """An exponent and its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PowerLaw:
    """The law ``figure = scale · n^a · m^b``.

    Attributes
    ----------
    scale : float
    exponents : dict of str to Exponent
        Of each size that varies.
    samples : int
        How many samples were fitted.
    """

    scale: float
    exponents: dict[str, Exponent]
    samples: int

    def at(self, n: int, m: int) -> float:
        """Return the figure of the law at a size."""
        logs = {"n": math.log(n), "m": math.log(m)}
        power = sum(found.value * logs[name] for name, found in self.exponents.items())
        return math.exp(math.log(self.scale) + power)


def least_squares(design: Array, y: Array) -> tuple[Array, Array]:
    r"""Return the coefficients of a linear model and their standard errors.

    .. math:: \hat\beta = \arg\min \|X\beta - y\|, \qquad
        s_j^2 = \frac{\|X\hat\beta - y\|^2}{N - p} (X^T X)^{-1}_{jj}

    Parameters
    ----------
    design : ndarray of shape (N, p)
        N > p.
    y : ndarray of shape (N,)

    Examples
    --------
    >>> X = np.array([[1.0, 0], [1, 1], [1, 2]])
    >>> [part.round(3).tolist() for part in least_squares(X, np.array([0.0, 1, 1]))]
    [[0.167, 0.5], [0.373, 0.289]]
    """
    q, r = np.linalg.qr(design)
    coefficients = np.linalg.solve(r, q.T @ y)
    residual = y - design @ coefficients
    variance = float(residual @ residual) / (len(y) - design.shape[1])
    inverse = np.linalg.inv(r)
    return coefficients, np.sqrt(variance * np.sum(inverse**2, axis=1))


def power_law(samples: Sequence[Sample]) -> PowerLaw | None:
    """Fit a power law to the larger sizes of a figure.

    Fixed costs dominate at small sizes, so only sizes in the upper half of each range, on a
    logarithmic scale, are fitted if they are enough.

    Parameters
    ----------
    samples : sequence of (n, m, figure)
        Figures that are not positive are left out.

    Returns
    -------
    PowerLaw or None
        None if there are too few sizes for an interval.

    Examples
    --------
    >>> law = power_law([(n, 1, 3.0 * n**2) for n in (1, 2, 4, 8, 16, 32)])
    >>> round(law.exponents["n"].value, 9), round(law.at(100, 1))
    (2.0, 30000)
    """
    positive = [sample for sample in samples if sample[2] > 0]
    return _fitted(_upper(positive)) or _fitted(positive)


def _upper(samples: Sequence[Sample]) -> list[Sample]:
    chosen = list(samples)
    for axis in (0, 1):
        sizes = [sample[axis] for sample in samples]
        if sizes:
            middle = math.sqrt(min(sizes) * max(sizes))
            chosen = [sample for sample in chosen if sample[axis] >= middle]
    return chosen


def _fitted(samples: Sequence[Sample]) -> PowerLaw | None:
    from scipy.stats import t

    varying = [axis for axis in (0, 1) if len({sample[axis] for sample in samples}) > 1]
    free = len(samples) - 1 - len(varying)
    if not varying or free < 1:
        return None
    logs = np.log(np.array(samples, dtype=float64))
    design = np.column_stack([np.ones(len(samples)), *(logs[:, axis] for axis in varying)])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    coefficients, errors = least_squares(design, logs[:, 2])
    half = float(t.ppf((1 + CONFIDENCE) / 2, free)) * errors
    exponents = {
        "nm"[axis]: Exponent(float(value), float(value - width), float(value + width))
        for axis, value, width in zip(varying, coefficients[1:], half[1:], strict=True)
    }
    return PowerLaw(math.exp(coefficients[0]), exponents, len(samples))
