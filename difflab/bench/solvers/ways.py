"""Ways of differentiating the solution of equations: difflab's, SciPy's, other packages'.

SciPy's solvers are differentiated by differences. The other packages take Newton's steps until one
is shorter than the tolerance, relative to 1 + ‖x‖, and differentiate by their implicit rules or
through the steps.
"""

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
    SolverWay,
    differences,
)
from difflab.errors import ConvergenceError, UnsupportedError
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

    def integrand(x: Any, p: Any) -> Any:
        return f(arrays.stack([x]), p)[0]

    y, _ = solve.quad(integrand, a, b, p, derivative=derivative, epsabs=tolerance, epsrel=tolerance)
    return arrays.stack([y])


def _minimum(flat: Flat, f: Any, tolerance: float, derivative: Derivative, p: Any) -> Any:
    sides = flat.sides(p, arrays)
    bounds = None if sides is None else solve.Bounds(*sides)
    minimum = solve.minimize(
        lambda x, p: f(x, p)[0], flat.start, p, derivative=derivative, bounds=bounds, tol=tolerance
    )
    return minimum.x


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
        integral = integrate.quad(
            lambda x: float(f(np.array([x]), p)[0]), a, b, epsabs=tolerance, epsrel=tolerance,
            limit=200,
        )  # fmt: skip
        return np.array([integral[0]])
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


# --- the other packages -----------------------------------------------------------------------

MOST_STEPS = 50

Vectors = Callable[[Any, Any], Any]


def _residual(flat: Flat, f: Vectors, xp: Any, grad: Callable[[Vectors], Vectors]) -> Vectors:
    """Return the equations that the solution satisfies."""
    kind = flat.problem.kind
    if kind == "fixed-point":
        return lambda x, p: f(x, p) - x
    if kind != "minimum":
        return f
    slope = grad(lambda x, p: f(x, p)[0])

    def held(x: Any, p: Any) -> Any:
        sides, g = flat.sides(p, xp), slope(x, p)
        if sides is None:
            return g
        lower, upper = sides
        return xp.where(x - g < lower, x - lower, xp.where(x - g > upper, x - upper, g))

    return held


def _jax(implicit: bool, problem: SolverProblem, tolerance: float) -> Prepared:
    import jax
    import jax.numpy as jnp

    from difflab.methods.peers.jax import JAX, double

    flat = Flat(problem)
    with double():
        f = flat.call(JAX.written(flat.function), jnp)
        equations = _residual(flat, f, jnp, jax.grad)
        first, at = jnp.asarray(flat.start), jnp.asarray(flat.at)

        def newton(g: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
            def going(state: Any) -> Any:
                x, step, count = state
                limit = tolerance * (1 + jnp.linalg.norm(x))
                return (jnp.linalg.norm(step) > limit) & (count < MOST_STEPS)

            def taken(state: Any) -> Any:
                x, _, count = state
                step = jnp.linalg.solve(jax.jacfwd(g)(x), g(x))
                return x - step, step, count + 1

            x, _, count = jax.lax.while_loop(going, taken, (x, jnp.full_like(x, jnp.inf), 0))
            return x, count

        def solution(p: Any) -> Any:
            def g(x: Any) -> Any:
                return equations(x, p)

            if not implicit:
                return newton(g, first)[0]

            def linear(g: Any, y: Any) -> Any:
                return jnp.linalg.solve(jax.jacobian(g)(y), y)

            return jax.lax.custom_root(g, first, lambda g, x: newton(g, x)[0], linear)

        steps = newton(lambda x: equations(x, at), first)[1]
        slope = jax.jit((jax.jacrev if implicit else jax.jacfwd)(solution)).lower(at).compile()
        return lambda: Answer(np.asarray(slope(at)), int(steps))


def _torch(problem: SolverProblem, tolerance: float) -> Prepared:
    import torch

    from difflab.methods.peers.torch import TORCH

    flat = Flat(problem)
    f = flat.call(TORCH.written(flat.function), torch)

    equations = _residual(flat, f, torch, torch.func.grad)

    def run() -> Answer:
        p = torch.tensor(flat.at, requires_grad=True)
        x = torch.tensor(flat.start)
        steps = 0
        for _ in range(MOST_STEPS):
            steps += 1
            matrix = torch.func.jacfwd(equations)(x, p)
            step = torch.linalg.solve(matrix, equations(x, p))
            x = x - step
            if not float(step.detach().norm()) > tolerance * (1 + float(x.detach().norm())):
                break
        rows = [torch.autograd.grad(one, p, retain_graph=True)[0].numpy() for one in x]
        return Answer(np.stack(rows), steps)

    return run


def _casadi(problem: SolverProblem, tolerance: float) -> Prepared:
    import casadi

    from difflab.methods.peers.casadi import expressions_of

    flat = Flat(problem)
    if flat.sides(flat.at) is not None:
        raise UnsupportedError("CasADi's rootfinder has no bounds")
    x, p = casadi.SX.sym("x", len(flat.start)), casadi.SX.sym("p", len(flat.at))
    outputs = casadi.vertcat(*expressions_of(flat.function, _elements(flat, x, p)))
    if problem.kind == "fixed-point":
        outputs = outputs - x
    elif problem.kind == "minimum":
        outputs = casadi.gradient(outputs, x)
    options = {"abstol": tolerance, "error_on_fail": False, "max_iter": MOST_STEPS}
    solver = casadi.rootfinder("solver", "newton", {"x": x, "p": p, "g": outputs}, options)
    parameters = casadi.MX.sym("p", len(flat.at))
    root = solver(x0=flat.start, p=parameters)["x"]
    slope = casadi.Function("slope", [parameters], [casadi.jacobian(root, parameters)])
    solver(x0=flat.start, p=flat.at)
    if not solver.stats()["success"]:
        raise ConvergenceError("CasADi's rootfinder does not converge")
    steps = int(solver.stats().get("iter_count", 0)) or None
    return lambda: Answer(np.array(slope(flat.at)), steps)


def _elements(flat: Flat, x: Any, p: Any) -> Callable[[int], Any]:
    """Return the element of x or p that is the packed input of a number."""
    elements = []
    for name in flat.function.inputs:
        which, part, _ = flat.columns[name]
        elements += [(p if which else x)[k] for k in range(part.start, part.stop)]
    return elements.__getitem__


def _advect(problem: SolverProblem, tolerance: float) -> Prepared:
    import advect

    from difflab.methods.peers.advect import ADVECT

    flat = Flat(problem)
    if flat.sides(flat.at) is not None:
        raise UnsupportedError("advect's values cannot be stacked with numbers, as bounds are")
    f = flat.call(ADVECT.written(flat.function), ADVECT.spelling.xp)
    equations = _residual(flat, f, np, advect.grad)
    count = 0

    def solve(residual: Callable[[Any], Any], x: Any) -> Any:
        nonlocal count
        for _ in range(MOST_STEPS):
            step = np.linalg.solve(advect.jacobian(residual)(x), residual(x))
            x, count = x - step, count + 1
            if not np.linalg.norm(step) > tolerance * (1 + np.linalg.norm(x)):
                break
        return x

    def linear(operator: Callable[[Any], Any], right: Any) -> Any:
        columns = [operator(unit) for unit in np.eye(len(right))]
        return np.linalg.solve(np.stack(columns, axis=1), right)

    root = advect.implicit_root(equations, solve=solve, linear_solve=linear)
    slope = advect.jacobian(lambda p: root(p, initial=flat.start))

    def run() -> Answer:
        nonlocal count
        count = 0
        jacobian = np.asarray(slope(flat.at))
        return Answer(jacobian, count or None)

    return run


_ALL = EQUATIONS | {"integral"}
WAYS = (
    SolverWay("implicit", _ALL, partial(_difflab, "implicit")),
    SolverWay("unrolled", _ALL, partial(_difflab, "unrolled")),
    SolverWay("scipy differences", _ALL, _scipy, "scipy", ("scipy",)),
    SolverWay("jax custom_root", EQUATIONS, partial(_jax, True), "jax", ("jax", "jaxlib")),
    SolverWay("jax unrolled", EQUATIONS, partial(_jax, False), "jax", ("jax", "jaxlib")),
    SolverWay("torch unrolled", EQUATIONS, _torch, "torch", ("torch",)),
    SolverWay("casadi rootfinder", EQUATIONS, _casadi, "casadi", ("casadi",)),
    SolverWay("advect implicit_root", EQUATIONS, _advect, "advect", ("advect",)),
)
