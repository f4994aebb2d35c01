"""The noise of values, from differences of neighbours in which what is smooth vanishes.

The idea is that of R. W. Hamming's tables of differences, and of J. J. Moré and S. M. Wild,
*Estimating computational noise*, SIAM J. Sci. Comput. 33, 2011.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.differences.arithmetic import FLOATS, Arithmetic
from difflab.differences.sampling import LEAST

Array = NDArray[np.float64]

_DEVIATIONS = 3.0  # standard deviations of the noise that count as its bound
_ALONG = 4.0  # the largest error of a rounded value, relative to the noise of neighbours


class NoiseEstimate(NamedTuple):
    """The values at x, a bound on their errors, and the relative rounding of their type."""

    center: Array
    noise: Array
    eps: float


@lru_cache
def _rounding(dtype: np.dtype[Any]) -> float:
    return float(np.finfo(dtype).eps) if dtype.kind == "f" else 2.0**-52


@lru_cache
def _differences(count: int, order: int) -> tuple[Array, float]:
    """Return the matrix of differences of an order of equally spaced values, and their norm.

    Both are divided by the sum of the weights, so that huge values do not overflow.
    """
    weights = np.ones(1)
    for _ in range(order):
        weights = np.convolve(weights, (1.0, -1.0)) / 2.0
    return np.array([np.convolve(row, weights) for row in np.eye(count - order)]), float(
        np.linalg.norm(weights)
    )


def fluctuation(
    values: NDArray[Any], deviations: float, order: int = 4, on: Arithmetic = FLOATS
) -> Array:
    """Return a bound on the noise of values ``(K, N)`` at equally spaced points.

    Parameters
    ----------
    values : ndarray (K, N)
        The values, ``K > order``.
    deviations : float
        The bound is the largest difference times this, over its size for noise of the size 1.
    order : int
        The order of the differences: polynomials of a lower degree have no influence.
    on : Arithmetic
        The operations on the arrays.

    Examples
    --------
    >>> t = np.arange(8.0)[:, None]
    >>> fluctuation(t**3, 3.0).tolist()
    [0.0]
    >>> bool(1e-9 < fluctuation(t**3 + 1e-9 * (-1) ** t, 1.0)[0] < 2e-9)
    True
    """
    matrix, norm = _differences(len(values), order)
    largest = on.larger.reduce(np.abs(on.applied(matrix, values)), axis=0)
    return deviations / norm * largest  # type: ignore[no-any-return]


def noise_of(
    lead: NDArray[Any], on: Arithmetic = FLOATS, eps: float | None = None
) -> NoiseEstimate:
    """Return a bound on the errors of the values ``(LEAD, m)`` near x, at least their rounding.

    The points are those of `difflab.differences.sampling.lead_points`. The value at x itself is
    left out: where the function jumps at x, that is not noise.
    """
    eps, center = eps or _rounding(lead.dtype), lead[0]
    # The weights sum to zero; without the value at x the products are exact.
    seen = fluctuation(lead[1:] - center, _DEVIATIONS, on=on)
    return NoiseEstimate(center, on.larger_known(seen, eps * np.abs(center) + LEAST), eps)


def noise_along(values: Callable[[float], Array]) -> Array:
    r"""Return a bound on the rounding of values ``(m, n)`` from those along a line.

    It is that of the formula by which they are computed: :math:`p - 1` for p next to 1 has the
    absolute error of p, which one unit of rounding of the arguments does not show. Differences
    remove what is smooth, so that a wrong formula is not noise; those of two lengths differ where
    the values jump beside the point, and the smaller ones are returned. Of each length there are
    three steps: one that moves the values by a whole number of units rounds all of them alike.

    Parameters
    ----------
    values : callable
        Map a relative move of the arguments to the values there.

    Examples
    --------
    >>> noise = noise_along(lambda t: np.array([[1.0 / (1.0 + np.exp(-18.0 * (1.0 + t))) - 1.0]]))
    >>> bool(1e-17 < noise[0, 0] < 1e-15)
    True
    >>> bool(noise_along(lambda t: np.array([[np.exp(t)]]))[0, 0] < 1e-14)
    True
    """
    bounds = []
    for length in (2.0**-13, 2.0**-17):
        seen = []
        for step in (length, 1.2720196495140690 * length, 1.6180339887498949 * length):
            near = np.array([values(k * step) for k in range(-4, 5)])
            seen.append(fluctuation(near.reshape(9, -1), _ALONG).reshape(near.shape[1:]))
        bounds.append(np.fmax.reduce(seen))
    found: Array = np.nan_to_num(np.fmin(*bounds))
    return found
