"""Proved derivatives hold what they claim, and a contradiction of the two witnesses is loud."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.methods.protocol import Estimate, Family
from difflab.referee import referee
from difflab.referee.proofs import Proof, prove
from difflab.referee.referee import Reference, refer
from difflab.referee.ulp import exact
from difflab.referee.verdict import judge

SEED = "ln(x1) + x1*x2 - sin(x2)"


def proved(text: str, *point: float, order: int = 1) -> Reference:
    return refer(dl.parse(text), point, order=order, timeout=20.0)


@pytest.mark.parametrize(
    ("text", "point", "truth"),
    [
        (SEED, (2.0, 5.0), lambda x, y: [1 / x + y, x - mpmath.cos(y)]),
        ("(1 - cos(x))/x^2", (1e-8,), lambda x: [_cancelling(x)]),
        ("erf(x)", (6.678,), lambda x: [2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x)]),
        ("x^0.5*gamma(y)", (2.0, 3.5), lambda x, y: _gamma(x, y)),
        ("1/x - 1/(x + 1e-30)", (3.0,), lambda x: [1 / (x + mpmath.mpf(1e-30)) ** 2 - x**-2]),
    ],
)
def test_the_true_derivative_lies_within_the_bounds(text: str, point: Any, truth: Any) -> None:
    found = proved(text, *point)
    assert found.proved.all()
    with mpmath.workdps(200):
        for entry, bound, true in zip(
            found.exact.flat, found.bounds.flat, truth(*map(mpmath.mpf, point)), strict=True
        ):
            assert abs(exact(entry) - exact(true)) <= exact(bound)
            assert bound <= 1e-30 * abs(true)


def _cancelling(x: Any) -> Any:
    return mpmath.sin(x) / x**2 - 2 * (1 - mpmath.cos(x)) / x**3


def _gamma(x: Any, y: Any) -> list[Any]:
    root, value = mpmath.sqrt(x), mpmath.gamma(y)
    return [value / (2 * root), root * value * mpmath.digamma(y)]


def test_hessians_are_proved() -> None:
    found = proved(SEED, 2.0, 5.0, order=2)
    assert found.proved.all()
    assert found.jacobian.tolist() == [[-0.25, 1.0], [1.0, math.sin(5)]]


def test_published_gradients_are_proved(reference: Any) -> None:
    for case in reference("mgh")[:40]:
        f = dl.parse(case["expr"])
        found = refer(f, [float(case["point"][name]) for name in f.inputs], timeout=100.0)
        assert found.proved.all(), case["id"]
        assert found.contradiction == ""


@pytest.mark.parametrize(
    "text", ["abs(x)", "max(x, 0)", "x*abs(x)", "sqrt(x)", "floor(x)", "ln(x)"]
)
def test_nothing_is_proved_where_it_is_not_smooth(text: str) -> None:
    found = proved(text, 0.0)
    assert not found.proved.any()
    assert found.contradiction == ""


def test_a_kink_of_another_output_takes_nothing_away() -> None:
    found = proved("[x*y, abs(y)]", 3.0, 0.0)
    assert found.proved.tolist() == [[True, True], [False, False]]
    assert found.regularity.tolist() == [["smooth", "smooth"], ["smooth", "kink"]]


def test_a_thousand_inputs_are_proved() -> None:
    f = dl.parse("x: [1000]; sum(sin(x)*x)")
    point = np.linspace(0.1, 2, 1000)
    proof = prove(f, point.tolist(), 1, seconds=math.inf)
    assert proof.proved.all()
    truth = np.sin(point) + point * np.cos(point)
    np.testing.assert_allclose(proof.exact[0].astype(float), truth, rtol=1e-14)


def test_no_time_proves_nothing() -> None:
    assert not prove(dl.parse(SEED), [2.0, 5.0], 1, seconds=0.0).proved.any()


def test_without_python_flint_differences_judge_alone(monkeypatch: Any) -> None:
    for name in [name for name in sys.modules if name.startswith("difflab.balls")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "flint", None)
    found = proved(SEED, 2.0, 5.0)
    assert not found.proved.any()
    assert found.status == "smooth"
    assert found.jacobian.tolist() == [[5.5, 1.7163378145367738]]


def shift(monkeypatch: Any, relatively: str) -> None:
    """Make ball arithmetic wrong."""

    def shifted(*args: Any) -> Proof:
        proof = prove(*args)
        with mpmath.workdps(60):
            return replace(proof, exact=proof.exact * (1 + mpmath.mpf(relatively)))

    monkeypatch.setattr(referee, "prove", shifted)


@pytest.fixture
def wrong_proof(monkeypatch: Any) -> None:
    """Make ball arithmetic wrong by one part in a million million."""
    shift(monkeypatch, "1e-12")


def test_a_fault_far_below_the_rounding_of_float64_is_a_contradiction(monkeypatch: Any) -> None:
    shift(monkeypatch, "1e-18")
    assert "one of the two is wrong" in proved(SEED, 2.0, 5.0).contradiction


@pytest.mark.usefixtures("wrong_proof")
def test_a_contradiction_is_reported_and_resolves_nothing() -> None:
    found = proved(SEED, 2.0, 5.0)
    assert not found.proved.any()
    assert found.status == "unresolved"
    assert "proves 5.5000000000054996" in found.contradiction
    assert "5.5 (smooth): one of the two is wrong" in found.contradiction


@pytest.mark.usefixtures("wrong_proof")
def test_a_comparison_shows_a_contradiction() -> None:
    result = dl.compare(SEED, {"x1": 2, "x2": 5}, methods=["reverse"], timing=False)
    assert not result.agreed
    shown = result.table()
    assert "referee   CONTRADICTION: ball arithmetic proves 5.5000000000054996" in shown
    assert "reverse  inconclusive" in shown


@pytest.mark.usefixtures("wrong_proof")
def test_a_kink_that_is_said_to_be_smooth_is_a_contradiction(monkeypatch: Any) -> None:
    def smooth(*args: Any) -> Proof:
        proof = Proof.blank((1, 1))
        proof.exact[:], proof.bounds[:] = mpmath.mpf(1), 0.0
        return proof

    monkeypatch.setattr(referee, "prove", smooth)
    assert "(kink)" in proved("abs(x)", 0.0).contradiction


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([5.5, 1.7163378145367738], "proved within 0.332 ULP"),
        ([5.5 + 2**-50, 1.7163378145367738], "proved within 1 ULP"),
        ([5.5, 1.8], "1.8 where the derivative is 1.7163378145367738; proved wrong by 3.7e14 ULP"),
    ],
)
def test_errors_are_proved(value: list[float], reason: str) -> None:
    estimate = Estimate(np.array([value]), None, 0)
    assert judge(estimate, proved(SEED, 2.0, 5.0), Family.AUTOMATIC).reason == reason


def test_errors_where_the_derivative_is_zero_are_absolute() -> None:
    truth = proved("cos(x)*y", 0.0, 3.0)
    found = judge(Estimate(np.array([[1e-18, 1.0]]), None, 0), truth, Family.AUTOMATIC)
    assert found.reason == "proved within 1.1e-18 where the derivative is zero"
    found = judge(Estimate(np.array([[0.0, 1.0]]), None, 0), truth, Family.AUTOMATIC)
    assert found.reason == "proved exact"


def test_an_undecidable_zero_is_proved_to_round_to_zero() -> None:
    """The two terms cancel, and no precision shows that nothing is left."""
    found = proved("exp(-(x - 3)^2) + exp(-(x + 3)^2)", 0.0)
    assert found.proved.all()
    assert found.jacobian.tolist() == [[0.0]]
    assert found.bounds[0, 0] == 5e-324
