"""What programs mean: Python's own arithmetic is the judge of precedence and associativity."""

import math

import numpy as np
import pytest
from hypothesis import assume, given

from difflab.errors import ParseError, ShapeError
from difflab.language import parse
from difflab.primitives import by_spelling
from tests.support.programs import PYTHON, VARIABLES, expressions, in_python
from tests.support.rows import for_each

POINT = dict(zip(VARIABLES, (0.7, 1.3, 0.4, 2.2, 0.9), strict=True))


def value(text: str, **point: object) -> object:
    return parse(text)(**point)


@given(expressions())
def test_values_are_those_of_python(expression: str) -> None:
    function = parse(expression)
    point = {name: POINT[name] for name in function.inputs}
    try:
        expected = eval(in_python(expression), PYTHON | point)
    except (ArithmeticError, ValueError):
        expected = math.nan
    assume(isinstance(expected, float) and math.isfinite(expected) and abs(expected) < 1e100)
    assert function(**point) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@for_each(
    ("text", "expected"),
    [
        ("-2^2", -4),
        ("(-2)^2", 4),
        ("2^-3", 0.125),
        ("2^3^2", 512),
        ("2**3**2", 512),
        ("-2²", -4),
        ("2^-2^2", 2**-4),
        ("8-3-2", 3),
        ("16/4/2", 2),
        ("2^-1*6", 3),
        ("--2", 2),
        ("+2", 2),
        ("1 - -2", 3),
        ("√4^3", 8),
        ("√9*2", 6),
        ("∛8", 2),
        ("2√4", None),
        ("min(3, 1, 2)", 1),
        ("max(3, 1, 2)", 3),
        ("not 1 < 2", 0),
        ("not 1 < 2 or 1 < 2", 1),
        ("1 < 2 or 1 < 2 and 2 < 1", 1),
        ("(1 < 2)*3", 3),
        ("9^9^9^9", math.inf),
        ("1e3 + .5 + 1.", 1001.5),
        ("π - pi + e - e", 0),
        ("2³⁺", None),
    ],
)
def test_worked_values(text: str, expected: float | None) -> None:
    if expected is None:
        with pytest.raises(ParseError, match=r"operator is missing|a superscript must be"):
            parse(text)
    else:
        assert float(parse(text)()) == pytest.approx(expected, rel=1e-15)


def test_what_papers_print_is_the_same_function() -> None:
    assert parse("ln(x₁) + x₁·x₂ − sin(x₂)") == parse("ln(x1) + x1*x2 - sin(x2)")
    assert parse("x⁻¹ × √(y) ≤ π²") == parse("x^-1 * sqrt(y) <= pi^2")
    assert parse("eˣ − e⁻ˣ") == parse("e^x - e^(-x)")


def test_the_seed_expression() -> None:
    function = parse("ln(x1) + x1*x2 - sin(x2)")
    assert function.inputs == ("x1", "x2")
    assert function.output_names == ("y",)
    assert float(function(2.0, 5.0)) == 11.652071455223084


def test_inputs_are_in_natural_order_and_declared_ones_among_them() -> None:
    function = parse("x3: [2]\nx10 + x2 + x3[0] + a")
    assert function.inputs == ("a", "x2", "x3", "x10")
    assert function.input_shapes == ((), (), (2,), ())


def test_a_declared_input_stays_though_it_is_not_used() -> None:
    assert parse("x: []; z: [2]; y + 1").inputs == ("x", "y", "z")


@for_each(
    ("text", "names"),
    [
        ("x + 1", ("y",)),
        ("x", ("x",)),
        ("a = x + 1; a", ("a",)),
        ("a = x + 1", ("a",)),
        ("[x + 1, x + 2]", ("y1", "y2")),
        ("a = x + 1; [a, x + 2]", ("a", "y2")),
        ("[x, x]", ("y1", "y2")),
        ("[y2, x + 1]", ("y2", "y2_")),
        ("(x)", ("y",)),
        ("pi", ("y",)),
    ],
)
def test_outputs_have_names(text: str, names: tuple[str, ...]) -> None:
    assert parse(text).output_names == names


@pytest.mark.parametrize(
    "text",
    [
        "a = x*x; b = a + 1; [a, b]",
        "a = x*x\nb = a + 1\n[a, b]\n",
        "# squares\n\na = x*x  # first\r\nb = (a\n + 1)\n\n[\n  a,\n  b\n]",
        "a =\n x*\n x; b = a +\n 1;; [a, b];",
    ],
)
def test_statements_end_at_lines_and_semicolons(text: str) -> None:
    outputs = parse(text)(3.0)
    assert [float(output) for output in outputs] == [9.0, 10.0]


def test_indexing_is_numpys() -> None:
    vector, matrix = np.arange(5.0), np.arange(12.0).reshape(4, 3)
    for key in ("[0]", "[-1]", "[1:]", "[:-1]", "[::2]", "[::-1]", "[3:0:-2]", "[1:][0]"):
        expected = eval(f"v{key}", {"v": vector})
        np.testing.assert_array_equal(value(f"v: [5]\nv{key}*1", v=vector), expected)
    for key in ("[0]", "[1, 2]", "[:, 1]", "[1:3, ::-1]", "[-1][0]", "[::2][1]", "[3, :]"):
        expected = eval(f"W{key}", {"W": matrix})
        np.testing.assert_array_equal(value(f"W: [4, 3]\nW{key}*1", W=matrix), expected)


def test_arrays_broadcast_and_add_up() -> None:
    matrix, vector = np.arange(12.0).reshape(4, 3), np.array([1.0, 2.0, 3.0])
    result = value("W: [4, 3]; x: [3]; sum(W*x + 1)", W=matrix, x=vector)
    assert float(result) == float((matrix * vector + 1).sum())


def test_shapes_that_do_not_fit_are_marked() -> None:
    with pytest.raises(ShapeError) as caught:
        parse("x: [2]; y: [3]; 1 + x*y")
    assert caught.value.span == (20, 23)


def test_every_node_knows_its_place() -> None:
    text = "ln(x1) + (x1·x2)² − sin(-x2)"
    graph = parse(text).graph
    places = {text[slice(*(graph.span(node) or (0, 0)))] for node in range(len(graph))}
    assert places == {
        "x1",
        "x2",
        "²",
        "ln(x1)",
        "x1·x2",
        "(x1·x2)²",
        "-x2",
        "sin(-x2)",
        "ln(x1) + (x1·x2)²",
        text,
    }


def test_one_computation_is_one_node() -> None:
    assert len(parse("sin(x)*sin(x) + sin(x)").graph) == 4


@for_each("spelling", by_spelling)
def test_every_function_of_the_table_parses(spelling: str) -> None:
    row = by_spelling[spelling]
    declared = "x: [3]; " if row.name == "sum" else ""
    graph = parse(f"{declared}{spelling}({', '.join('xyzw'[: row.arity])})").graph
    assert graph.primitive(len(graph) - 1) is row


def test_long_names_are_names() -> None:
    name = "n" * 500
    assert parse(f"{name} + 1").inputs == (name,)


@pytest.mark.parametrize(
    ("text", "point", "expected"),
    [
        ("(" * 100_000 + "x" + ")" * 100_000, 2.0, 2.0),
        ("-" * 100_000 + "x", 2.0, 2.0),
        ("+".join(["x"] * 100_000), 2.0, 200_000.0),
        ("^".join(["x"] * 100_000), 1.0, 1.0),
        ("tanh(" * 100_000 + "x" + ")" * 100_000, 0.0, 0.0),
        ("not " * 100_000 + "x", 1.0, 1.0),
        ("(-" * 50_000 + "x" + ")" * 50_000, 3.0, 3.0),
    ],
    ids=["parentheses", "minus", "plus", "power", "calls", "not", "mixed"],
)
def test_depth_is_only_length(text: str, point: float, expected: float) -> None:
    assert float(parse(text)(point)) == expected
