"""The coefficients of the Runge-Kutta pairs are those of SciPy's solvers, to the last bit."""

from __future__ import annotations

from typing import Any

import pytest
import scipy.integrate

from difflab.solve.ivp_tableaux import TABLEAUX


@pytest.mark.parametrize(
    ("name", "solver", "errors"),
    [
        ("rk45", scipy.integrate.RK45, ("E",)),
        ("dopri8", scipy.integrate.DOP853, ("E5", "E3")),
    ],
)
def test_coefficients_are_those_of_scipy(name: str, solver: Any, errors: tuple[str, ...]) -> None:
    tableau = TABLEAUX[name]
    assert tableau.nodes == tuple(solver.C[1 : solver.n_stages])
    assert tableau.rows == tuple(tuple(solver.A[k, :k]) for k in range(1, solver.n_stages))
    assert tableau.weights == tuple(solver.B)
    assert tableau.errors == tuple(tuple(getattr(solver, error)) for error in errors)
    assert (tableau.order, tableau.error_order) == (solver.order, solver.error_estimator_order)
    assert tableau.evaluations == solver.n_stages
