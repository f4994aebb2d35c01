"""Large functions of numbers are printed row by row, with the text that node by node gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.language import parse, printers
from difflab.language.printers import bulk, view
from difflab.language.printers.c import CPrinter
from difflab.language.printers.fortran import _has_constant_operations
from difflab.primitives import (
    absolute,
    add,
    divide,
    exp,
    less,
    maximum,
    multiply,
    negative,
    power,
    sigmoid,
    subtract,
    where,
)
from tests.differential.formulas import Formula, formulas
from tests.language.printers.test_languages import PRINTERS

ROWS = (add, subtract, multiply, divide, power, negative, exp, absolute, sigmoid, maximum)
EVERY = [*PRINTERS, printers.c, printers.javascript, printers.python]
PRINTED = pytest.mark.parametrize("printer", EVERY, ids=lambda printer: printer.__name__)


def printed(printer: Any, function: Function, least: int, patch: pytest.MonkeyPatch) -> str | None:
    patch.setattr(bulk, "LEAST", least)
    try:
        return str(printer(function))
    except UnsupportedError:
        return None


def drawn(size: int) -> Function:
    """Return a function of random operations on near and far values, constants and truth values."""
    rng, builder = np.random.default_rng(size), Builder()
    values = [builder.input(name) for name in ("x", "y", "t3", "θ")]
    values += [builder.constant(value) for value in (2.0, -0.5, np.inf)]
    inputs = values[:4]
    for number in range(size):
        near, far = (values[-1 - int(rng.integers(min(len(values), n)))] for n in (4, 200))
        if number % 17 == 0:
            values.append(builder.emit(where, [builder.emit(less, [near, far]), near, far]))
            continue
        row = ROWS[int(rng.integers(len(ROWS)))]
        values.append(builder.emit(row, [near, far][: row.arity]))
    return Function.build(builder, inputs, values[-3:], ["a", "b", "c"])


def of_elements(size: int) -> Function:
    """Return a function of random operations on elements of an array, and on a number."""
    rng = np.random.default_rng(size)
    pairs = rng.integers(50, size=(size, 2)).tolist()

    def function(x: Any, y: Any) -> Any:
        values = [x[0, 1], x[2, 0], y, x[1, 1]]
        for number, (a, b) in enumerate(pairs):
            near, far = values[-1 - a % len(values)], values[-1 - b % len(values)]
            values.append(near * far if number % 2 else near - np.sin(far))
        return sum(values[-3:])

    return dl.trace(function, np.ones((3, 2)), 1.0)


def put_together(size: int) -> Function:
    """Return numbers and the array that is made of them."""
    return dl.value_and_gradient(of_elements(size // 2))


def balanced(depth: int) -> Function:
    """Return a tree of sums whose leaves differ."""
    terms = [f"sin(x*{number}.5)" for number in range(2**depth)]
    while len(terms) > 1:
        terms = [f"({a} + {b})" for a, b in zip(terms[::2], terms[1::2], strict=True)]
    return parse(terms[0])


@PRINTED
def test_the_text_is_that_of_one_node_after_the_other(
    printer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions = [drawn(400), dl.gradient(parse("x*y - (x - (y - 1))/-(x*y)^2^y + sin(exp(x))^3"))]
    functions.append(parse("energy = x*y; t1 = sin(energy) + energy; t1*(t1 - (x > y))"))
    functions += [parse("+".join(["x", "y*-2"] * 100)), balanced(6)]
    functions += [of_elements(300), put_together(120)]
    for function in functions:
        one_by_one = printed(printer, function, 10**9, monkeypatch)
        assert one_by_one
        assert printed(printer, function, 0, monkeypatch) == one_by_one


@settings(max_examples=60, deadline=None)
@given(formulas())
def test_the_texts_of_random_formulas_agree(formula: Formula) -> None:
    function = dl.value_and_gradient(parse(formula.text))
    with pytest.MonkeyPatch.context() as patch:
        for printer in EVERY:
            one_by_one = printed(printer, function, 10**9, patch)
            assert printed(printer, function, 0, patch) == one_by_one


@pytest.mark.parametrize("made", [drawn, of_elements, put_together])
def test_a_large_function_is_printed_row_by_row(
    made: Callable[[int], Function], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No node is described for itself, but one of each row in each round."""
    described: list[int] = []
    describe = CPrinter.describe

    def counted(self: CPrinter, node: int) -> Any:
        described.append(node)
        return describe(self, node)

    monkeypatch.setattr(CPrinter, "describe", counted)
    assert printers.c(made(20_000)).count("\n") > 5_000
    assert len(described) < 2_000


def test_a_list_of_results_leaves_numbers_to_be_printed_row_by_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The search for arrays without a name looks at the list only."""
    function = dl.value_and_gradient(balanced(8))
    looked_at: list[int] = []
    inside = view._inside

    def counted(printer: Any, node: int, *rest: Any, **options: Any) -> Any:
        looked_at.append(node)
        return inside(printer, node, *rest, **options)

    monkeypatch.setattr(view, "_inside", counted)
    assert printers.c(function).count("\n") > 100
    assert 0 < len(looked_at) < 10


def test_fortran_computes_operations_on_constants_only() -> None:
    """`rewritten` copies every node, so a function without such operations is not copied."""
    assert _has_constant_operations(parse("x*2 + sqrt(3)*x").graph)
    assert not _has_constant_operations(parse("x*2 + sin(x) + pi").graph)
    assert "1.7320508075688772" in printers.fortran(parse("x*2 + sqrt(3)*x"))
