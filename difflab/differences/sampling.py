"""Function values on stencils: in batches, with a count of evaluations, and with their noise.

The noise of values is estimated by differences of neighbours, in which the smooth part vanishes.
The idea is that of R. W. Hamming's tables of differences, and of J. J. Moré and S. M. Wild,
*Estimating computational noise*, SIAM J. Sci. Comput. 33, 2011.

The ladder is stated once, on arrays of float64 and on arrays of objects. `FLOATS` computes it with
NumPy's functions; with an arithmetic of nodes (`difflab.methods.numeric.compiled_stencil`) the same
code records a graph, for compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.errors import InputError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Arithmetic:
    """The operations that arrays of objects lack, or compute differently.

    Attributes
    ----------
    where, greater : callable
        As NumPy's.
    larger, smaller, larger_known : ufunc
        NumPy's `maximum`, `minimum` and `fmax`.
    applied : callable
        The product of a constant matrix with an array.
    candidates : callable
        ``candidates(weights, quotients)``: return the value, the spread and the guard of each
        candidate of `difflab.differences.extrapolation.Weights`, each ``(E, N)``.
    least : callable
        Return, from errors ``(E, N)``, which candidate has the smallest one in each column; the
        result may have any form.
    chosen : callable
        ``chosen(candidates, pick)``: return, from ``(E, N)``, the picked candidates ``(N,)``.
    picked : callable
        ``picked(weights, name, array, pick)``: return the products of an array ``(K, N)`` with the
        rows of the matrix `name` of the picked candidates, ``(N,)``.
    """

    where: Callable[..., Any]
    greater: Callable[..., Any]
    larger: Any
    smaller: Any
    larger_known: Any
    applied: Callable[..., Any]
    candidates: Callable[..., Any]
    least: Callable[..., Any]
    chosen: Callable[..., Any]
    picked: Callable[..., Any]


def _candidates(weights: Any, quotients: Any) -> Any:
    return (weights.stacked @ quotients).reshape(3, len(weights.value), -1)


def _picked(weights: Any, name: str, array: Any, pick: Any) -> Any:
    return (getattr(weights, name)[pick].T * array).sum(axis=0)


FLOATS = Arithmetic(
    where=np.where,
    greater=np.greater,
    larger=np.maximum,
    smaller=np.minimum,
    larger_known=np.fmax,
    applied=np.matmul,
    candidates=_candidates,
    least=lambda errors: errors.argmin(axis=0),
    chosen=lambda candidates, pick: candidates[pick, np.arange(pick.size)],
    picked=_picked,
)
"""The operations on arrays of float64."""


# --- samples ----------------------------------------------------------------------------------

# Points at and near x from which the noise of the values is estimated (the first is x itself).
LEAD = 9
# Smooth behaviour is far below the noise in fourth differences of steps so short; the
# odd factor fills the last bits, without which sums and products of a round x are exact.
_NOISE_STEP = 0.7316 * 2.0**-40
_COUNT = np.arange(float(LEAD))[:, None]
LEAST = 2.0**-1074  # the spacing of subnormal floats

# Below this a step relative to |x| would be subnormal.
_TINY = 2.0**-1000
_BATCH_BYTES = 1 << 28


class Sampler:
    """Sampler of the function in batches that fit in memory; counts the points.

    Parameters
    ----------
    values : callable
        Map points ``(N, n)`` to values ``(N, m)``; nan outside of the domain.
    n, m : int
        The number of inputs and outputs.
    memory : int
        Bytes that the points and values of one batch may need.
    nodes : int
        Intermediate values of the function at one point.
    eps : float, optional
        The relative rounding of the values, if it is not that of their dtype.
    rounded : callable, optional
        Rounds arguments to the dtype of the function.
    """

    def __init__(
        self,
        values: Callable[[NDArray[Any]], NDArray[Any]],
        n: int,
        m: int,
        memory: int = _BATCH_BYTES,
        nodes: int = 0,
        eps: float | None = None,
        rounded: Callable[[Array], Array] = np.asarray,
    ) -> None:
        self.values = values
        self.n = n
        self.m = m
        self.eps = eps
        self.rounded = rounded
        self.rows = max(64, min(memory, _BATCH_BYTES) // (16 * (n + m + nodes)))
        self.count = 0

    def __call__(self, points: NDArray[Any]) -> NDArray[Any]:
        """Return the values ``(N, m)`` at the points ``(N, n)``."""
        self.count += len(points)
        if len(points) <= self.rows:
            out = np.asarray(self.values(points))
        else:
            parts = range(0, len(points), self.rows)
            out = np.concatenate([self.values(points[i : i + self.rows]) for i in parts])
        if out.shape != (len(points), self.m):
            raise InputError(
                f"the function returned values of shape {out.shape} for {len(points)} points"
                f" where {(len(points), self.m)} was expected"
            )
        return out


def scale_of(x: Array, on: Arithmetic = FLOATS) -> Array:
    """Return the length over which a function of each component is assumed to change."""
    size = np.abs(x)
    scale: Array = on.where(on.greater(_TINY, size), 1.0, size)
    return scale


@lru_cache(maxsize=64)
def _moved_indices(count: int, n: int) -> NDArray[np.intp]:
    """Return the flat indices of elements ``(LEAD + r, r mod n)`` for the ``count`` rows r."""
    rows = np.arange(count)
    return (rows + LEAD) * n + rows % n


def lead_points(
    x: Array, scale: Array, step: float = _NOISE_STEP, on: Arithmetic = FLOATS
) -> Array:
    """Return `x` and points near it, a few thousand roundings apart, ``(LEAD, n)``."""
    # Towards zero, since a domain more often ends at a large |x| than at a small one; and
    # by whole units in the last place, or the uneven spacing would appear as noise.
    drift = (x + on.where(on.greater(x, 0), -step, step) * scale) - x
    points: Array = x + _COUNT * drift
    return points


def probe(
    sampler: Sampler, x: Array, scale: Array, units: Array
) -> tuple[NDArray[Any], NDArray[Any], Array]:
    """Evaluate near `x` for the noise and along every component, in one batch.

    Parameters
    ----------
    units : ndarray (R, 1)
        Signed steps relative to `scale`.

    Returns
    -------
    lead : ndarray (LEAD, m)
    body : ndarray (R, n, m)
        Values with component i moved by each step.
    moved : ndarray (R, n)
        The moved components.
    """
    n = x.size
    count = units.size * n
    moved = sampler.rounded(units * scale + x)
    points = np.empty((LEAD + count, n))
    points[:LEAD] = lead_points(x, scale)
    points[LEAD:] = x
    points.put(_moved_indices(count, n), moved)
    values = sampler(points)
    return values[:LEAD], values[LEAD:].reshape(units.size, n, -1), moved


def ladder(
    sampler: Sampler, x: Array, components: NDArray[np.intp], steps: Array
) -> tuple[NDArray[Any], Array]:
    """Evaluate with each of `components` moved by its column of signed `steps` ``(R, b)``.

    Returns the values ``(R, b, m)`` and the moved components ``(R, b)``; the components
    are processed in blocks, so that the points of one block fit in memory.
    """
    moved = sampler.rounded(x[components] + steps)
    return moved_values(sampler, x, (components, moved)), moved


def moved_values(
    sampler: Sampler, x: Array, *moves: tuple[NDArray[np.intp], Array]
) -> NDArray[Any]:
    """Return the values ``(R, b, m)`` at points where one or more components are moved.

    Parameters
    ----------
    *moves : (ndarray (b,), ndarray (R, b))
        The component of each column, and where it is moved. The columns are processed in
        blocks, so that the points of one block fit in memory.
    """
    levels, columns = moves[0][1].shape
    block = max(1, sampler.rows // levels)
    parts = []
    for start in range(0, columns, block):
        part = slice(start, start + block)
        count = min(block, columns - start)
        points = np.repeat(x[None, :], levels * count, axis=0)
        rows = np.arange(len(points))
        for components, positions in moves:
            points[rows, np.tile(components[part], levels)] = positions[:, part].ravel()
        parts.append(sampler(points).reshape(levels, count, -1))
    return np.concatenate(parts, axis=1)


# --- noise ------------------------------------------------------------------------------------

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
    bound: Array = deviations / norm * largest
    return bound


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
    remove the smooth part, so that a wrong formula is not noise; those of two lengths differ where
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
    bound: Array = np.nan_to_num(np.fmin(*bounds))
    return bound
