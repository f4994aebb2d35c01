"""Loops with a condition, unrolled to the turns that they take at a point."""

import math
import warnings

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError
from difflab.explore.scalars import LARGEST_TURNS, SPARE_TURNS, unrolled
from difflab.explore.shown import explore
from difflab.language import parse

HALVED = "iterate(y = x; while y > 1; y/2)"


def test_turns_are_those_at_the_point_and_a_few_more() -> None:
    """8 is halved three times, so that up to 32 can be halved."""
    found = unrolled(parse(HALVED), {"x": 8.0})
    assert found.turns == [3 + SPARE_TURNS]
    points = (8.0, 0.5, 3.0, 32.0)
    assert [float(found.function(x)) for x in points] == [1.0, 0.5, 0.75, 1.0]
    assert [float(dl.gradient(found.function)(x)[0]) for x in points] == [1 / 8, 1, 1 / 4, 1 / 32]


def test_beyond_them_the_result_is_undefined_instead_of_wrong() -> None:
    assert math.isnan(unrolled(parse(HALVED), {"x": 8.0}).function(33.0))


def test_loops_in_loops_have_their_own_turns() -> None:
    function = parse("iterate(y = x; 3 times; iterate(z = y; while z > 1; z/2) + 3)")
    found = unrolled(function, {"x": 9.0})  # 9 takes 4 turns, 9/16 + 3 and what follows 2
    assert found.turns == [4 + SPARE_TURNS, 2 + SPARE_TURNS, 2 + SPARE_TURNS]
    assert found.function(9.0) == 9 / 2**8 + 3 / 16 + 3 / 4 + 3


def test_functions_without_such_loops_stay_as_they_are() -> None:
    assert unrolled(parse("x*sin(x)"), {"x": 1.0}).turns == []


def test_too_many_turns_are_refused_with_the_place() -> None:
    text = f"x + {HALVED.replace('/2', '*2')}"
    with pytest.raises(InputError, match=f"up to {LARGEST_TURNS} turns") as caught:
        unrolled(parse(text), {"x": 2.0})
    assert caught.value.span is not None
    assert text[slice(*caught.value.span)].startswith("iterate")


def test_the_page_says_how_many_turns_are_written_out() -> None:
    assert "up to 5 turns, 2 more" in explore(parse(HALVED), {"x": 8.0}, verdicts=False).html()
    assert "turns" not in explore(parse("x^2"), {"x": 8.0}, verdicts=False).html().split("data")[-1]


def test_the_reverse_sweep_goes_back_by_the_turns_that_were_taken() -> None:
    """8 is halved three times: f = x·a³ with a = 1/2, and 33 needs more turns than there are."""
    gradient = dl.gradient(parse("iterate(y = x; while y > 1; y*a)"))
    found = unrolled(gradient, {"x": 8.0, "a": 0.5})
    assert found.turns == [3 + SPARE_TURNS]
    assert dict(zip(found.function.inputs, found.function(x=8.0, a=0.5), strict=True)) == {
        "x": 1 / 8,
        "a": 3 * 8 / 4,
    }
    assert np.isnan(found.function(x=65.0, a=0.5)).all()


def test_newtons_iteration_has_the_derivative_of_its_limit() -> None:
    """√a by Newton's iteration: the derivative is 1/(2√a), with respect to a only."""
    text = "iterate(y = x; while abs(y*y - a) > 1e-12; (y + a/y)/2)"
    found = unrolled(parse(text), {"x": 3.0, "a": 2.0})
    gradient = dl.gradient(found.function)(a=2.0, x=3.0)
    np.testing.assert_allclose(gradient, [1 / math.sqrt(8), 0], atol=1e-9)


def test_branches_that_are_not_chosen_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = unrolled(parse("root(x^3 - a, x, 1)"), {"a": 2.0}).function
    assert float(found(2.0)) == pytest.approx(2 ** (1 / 3), rel=1e-15)
