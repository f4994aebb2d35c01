"""`stabilise`: rewrites are proved by values, named by their place, and taken back if wrong."""

from __future__ import annotations

import numpy as np
import pytest

import difflab as dl
from difflab.errors import PointError
from difflab.language.printers import text
from difflab.primitives import exp, expm1, log, log1p
from difflab.stabilisation.matching import Rule
from difflab.stabilisation.proof import ENOUGH, stabilise
from difflab.stabilisation.rules import RULES
from tests.support.rows import for_each


@for_each("rule", RULES, ids=lambda rule: rule.plain)
def test_every_rule_is_proved(rule: Rule) -> None:
    found = stabilise(rule.example)
    assert not found.refused
    assert found.rewrites[-1].rule == rule.name
    assert all(item.digits >= ENOUGH and item.points == 3 for item in found.rewrites)


def test_a_rewrite_that_is_wrong_is_taken_back() -> None:
    wrong = Rule(
        "log(1 + x)",
        "log1p(x), nearly",
        "",
        "log(1 + x)",
        {"x": 1e-9},
        lambda x: log(1 + x),
        lambda x: log1p(x) * (1 + 2.0**-52),
    )
    found = stabilise("log(1 + x) + (exp(x) - 1)", rules=(wrong, *RULES))
    assert found.refused == (wrong.name,)
    assert text(found.function) == "log(1 + x) + expm1(x)"
    assert [item.before for item in found.rewrites] == ["exp(x) - 1"]


def test_a_wrong_rewrite_whose_digits_hide_in_cancellation_is_taken_back() -> None:
    wrong = Rule("log(1 + x)", "x", "", "", {}, lambda x: log(1 + x), lambda x: x)
    found = stabilise("log(1 + 1e-25*x)", {"x": 1.0}, rules=(wrong,))
    assert found.refused == (wrong.name,)


@pytest.mark.parametrize(
    "program",
    [
        "sqrt(x) - sqrt(2)",
        "log(2*exp(x) + 3)",
        "sqrt(0.5) - sqrt(x)",
        "x*log(exp(1/2) - 1)",
        "(1 + 1/(1 + exp(x))) - (1 + 1/(1 + exp(x)))",
    ],
)
def test_numbers_are_not_rounded_on_the_way(program: str) -> None:
    found = stabilise(program)
    assert not found.refused
    assert len(found) >= 1


def test_what_is_around_a_wrong_rewrite_is_kept() -> None:
    wrong = Rule("", "", "", "", {}, lambda x: exp(x) - 1, lambda x: expm1(x) + 1e-9)
    found = stabilise("log(1 + (exp(x) - 1)*y)", rules=(wrong, *RULES))
    assert found.refused == (wrong.name,)
    assert text(found.function) == "log1p((exp(x) - 1)*y)"


def test_digits_are_doubled_until_what_cancels_can_be_compared() -> None:
    found = stabilise("log(1 + 1e-45*x)")
    assert not found.refused
    assert found.rewrites[0].digits >= ENOUGH


def test_a_branch_without_a_value_is_not_held_against_a_rewrite() -> None:
    found = stabilise("where(x > 1000, log(1 + (x - 1000)), x)")
    assert not found.refused
    (item,) = found.rewrites
    assert (item.digits, item.points) == (None, 0)
    assert "not compared" in str(item)


def test_places_count_lines_and_columns_from_one() -> None:
    found = stabilise("a = 1 - cos(x)\nb = 2*(exp(a) - 1)\na*b")
    places = [(item.line, item.column, item.before, item.after) for item in found.rewrites]
    assert places == [
        (1, 5, "1 - cos(x)", "versine(x)"),
        (2, 8, "exp(a) - 1", "expm1(versine(x))"),
    ]


def test_python_code_is_shown_as_the_language_writes_it() -> None:
    found = stabilise(dl.trace(lambda s: np.log(np.sum(np.exp(s))), np.zeros(3)))
    (item,) = found.rewrites
    assert (item.before, item.after) == ("log(sum(exp(s)))", "logsumexp(s)")
    assert item.line is None
    assert "logsumexp(s)" in repr(found)


def test_the_point_asked_for_is_one_more() -> None:
    found = stabilise("1 - cos(x)", {"x": 1e-9})
    assert found.rewrites[0].points == 4
    with pytest.raises(PointError, match="no value is given"):
        stabilise("1 - cos(x)", {})


def test_a_function_that_is_stable_stays_itself() -> None:
    found = stabilise("x*y")
    assert found.function == found.plain
    assert repr(found) == "nothing to stabilise"


def test_long_subexpressions_are_not_written_out() -> None:
    terms = " + ".join(f"exp(x{k})" for k in range(1000))
    (item,) = stabilise(f"log({terms})").rewrites
    assert len(item.before) <= 400
    assert item.after == "(more than 400 operations)"
