"""Ways of differentiating the solution of ODEs: difflab's, SciPy's with differences, and peers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from difflab.autodiff import jacfwd, jacrev
from difflab.bench.solvers.odes import right_side
from difflab.bench.solvers.problem import CUBE_ROOT, Answer, SolverProblem, Way, differences
from difflab.errors import ConvergenceError, UnsupportedError
from difflab.solve import ivp

__all__ = ["WAYS"]

MOST = 200_000
"""Steps at which every solver gives up."""

Prepared = Callable[[], Answer]


def _parts(problem: SolverProblem) -> tuple[Any, Any, tuple[float, float]]:
    """Return the first state, the parameters, and the ends of the interval."""
    first, last = problem.named("between")
    states = np.array(list(problem.start.values()), dtype=float)
    return states, np.array(list(problem.at.values()), dtype=float), (first, last)


def _difflab(method: Any, derivative: Any, problem: SolverProblem, tolerance: float) -> Prepared:
    y0, p, span = _parts(problem)
    rate = right_side(problem, None)
    options: Any = {"method": method, "derivative": derivative, "max_steps": MOST}

    def end(p: Any) -> Any:
        solution = ivp(
            lambda t, y, p: np.stack(rate(t, y, p)), span, y0, p,
            rtol=tolerance, atol=tolerance, **options,
        )  # fmt: skip
        return solution.y[:, -1]

    transform = jacfwd if derivative == "forward" else jacrev
    steps = ivp(lambda t, y, p: np.stack(rate(t, y, p)), span, y0, p,
                rtol=tolerance, atol=tolerance, **options).steps  # fmt: skip
    transform(end)(p)  # compiles it
    return lambda: Answer(transform(end)(p), steps)


def _scipy(problem: SolverProblem, tolerance: float) -> Prepared:
    """Return central differences of SciPy's solutions."""
    from scipy.integrate import solve_ivp

    y0, p, span = _parts(problem)
    rate = right_side(problem, None)

    def end(p: Any) -> Any:
        found = solve_ivp(
            lambda t, y: rate(t, y, p), span, y0, method="DOP853",
            rtol=max(tolerance, 1e-13), atol=tolerance,
        )  # fmt: skip
        if not found.success:
            raise ConvergenceError(f"SciPy's solve_ivp: {found.message}")
        return found.y[:, -1]

    steps = max(CUBE_ROOT, tolerance ** (1 / 3)) * np.maximum(1e-3, np.abs(p))
    return lambda: differences(end, p, steps)


def _diffrax(adjoint: str, problem: SolverProblem, tolerance: float) -> Prepared:
    import jax

    diffrax = import_module("diffrax")
    jax.config.update("jax_enable_x64", True)
    y0, p, (first, last) = _parts(problem)
    rate = right_side(problem, None)
    term = diffrax.ODETerm(lambda t, y, p: jax.numpy.stack(rate(t, y, p)))
    control = diffrax.PIDController(rtol=tolerance, atol=tolerance)
    kind = getattr(diffrax, adjoint)()

    def solved(p: Any) -> Any:
        return diffrax.diffeqsolve(
            term, diffrax.Dopri8(), first, last, None, jax.numpy.asarray(y0), args=p,
            stepsize_controller=control, adjoint=kind, max_steps=MOST,
        )  # fmt: skip

    transform = jax.jacfwd if adjoint == "ForwardMode" else jax.jacrev
    jacobian = jax.jit(transform(lambda p: solved(p).ys[-1]))
    steps = int(jax.jit(solved)(jax.numpy.asarray(p)).stats["num_steps"])
    jacobian(p)  # compiles it
    return lambda: Answer(np.asarray(jacobian(p)), steps)


def _torchdiffeq(problem: SolverProblem, tolerance: float) -> Prepared:
    import torch

    y0, p, span = _parts(problem)
    rate = right_side(problem, None)

    class Rate(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.p = torch.nn.Parameter(torch.tensor(p))
            self.calls = 0

        def forward(self, t: Any, y: Any) -> Any:
            self.calls += 1
            return torch.stack([one + 0 * t for one in rate(t, y, self.p)])

    f, times, first = Rate(), torch.tensor(span, dtype=torch.float64), torch.tensor(y0)

    def run() -> Answer:
        options = {"max_num_steps": MOST}
        end = import_module("torchdiffeq").odeint_adjoint(
            f, first, times, rtol=tolerance, atol=tolerance, method="dopri8",
            options=options, adjoint_options=options,
        )[-1]  # fmt: skip
        steps, rows = f.calls, []
        for one in end:
            (row,) = torch.autograd.grad(one, f.p, retain_graph=True)
            rows.append(row.numpy())
        f.calls = 0
        return Answer(np.stack(rows), steps)

    return run


def _once(prepare: Callable[..., Prepared], problem: SolverProblem, tolerance: float) -> Answer:
    try:
        return prepare(problem, tolerance)()
    except (RuntimeError, AssertionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UnsupportedError(f"the solver fails: {reason}") from error


def _way(name: str, prepare: Callable[..., Prepared], package: str = "") -> Way:
    kinds = frozenset({"ode"})
    return Way(name, kinds, partial(_once, prepare), package, (package,) * bool(package), prepare)


WAYS = (
    *(
        _way(f"{method} {derivative}", partial(_difflab, method, derivative))
        for method in ("rk45", "dopri8", "taylor")
        for derivative in ("unrolled", "forward", "adjoint")
    ),
    _way("scipy differences", _scipy, "scipy"),
    _way("diffrax unrolled", partial(_diffrax, "RecursiveCheckpointAdjoint"), "diffrax"),
    _way("diffrax backsolve", partial(_diffrax, "BacksolveAdjoint"), "diffrax"),
    _way("torchdiffeq adjoint", _torchdiffeq, "torchdiffeq"),
)
