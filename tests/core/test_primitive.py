"""A row states what differs from the default, and everything that shows it reads the row."""

import pytest

from difflab.core.primitive import Primitive, elementwise, linear, select
from difflab.diagnose.zero_gradients import reason
from difflab.drawing.diagram import diagram
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.language.printers import c, latex, python, text
from difflab.primitives import multiply
from difflab.report.trace.formulas import NotationPrinter, atom

DOUBLED = Primitive(
    name="doubled",
    kernel=lambda xp, x: x + x,
    rule=elementwise(lambda t, y, x: t + t),
    glyph="2x",
    notation="twice",
)


def function_of(row: Primitive) -> Function:
    builder = Builder()
    places = [builder.input(letter) for letter in "abcd"[: row.arity]]
    return Function.build(builder, places, [row(*(Node(builder, k) for k in places)).id], ["y"])


def test_a_function_of_numbers_has_its_name_everywhere() -> None:
    row = Primitive(name="sinus", rule=elementwise(None, None))
    assert (row.arity, row.kernel, row.ufunc, row.names) == (2, "sinus", "sinus", ("sinus",))
    assert row.sympy == row.mpmath == row.glyph == row.notation == "sinus"
    assert row.latex == "\\operatorname{{sinus}}\\left({0}, {1}\\right)"


def test_companions_and_array_rows_have_no_names_of_other_libraries() -> None:
    companion = Primitive(name="slope", rule=elementwise(None), expansion=lambda x: x)
    moving = Primitive(name="moved", rule=linear(lambda t, *_: t), shape=lambda shapes: shapes[0])
    for row in (companion, moving):
        assert row.names == ()
        assert row.sympy is None
        assert row.mpmath is None
        assert row.arity == 1
    assert moving.latex == ""


def test_an_operator_is_no_function_of_the_language() -> None:
    row = Primitive(name="joined", rule=elementwise(None, None), infix="&", glyph="∧")
    assert row.names == ()
    assert row.notation == "{0} ∧ {1}"


def test_printers_pictures_and_traces_read_the_row() -> None:
    function = function_of(DOUBLED)
    assert text(function) == "doubled(a)"
    assert latex(function) == "\\operatorname{doubled}\\left(a\\right)"
    assert "a + a" in c(function)
    assert "a + a" in python(function)
    assert [box.lines for box in diagram(function).boxes] == [("a",), ("2x",), ("y",)]
    assert NotationPrinter().operation(DOUBLED)(atom("v₁")).text == "twice v₁"


@pytest.mark.parametrize(
    ("notation", "shown"),
    [("|{0}|", "|v₁|"), ("√{0}", "√v₁"), ("−{0}", "−v₁"), ("not {0}", "not v₁"), ("f", "f v₁")],
)
def test_a_notation_is_a_sign_or_a_name(notation: str, shown: str) -> None:
    row = Primitive(name="shown", rule=elementwise(None), notation=notation)
    assert NotationPrinter().operation(row)(atom("v₁")).text == shown


def test_a_zero_slope_is_explained_by_the_row() -> None:
    row = Primitive(
        name="first", rule=select(lambda a, b: a > b, None), zero_slope="{0} beats {other}"
    )
    assert reason(row, [1.0, 2.5], 0) == "1 beats 2.5"


def test_the_slope_of_a_product_is_zero_by_a_factor_only() -> None:
    assert reason(multiply, [3.0, 0.0], 0) == "a factor is 0"
    assert "underflows" in reason(multiply, [3.0, 1e-300], 0)
