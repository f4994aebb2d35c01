"""Finite differences: accuracy, an error that holds, domains, kinks, scales, and honest counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.methods.numeric.finite import CENTRAL, FORWARD, RICHARDSON, Differences
from difflab.methods.protocol import Problem
from tests.conftest import Reference

Array = NDArray[np.float64]
METHODS = [FORWARD, CENTRAL, RICHARDSON]
# What each order of approximation can reach, relative, on smooth functions; and what its
# error estimate may claim there.
REACHED = {"finite-forward": 1e-6, "finite-central": 1e-9, "richardson": 2e-12}
CLAIMED = {"finite-forward": 1e-5, "finite-central": 1e-7, "richardson": 1e-9}

each_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


def at(
    method: Differences, text: str, *x: float, order: int = 1
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return derivative and error of an expression, flattened."""
    f = dl.parse(text)
    found = method.prepare(Problem(f.values, f.n, f.m, f, order))(np.array(x))
    assert found.error is not None
    return found.value.ravel(), found.error.ravel()


def holds(method: Differences, text: str, x: float, truth: float) -> tuple[float, float]:
    """Assert that the error holds and return the value and the error."""
    value, error = at(method, text, x)
    assert abs(value[0] - truth) <= error[0], f"{text} at {x}: {value} ± {error}, truth {truth}"
    return float(value[0]), float(error[0])


@each_method
def test_reference_derivatives(method: Differences, reference: Reference) -> None:
    for case in reference("higher_order")["cases"]:
        if case["order"] > 2:
            continue
        value, error = at(method, case["expr"], float(case["x"]), order=case["order"])
        truth = float(case["value"])
        assert abs(value[0] - truth) <= error[0], case
        if case["order"] == 1:
            assert abs(value[0] - truth) <= REACHED[method.name] * abs(truth), case
            assert error[0] <= CLAIMED[method.name] * abs(truth), case


@each_method
def test_hessian_of_published_functions(method: Differences) -> None:
    # numdifftools, "Getting started": x1 + x2^2 + x3^3 at (1, 2, 3).
    value, error = at(method, "x1 + x2^2 + x3^3", 1.0, 2.0, 3.0, order=2)
    truth = np.diag([0.0, 2.0, 18.0]).ravel()
    assert (np.abs(value - truth) <= error).all()
    assert np.abs(value - truth).max() < {"finite-forward": 1e-2}.get(method.name, 1e-5)


@pytest.mark.parametrize(("method", "claimed"), [(CENTRAL, 1e-6), (RICHARDSON, 1e-9)])
def test_mixed_second_derivatives_have_the_errors_of_central_differences(
    method: Differences, claimed: float
) -> None:
    # One-sided differences, which a kink or an edge needs, claim ten times as much and more.
    value, error = at(method, "x1*x2^2 + sin(x1*x3)", 1.0, 2.0, 3.0, order=2)
    mixed = np.reshape(value, (3, 3))[0, 1:], np.reshape(error, (3, 3))[0, 1:]
    truth = np.array([4.0, math.cos(3.0) - 3.0 * math.sin(3.0)])
    assert (np.abs(mixed[0] - truth) <= mixed[1]).all()
    assert (mixed[1] <= claimed).all()


@each_method
def test_traps(method: Differences, reference: Reference) -> None:
    checked = 0
    for case in reference("traps"):
        f = dl.parse(case["expr"])
        point = np.array([float(case["point"][name]) for name in f.inputs])
        if not np.isfinite(f.values(point)).all():
            continue
        found = method.prepare(Problem(f.values, f.n, f.m, f))(point)
        assert found.error is not None
        for i, name in enumerate(f.inputs):
            text = case["grad"][name]
            if text == "undefined" or not math.isfinite(float(text)):
                # No derivative: nothing small may be claimed.
                assert found.error[0, i] >= 0.5, case["id"]
            else:
                gap = abs(found.value[0, i] - float(text))
                assert gap <= found.error[0, i], (case["id"], name, found)
            checked += 1
    assert checked > 70


@each_method
@pytest.mark.parametrize(
    ("text", "x", "left", "right"),
    [
        ("abs(x)", 0.0, -1.0, 1.0),
        ("max(x, 0)", 0.0, 0.0, 1.0),
        ("max(x, 2*x - 3)", 3.0, 1.0, 2.0),
        ("abs(x - 1)*exp(x)", 1.0, -math.e, math.e),
    ],
)
def test_kink_is_in_the_error(
    method: Differences, text: str, x: float, left: float, right: float
) -> None:
    value, error = at(method, text, x)
    assert abs(value[0] - left) <= error[0] * (1 + 1e-9)
    assert abs(value[0] - right) <= error[0] * (1 + 1e-9)
    assert error[0] >= 0.499 * (right - left)


@each_method
@pytest.mark.parametrize("distance", [1e-3, 1e-6, 1e-9])
def test_beside_a_kink_there_is_a_derivative(method: Differences, distance: float) -> None:
    # log(...) keeps the branch from being a straight line, which any step would get right.
    for x in (2.0 + distance, 2.0 - distance):
        truth = math.copysign(1.0, x - 2.0) + 1.0 / x
        _, error = holds(method, "abs(x - 2) + log(x)", x, truth)
        if method is not FORWARD:
            assert error < 1e-2


@each_method
@pytest.mark.parametrize(
    ("text", "x", "truth"),
    [
        ("x*sqrt(x) + x", 0.0, 1.0),
        ("sqrt(x)^3 + sin(x)", 0.0, 1.0),
        ("where(x >= 0, exp(x), log(-1 - 0*x))", 0.0, 1.0),
        ("exp(sqrt(1 - x)^3*0)*x", 1.0, 1.0),
        ("log(x - 1)", 1.0 + 2.0**-30, 2.0**30),
        ("sqrt(1 - x*x)", 1 - 2.0**-20, -(1 - 2.0**-20) / math.sqrt(2.0**-19 - 2.0**-40)),
        ("log(x)", 1e-300, 1e300),
        ("asin(x)", -1 + 2.0**-40, 1 / math.sqrt(2.0**-39 - 2.0**-80)),
        ("exp(x)", 709.0, math.exp(709.0)),
    ],
)
def test_domain_edges(method: Differences, text: str, x: float, truth: float) -> None:
    value, error = holds(method, text, x, truth)
    assert error < 0.2 * abs(truth)
    assert abs(value - truth) < 1e-2 * abs(truth)


@each_method
@pytest.mark.parametrize("text", ["sqrt(x)", "cbrt(x)", "heaviside(x)", "x*log(x + 0)*0 + sign(x)"])
def test_no_derivative_is_not_a_number_with_a_small_error(method: Differences, text: str) -> None:
    f = dl.parse(text)
    if not np.isfinite(f.values(np.zeros(1))).all():
        found = method.prepare(Problem(f.values, 1, 1, f))(np.zeros(1))
        assert found.error is not None
        assert np.isnan(found.value).all()
        assert np.isinf(found.error).all()
        return
    value, error = at(method, text, 0.0)
    assert math.isinf(error[0])
    assert not math.isnan(value[0])


@each_method
@pytest.mark.parametrize(
    ("text", "x", "truth"),
    [
        ("sin(x)", 1e-300, 1.0),
        ("exp(x)", 1e-200, 1.0),
        ("sin(1e20*x)", 0.0, 1e20),
        ("exp(1e-20*x)", 0.0, 1e-20),
        ("x*x", 1e150, 2e150),
        ("sqrt(x)", 1e300, 0.5e-150),
        ("1/x", -1e-100, -1e200),
        ("sin(x)", 1e8, -0.36338508935569057),
        ("sin(1000*x) + 1e6", 1.0, 1000 * math.cos(1000.0)),
        ("1e-200*exp(x)", 1.0, 1e-200 * math.e),
    ],
)
def test_scales(method: Differences, text: str, x: float, truth: float) -> None:
    value, error = holds(method, text, x, truth)
    if text != "exp(1e-20*x)":
        assert error < 1e-2 * abs(truth)
        assert abs(value - truth) < 1e-3 * abs(truth)


@each_method
@pytest.mark.parametrize(
    ("text", "x", "truth"),
    [
        # Parts that cancel leave stairs; truth from the series at 0.
        ("(1 - cos(x))/x^2", 1e-4, -1e-4 / 12 + 1e-12 / 180),
        ("(1 - cos(x))/x^2", 1e-8, -1e-8 / 12),
        ("log(1 + x)", 1e-17, 1.0),
        ("log(x + sqrt(x^2 + 1))", -1e6, 1 / math.sqrt(1e12 + 1)),
        ("tan(x) - sin(x)", 1e-6, 1.5e-12),
    ],
)
def test_cancellation_is_in_the_error(
    method: Differences, text: str, x: float, truth: float
) -> None:
    holds(method, text, x, truth)


class Recorder:
    """A function that keeps how many points it was asked for at a time."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def __call__(self, points: NDArray[Any]) -> NDArray[Any]:
        self.batches.append(len(points))
        return np.sum(np.exp(points) * np.arange(1.0, points.shape[1] + 1), axis=1)[:, None]


@each_method
def test_evaluations_are_counted_and_batched(method: Differences) -> None:
    values = Recorder()
    found = method.prepare(Problem(values, 50, 1))(np.linspace(0.5, 2.0, 50))
    assert found.evaluations == sum(values.batches)
    # The other side of the forward difference takes its step from the first batch.
    assert len(values.batches) == (2 if method is FORWARD else 1)


@each_method
def test_batches_fit_the_memory(method: Differences) -> None:
    n, x = 300, np.linspace(0.5, 2.0, 300)
    values, whole = Recorder(), Recorder()
    small = method.prepare(Problem(values, n, 1, memory_bytes=1 << 20))(x)
    large = method.prepare(Problem(whole, n, 1))(x)
    assert max(values.batches) * n * 8 <= 1 << 20
    np.testing.assert_array_equal(small.value, large.value)
    assert small.evaluations == large.evaluations


@each_method
def test_several_outputs_find_their_own_steps(method: Differences) -> None:
    def values(points: Array) -> Array:
        x = points[:, 0]
        return np.stack([np.sin(x), np.sin(1e5 * x), np.abs(x - 1), x - x, 3 * x], axis=1)

    found = method.prepare(Problem(values, 1, 5))(np.array([1.0]))
    truth = np.array([math.cos(1.0), 1e5 * math.cos(1e5), 0.0, 0.0, 3.0])
    assert found.value.shape == (5, 1)
    assert found.error is not None
    assert (np.abs(found.value[:, 0] - truth) <= found.error[:, 0]).all()
    assert found.error[1, 0] < 1e-2 * 1e5
    assert found.error[2, 0] >= 0.999
    assert found.error[0, 0] < 1e-4


@each_method
def test_noise_is_in_the_error(method: Differences) -> None:
    """Values rounded to single precision, which says so by its type."""

    def values(points: Array) -> NDArray[np.float32]:
        return np.exp(points).astype(np.float32)

    found = method.prepare(Problem(values, 1, 1))(np.array([1.0]))
    assert found.error is not None
    assert abs(found.value[0, 0] - math.e) <= found.error[0, 0] < 0.1


@each_method
def test_orders_and_outputs_that_it_cannot_do(method: Differences) -> None:
    with pytest.raises(UnsupportedError, match="order 1 and 2"):
        method.prepare(Problem(Recorder(), 1, 1, order=3))
    with pytest.raises(UnsupportedError, match="one output"):
        method.prepare(Problem(Recorder(), 1, 2, order=2))
    assert method.missing() is None


@each_method
def test_hessian_at_a_kink_claims_nothing(method: Differences) -> None:
    _, error = at(method, "abs(x)", 0.0, order=2)
    assert math.isinf(error[0])
    value, error = at(method, "x*abs(x)", 0.0, order=2)
    assert abs(value[0] - 2.0) <= error[0] * (1 + 1e-9)
    if method is not FORWARD:
        assert abs(value[0] + 2.0) <= error[0] * (1 + 1e-9)


@each_method
def test_hessian_at_an_edge_is_one_sided(method: Differences) -> None:
    value, error = at(method, "sqrt(x)^5 + x^2 + x*y + y^2", 0.0, 1.0, order=2)
    truth = np.array([2.0, 1.0, 1.0, 2.0])
    assert (np.abs(value - truth) <= error).all()
    assert np.abs(value - truth).max() < 0.1


@each_method
def test_blocks_of_components_change_nothing(
    method: Differences, monkeypatch: pytest.MonkeyPatch
) -> None:
    def values(points: Array) -> Array:
        return np.abs(points[:, ::-1] - 1.25) * np.sin(points) + points[:, :1] ** 2

    problem, x = Problem(values, 6, 6), np.array([0.0, 1e-9, 0.7, 1.25, 2.0, 1.0])
    whole = method.prepare(problem)(x)
    monkeypatch.setattr("difflab.differences.first._ENTRIES", 1)
    monkeypatch.setattr("difflab.differences.wide._ENTRIES", 1)
    parts = method.prepare(problem)(x)
    assert whole.error is not None
    assert parts.error is not None
    np.testing.assert_allclose(parts.value, whole.value, atol=2 * whole.error.min(), rtol=1e-6)
    assert (np.isfinite(parts.error) == np.isfinite(whole.error)).all()


@each_method
@pytest.mark.parametrize(
    ("text", "x"), [("floor(x)", 2.0), ("log(x)", 1e-308), ("sqrt(abs(x - 3))", 3.0)]
)
def test_quotients_without_a_limit_claim_nothing(method: Differences, text: str, x: float) -> None:
    """Jumps and poles; and a pole so near the smallest numbers that no step resolves it."""
    _, error = at(method, text, x)
    assert math.isinf(error[0])
