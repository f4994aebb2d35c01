"""Terms that are emitted from a template are those that the parser would have read."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import DifflabError
from difflab.graph.function import Function
from difflab.language import alike
from difflab.language.alike import AlikeTerms

TERMS = 60
FORMS = (
    "sin(x[{i}]*x[{j}])*exp(-x[{i}]^2)/(1 + x[{j}]^2)",
    "100*(x[{j}] - x[{i}]^2)^2",
    "(1 - y[{i}])^2",
    "x[{i}]*c/pi",
    "-s*y[{j}]",
    "x[{i}]²·y[{i}]",
    "2e-1*np.sin(x[{i}])",
    "(x[{i}] + (y[{j}] - 3)\n)*0.5",
    "max(x[{i}], y[{i}])",
    "where(x[{i}] > 0, s, y[{j}])",
    "e*x[{i}]",
    "sum(x)*x[{i}]",
    "[x[{i}], 2][0]",
    "A[{i}, 0]*x[{j}]",
    "x[00{i}]",
    "element1*x[{i}]",
)
SIGNS = (" + ", " - ", "+", "-", " +  ", " − ")


def program(seed: int) -> str:
    """Return a sum of some forms in turn, whose elements are neighbours or drawn."""
    draw = random.Random(seed)
    forms = draw.sample(FORMS, draw.randint(1, 3))
    sign = draw.choice(SIGNS)
    near = draw.random() < 0.5
    terms = []
    for i in range(TERMS):
        for form in forms:
            first = i if near else draw.randrange(TERMS)
            terms.append(form.format(i=first, j=(first + 1) % TERMS))
    if draw.random() < 0.2:
        terms.insert(draw.randrange(TERMS, len(terms) + 1), "s^2*x[1]")
    head = f"x: [{TERMS}]\ny: [{TERMS}]\nA: [{TERMS}, 2]\nc = 2*x[3]\n"
    whole = sign.join(terms)
    return head + draw.choice((whole, f"f = {whole}\n[f, c]", f"{whole} > 0", f"2*({whole})"))


def parsed(text: str, monkeypatch: pytest.MonkeyPatch, *, templates: bool) -> Any:
    """Return the function of a text, or the error and its place."""
    with monkeypatch.context() as patched:
        if not templates:
            patched.setattr(AlikeTerms, "follow", lambda self, start, end: end)
        try:
            return dl.parse(text)
        except DifflabError as error:
            return str(error), error.span


def assert_same(found: Function, expected: Function) -> None:
    """Assert that two functions have the same graphs, node by node."""
    assert (found.inputs, found.outputs) == (expected.inputs, expected.outputs)
    one, other = found.graph, expected.graph
    for column in ("opcode", "starts", "args", "param_ids", "shape_ids", "spans"):
        np.testing.assert_array_equal(getattr(one, column), getattr(other, column), column)
    for table in ("primitives", "param_table", "constants", "names", "labels"):
        assert getattr(one, table) == getattr(other, table)


@pytest.mark.parametrize("seed", range(120))
def test_the_graph_is_that_of_the_parser(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = program(seed)
    found = parsed(text, monkeypatch, templates=True)
    expected = parsed(text, monkeypatch, templates=False)
    if isinstance(expected, Function):
        assert_same(found, expected)
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x[40]", "x[60]"),  # outside of the vector
        ("x[40]", "x[-1]"),
        ("x[40]", "x[4٠]"),
        ("x[40]", "x[40"),
        ("x[40]", "z[40]"),
        ("sin(x[40])", "sin(x[40]))"),
        ("sin(x[40])", "sin x[40]"),
        ("sin(x[40]) + ", "sin(x[40]) + + "),
        ("sin(x[40]) + ", "sin(x[40]) ++* "),
        ("sin(x[40]) + ", "sin(x[40]) "),
        ("sin(x[40]) + ", "sin(x[40])\n + "),
        ("sin(x[40]) + ", "sin(x[40]) # half\n"),
        ("sin(x[40]) + ", "sin(x[40])^2 + "),
        ("sin(x[40]) + ", "sin(x[40])! + "),
    ],
)
def test_errors_are_those_of_the_parser(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = "x: [60]\n" + " + ".join(f"sin(x[{i}])" for i in range(60))
    assert old in whole
    text = whole.replace(old, new)
    found = parsed(text, monkeypatch, templates=True)
    expected = parsed(text, monkeypatch, templates=False)
    if isinstance(expected, Function):
        assert_same(found, expected)
    else:
        assert found == expected


def test_most_terms_are_emitted_from_a_template(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    whole = AlikeTerms.follow
    monkeypatch.setattr(AlikeTerms, "follow", lambda *args: read.append(whole(*args)) or read[-1])
    terms = " + ".join(f"{i % 3}*x[{i}]^2 - cos(x[{999 - i}])" for i in range(1000))
    assert len(dl.parse(f"x: [1000]\n{terms}").graph) > 4000
    assert len(read) < 20


def test_forms_are_not_remembered_without_end() -> None:
    terms = " + ".join(f"x[{i}]*{i}" for i in range(1000))
    parser = dl.language.parser.Parser(f"x: [1000]\n{terms}")
    parser.read()
    assert len(parser.alike.seen) <= alike._FORMS


@pytest.mark.parametrize(("terms", "made"), [(4, False), (6, True)])
def test_a_template_is_made_where_four_more_terms_begin_alike(terms: int, made: bool) -> None:
    program = " + ".join(f"sin(x[{i}])*x[{i + 1}]" for i in range(terms))
    parser = dl.language.parser.Parser(f"x: [20]\n{program}")
    parser.read()
    assert parser.alike is not None
    assert any(parser.alike.templates.values()) == made


def test_templates_are_kept_for_programs_of_the_same_variables() -> None:
    texts = [
        f"x: [{size}]\n" + " + ".join(f"cos(e*x[{i}])/x[{i + 1}]" for i in range(size - 1))
        for size in (9, 8)
    ]
    _, second = map(dl.parse, texts)
    kept = alike._template.cache_info()
    assert dl.parse(texts[1]) == second
    assert alike._template.cache_info().misses == kept.misses
    point = [1.0] * 8
    assert second(point) == pytest.approx(7 * np.cos(np.e), rel=1e-15)
    given = dl.parse(texts[1], variables=["e"])
    assert given.inputs == ("e", "x")
    assert given(0.5, point) == pytest.approx(7 * np.cos(0.5), rel=1e-15)
