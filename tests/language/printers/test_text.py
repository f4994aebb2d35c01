"""Text is printed so that reading it gives the same function."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import difflab as dl
from difflab.graph.function import evaluate
from difflab.graph.repetition import rolled
from difflab.language import parse
from difflab.language.printers import text
from difflab.primitives import by_spelling
from tests.support.programs import programs
from tests.support.rows import for_each


@given(programs())
def test_reading_what_was_printed_gives_the_same_function(program: str) -> None:
    function = parse(program)
    assert parse(text(function)) == function


@given(programs())
def test_printing_what_was_printed_changes_nothing(program: str) -> None:
    printed = text(parse(program))
    assert text(parse(printed)) == printed


def test_the_comparison_of_functions_can_fail() -> None:
    assert parse("x - y - z") != parse("x - (y - z)")
    assert parse("-(2)^2") == parse("-2^2")
    assert parse("-2") != parse("-(2)")
    assert parse("2.0*x") != parse("2*x")


@for_each(
    ("program", "printed"),
    [
        ("ln(x1)+x1*x2-sin(x2)", "log(x1) + x1*x2 - sin(x2)"),
        ("((a)+(b*c))", "a + b*c"),
        ("a-(b-c)-d", "a - (b - c) - d"),
        ("a/(b*c)/d", "a/(b*c)/d"),
        ("(a^b)^c^d", "(a^b)^c^d"),
        ("(-a)^-b", "(-a)^-b"),
        ("-(a^b)", "-a^b"),
        ("-(a*b)*c", "-(a*b)*c"),
        ("(-2)^2 - -2", "(-2)^2 - -2"),
        ("-(2)", "-(2)"),
        ("(a<b) == (c<d)", "(a < b) == (c < d)"),
        ("not (a<b and (c<d or a<d))", "not (a < b and (c < d or a < d))"),
        (
            "1e22 + .1 + 123456789012345678901234567890",
            "1e+22 + 0.1 + 123456789012345678901234567890",
        ),
        ("x: [5]; x[1:-1:2]*x[::-2][0]", "x: [5]\nx[1:4:2]*x[::-2][0]"),
        ("W: [4, 3]; W[-1, :]", "W: [4, 3]\nW[3]"),
        ("a = x*x; b = a + 1; [a, b, a*b]", "a = x*x\nb = a + 1\n[a, b, a*b]"),
        ("[x, x]", "[(x), (x)]"),
        ("x: [2]; x*[1, a]", "x: [2]\nt1 = [1, a]\nx*t1"),
        ("A = [[a, 2], [3, b]]; A @ A", "A = [[a, 2], [3, b]]\nA @ A"),
        ("x: [3]; take(x, [2, 0])", "x: [3]\ntake(x, [2, 0])"),
        ("W: [2, 3]; take(W, [2, 0] along 1)", "W: [2, 3]\ntake(W, [2, 0] along 1)"),
        ("x: [2]; put(x, [3, 0] along 0, [4])", "x: [2]\nput(x, [3, 0], [4])"),
        (
            "x: [2]; scatter(x at [1:3], 2*x at [:2], [3])",
            "x: [2]\nscatter(x at [1:], 2*x at [:2], [3])",
        ),
        ("a = x", "a = x\na"),
        ("q: []; x", "q: []\nx"),
    ],
)
def test_printed_forms(program: str, printed: str) -> None:
    assert text(parse(program)) == printed
    assert parse(printed) == parse(program)


@for_each("spelling", by_spelling)
def test_every_function_of_the_table_is_read_back(spelling: str) -> None:
    row = by_spelling[spelling]
    declared = "x: [3]; " if row.name == "sum" else ""
    function = parse(f"{declared}2 - {spelling}({', '.join('xyzw'[: row.arity])})^2")
    assert parse(text(function)) == function


def test_shared_parts_get_fresh_names() -> None:
    def squares(t1: Any, t3: Any) -> Any:
        a = t1 * t3 + 1
        for _ in range(41):
            a = a * a + t1
        return a

    function = dl.trace(squares, 1.0, 1.0)
    printed = text(function)
    assert printed.startswith("t2 = t1*t3 + 1\nt4 = t2*t2 + t1\nt5 = t4*t4 + t1\n")
    assert parse(printed) == function


def test_names_of_the_program_are_kept() -> None:
    program = "h = log(x)\nt1 = h*y\nt1*sin(t1)"
    assert text(parse(program)) == program
    again = text(dl.gradient(parse(program)))
    assert again.startswith("h = log(x)\nt1 = h*y\n")


def test_an_unnamed_output_is_not_called_as_a_variable_is() -> None:
    assert parse("y = x*x; sin(y)").output_names == ("f",)
    assert parse("y = x*x; f = y + 1; y*f").output_names == ("f_",)
    assert parse("y2 = x*x; [x + 1, sin(y2)]").output_names == ("y1", "y2_")
    assert parse("y = x*x; y").output_names == ("y",)


def test_derivatives_are_programs_too() -> None:
    function = parse("ln(x1) + x1*x2 - sin(x2)")
    assert text(dl.gradient(function)) == "[x2 + 1/x1, x1 - cos(x2)]"
    again = parse(text(dl.gradient(function)))
    assert [float(part) for part in again(2.0, 5.0)] == pytest.approx([5.5, 1.7163378145367738])


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        ("([a, 2*b])", "y = [a, 2*b]"),
        ("s = [[a, b], [b, a]]", "s = [[a, b], [b, a]]"),
        ("y = a; z = [y, 1]; [y, z]", "z = [a, 1]\ny = a\n[y, z]"),
        ("y*([y, 1])", "t1 = [y, 1]\ny*t1"),
        ("l = [a, b*b]; l[1] + a", "b*b + a"),
        ("a = x*y; a", "a = x*y"),
    ],
)
def test_a_list_that_is_one_output_is_read_back_as_one(program: str, printed: str) -> None:
    function = parse(program)
    assert text(function, whole=True) == str(function) == printed
    again = parse(printed)
    assert again.output_shapes == function.output_shapes
    point = [0.5 + place for place in range(function.n)]
    for one, other in zip(evaluate(again, point), evaluate(function, point), strict=True):
        np.testing.assert_array_equal(one, other)


def test_names_from_elsewhere_become_names_of_the_language() -> None:
    function = dl.trace(lambda gamma, e: gamma * e, 1.0, 2.0)
    assert parse(text(function)).n == 2


def test_repetition_on_vectors_is_said_in_full() -> None:
    terms = " + ".join(f"{i}.5*x[{i}]*sin(x[{7 * i % 40}])" for i in range(40))
    printed = text(dl.gradient(rolled(parse(f"x: [40]\n{terms}"), least=0)))
    assert "put(" in printed
    assert ", [40])" in printed
    assert "[0.5, 1.5, 2.5, 3.5, 4.5" in printed
    long = " + ".join(f"(x[{i}] - 1)^2 - sin(x[{i + 1}])" for i in range(40))
    printed = text(rolled(parse(f"x: [41]\n{long}"), least=0))
    assert " at [:79:2]" in printed
    assert " at [1::2]" in printed


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)])
def test_constants_without_elements_keep_their_shape(shape: tuple[int, ...]) -> None:
    function = dl.trace(lambda x: x + np.ones(shape), 1.0)
    assert dl.parse(str(function)).output_shapes == function.output_shapes == (shape,)
