"""Code that asks SciPy's solvers for a derivative: one error that says what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize

import difflab as dl
from difflab.errors import TapeError, TraceError

LIMITS, ONES = [(0, 1), (0, 1)], np.ones(2)
SOLVERS: dict[str, Callable[[Any], Any]] = {
    "root": lambda a: optimize.root(lambda z: z**2 - a, 1.0).x[0],
    "root, start": lambda a: optimize.root(lambda z: z**2 - 2, a).x[0],
    "root, argument": lambda a: optimize.root(lambda z, b: z**2 - b, 1.0, args=(a,)).x[0],
    "root, krylov": lambda a: optimize.root(lambda z: z**2 - a, [1.0], method="krylov").x[0],
    "fsolve": lambda a: optimize.fsolve(lambda z: z**2 - a, 1.0)[0],
    "brentq": lambda a: optimize.brentq(lambda z: z**2 - a, 0.0, 3.0),
    "brentq, limit": lambda a: optimize.brentq(lambda z: z**2 - 2, 0.0, a),
    "brenth, argument": lambda a: optimize.brenth(lambda z, b: z**2 - b, 0.0, 3.0, args=(a,)),
    "brenth, limit": lambda a: optimize.brenth(lambda z: z**2 - 2, 0.0, a),
    "bisect": lambda a: optimize.bisect(lambda z: z**2 - a, 0.0, 3.0),
    "bisect, limit": lambda a: optimize.bisect(lambda z: z**2 - 2, 0.0, a),
    "ridder": lambda a: optimize.ridder(lambda z: z**2 - a, 0.0, 3.0),
    "ridder, limit": lambda a: optimize.ridder(lambda z: z**2 - 2, 0.0, a),
    "toms748": lambda a: optimize.toms748(lambda z: z**2 - a, 0.0, 3.0),
    "toms748, limit": lambda a: optimize.toms748(lambda z: z**2 - 2, 0.0, a),
    "newton, start": lambda a: optimize.newton(lambda z: z**2 - 2, a),
    "root_scalar": lambda a: optimize.root_scalar(lambda z: z**2 - a, bracket=(0, 3)).root,
    "root_scalar, limit": lambda a: optimize.root_scalar(lambda z: z**2 - 2, bracket=(0, a)).root,
    "fixed_point": lambda a: optimize.fixed_point(lambda z: 0.5 * (z + a / z), 1.0),
    "fixed_point, start": lambda a: optimize.fixed_point(lambda z: 0.5 * (z + 2 / z), a),
    "minimize_scalar": lambda a: optimize.minimize_scalar(lambda z: (z - a) ** 2).x,
    "golden": lambda a: optimize.golden(lambda z: (z - a) ** 2, brack=(0.0, 1.0, 5.0)),
    "brent": lambda a: optimize.brent(lambda z: (z - a) ** 2, brack=(0.0, 1.0, 5.0)),
    "fminbound": lambda a: optimize.fminbound(lambda z: (z - a) ** 2, 0.0, 5.0),
    "fminbound, limit": lambda a: optimize.fminbound(lambda z: (z - 1) ** 2, 0.0, a),
    "minimize": lambda a: optimize.minimize(lambda z: (z[0] - a) ** 2, [0.0]).x[0],
    "minimize, start": lambda a: optimize.minimize(lambda z: (z[0] - 1) ** 2, a).x[0],
    "minimize, bounds": lambda a: optimize.minimize(np.sum, [1.0], bounds=[(a, 5)]).x[0],
    "minimize, simplex": lambda a: (
        optimize.minimize(lambda z: (z[0] - a) ** 2, [0.0], method="Nelder-Mead").fun
    ),
    "fmin": lambda a: optimize.fmin(lambda z: (z[0] - a) ** 2, [1.0], disp=0)[0],
    "least_squares": lambda a: optimize.least_squares(lambda z: z - a, [0.0]).x[0],
    "least_squares, start": lambda a: optimize.least_squares(lambda z: z - 1, a).x[0],
    "leastsq": lambda a: optimize.leastsq(lambda z: z - a, [1.0])[0][0],
    "curve_fit": lambda a: optimize.curve_fit(lambda x, p: p * x, ONES, ONES * a)[0][0],
    "curve_fit, start": lambda a: optimize.curve_fit(lambda x, p: p * x, ONES, ONES, p0=[a])[0][0],
    "linprog": lambda a: optimize.linprog([a]).fun,
    "nnls": lambda a: optimize.nnls(np.eye(2) * a, ONES)[0][0],
    "quad": lambda a: integrate.quad(lambda z: np.sin(a * z), 0, 1)[0],
    "quad, limit": lambda a: integrate.quad(np.sin, 0, a)[0],
    "quad_vec": lambda a: integrate.quad_vec(lambda z: a * z, 0, 1)[0],
    "quad_vec, limit": lambda a: integrate.quad_vec(lambda z: z, 0, a)[0],
    "dblquad, limit": lambda a: integrate.dblquad(lambda y, z: z * y, 0, a, 0, 1)[0],
    "nquad": lambda a: integrate.nquad(lambda x, y: a * x * y, LIMITS)[0],
    "solve_ivp": lambda a: integrate.solve_ivp(lambda t, y: -a * y, (0, 1), [1.0]).y[0, -1],
    "solve_ivp, start": lambda a: integrate.solve_ivp(lambda t, y: -y, (0, 1), [a]).y[0, -1],
    "solve_ivp, end": lambda a: integrate.solve_ivp(lambda t, y: -y, (0, a), [1.0]).y[0, -1],
    "solve_ivp, stiff": lambda a: integrate.solve_ivp(
        lambda t, y: -a * y, (0, 1), [1.0], method="Radau"
    ).y[0, -1],
    "odeint": lambda a: integrate.odeint(lambda y, t: -a * y, [1.0], [0, 1.0])[-1, 0],
    "odeint, start": lambda a: integrate.odeint(lambda y, t: -y, a, [0, 1.0])[-1, 0],
    "odeint, times": lambda a: integrate.odeint(lambda y, t: -y, [1.0], [0, a])[-1, 0],
}
DROPPED = ("bisect, limit", "brentq, limit", "brenth, limit", "ridder, limit")
"""Where the limit is a tensor, code in C converts it, and raises an error of its own."""
DROPPED += ("root_scalar, limit",)
ORDERS = ("root", "bisect, limit", "golden", "quad, limit", "solve_ivp")
"""Of each kind one, for other transforms than the gradient."""


@pytest.mark.parametrize(
    ("transform", "name"),
    [(dl.grad, name) for name in SOLVERS]
    + [(transform, name) for transform in (dl.jacfwd, dl.hessian, dl.jit) for name in ORDERS],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_derivative_through_a_solver_is_refused(
    name: str, transform: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(TraceError, match="do not flow through SciPy's solvers: ") as raised:
        transform(SOLVERS[name])(2.0)
    assert "test_scipy_solvers.py, line " in raised.value.message
    assert any(module in str(raised.value.text) for module in ("optimize.", "integrate."))
    for advice in ("dl.solve.root", "difflab.CustomFunction"):
        assert advice in str(raised.value.hint)
    assert "Traceback" not in capfd.readouterr().err  # SciPy's solvers in C print one


@pytest.mark.parametrize("name", [name for name in SOLVERS if name not in DROPPED])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_of_tensors_too(name: str) -> None:
    with pytest.raises(TapeError, match="do not flow through SciPy's solvers: ") as raised:
        SOLVERS[name](dl.tensor(2.0, requires_grad=True))
    assert "test_scipy_solvers.py, line " in raised.value.message


@pytest.mark.parametrize("name", DROPPED)
def test_where_scipy_drops_the_error_it_is_a_warning(name: str) -> None:
    with (
        pytest.warns(
            UserWarning, match=r"do not flow through SciPy's solvers: (.|\n)*CustomFunction"
        ),
        pytest.raises(RuntimeError, match="parse arguments"),
    ):
        SOLVERS[name](dl.tensor(2.0, requires_grad=True))


@pytest.mark.parametrize(
    ("solver", "slope"),
    [
        (lambda a: optimize.newton(lambda z: z**2 - a, 1.0), 0.5 / np.sqrt(2)),
        (lambda a: optimize.root_scalar(lambda z: z**2 - a, x0=1.0, x1=2.0).root, 0.5 / np.sqrt(2)),
        (lambda a: integrate.fixed_quad(lambda z: a * z * z, 0, 1)[0], 1 / 3),
    ],
)
def test_what_scipy_writes_with_numpy_is_differentiated(solver: Any, slope: float) -> None:
    assert float(dl.grad(solver)(2.0)) == pytest.approx(slope, rel=1e-9)
    a = dl.tensor(2.0, requires_grad=True)
    solver(a).backward()
    assert float(a.grad.numpy()) == pytest.approx(slope, rel=1e-9)


def test_a_limit_of_fixed_quad_is_differentiated_or_refused() -> None:
    """SciPy 1.18 converts limits to numbers, earlier versions compute with them."""

    def solver(a: Any) -> Any:
        return integrate.fixed_quad(lambda z: z * z, 0, a)[0]

    refused = ""
    try:
        assert float(dl.grad(solver)(2.0)) == pytest.approx(4.0, rel=1e-9)
    except TraceError as error:
        refused = error.message
    assert not refused or "fixed_quad computes with numbers only" in refused


def test_solvers_take_tensors_without_a_derivative() -> None:
    fixed = dl.tensor(2.0)
    assert float(optimize.brentq(lambda z: z**2 - fixed, 0.0, 3.0)) == pytest.approx(2**0.5)
    assert float(SOLVERS["root"](fixed)) == pytest.approx(2**0.5)


def test_the_solvers_own_errors_remain() -> None:
    def f(a: Any) -> Any:
        return a * optimize.brentq(lambda z: z**2 + 1, 0.0, 3.0)

    with pytest.raises(ValueError, match="different signs"):
        dl.grad(f)(2.0)


def test_what_the_hint_says_works() -> None:
    class Root(dl.CustomFunction):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            z = optimize.brentq(lambda z: z**2 - float(a), 0.0, 3.0)
            ctx.save_for_backward(z)
            return np.float64(z)

        @staticmethod
        def backward(ctx: Any, z_bar: Any) -> Any:
            (z,) = ctx.saved_tensors
            return z_bar / (2 * z)

    assert float(dl.grad(lambda a: Root.apply(a))(2.0)) == pytest.approx(0.5 / np.sqrt(2.0))
