"""Difference quotients with automatic steps: `finite-forward`, `finite-central`, `richardson`.

**Forward**: ``f'(x) = (f(x+h) - f(x))/h - h f''/2 + ...``. The rounding error of a value,
``e``, enters as ``2e/h``, so that the sum of both is least at ``h = 2 sqrt(e/|f''|)``,
about ``sqrt(eps)`` of the length over which f changes; half the digits are right.

**Central**: ``f'(x) = (f(x+h) - f(x-h))/2h - h^2 f'''/6 + ...``, least at
``h = (3e/|f'''|)^(1/3)``; two thirds of the digits are right.

The user supplies neither ``f''`` nor ``e``. The quotients are formed on a ladder of steps
in one batch: neighbouring quotients give the truncation error of each, values at nine
points near x give ``e``, and the quotient with the smallest sum is used. Every step is the
difference of the rounded arguments, ``(x + h) - x``.

**Richardson**: the error series of a central quotient is ``a_1 h^2 + a_2 h^4 + ...``. From
quotients at ``h, h/2, h/4, ...`` Richardson's tableau removes one power after another, so that
steps large enough to be free of rounding give nearly all digits. The entry of the tableau with
the smallest sum of truncation and rounding error is used; if only one side of x is inside
the domain, the same is done with one-sided quotients, whose series has all powers.

Its error estimate is twice the sum of

- the difference from the entry of lower order, which is the error of *that* entry
  (Ridders' rule, an overestimate), at least a thousandth of the difference before it,
- the rounding of the values and their noise near x, carried through the weights;

and at least half the difference of the one-sided derivatives, so that a kink, where
central quotients agree at every step, is not mistaken for a derivative.

Sources: *Numerical Recipes* 5.7; J. Nocedal and S. J. Wright, *Numerical Optimization*,
8.1; P. E. Gill, W. Murray, M. A. Saunders and M. H. Wright, *Computing forward-difference
intervals for numerical optimization*, SIAM J. Sci. Stat. Comput. 4 (1983); weights of the
one-sided stencils: B. Fornberg, *Generation of finite difference formulas on arbitrarily
spaced grids*, Math. Comput. 51 (1988); L. F. Richardson and J. A. Gaunt, *The deferred
approach to the limit*, Phil. Trans. A 226 (1927); C. Ridders, *Accurate computation of F'(x)
and F'(x) F''(x)*, Adv. Eng. Software 4 (1982).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.dtypes import DOUBLE
from difflab.differences.extrapolation import EVEN, FULL, extrapolated, plain
from difflab.differences.first import DifferenceRule, first_derivatives
from difflab.differences.sampling import Sampler
from difflab.differences.second import SecondRule, second_derivatives
from difflab.errors import UnsupportedError
from difflab.methods.in_dtype import COARSE, RoundedValues
from difflab.methods.numeric.compiled_stencil import CompiledStencil
from difflab.methods.point_by_point import PointByPoint
from difflab.methods.protocol import AlwaysAvailable, Estimate, Family, Problem, Size, stacked

Array = NDArray[np.float64]

_ROUNDINGS = 2.0  # of a value, which points inside one spacing of the format do not show


def require_order(name: str, problem: Problem) -> None:
    """Raise `UnsupportedError` unless a Jacobian, or the Hessian of one output, is requested."""
    if problem.order not in (1, 2):
        raise UnsupportedError(f"{name} gives derivatives of order 1 and 2 only")
    if problem.order == 2 and problem.m != 1:
        raise UnsupportedError(f"a Hessian needs one output; the function has {problem.m}")


def sampler_of(problem: Problem) -> Sampler:
    """Return the sampler of a problem, which raises an error once its deadline is over."""
    values, deadline = problem.values, problem.deadline

    def in_time(points: NDArray[Any]) -> NDArray[Any]:
        assert deadline is not None
        deadline.check()
        if isinstance(values, PointByPoint):  # one call may take long
            return values(points, deadline)
        return values(points)

    nodes = 0 if problem.function is None else len(problem.function.graph)
    timed = values if deadline is None else in_time
    sampler = Sampler(timed, problem.n, problem.m, problem.memory_bytes // 4, nodes)
    if problem.dtype is not DOUBLE:
        sampler.eps, sampler.rounded = _ROUNDINGS * problem.dtype.eps, problem.dtype.rounded
    return sampler


def steps(first: float, ratio: float, levels: int) -> Array:
    """Return the ladder ``first / ratio^k`` as a column."""
    ladder: Array = first / ratio ** np.arange(float(levels))
    return ladder[:, None]


@dataclass(frozen=True)
class PreparedDifferences:
    """A function and a difference rule, ready to be evaluated at points."""

    problem: Problem
    rule: DifferenceRule
    second: SecondRule
    compiled: CompiledStencil | None = None
    size: Size | None = None
    operations: int | None = None

    def __call__(self, x: Array) -> Estimate:
        """Return the Jacobian or the Hessian at `x`, its error and the number of evaluations."""
        converged = None if self.compiled is None else self.compiled(x)
        if self.compiled is not None and converged is not None:
            value, error = (part.reshape(self.problem.m, -1) for part in converged)
            return Estimate(value, error, self.compiled.evaluations)
        sampler = sampler_of(self.problem)
        first = first_derivatives(self.rule, sampler, x)
        if self.problem.order == 2:
            value, error = second_derivatives(self.second, sampler, x, first)
            return Estimate(value, error, sampler.count)
        return Estimate(first.value.T, first.error.T, sampler.count)

    def batch(self, points: Array) -> Estimate:
        """Return the derivatives at the points ``(N, n)``, one by one where compiled code fails."""
        if self.compiled is None:
            return stacked([self(x) for x in points])
        value, error, converged = self.compiled.batch(points)
        shape = (len(points), self.problem.m, self.problem.n)
        value, error = value.reshape(shape), error.reshape(shape)
        count = int(converged.sum()) * self.compiled.evaluations
        for index in np.flatnonzero(~converged):
            estimate = self(points[index])
            value[index], error[index] = estimate.value, estimate.error
            count += estimate.evaluations
        return Estimate(value, error, count)


@dataclass(frozen=True)
class Differences(AlwaysAvailable):
    """A differentiation method by difference quotients."""

    name: str
    summary: str
    rule: DifferenceRule
    second: SecondRule
    family: Family = Family.NUMERIC
    orders: tuple[int, ...] = (1, 2)
    dtypes: tuple[str, ...] = COARSE

    def prepare(self, problem: Problem) -> PreparedDifferences:
        """Bind the rule to the function; compile it if it will be called often.

        Raises
        ------
        difflab.errors.UnsupportedError
            The order is not 1 or 2, or the Hessian of several outputs is requested.
        """
        require_order(self.name, problem)
        function, compiled = problem.function, None
        if problem.dtype is not DOUBLE and function is not None:
            values = RoundedValues(function, problem.dtype)
            problem = replace(problem, values=values, often=False)
        if problem.often and problem.order == 1 and function is not None:
            compiled = CompiledStencil.of(function, self.rule)
        return PreparedDifferences(problem, self.rule, self.second, compiled)


# The ladders extend widely around the classical steps sqrt(eps) and cbrt(eps). The odd
# factor keeps steps from being a period of the function at a round argument.
FORWARD = Differences(
    name="finite-forward",
    summary="(f(x+h) - f(x)) / h, the step balanced between truncation and rounding",
    rule=DifferenceRule(
        units=steps(0.83 * 2.0**-6, 16.0, 9),
        central=None,
        onesided=plain(9, 16.0, FULL),
        tolerance=1e-5,
        strict=False,
        fine_units=steps(64.0, 4.0, 8),
        fine_central=None,
        fine_onesided=plain(8, 4.0, FULL),
        from_onset=False,
    ),
    second=SecondRule(
        units=steps(0.83 * 2.0**-4, 4.0, 10),
        central=None,
        onesided=plain(10, 4.0, FULL),
        tolerance=1e-4,
    ),
)

CENTRAL = Differences(
    name="finite-central",
    summary="(f(x+h) - f(x-h)) / 2h, the step balanced between truncation and rounding",
    rule=DifferenceRule(
        units=steps(0.83 * 2.0**-4, 8.0, 9),
        central=plain(9, 8.0, EVEN),
        onesided=plain(9, 8.0, FULL, 1),
        tolerance=1e-7,
        strict=False,
        fine_units=steps(64.0, 4.0, 8),
        fine_central=plain(8, 4.0, EVEN),
        fine_onesided=plain(8, 4.0, FULL, 1),
        from_onset=False,
    ),
    second=SecondRule(
        units=steps(0.83 * 2.0**-2, 4.0, 10),
        central=plain(10, 4.0, EVEN),
        onesided=plain(10, 4.0, FULL, 1),
        tolerance=1e-5,
    ),
)

RICHARDSON = Differences(
    name="richardson",
    summary="central differences extrapolated to step zero, adaptive, with an error estimate",
    rule=DifferenceRule(
        # The odd factor keeps steps from falling on the period of a function at a round x.
        units=steps(0.317, 2.0, 7),
        central=extrapolated(7, 2.0, EVEN, 5, 0),
        onesided=extrapolated(7, 2.0, FULL, 5, 0),
        tolerance=1e-9,
        strict=True,
        fine_units=steps(8.0, 2.0, 10),
        fine_central=extrapolated(10, 2.0, EVEN, 5),
        fine_onesided=extrapolated(10, 2.0, FULL, 6),
        from_onset=True,
    ),
    second=SecondRule(
        units=steps(0.317, 2.0, 7),
        central=extrapolated(7, 2.0, EVEN, 5),
        onesided=extrapolated(7, 2.0, FULL, 5),
        tolerance=1e-7,
    ),
)
