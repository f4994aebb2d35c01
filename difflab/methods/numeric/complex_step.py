"""`complex-step`: the derivative as an imaginary part, free of cancellation.

For a function that is analytic around x and real on the real line,

    f(x + ih) = f(x) + ih f'(x) - h^2 f''(x)/2 - ...,    f'(x) = Im f(x + ih) / h + O(h^2).

Nothing is subtracted, so h can be so small that the error of order ``h^2`` is far below
rounding: the derivative has the digits that the function has.

The step is ``2^-100 |x|``. No singularity but one at x itself is nearer than a unit in the
last place, ``2^-53 |x|``, so that the relative error ``(h/L)^2`` is below ``2^-94``
whatever length L the function changes over; a still smaller step would gain nothing and
push the imaginary parts of small derivatives into the subnormal range.

Sources: W. Squire and G. Trapp, *Using complex variables to estimate derivatives of real
functions*, SIAM Review 40 (1998); J. R. R. A. Martins, P. Sturdza and J. J. Alonso, *The
complex-step derivative approximation*, ACM Trans. Math. Softw. 29 (2003).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.differences.first import first_derivatives
from difflab.differences.sampling import LEAST, Sampler, fluctuation, lead_points, scale_of
from difflab.errors import UnsupportedError
from difflab.graph.algebra import require_analytic
from difflab.methods.numeric.finite import CENTRAL, RICHARDSON, require_order, sampler_of
from difflab.methods.protocol import AlwaysAvailable, Estimate, Family, Problem, Size, stacked

Array = NDArray[np.float64]

_EPS = 2.0**-52
# Replicates of the derivative near x, whose third differences estimate its noise. They are
# further apart than those of values: cancellation makes the derivative a step function.
_REPLICATES = 6
_DEVIATIONS = 4.0 * np.sqrt(20)  # of noise: four times the third differences themselves
_NOISE_STEP = 0.7316 * 2.0**-30
_SHORT_STEP = 0.7316 * 2.0**-44
_ROUGH = 4e-6
# Central differences with a larger relative difference are computed again adaptively.
_ALIKE = 1e-4


def complex_steps(x: Array) -> Array:
    """Return the imaginary step for each component of `x`.

    At zero, where no unit in the last place gives a length, and near the smallest
    floats, where ``2^-100 |x|`` would vanish, the step is as short as possible.
    """
    size = np.abs(x)
    steps = np.maximum(2.0**-100 * size, np.minimum(2.0**-960, 2.0**-40 * size))
    return np.where(size > 0, np.maximum(steps, LEAST), 2.0**-300)


@dataclass(frozen=True)
class PreparedComplexStep:
    """A prepared derivative by complex steps, evaluated at points."""

    problem: Problem
    size: Size | None = None
    operations: int | None = None

    def __call__(self, x: Array) -> Estimate:
        """Return the Jacobian or the Hessian at `x`, its error and the number of evaluations."""
        sampler = sampler_of(self.problem)
        with np.errstate(all="ignore"):
            if self.problem.order == 2:
                value, error = _hessian(self.problem, sampler, x)
            else:
                (value,), (error,) = _jacobians(self.problem, sampler, x[None])
        return Estimate(value, error, sampler.count)

    def batch(self, points: Array) -> Estimate:
        """Return the derivatives at the points ``(N, n)``."""
        if self.problem.order == 2:
            return stacked([self(x) for x in points])
        sampler = sampler_of(self.problem)
        together = max(1, sampler.rows // (_REPLICATES * self.problem.n))
        with np.errstate(all="ignore"):
            parts = [
                _jacobians(self.problem, sampler, points[start : start + together])
                for start in range(0, len(points), together)
            ]
        value, error = map(np.concatenate, zip(*parts, strict=True))
        return Estimate(value, error, sampler.count)


@dataclass(frozen=True)
class ComplexStep(AlwaysAvailable):
    """The complex-step method."""

    name: str = "complex-step"
    summary: str = "Im f(x + ih) / h: no cancellation, for analytic functions"
    family: Family = Family.NUMERIC
    orders: tuple[int, ...] = (1, 2)
    only_float64: str = "its values are complex numbers of two float64"

    def prepare(self, problem: Problem) -> PreparedComplexStep:
        """Check that the function is analytic.

        Raises
        ------
        difflab.errors.UnsupportedError
            An operation of the function is not analytic, or the order is not 1 or 2.
        """
        require_order(self.name, problem)
        if problem.function is not None:
            require_analytic(problem.function)
        return PreparedComplexStep(problem)


COMPLEX_STEP = ComplexStep()


def _imaginary(sampler: Sampler, points: Array, steps: Array) -> Array:
    """Return ``Im f``, ``(N, n, m)``, at the points ``(N, n)``, with i h added to one component.

    The steps are ``(n,)``, or ``(N, n)`` where every point has its own. A function that returns
    real values for complex points gives zeros; the comparison with central differences shows
    whether these are right.
    """
    (values,) = _beside(sampler, points, (points + 1j * steps)[None])
    # If the value overflows, the imaginary part may result from inf - inf.
    return np.where(np.isfinite(np.real(values)), np.imag(values), np.nan)


def _replicated(sampler: Sampler, points: Array, steps: Array, apart: float) -> tuple[Array, Array]:
    """Return the derivatives ``(N, n, m)``, and the noise that those near each point show."""
    near = lead_points(points[:, None], scale_of(points)[:, None], apart)[:, :_REPLICATES]
    beside = np.repeat(steps, _REPLICATES, axis=0)
    slopes = _imaginary(sampler, near.reshape(-1, near.shape[2]), beside) / beside[:, :, None]
    slopes = slopes.reshape(*near.shape, -1)
    replicates = np.moveaxis(slopes, 1, 0).reshape(_REPLICATES, -1)
    return slopes[:, 0], fluctuation(replicates, _DEVIATIONS, 3).reshape(slopes[:, 0].shape)


def _jacobians(problem: Problem, sampler: Sampler, points: Array) -> tuple[Array, Array]:
    """Return the Jacobians and their errors, ``(N, m, n)``."""
    steps = complex_steps(points)
    value, noise = _replicated(sampler, points, steps, _NOISE_STEP)
    rough = (noise > _ROUGH * np.abs(value)).any(axis=(1, 2))
    if rough.any():
        # Very close to an edge of the domain or a pole, the replicates differ themselves.
        again = _replicated(sampler, points[rough], steps[rough], _SHORT_STEP)[1]
        noise[rough] = np.fmin(noise[rough], again)
    least = 4.0 * LEAST / steps[:, :, None]
    error = 4.0 * _EPS * np.abs(value) + np.nan_to_num(noise) + least
    center = sampler(points)[:, None]
    # A derivative of exactly zero may be one that cancelled: `sin(x) / x` at 1e-8.
    unseen = _EPS * np.abs(center) / np.maximum(scale_of(points), 2.0**-26)[:, :, None]
    error = np.where(value == 0, np.maximum(error, unseen), error)
    suspect = _unlike_central(sampler, points, value, center)
    for k in np.flatnonzero(suspect.any(axis=(1, 2))):
        error[k] = _compared(problem, sampler, points[k], value[k], error[k], suspect[k])
    error[~np.isfinite(value)] = np.inf
    return value.swapaxes(1, 2), error.swapaxes(1, 2)


def _unlike_central(
    sampler: Sampler, points: Array, value: Array, center: Array
) -> NDArray[np.bool_]:
    """Return which derivatives a plain central difference does not confirm."""
    steps = np.cbrt(_EPS) * scale_of(points)
    moved = np.stack([points + steps, points - steps])
    values = _beside(sampler, points, moved)
    width = (moved[0] - moved[1])[:, :, None]
    central = (values[0] - values[1]) / width
    half_jump = np.abs(values[0] + values[1] - 2.0 * center) / width
    size = np.maximum(np.abs(value), np.abs(center) / np.maximum(scale_of(points), 1.0)[:, :, None])
    unlike = np.abs(central - value) + half_jump > _ALIKE * size
    return np.asarray(unlike & np.isfinite(central))


def _beside(sampler: Sampler, points: Array, moved: NDArray[Any]) -> NDArray[Any]:
    """Return the values ``(K, N, n, m)`` with one component replaced by its K `moved` values."""
    ways, count, n = moved.shape
    out = np.empty((*moved.shape, sampler.m), dtype=moved.dtype)
    block = max(1, sampler.rows // (ways * count))
    for start in range(0, n, block):
        chosen = np.arange(start, min(start + block, n))
        stack = np.tile(points.astype(moved.dtype)[:, None, :], (ways, 1, chosen.size, 1))
        stack[:, :, chosen - start, chosen] = moved[:, :, chosen]
        values = sampler(stack.reshape(-1, n))
        out[:, :, chosen] = values.reshape(ways, count, chosen.size, -1)
    return out


def _compared(
    problem: Problem, sampler: Sampler, x: Array, value: Array, error: Array, suspect: Any
) -> Array:
    """Return errors enlarged to include the values of adaptive central differences.

    Raises
    ------
    difflab.errors.UnsupportedError
        The derivatives of a Python callable differ: it drops the imaginary part, as ``abs``.
    """
    central = first_derivatives(CENTRAL.rule, sampler, x)
    gap = np.abs(central.value - value)
    wrong = suspect & (gap > 10.0 * central.error + 10.0 * error)
    if problem.function is None and wrong.any():
        i, k = (int(indices[0]) for indices in np.nonzero(wrong))
        raise UnsupportedError(
            "complex step needs an analytic function; this one drops imaginary parts:"
            f" its derivative with respect to x[{i}] is {value[i, k]:.6g} by complex step and"
            f" {central.value[i, k]:.6g} by central differences"
        )
    rough = central.error > 1e-2 * np.abs(value)
    admitted = np.where(rough, np.maximum(gap, central.error), gap)
    return np.where(suspect & np.isfinite(gap), np.fmax(error, admitted), error)


def _hessian(problem: Problem, sampler: Sampler, x: Array) -> tuple[Array, Array]:
    """Extrapolate central differences of the complex-step gradient."""
    _jacobians(problem, sampler, x[None])  # raises for a function that is not analytic

    steps = complex_steps(x)

    # Not divided by the steps, so that values near the smallest floats are recognized.
    def gradient(points: NDArray[Any]) -> NDArray[Any]:
        return _imaginary(sampler, points, steps)[:, :, 0]

    outer = sampler_of(replace(problem, values=gradient, m=problem.n))
    derivatives = first_derivatives(RICHARDSON.rule, outer, x)
    value, error = derivatives.value / steps, derivatives.error / steps
    half = 0.5 * (value + value.T)
    least = 16.0 * LEAST / steps / scale_of(x)
    return half, np.maximum(error, error.T) + np.abs(value - half) + np.maximum.outer(least, least)
