"""The ODEs of ``bench solvers``: their truths against closed forms, and the ways against truths."""

from __future__ import annotations

import json
import math
from typing import Any

import mpmath
import numpy as np
import pytest

from difflab.bench.solvers.odes import DATA, WAYS, judge
from difflab.bench.solvers.problem import problems

ODES = {problem.name: problem for problem in problems() if problem.kind == "ode"}
OWN = [way for way in WAYS if not way.package]


def test_every_problem_has_a_truth_that_two_precisions_agree_on() -> None:
    assert set(json.loads(DATA.read_text(encoding="utf-8"))) == set(ODES)
    assert len(ODES) >= 15
    for problem in ODES.values():
        truth = judge(problem)
        assert truth.bound < 1e-13
        assert truth.jacobian.shape == (len(problem.start), problem.parameters)


def _kink_time(p: Any) -> Any:
    """y′ = |t − p|·y, y(0) = 1, at t = 2."""
    return mpmath.exp((p * p + (2 - p) ** 2) / 2)


def _one_sided(k: Any) -> Any:
    """A spring of constant 1 + k on one side and 1 on the other, from x = 1 at rest, at t = 2."""
    first = mpmath.pi / (2 * mpmath.sqrt(1 + k))
    return -mpmath.sqrt(1 + k) * mpmath.sin(2 - first)


CLOSED = {
    "ode-decay": lambda k: 2 * mpmath.exp(-4 * k),
    "ode-oscillator": lambda k: mpmath.cos(mpmath.mpf("62.8") * k),
    "ode-logistic": lambda r, c: c / (1 + (c / mpmath.mpf(0.1) - 1) * mpmath.exp(-5 * r)),
    "ode-steady": lambda p: p + (1 - p) * mpmath.exp(-30),
    "ode-manifold": lambda p, k: p * mpmath.cos(1) + (1 - p) * mpmath.exp(-k),
    "ode-kink-time": _kink_time,
    "ode-kink-state": _one_sided,
}


@pytest.mark.parametrize("name", CLOSED)
def test_truths_are_closed_forms(name: str) -> None:
    """Of the first unknown."""
    truth, at = judge(ODES[name]), list(ODES[name].at.values())
    with mpmath.workdps(40):
        value = CLOSED[name](*map(mpmath.mpf, at))
        orders = np.eye(len(at), dtype=int).tolist()
        slopes = [mpmath.diff(CLOSED[name], tuple(at), tuple(order)) for order in orders]
    assert math.isclose(truth.value[0], float(value), rel_tol=1e-12, abs_tol=1e-14)
    np.testing.assert_allclose(truth.jacobian[0], list(map(float, slopes)), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("way", OWN, ids=lambda way: way.name)
def test_our_ways_are_right_on_a_smooth_problem(way: Any) -> None:
    truth = judge(ODES["ode-logistic"])
    found = way.differentiate(ODES["ode-logistic"], 1e-8)
    np.testing.assert_allclose(found.jacobian, truth.jacobian, rtol=1e-5)
    assert found.steps > 0


@pytest.mark.parametrize("way", [way for way in WAYS if way.package], ids=lambda way: way.name)
def test_the_ways_of_others_are_right_on_a_smooth_problem(way: Any) -> None:
    pytest.importorskip(way.package)
    truth = judge(ODES["ode-logistic"])
    found = way.differentiate(ODES["ode-logistic"], 1e-8)
    np.testing.assert_allclose(found.jacobian, truth.jacobian, rtol=1e-3)
