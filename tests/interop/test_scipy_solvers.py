"""Code that asks SciPy's solvers for a derivative: one error that says what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize

import difflab as dl
from difflab.errors import TapeError, TraceError

LIMITS = [(0, 1), (0, 1)]
SOLVERS: dict[str, Callable[[Any], Any]] = {
    "root": lambda a: optimize.root(lambda z: z**2 - a, 1.0).x[0],
    "fsolve": lambda a: optimize.fsolve(lambda z: z**2 - a, 1.0)[0],
    "brentq": lambda a: optimize.brentq(lambda z: z**2 - a, 0.0, 3.0),
    "bisect": lambda a: optimize.bisect(lambda z: z**2 - 2, 0.0, a),
    "root_scalar": lambda a: optimize.root_scalar(lambda z: z**2 - a, bracket=(0, 3)).root,
    "quad": lambda a: integrate.quad(lambda z: np.sin(a * z), 0, 1)[0],
    "nquad": lambda a: integrate.nquad(lambda x, y: a * x * y, LIMITS)[0],
    "solve_ivp": lambda a: integrate.solve_ivp(lambda t, y: -a * y, (0, 1), [1.0]).y[0, -1],
    "odeint": lambda a: integrate.odeint(lambda y, t: -y, a, [0, 1.0])[-1, 0],
    "minimize": lambda a: optimize.minimize(lambda z: (z[0] - a) ** 2, [0.0]).x[0],
    "least_squares": lambda a: optimize.least_squares(lambda z: z - a, [0.0]).x[0],
}
DROPPED = ("bisect",)
"""Its limit is the tensor: code in C converts it, and raises an error of its own."""


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("transform", [dl.grad, dl.jacfwd, dl.hessian, dl.jit])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_derivative_through_a_solver_is_refused(
    name: str, transform: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(TraceError, match="do not flow through SciPy's solvers: ") as raised:
        transform(SOLVERS[name])(2.0)
    assert "test_scipy_solvers.py, line " in raised.value.message
    assert str(raised.value.text).startswith(f'"{name}": lambda a: ')
    assert "difflab.CustomFunction" in str(raised.value.hint)


@pytest.mark.parametrize("name", [name for name in SOLVERS if name not in DROPPED])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_of_tensors_too(name: str) -> None:
    with pytest.raises(TapeError, match="do not flow through SciPy's solvers: ") as raised:
        SOLVERS[name](dl.tensor(2.0, requires_grad=True))
    assert "test_scipy_solvers.py, line " in raised.value.message


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
