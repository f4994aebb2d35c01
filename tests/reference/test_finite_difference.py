"""Published derivatives by finite differences, Richardson and complex step, and their errors.

The tables of errors against fixed steps are in tests/bench/test_accuracy.py.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from difflab.autodiff import gradient, hessian, jacobian
from difflab.language import parse
from difflab.methods.differentiate import differentiate
from difflab.referee.referee import refer

DATA = Path(__file__).parents[1] / "data"
FD: dict[str, Any] = json.loads((DATA / "finite_difference.json").read_text())
MARTINS = FD["martins"]
NUMERIC = ("finite-forward", "finite-central", "richardson", "complex-step")
# What each reaches, relative: √ε, ε^⅔ and ε up to a small factor (Numerical Recipes 5.7).
REACH = {"finite-forward": 1e-7, "finite-central": 1e-9, "richardson": 1e-12, "complex-step": 1e-15}


@pytest.mark.parametrize("method", NUMERIC)
def test_martins_function(method: str) -> None:
    truth = float(MARTINS["derivatives_0_to_5"][1])
    found = differentiate(parse(MARTINS["expr"]), 1.5, method=method)
    assert abs(found.value - truth) <= REACH[method] * truth
    if found.error is not None:
        assert abs(found.value - truth) <= found.error


def test_no_worse_than_the_published_methods() -> None:
    truth = float(MARTINS["derivatives_0_to_5"][1])
    published = {
        row["method"]: abs(float(row["value"]) - truth) for row in MARTINS["published_methods"]
    }
    ours = {
        name: abs(differentiate(parse(MARTINS["expr"]), 1.5, method=name).value - truth)
        for name in NUMERIC
    }
    assert ours["finite-central"] <= 10 * published["central difference (R)"]
    assert ours["richardson"] <= published["numDeriv::grad Richardson"]
    assert ours["complex-step"] <= published["complex step"]


@pytest.mark.parametrize("name", ["martins", "martins_x05"])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_five_derivatives_of_martins_function(name: str, mode: str) -> None:
    case = FD[name]
    derivative = parse(case["expr"])
    for truth in case["derivatives_0_to_5"]:
        found = float(derivative.values(np.array([float(case["point"])]))[0])
        # Each order loses a few bits: sin³ + cos³ is small at 1.5.
        assert found == pytest.approx(float(truth), rel=2e-13)
        derivative = jacobian(derivative, mode)


def test_published_multicomplex_derivatives() -> None:
    derivative = parse(FD["martins_x05"]["expr"])
    for published in FD["martins_x05"]["published_multicomplex"]:
        derivative = jacobian(derivative)
        found = float(derivative.values(np.array([0.5]))[0])
        assert found == pytest.approx(float(published), rel=2e-14)


@pytest.mark.parametrize("method", ["forward", "reverse", *NUMERIC])
def test_molers_function(method: str) -> None:
    case = FD["moler"]
    truth = float(case["derivative_at_double_pi_over_4"])
    found = differentiate(parse(case["expr"]), math.pi / 4, method=method).value
    assert found == pytest.approx(truth, rel=REACH.get(method, 1e-15))
    published = case["published"].split()[0]
    assert found == pytest.approx(float(published), rel=REACH.get(method, 1e-15))


def test_exponential_of_scipys_documentation() -> None:
    """SciPy's adaptive derivative errs by 2.5e-14 to 6.9e-14 there, and says 7e-12 to 2e-11."""
    case = FD["scipy_docs"]
    for x, error in zip(case["x"], case["true_error"], strict=True):
        found = differentiate(math.exp, x)
        assert abs(found.value - math.exp(x)) <= max(error, 1e-13)
        assert abs(found.value - math.exp(x)) <= found.error <= 1e-9


def test_numdifftools_documentation() -> None:
    exponential, rosenbrock, cubes, squares = FD["numdifftools_docs"]["items"]
    found = differentiate(np.exp, float(exponential["x"]))
    assert abs(found.value - exponential["d1"]) <= found.error <= 1e-10

    function = parse(rosenbrock["f"])
    direction = np.array([1.0, -1.0]) / math.sqrt(2)
    slope = gradient(function)(*rosenbrock["point"]) @ direction
    assert slope == pytest.approx(float(rosenbrock["directional_derivative"]), rel=1e-14)

    second = hessian(parse(cubes["f"]))(*cubes["point"])
    np.testing.assert_array_equal(second, np.diag([0.0, 2.0, 18.0]))
    by_differences = differentiate(parse(cubes["f"]), cubes["point"], order=2)
    np.testing.assert_allclose(by_differences.value, second, atol=1e-6)

    point = np.array(squares["point"], dtype=float)
    sphere = differentiate(lambda x: np.sum(x**2), point)
    np.testing.assert_allclose(sphere.value, squares["grad"], rtol=1e-12)


@pytest.mark.parametrize("method", NUMERIC)
def test_error_estimates_hold_on_the_reference_problems(method: str) -> None:
    """The MGH problems at their generic points: errors stay inside what the method says."""
    checked = 0
    for case in json.loads((DATA / "mgh.json").read_text()):
        if not case["id"].endswith("_generic") or case["const_rounding_sensitivity"] > 1e-17:
            continue
        if method == "complex-step" and "abs(" in case["expr"]:
            continue
        function = parse(case["expr"])
        point = [float(case["point"][name]) for name in function.inputs]
        truth = np.array([float(case["grad"][name]) for name in function.inputs])
        found = differentiate(function, point, method=method)
        if found.error is None:
            np.testing.assert_allclose(found.value, truth, rtol=1e-9, atol=1e-11 * abs(truth).max())
        else:
            assert np.all(np.abs(found.value - truth) <= found.error), case["id"]
        checked += 1
    assert checked >= 20


def test_the_referee_knows_martins_derivative_to_all_digits() -> None:
    found = refer(parse(MARTINS["expr"]), [1.5], timeout=100.0)
    assert found.digits >= 20
    with mpmath.workdps(40):
        error = abs(found.exact[0, 0] / mpmath.mpf(MARTINS["derivatives_0_to_5"][1]) - 1)
    assert error < mpmath.mpf(10) ** -25
