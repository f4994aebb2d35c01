"""The worst contributions in words, and what stabilisation gains."""

from __future__ import annotations

import pytest

from difflab.rounding.advice import advised
from difflab.rounding.budget import error_budget

CASES = [
    ("(-b + sqrt(b^2 - 4*a*c))/(2*a)", {"a": 1, "b": 1e5, "c": 1}, "multiply by the conjugate"),
    ("(1 - cos(x))/x^2", {"x": 1e-4}, "2 sin²(x/2)"),
    ("E - k*sin(E)", {"E": 1e-3, "k": 0.999999}, "x - sin x is its series"),
    ("x: [4]; sum(x^2)/4 - (sum(x)/4)^2", {"x": [1e4, 10001, 10002, 10004.1]}, "shift"),
    ("x: [3]; y: [3]; dot(x, y)", {"x": [1e10, 1.1, -1e10], "y": [1, 1, 1.0000001]}, "fsum"),
    ("exp(x*y)", {"x": 70.1, "y": 9.3}, "magnifies relative errors by its argument"),
    ("x*x - y*y", {"x": 1.1, "y": 1.1000001}, "(a - b)(a + b)"),
]


@pytest.mark.parametrize(("text", "at", "expected"), CASES)
def test_the_first_sentence_says_what_to_rewrite(
    text: str, at: dict[str, object], expected: str
) -> None:
    first = advised(error_budget(text, at)).advice[0]
    assert first.startswith("value: ")
    assert expected in first


def test_a_good_function_needs_no_advice() -> None:
    found = advised(error_budget("x*y + 1", {"x": 1.1, "y": 3.3}))
    assert found.advice == (
        "value: every operation contributes at most 0.25 ULP",
        "gradient: every operation contributes at most 0 ULP",
    )
    assert found.stable == ()


def test_at_most_three_operations_of_each_part_are_explained() -> None:
    found = advised(error_budget("(1 - cos(x))/x^2 + (exp(x) - 1 - x)/x^2", {"x": 1e-4}))
    assert 1 <= sum(line.startswith("value") for line in found.advice) <= 3
    assert 1 <= sum(line.startswith("gradient") for line in found.advice) <= 3


def test_stabilisation_is_tried_and_its_gain_is_that_of_the_budgets() -> None:
    plain = error_budget("(1 - cos(x))/x^2", {"x": 1e-4})
    found = advised(plain)
    assert "cos_remainder" in found.stable[0]
    gain = float(found.stable[1].split()[2])
    # The true gain in digits: half an ULP or so is left of the bound of the plain form.
    assert found.stable[1].startswith("value: gains")
    assert 7 < gain < 9


def test_what_no_rule_rewrites_is_said() -> None:
    found = advised(error_budget("x - sin(x)", {"x": 1e-3}))
    assert found.stable == ("stabilise has no rule for it",)
