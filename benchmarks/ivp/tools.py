"""Cases and tools: each returns a call that gives the state at the end, and its steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

import difflab as dl
from difflab.bench.solvers.odes import known, right_side
from difflab.bench.solvers.problem import SolverProblem, problems
from difflab.errors import DifflabError, UnsupportedError

__all__ = ["CASES", "TOOLS", "Case", "Ready"]

MOST = 1_000_000
"""Steps at which every solver gives up."""


@dataclass(frozen=True)
class Ready:
    """A solver of one case: a call, and what it gives."""

    call: Callable[[], Any]
    steps: int | None


@dataclass(frozen=True)
class Case:
    """A problem of ``bench solvers``, or code in the functions of an array library.

    Attributes
    ----------
    rate : callable
        ``rate(library, t, y)`` for arrays of difflab, JAX and PyTorch.
    y0 : array
        The first state.
    span : tuple
        The interval.
    problem : SolverProblem or None
        Where the right side is that of a problem.
    """

    rate: Callable[[Any, Any, Any], Any]
    y0: Any
    span: tuple[float, float]
    problem: SolverProblem | None = None

    def truth(self) -> Any:
        """Return the state at the end, None if it is not known."""
        return None if self.problem is None else np.array(known()[self.problem.name]["value"])


def _of_problem(problem: SolverProblem) -> Case:
    rate, at = right_side(problem, None), list(problem.at.values())
    first, last = problem.named("between")
    y0 = np.array(list(problem.start.values()), dtype=float)

    def stacked(library: Any, t: Any, y: Any) -> Any:
        values = [one + 0 * y[0] for one in rate(t, y, at)]
        return library.stack(values)

    return Case(stacked, y0, (first, last), problem)


MASSES = np.array(
    [1.00000597682, 0.000954786104043, 0.000285583733151, 0.0000437273164546, 0.0000517759138449,
     1 / 1.3e8]
)  # fmt: skip
GRAVITY = 2.95912208286e-4
_FIRST, _SECOND = np.triu_indices(6, 1)
_PULLS = np.zeros((15, 6))
_PULLS[np.arange(15), _FIRST] = GRAVITY * MASSES[_SECOND]
_PULLS[np.arange(15), _SECOND] = -GRAVITY * MASSES[_FIRST]


def _outer(library: Any, t: Any, y: Any) -> Any:
    """The outer solar system, with the axes of space first; the fifteen pairs at once."""
    pulls = _PULLS if library is np else library.asarray(_PULLS)
    x, v = y[0], y[1]
    d = x[:, _SECOND] - x[:, _FIRST]
    w = (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]) ** -1.5
    return library.stack([v, (d * w) @ pulls])


def _start() -> Any:
    """Return positions (AU) and velocities (AU/day): Hairer, Lubich & Wanner, I.2.4."""
    outer = next(one for one in problems() if one.name == "ode-outer-solar-system")
    whole = np.array(list(outer.start.values()), dtype=float).reshape(2, 6, 3)
    return np.ascontiguousarray(np.swapaxes(whole, 1, 2))


CASES: dict[str, Case] = {
    "outer solar system, 100 years": Case(_outer, _start(), (0.0, 36_525.0)),
    **{p.title: _of_problem(p) for p in problems() if p.kind == "ode" and "stiff" not in p.about
       and p.name != "ode-outer-solar-system" and "kink" not in p.name},
}  # fmt: skip
"""Smooth problems that are not stiff."""


def _difflab(case: Case, tolerance: float) -> Ready:
    def whole(y0: Any) -> Any:
        return dl.solve.ivp(
            lambda t, y: case.rate(np, t, y), case.span, y0, method="taylor",
            rtol=tolerance, atol=tolerance, max_steps=MOST,
        )  # fmt: skip

    fast = dl.jit(whole)
    steps = int(fast(case.y0).steps)
    return Ready(lambda: np.ravel(fast(case.y0).y[..., -1]), steps)


def _heyoka(case: Case, tolerance: float) -> Ready:
    import heyoka

    if case.problem is not None:
        raise UnsupportedError("written for the outer solar system alone")
    system = heyoka.model.nbody(6, masses=list(MASSES), Gconst=GRAVITY)
    first = np.concatenate([case.y0[0].T, case.y0[1].T], axis=1).ravel()
    solver = heyoka.taylor_adaptive(system, first.copy(), tol=tolerance)

    def steps() -> int:
        solver.time = case.span[0]
        solver.state[:] = first
        return int(solver.propagate_until(case.span[1])[3])

    def call() -> Any:
        steps()
        bodies = np.array(solver.state).reshape(6, 2, 3)
        return np.ravel(np.transpose(bodies, (1, 2, 0)))

    return Ready(call, steps())


def _diffrax(case: Case, tolerance: float) -> Ready:
    import jax

    diffrax = import_module("diffrax")
    jax.config.update("jax_enable_x64", True)
    term = diffrax.ODETerm(lambda t, y, args: case.rate(jax.numpy, t, y))
    control = diffrax.PIDController(rtol=tolerance, atol=tolerance)

    @jax.jit  # type: ignore[untyped-decorator]
    def solved(y0: Any) -> Any:
        found = diffrax.diffeqsolve(
            term, diffrax.Dopri8(), *case.span, None, y0, stepsize_controller=control,
            max_steps=MOST, adjoint=diffrax.ForwardMode(),
        )  # fmt: skip
        return found.ys[-1], found.stats["num_steps"]

    y0 = jax.numpy.asarray(case.y0)
    return Ready(lambda: np.ravel(np.asarray(solved(y0)[0])), int(solved(y0)[1]))


def _torchdiffeq(case: Case, tolerance: float) -> Ready:
    import torch

    y0, times = torch.tensor(case.y0), torch.tensor(case.span, dtype=torch.float64)

    def call() -> Any:
        with torch.no_grad():
            found = import_module("torchdiffeq").odeint(
                lambda t, y: case.rate(torch, t, y), y0, times, rtol=tolerance, atol=tolerance,
                method="dopri8", options={"max_num_steps": MOST},
            )  # fmt: skip
        return np.ravel(found[-1].numpy())

    return Ready(call, None)


TOOLS: dict[str, Callable[[Case, float], Ready]] = {
    "difflab": _difflab,
    "heyoka": _heyoka,
    "diffrax": _diffrax,
    "torchdiffeq": _torchdiffeq,
}
"""By the name of the package."""


def require_near(found: Any, expected: Any, tolerance: float) -> float:
    """Return the relative error of a state.

    Raises
    ------
    DifflabError
        It is so large that its time means nothing.
    """
    error = float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))
    if not error < tolerance:
        raise DifflabError(f"the error is {error:.1e}")
    return error
