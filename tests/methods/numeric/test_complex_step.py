"""Complex step: digits of the function itself, and refusal where nothing is analytic."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.methods.differentiate import PointDerivative
from difflab.methods.numeric.complex_step import COMPLEX_STEP, complex_steps
from difflab.methods.protocol import Problem
from tests.conftest import Reference


def step(f: Any, x: Any, order: int = 1) -> PointDerivative:
    return dl.differentiate(f, x, method="complex-step", order=order)


def test_reference_derivatives(reference: Reference) -> None:
    for case in reference("higher_order")["cases"]:
        if case["order"] > 2:
            continue
        found = step(dl.parse(case["expr"]), float(case["x"]), case["order"])
        truth = float(case["value"])
        assert abs(found.value - truth) <= found.error, case
        allowed = 1e-15 if case["order"] == 1 else 1e-11
        assert abs(found.value - truth) <= 4 * allowed * max(abs(truth), 1.0), case
        assert found.error <= 1e-9 * max(abs(truth), 1.0), case


def test_published_derivatives(reference: Reference) -> None:
    case = reference("finite_difference")["martins"]
    found = step(dl.parse(case["expr"]), 1.5)
    # pracma's complex step is right to 1e-15 absolute there; so is this, to a few roundings.
    assert abs(found.value - float(case["derivatives_0_to_5"][1])) <= 4e-15
    assert abs(found.value - float(case["derivatives_0_to_5"][1])) <= found.error < 1e-12


@pytest.mark.parametrize(
    ("text", "x", "truth"),
    [
        ("sin(x)", 1e-300, 1.0),
        ("log(x)", 1e-300, 1e300),
        ("exp(x)", 0.0, 1.0),
        ("sin(1e20*x)", 0.0, 1e20),
        ("sqrt(x)", 1e300, 0.5e-150),
        ("log(x - 1)", 1 + 2.0**-50, 2.0**50),
        ("sin(x)/x", 1e-8, -1e-8 / 3),
        ("exp(-x^2)", 26.0, -52 * math.exp(-676.0)),
    ],
)
def test_error_holds_at_odd_scales(text: str, x: float, truth: float) -> None:
    found = step(dl.parse(text), x)
    assert abs(found.value - truth) <= found.error


def test_small_imaginary_parts_survive_beside_large_numbers() -> None:
    found = step(dl.parse("square_difference(1e8, x)"), 0.001953125)
    assert found.value == -0.00390625


def test_step_vanishes_beside_any_point() -> None:
    x = np.array([0.0, 5e-324, 1e-300, 1e-200, 1.0, -3.0, 1e300])
    steps = complex_steps(x)
    assert (steps > 0).all()
    assert (steps[2:] <= 2.0**-36 * np.abs(x[2:])).all()
    assert complex_steps(np.array([1.0]))[0] == 2.0**-100


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x^2 + abs(sin(x))", ("absolute", "abs(sin(x))")),
        ("max(x, 2*x)", ("maximum", "max(x, 2*x)")),
        ("1 + floor(x)", ("floor", "floor(x)")),
    ],
)
def test_refuses_and_names_what_is_not_analytic(text: str, names: tuple[str, str]) -> None:
    with pytest.raises(UnsupportedError) as caught:
        step(dl.parse(text), 1.5)
    assert all(name in str(caught.value) for name in names)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: abs(x[0]) + x[1] ** 2,
        lambda x: np.abs(x[0] * x[1]) + x[1],
        lambda x: np.real(x[0]) * x[1],
        lambda x: x[0] * np.conj(x[0]) + x[1],
        lambda x: math.sin(x[0]) * x[1],
        lambda x: np.hypot(x[0], x[1]),
    ],
)
def test_refuses_code_that_loses_imaginary_parts(f: Any) -> None:
    with pytest.raises(UnsupportedError, match="complex"):
        step(f, [0.7, -2.0])


def test_accepts_code_that_carries_them() -> None:
    found = step(lambda x: np.exp(x[0]) * x[1] ** 2, [0.5, 3.0])
    np.testing.assert_allclose(found.value, [9 * math.exp(0.5), 6 * math.exp(0.5)], rtol=1e-15)
    constant = step(lambda x: 3.0, [0.5, 3.0])
    assert (constant.value == 0).all()


def test_kink_of_code_is_in_the_error() -> None:
    found = step(lambda x: abs(x), 0.0)
    assert found.error >= 1.0


def test_several_outputs_and_counts() -> None:
    points = []

    def values(stack: NDArray[Any]) -> NDArray[Any]:
        points.append(len(stack))
        return np.stack([np.sin(stack[:, 0]) * stack[:, 1], stack[:, 0] ** 3], axis=1)

    found = COMPLEX_STEP.prepare(Problem(values, 2, 2))(np.array([0.5, 2.0]))
    truth = [[2 * math.cos(0.5), math.sin(0.5)], [0.75, 0.0]]
    np.testing.assert_allclose(found.value, truth, rtol=1e-15)
    assert found.evaluations == sum(points)


def test_hessian() -> None:
    found = step(dl.parse("ln(x1) + x1*x2 - sin(x2)"), [2.0, 5.0], order=2)
    truth = np.array([[-0.25, 1.0], [1.0, math.sin(5.0)]])
    assert (np.abs(found.value - truth) <= found.error).all()
    np.testing.assert_allclose(found.value, truth, rtol=1e-12)
    np.testing.assert_array_equal(found.value, found.value.T)
    with pytest.raises(UnsupportedError, match="one output"):
        step(lambda x: x, [1.0, 2.0], order=2)
    with pytest.raises(UnsupportedError, match="order 1 and 2"):
        step(lambda x: x, 1.0, order=3)


@pytest.mark.parametrize("order", [0, 1, 2, -3, 7, 40])
def test_bessel_functions_of_whole_order_are_entire(order: int) -> None:
    for x in (-2.3, 0.0, 1e-9, 1e-3, 0.7, 1.0, 12.0, 300.0):
        truth = float(mpmath.besselj(order, x, 1))
        found = dl.differentiate(dl.parse(f"besselj({order}, x)"), [x], method="complex-step").value
        assert float(found.item()) == pytest.approx(truth, rel=1e-12, abs=1e-60), x


def test_bessel_functions_of_other_orders_have_a_cut() -> None:
    for text in ("besselj(0.5, x)", "besselj(n, x)", "bessely(1, x)"):
        function = dl.parse(text)
        with pytest.raises(UnsupportedError, match="needs an analytic function"):
            dl.differentiate(function, [1.5] * function.n, method="complex-step")
