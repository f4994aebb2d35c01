"""ODEs whose solution is differentiated: the right side, the truth at the end, and the ways.

The ways are difflab's, SciPy's with differences, and those of other packages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from difflab.autodiff import jacfwd, jacrev
from difflab.bench.solvers.problem import (
    CUBE_ROOT,
    Answer,
    Prepared,
    SolverProblem,
    SolverTruth,
    SolverWay,
    differences,
)
from difflab.errors import ConvergenceError, UnsupportedError
from difflab.graph.control import prepared
from difflab.graph.function import Function, evaluate
from difflab.methods.peers.casadi import expressions_of
from difflab.solve import ivp

DATA = Path(__file__).parent / "truths" / "odes.json"
"""Written by `tests.bench.ode_truths`."""


def judge(problem: SolverProblem) -> SolverTruth:
    """Return the true derivative of a solution at the last time, which is data."""
    entry = known()[problem.name]
    return SolverTruth(
        np.array(entry["value"], dtype=float),
        np.array(entry["jacobian"], dtype=float),
        float(entry["bound"]),
        "extrapolation with two precisions of 28 digits and more, which agree",
    )


@cache
def known() -> dict[str, Any]:
    """Return value, derivative and bound by the name of the problem."""
    entries: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))
    return entries


def right_side(problem: SolverProblem, library: Any) -> Callable[..., list[Any]]:
    """Return ``f(t, y, p)`` of lists of scalars of any library; `library` is an interpreter."""
    function: Function = problem.function
    names = {name: ("y", k) for k, name in enumerate(problem.start)}
    names |= {name: ("p", k) for k, name in enumerate(problem.at)}
    names["t"] = ("t", 0)
    run = prepared(function, library) if library is not None else None

    def rate(t: Any, y: Any, p: Any) -> list[Any]:
        parts = {"t": [t], "y": y, "p": p}
        values = [parts[names[name][0]][names[name][1]] for name in function.inputs]
        outputs = evaluate(function, values) if run is None else run(values)
        # A program that returns a list has one output of its elements.
        return [one for out in outputs for one in (out if np.ndim(out) else [out])]

    return rate


MOST = 200_000
"""Steps at which every solver gives up."""


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
        solution = solve_ivp(
            lambda t, y: rate(t, y, p), span, y0, method="DOP853",
            rtol=max(tolerance, 1e-13), atol=tolerance,
        )  # fmt: skip
        if not solution.success:
            raise ConvergenceError(f"SciPy's solve_ivp: {solution.message}")
        return solution.y[:, -1]

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


def _torchdiffeq(method: str, problem: SolverProblem, tolerance: float) -> Prepared:
    import torch

    y0, p, span = _parts(problem)
    rate = right_side(problem, None)

    class Rate(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.p = torch.nn.Parameter(torch.tensor(p))
            self.steps = 0

        def forward(self, t: Any, y: Any) -> Any:
            return torch.stack([one + 0 * t for one in rate(t, y, self.p)])

        def callback_accept_step(self, *_: Any) -> None:
            self.steps += 1

    f, times, first = Rate(), torch.tensor(span, dtype=torch.float64), torch.tensor(y0)

    def run() -> Answer:
        options = {"max_num_steps": MOST}
        f.steps = 0
        end = import_module("torchdiffeq").odeint_adjoint(
            f, first, times, rtol=tolerance, atol=tolerance, method=method,
            options=options, adjoint_options=options,
        )[-1]  # fmt: skip
        rows = [torch.autograd.grad(one, f.p, retain_graph=True)[0].numpy() for one in end]
        return Answer(np.stack(rows), f.steps)

    return run


def _cvodes(adjoint: bool, problem: SolverProblem, tolerance: float) -> Prepared:
    """Return the derivative of CVODES, which controls the errors of the sensitivities, too."""
    import casadi

    y0, p, span = _parts(problem)
    x, parameters, t = casadi.SX.sym("x", len(y0)), casadi.SX.sym("p", len(p)), casadi.SX.sym("t")
    rate = partial(expressions_of, problem.function)
    named = {name: x[k] for k, name in enumerate(problem.start)} | {"t": t}
    named |= {name: parameters[k] for k, name in enumerate(problem.at)}
    slopes = casadi.vertcat(*rate(lambda k: named[problem.function.inputs[k]]))
    system = {"x": x, "p": parameters, "t": t, "ode": slopes}
    options = {
        "abstol": tolerance, "reltol": tolerance, "max_num_steps": MOST, "quad_err_con": True,
        "show_eval_warnings": False,
    }  # fmt: skip
    solver = casadi.integrator("solver", "cvodes", system, *span, options)
    symbols = casadi.MX.sym("p", len(p))
    end = solver(x0=y0, p=symbols)["xf"]
    seeds = casadi.DM.eye(len(y0 if adjoint else p))
    product = casadi.jtimes(end, symbols, seeds, adjoint)
    slope = casadi.Function("slope", [symbols], [product.T if adjoint else product])
    solver(x0=y0, p=p)
    steps = int(solver.stats()["nsteps"])
    return lambda: Answer(np.array(slope(p)), steps)


@contextmanager
def _failures() -> Iterator[None]:
    """Raise the exceptions by which solvers give up as refusals."""
    try:
        yield
    except (RuntimeError, AssertionError) as error:
        reason = " ".join(str(error).split())
        if len(reason) > 200:  # CasADi's begins with the function, and ends with the reason
            reason = f"{reason[:100]} … {reason[-100:]}"
        raise UnsupportedError(f"the solver fails: {reason}") from error


def _refusing(prepare: Callable[..., Prepared], problem: SolverProblem, size: float) -> Prepared:
    with _failures():
        call = prepare(problem, size)

    def run() -> Answer:
        with _failures():
            return call()

    return run


def _way(name: str, prepare: Callable[..., Prepared], package: str = "") -> SolverWay:
    kinds = frozenset({"ode"})
    return SolverWay(name, kinds, partial(_refusing, prepare), package, (package,) * bool(package))


WAYS = (
    *(
        _way(f"{method} {derivative}", partial(_difflab, method, derivative))
        for method in ("rk45", "dopri8", "taylor")
        for derivative in ("unrolled", "forward", "adjoint")
    ),
    _way("scipy differences", _scipy, "scipy"),
    _way("diffrax unrolled", partial(_diffrax, "RecursiveCheckpointAdjoint"), "diffrax"),
    _way("diffrax backsolve", partial(_diffrax, "BacksolveAdjoint"), "diffrax"),
    _way("torchdiffeq dopri5", partial(_torchdiffeq, "dopri5"), "torchdiffeq"),
    _way("torchdiffeq dopri8", partial(_torchdiffeq, "dopri8"), "torchdiffeq"),
    _way("cvodes forward", partial(_cvodes, False), "casadi"),
    _way("cvodes adjoint", partial(_cvodes, True), "casadi"),
)
