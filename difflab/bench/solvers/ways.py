"""difflab's ways of differentiating a solution, and SciPy's solvers with differences."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from difflab import arrays, solve
from difflab.autodiff import jacrev
from difflab.bench.solvers.problem import (
    CUBE_ROOT,
    Answer,
    Flat,
    Prepared,
    SolverProblem,
    Way,
    differences,
)
from difflab.errors import ConvergenceError
from difflab.execute.jit.jit import jit
from difflab.solve.calls import Derivative

EQUATIONS = frozenset({"root", "fixed-point", "linear", "minimum"})
"""The kinds whose solution is that of equations."""

Solution = Callable[[Any], Any]


def solution(problem: SolverProblem, tolerance: float, derivative: Derivative) -> Solution:
    """Return the solution as a function of the parameters, by `difflab.solve`.

    Examples
    --------
    >>> from difflab.bench.solvers.problem import problems
    >>> one = next(problem for problem in problems() if problem.name == "root-kepler")
    >>> x = solution(one, 1e-8, "implicit")(np.array([0.5, 0.99]))
    >>> round(float(x[0] - 0.99 * np.sin(x[0])), 12)
    0.5
    """
    flat = Flat(problem)
    f, first = flat.call(xp=arrays), flat.start
    kind = problem.kind
    if kind == "integral":
        return partial(_integral, flat, f, tolerance, derivative)
    if kind == "fixed-point":
        return lambda p: solve.fixed_point(f, first, p, derivative=derivative, xtol=tolerance)
    if kind == "linear":
        zero = 0.0 * first
        return lambda p: solve.linear(lambda x, p: f(x, p) - f(zero, p), -f(zero, p), p)
    if kind == "minimum":
        return partial(_minimum, flat, f, tolerance, derivative)
    return lambda p: solve.root(f, first, p, derivative=derivative, tol=tolerance).x


def _integral(flat: Flat, f: Any, tolerance: float, derivative: Derivative, p: Any) -> Any:
    a, b = flat.listed("between", p)
    integrand = lambda x, p: f(arrays.stack([x]), p)[0]  # noqa: E731
    y, _ = solve.quad(integrand, a, b, p, derivative=derivative, epsabs=tolerance, epsrel=tolerance)
    return arrays.stack([y])


def _minimum(flat: Flat, f: Any, tolerance: float, derivative: Derivative, p: Any) -> Any:
    sides = flat.sides(p, arrays)
    bounds = None if sides is None else solve.Bounds(*sides)
    found = solve.minimize(
        lambda x, p: f(x, p)[0], flat.start, p, derivative=derivative, bounds=bounds, tol=tolerance
    )
    return found.x


def _difflab(derivative: Derivative, problem: SolverProblem, tolerance: float) -> Prepared:
    slope, at = jacrev(solution(problem, tolerance, derivative)), Flat(problem).at
    slope(at)  # raises an error where compiled code returns nan
    compiled = jit(slope)
    compiled(at)
    return lambda: Answer(compiled(at))


def _scipy(problem: SolverProblem, tolerance: float) -> Prepared:
    """Return central differences of SciPy's solutions, with steps of ε^(1/3)."""
    flat = Flat(problem)
    steps = CUBE_ROOT * np.maximum(1.0, np.abs(flat.at))
    return lambda: differences(lambda p: _by_scipy(flat, tolerance, p), flat.at, steps)


def _by_scipy(flat: Flat, tolerance: float, p: Any) -> Any:
    """Return SciPy's solution."""
    from scipy import integrate

    optimize: Any = import_module("scipy.optimize")
    f, first, kind = flat.call(), flat.start, flat.problem.kind
    if kind == "integral":
        a, b = flat.listed("between", p)
        found = integrate.quad(
            lambda x: float(f(np.array([x]), p)[0]), a, b, epsabs=tolerance, epsrel=tolerance,
            limit=200,
        )  # fmt: skip
        return np.array([found[0]])
    if kind == "fixed-point":
        return optimize.fixed_point(lambda x: f(x, p), first, xtol=tolerance, maxiter=10_000)
    if kind == "minimum":
        sides = flat.sides(p)
        result = optimize.minimize(
            lambda x: float(f(x, p)[0]), first, tol=tolerance,
            bounds=None if sides is None else optimize.Bounds(*sides),
        )  # fmt: skip
        return result.x
    result = optimize.root(lambda x: f(x, p), first, tol=tolerance)
    if not result.success:
        raise ConvergenceError(f"SciPy's root: {' '.join(result.message.split())}")
    return result.x


_ALL = EQUATIONS | {"integral"}
WAYS = (
    Way("implicit", _ALL, partial(_difflab, "implicit")),
    Way("unrolled", _ALL, partial(_difflab, "unrolled")),
    Way("scipy differences", _ALL, _scipy, "scipy", ("scipy",)),
)
