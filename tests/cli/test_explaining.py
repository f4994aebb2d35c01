"""``--explain-nan``: what went wrong, ahead of the result or aside from it."""

import json


def test_it_stands_before_the_error(difflab):
    result = difflab("compare", "1 + log(x-3)", "--at", "x=2", "--explain-nan")
    assert result.code == 2
    assert result.out == (
        "log at column 5: log(-1) is nan (log needs x > 0)\n  1 + log(x-3)\n      ^~~~~~~~\n\n"
    )
    assert "log is undefined at the point" in result.err


def test_all_well_says_so_and_the_comparison_follows(difflab):
    result = difflab("compare", "x*y", "--at", "x=2,y=3", "--explain-nan", "--no-timing")
    assert result.code == 0
    first, _, rest = result.out.partition("\n\n")
    assert first == "no nan, infinity, overflow or total cancellation in value or gradient"
    assert "reverse" in rest


def test_a_gradient_of_zero_is_explained(difflab):
    result = difflab(
        "compare", "a*relu(b)", "--at", "a=2,b=-5", "--explain-nan", "--methods", "reverse"
    )
    assert "b: gradient exactly 0, blocked by relu(-5) at column 3: -5 ≤ 0\n" in result.out


def test_without_a_point_it_is_the_chosen_one(difflab):
    result = difflab("compare", "log(x)", "--explain-nan", "--methods", "reverse", "--no-timing")
    assert result.code == 0
    assert result.out.startswith("no nan")


def test_the_output_for_machines_stays_clean(difflab):
    result = difflab(
        *("compare", "sqrt(x)", "--at", "x=4", "--explain-nan", "--methods", "reverse"),
        *("--format", "json"),
    )
    assert json.loads(result.out)["value"] == [2.0]
    assert "no nan" in result.err


def test_in_a_trace(difflab):
    result = difflab("trace", "sqrt(x)*y", "--at", "x=0,y=1", "--explain-nan")
    assert result.code == 0
    assert result.out.startswith("in the gradient of x, from the derivative of sqrt(0) at column 1")
    assert "Reverse mode" in result.out


def test_a_point_that_does_not_fit_is_the_inputs_fault(difflab):
    result = difflab("compare", "x*y", "--at", "x=2", "--explain-nan")
    assert result.code == 2
    assert "no value is given for the input y" in result.err
    assert result.out == ""
