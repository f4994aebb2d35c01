"""MGH, Speelpenning, Helmholtz and ADBench: values, gradients, Jacobians and Hessians.

The expected numbers come from mpmath at 150 digits. Their decimal constants are exact, while the
language takes the nearest doubles; `const_rounding_sensitivity` says what that may change.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from difflab.autodiff import gradient, hessian, jacobian, value_and_gradient
from difflab.graph.counts import count
from difflab.graph.function import Function
from difflab.language import parse
from difflab.referee.referee import refer

Case = dict[str, Any]
Array = NDArray[np.float64]

DATA = Path(__file__).parents[1] / "data"
FILES = ("mgh", "speelpenning", "helmholtz", "adbench_expr")
ALL: dict[str, Case] = {
    case["id"]: case for name in FILES for case in json.loads((DATA / f"{name}.json").read_text())
}
SCALAR = [name for name, case in ALL.items() if "expr" in case]
BUNDLE = ALL["adbench_ba_test"]

# Relative to the largest component; half a dozen roundings of half an ULP each.
RTOL = 4e-15
# These subtract numbers that agree in many digits: in the residuals of Bard-like data at a
# zero of the problem, in a sum of n - Σcos, and in Chebyshev polynomials of degree 8.
CANCELLING = {"mgh09_x0": 4e-14, "mgh26_x0": 3e-13, "mgh26_generic": 3e-13, "mgh35_x0": 1e-11}
CANCELLING["mgh35_generic"] = 1e-11


def tolerance(name: str) -> float:
    case = ALL[name]
    return CANCELLING.get(name, RTOL) + 100 * float(case.get("const_rounding_sensitivity", 0.0))


def posed(case: Case, text: str | None = None) -> tuple[Function, Array]:
    function = parse(text or case["expr"])
    return function, np.array([float(case["point"][name]) for name in function.inputs])


def assert_close(found: Array, truth: Array, rtol: float) -> None:
    """Compare on the scale of the largest component."""
    scale = np.max(np.abs(truth))
    np.testing.assert_allclose(found, truth, rtol=0, atol=rtol * scale)


@pytest.mark.parametrize("name", SCALAR)
def test_value_and_gradient(name: str) -> None:
    case = ALL[name]
    function, point = posed(case)
    truth = np.array([float(case["grad"][variable]) for variable in function.inputs])
    absent = set(case["vars"]) - set(function.inputs)
    assert all(float(case["grad"][variable]) == 0 for variable in absent)

    found = value_and_gradient(function)
    value, slope = np.split(found.values(point), [1])
    assert_close(value, np.array([float(case["value"])]), tolerance(name))
    assert_close(slope, truth, tolerance(name))
    if function.n <= 15:
        assert_close(gradient(function, "forward").values(point), truth, tolerance(name))


@pytest.mark.parametrize("name", SCALAR)
def test_reverse_gradient_takes_at_most_four_functions(name: str) -> None:
    function, _ = posed(ALL[name])
    for derivative in (gradient(function), value_and_gradient(function)):
        assert count(derivative).operations <= 4 * count(function).operations


@pytest.mark.parametrize("name", [name for name in SCALAR if "hess" in ALL[name]])
def test_hessian(name: str) -> None:
    case = ALL[name]
    function, point = posed(case)
    truth = np.array(case["hess"], dtype=float)
    found = hessian(function).values(point).reshape(truth.shape)
    assert_close(found, truth, 4 * tolerance(name))
    np.testing.assert_allclose(found, found.T, rtol=1e-13, atol=1e-14 * np.max(np.abs(found)))


RESIDUALS = [name for name, case in ALL.items() if isinstance(case.get("residuals"), list)]


@pytest.mark.parametrize("name", RESIDUALS)
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobian_of_the_residuals(name: str, mode: str) -> None:
    case = ALL[name]
    function, point = posed(case, f"[{', '.join(case['residuals'])}]")
    columns = [case["vars"].index(variable) for variable in function.inputs]
    truth = np.array(case["jacobian"], dtype=float)[:, columns]
    found = jacobian(function, mode).values(point).reshape(truth.shape)
    assert_close(found, truth, 10 * tolerance(name))
    values = np.array(case["residual_values"], dtype=float)
    assert_close(function.values(point), values, 10 * tolerance(name))


def test_jacobian_of_bundle_adjustment() -> None:
    function, point = posed(BUNDLE, f"[{', '.join(BUNDLE['exprs'])}]")
    assert set(function.inputs) == set(BUNDLE["vars"])
    columns = [BUNDLE["vars"].index(variable) for variable in function.inputs]
    truth = np.array(BUNDLE["jacobian"], dtype=float)[:, columns]
    for mode in ("forward", "reverse"):
        found = jacobian(function, mode).values(point).reshape(truth.shape)
        assert_close(found, truth, RTOL)
    np.testing.assert_allclose(
        function.values(point), np.array(BUNDLE["values"], dtype=float), rtol=1e-12
    )


def test_published_gradient_of_adbench() -> None:
    case = ALL["adbench_gmm_test"]
    function, _ = posed(case)
    point = np.array([float(case["point"][name]) for name in case["published"]["order"]])
    assert list(function.inputs) == case["published"]["order"]
    truth = np.array(case["published"]["gradient"])
    found = gradient(function).values(point)
    # ADBench's own rule: |x - y| / max(1, |x| + |y|) < 1e-8.
    assert np.all(np.abs(found - truth) / np.maximum(1, np.abs(found) + np.abs(truth)) < 1e-12)


@pytest.mark.parametrize(
    "name", [name for name in SCALAR if "published_start_value_MoreWild" in ALL[name]]
)
def test_published_start_value(name: str) -> None:
    function, point = posed(ALL[name])
    published = ALL[name]["published_start_value_MoreWild"]
    assert function.values(point)[0] == pytest.approx(published, rel=1e-4)


@pytest.mark.parametrize("name", [f"mgh{k:02d}_x0" for k in range(1, 36)])
def test_the_referee_agrees_with_mpmath(name: str) -> None:
    case = ALL[name]
    function, point = posed(case)
    if count(function).operations * function.n > 4000:
        pytest.skip("takes the referee seconds")
    truth = np.array([float(case["grad"][variable]) for variable in function.inputs])
    found = refer(function, point.tolist(), timeout=60.0)
    assert found.status == "smooth"
    sensitivity = 100 * float(case["const_rounding_sensitivity"])
    # Its arithmetic does not cancel: what is left is the rounding of the constants.
    assert_close(found.jacobian.ravel(), truth, 2e-16 + sensitivity)


def test_the_product_of_forty_takes_114_operations() -> None:
    function = parse("*".join(f"x{k}" for k in range(1, 41)))
    assert count(gradient(function)).operations <= 114


@pytest.mark.parametrize("n", [2, 10, 50, 100])
def test_speelpenning_has_a_closed_form(n: int) -> None:
    """For xᵢ = i/(i + 1): f = 1/(n + 1), ∂f/∂xᵢ = f/xᵢ, and no ∂²f/∂xᵢ²."""
    function, point = posed(ALL[f"speelpenning_n{n}"])
    np.testing.assert_allclose(function.values(point), [1 / (n + 1)], rtol=1e-14)
    np.testing.assert_allclose(gradient(function).values(point), 1 / (n + 1) / point, rtol=1e-14)
    if n <= 10:
        truth = 1 / (n + 1) / np.outer(point, point)
        np.fill_diagonal(truth, 0.0)
        np.testing.assert_allclose(hessian(function).values(point).reshape(n, n), truth, rtol=1e-14)
