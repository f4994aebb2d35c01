"""Right is agree, wrong is disagree on the entry's own scale, and kinks are conventions."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import difflab as dl
from difflab.methods.protocol import Estimate, Family, Problem
from difflab.methods.registry import installed
from difflab.referee.referee import Referee, refer
from difflab.referee.verdict import Judgement, Verdict, judge
from tests.support.rows import for_each

EXACT = Family.AUTOMATIC
NUMERIC = Family.NUMERIC
NAN, INF = math.nan, math.inf


def judged(
    text: str,
    point: list[float],
    value: object,
    family: Family = EXACT,
    error: object = None,
    order: int = 1,
) -> Judgement:
    f = dl.parse(text)
    referee = Referee.of(f, point, order=order)
    shape = (f.m, f.n) if order == 1 else (f.n, f.n)
    jacobian = np.array(value, dtype=float).reshape(shape)
    bars = None if error is None else np.broadcast_to(np.array(error, dtype=float), shape)
    estimate = Estimate(jacobian, bars, 0)
    return judge(estimate, referee.reference(), family, sensitivity=referee.sensitivity)


@for_each(
    ("text", "point", "value", "verdict"),
    [
        ("x^2", 3.0, 6.0, "agree"),
        ("x^2", 3.0, 6.0 * (1 + 1e-8), "agree"),
        ("x^2", 3.0, 6.0 * (1 + 1e-7), "disagree"),
        ("x^2", 3.0, 6.0 * (1 + 1e-5), "disagree"),
        ("x^2", 3.0, NAN, "disagree"),
        ("x^2", 3.0, INF, "disagree"),
        # A component that is wholly wrong is wrong, however small it is.
        ("1e-20*x^2", 3.0, 12e-20, "disagree"),
        ("1e-20*x^2", 3.0, 0.0, "disagree"),
        ("tanh(x)", 20.0, 0.0, "disagree"),
        ("tanh(x)", 20.0, 1.6993417021166355e-17, "agree"),
        # Where the truth is zero, the rounding of the function's values is allowed.
        ("sin(x)^2 + cos(x)^2", 1.3, 1e-17, "agree"),
        ("sin(x)^2 + cos(x)^2", 1.3, 1e-12, "disagree"),
        ("1e-20*(sin(x)^2 + cos(x)^2)", 1.3, 1e-12, "disagree"),
        # Subnormal derivatives have few digits to be right in.
        ("1/(1 + exp(-x))", -740.0, 4.2e-322, "agree"),
        ("1/(1 + exp(-x))", -740.0, 8.4e-322, "disagree"),
        ("1/(1 + exp(-x))", -800.0, 0.0, "agree"),
        # Beyond the largest double.
        ("log(x)", 5e-324, INF, "agree"),
        ("log(x)", 5e-324, 1e308, "disagree"),
        # The input's own rounding.
        ("(x - 1)^3", 1.0 + 2**-52, 4 * 3 * 2.0**-104, "inconclusive"),
        ("sin(1e15*x)", 1.0, 0.0, "inconclusive"),
        ("0.1*x + 0.2*x - 0.3*x", 1.3, 5.5e-17, "inconclusive"),
        ("x + 2*x - 3*x", 1.3, 5.5e-5, "disagree"),
    ],
)
def test_exact_methods_at_points_with_a_derivative(
    text: str, point: float, value: float, verdict: str
) -> None:
    assert judged(text, [point], value).verdict == verdict


@for_each(
    ("text", "point", "value", "error", "verdict"),
    [
        ("x^2", 3.0, 6.0 + 6e-8, None, "agree"),
        ("x^2", 3.0, 6.0 + 6e-8, 1e-12, "agree"),  # forward differences do no better
        ("x^2", 3.0, 6.1, 1e-12, "disagree"),
        ("x^2", 3.0, 6.1, 0.05, "agree"),  # it said so
        ("x^2", 3.0, 9.0, 3.0, "inconclusive"),  # it said nothing
        ("x^2", 3.0, NAN, INF, "inconclusive"),
        ("x^2", 3.0, NAN, None, "disagree"),
        ("tanh(x)", 20.0, 0.0, 1e-11, "inconclusive"),
        ("tanh(x)", 20.0, 0.0, 1e-20, "disagree"),
        ("cos(x)", 0.0, -7e-9, 2e-9, "agree"),
        ("cos(x)", 0.0, -7e-9, None, "agree"),
        ("cos(x)", 0.0, -7e-3, 1e-9, "disagree"),
    ],
)
def test_numeric_methods_are_held_to_what_they_can_and_what_they_say(
    text: str, point: float, value: float, error: float | None, verdict: str
) -> None:
    assert judged(text, [point], value, NUMERIC, error).verdict == verdict


@for_each(
    ("text", "point", "value", "verdict"),
    [
        ("abs(x)", 0.0, 0.0, "convention"),
        ("abs(x)", 0.0, 1.0, "convention"),
        ("abs(x)", 0.0, -1.0, "convention"),
        ("abs(x)", 0.0, 1.5, "disagree"),
        ("abs(x)", 0.0, NAN, "inconclusive"),
        ("max(x, 2*x)", 0.0, 0.0, "disagree"),
        ("max(x, 2*x)", 0.0, 1.5, "convention"),
        ("1e-30*abs(x)", 0.0, 1.0, "disagree"),
        ("floor(x)", 2.0, 0.0, "convention"),
        ("floor(x)", 2.0, 1.0, "disagree"),
        ("where(x > 0, sqrt(x), 0)", 0.0, 0.0, "convention"),
        ("where(x > 0, sqrt(x), 0)", 0.0, -1.0, "disagree"),
        ("where(x > 0, sqrt(x), 0)", 0.0, NAN, "inconclusive"),
        ("sqrt(x)", 0.0, INF, "agree"),
        ("sqrt(x)", 0.0, -INF, "disagree"),
        ("sqrt(x)", 0.0, 1e8, "disagree"),
        ("sqrt(x)", 0.0, NAN, "inconclusive"),
        ("x^1.5", 0.0, 0.0, "agree"),
        ("x^1.5", 0.0, NAN, "disagree"),
        ("log(x)", -1.0, NAN, "agree"),
        ("log(x)", -1.0, -1.0, "disagree"),
        ("acosh(1/(1 + exp(-x)))", 470.0, 0.0, "inconclusive"),  # 1/(1 + 1e-204) is 1
        ("acosh(1/(1 + exp(-x)))", 4.0, 0.0, "disagree"),
        ("(x^2 - 1)/(x - 1)", 1.0, 1.0, "convention"),
        ("(x^2 - 1)/(x - 1)", 1.0, 2.0, "disagree"),
        ("where(x == 0, 0, x*sin(1/x))", 0.0, 0.0, "inconclusive"),
    ],
)
def test_points_without_a_derivative(text: str, point: float, value: float, verdict: str) -> None:
    assert judged(text, [point], value).verdict == verdict


def test_a_pole_is_no_place_for_differences() -> None:
    assert judged("sqrt(x)", [0.0], 1e8, NUMERIC, INF).verdict == "inconclusive"
    assert judged("sqrt(x)", [0.0], 1e8, NUMERIC, 1.0).verdict == "disagree"


def test_no_derivative_although_the_partial_ones_exist() -> None:
    assert judged("cbrt(x*y)", [0.0, 0.0], [0.0, 0.0]).verdict == "agree"
    assert judged("cbrt(x*y)", [0.0, 0.0], [NAN, 0.0]).verdict == "inconclusive"


def test_the_gravest_entry_decides_and_is_named() -> None:
    text = "[x*y, abs(x), y^2]"
    right = [[3.0, 0.0], [0.0, 0.0], [0.0, 6.0]]
    assert judged(text, [0.0, 3.0], right).verdict == "convention"
    wrong = judged(text, [0.0, 3.0], [[3.0, 0.0], [0.0, 0.0], [0.0, -6.0]])
    assert wrong.verdict == "disagree"
    assert wrong.entry == (2, 1)
    assert "-6" in wrong.reason


def test_hessians_are_judged_alike() -> None:
    right = [[2.0, 1.0], [1.0, 0.0]]
    assert judged("x^2 + x*y", [1.0, 2.0], right, order=2).verdict == "agree"
    wrong = judged("x^2 + x*y", [1.0, 2.0], [[2.0, 1.0], [2.0, 0.0]], order=2)
    assert (wrong.verdict, wrong.entry) == ("disagree", (1, 0))


def test_errors_leave_out_what_has_no_scale() -> None:
    found = judged("[3*x, 0*x, abs(x)]", [0.0], [[3.0 + 2**-51], [0.25], [7.0]])
    assert found.max_abs_error == 0.25
    assert found.max_rel_error == 2**-51 / 3
    assert found.max_ulp_error == 1.0
    nothing = judged("abs(x)", [0.0], 0.0)
    assert (nothing.max_abs_error, nothing.max_rel_error, nothing.max_ulp_error) == (None,) * 3


def test_verdicts_are_ordered_by_gravity() -> None:
    assert list(Verdict) == ["agree", "convention", "declared", "inconclusive", "disagree"]


def test_every_built_in_method_agrees_on_the_seed() -> None:
    f = dl.parse("ln(x1) + x1*x2 - sin(x2)")
    x = np.array([2.0, 5.0])
    referee = Referee.of(f, x.tolist())
    reference = referee.reference()
    for name, method in installed().items():
        if method.missing():
            continue
        found = judge(
            method.prepare(Problem(f.values, f.n, f.m, f))(x),
            reference,
            method.family,
            sensitivity=referee.sensitivity,
        )
        assert found.verdict == "agree", (name, found)
        if method.family is not NUMERIC:
            assert found.max_ulp_error is not None
            assert found.max_ulp_error <= 2.0


def test_a_point_of_definition_alone_says_nothing() -> None:
    """(-3)^y has real values at integers only."""
    assert judged("(x - 5)^y", [2.0, 2.0], [-6.0, 0.0]).verdict == "inconclusive"


def test_ill_conditioning_is_found_at_the_digits_that_the_derivative_needs() -> None:
    """sin(1e230·x) needs 230 digits before its phase means anything."""
    assert judged("sin(1e230*x)", [1.9], 6e229).verdict == "inconclusive"


@pytest.mark.parametrize(
    ("relative", "verdict"),
    [(2.0**-27, "agree"), (2.0**-25, "inaccurate"), (9e-7, "inaccurate"), (2e-6, "disagree")],
)
def test_the_thresholds_are_those_of_the_documentation(relative: float, verdict: str) -> None:
    page = (Path(__file__).parents[2] / "docs/explanation/methods.md").read_text(encoding="utf-8")
    assert "up to 2⁻²⁶ ≈ 1.5e-8" in page
    assert "between 2⁻²⁶ and 1e-6" in page
    truth = refer(dl.parse("2*x"), [1.0])
    found = judge(Estimate(np.array([[2.0 * (1 + relative)]]), None, 0), truth, Family.SYMBOLIC)
    assert found.verdict == ("agree" if verdict == "agree" else "disagree")
    assert ("inaccurate" in found.reason) == (verdict == "inaccurate")
    assert "ill-conditioned" not in found.reason


def test_an_approximation_of_a_well_conditioned_function_is_inaccurate() -> None:
    # The approximation of Abramowitz and Stegun, 7.1.26, as tinygrad's erf.
    def approximation(x: float) -> float:
        t = 1 / (1 + 0.3275911 * x)
        terms = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
        total = sum(term * t**k for k, term in enumerate(terms, 1))
        slope = sum(-0.3275911 * k * term * t ** (k + 1) for k, term in enumerate(terms, 1))
        return (2 * x * total - slope) * math.exp(-x * x)

    found = judged("erf(x)", [0.5], approximation(0.5))
    assert found.verdict == "disagree"
    assert "ill-conditioned" not in found.reason
