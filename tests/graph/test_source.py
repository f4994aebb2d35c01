"""Where nodes stand: a place in the text, or a line of the Python code that was traced."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

import difflab as dl
from difflab.core.place import SourceLocation
from difflab.diagnose.point_check import check_domain
from difflab.errors import DomainError
from difflab.graph.repetition.roll import rolled
from difflab.graph.source import NOWHERE, SourceMap, packed


def model(x, y):
    product = x * y
    return product + np.log(x - 3)


LINE = inspect.getsourcelines(model)[1] + 2
WHERE = f"test_source.py, line {LINE}"


def _places(function: dl.Function) -> set[SourceLocation]:
    graph = function.graph
    return {graph.place(node) for node in range(len(graph))}


def test_a_traced_node_stands_where_it_was_written() -> None:
    f = dl.trace(model, 1.0, 2.0)
    graph = f.graph
    found = {
        row.name: graph.place(node)
        for node in range(len(graph))
        if (row := graph.primitive(node)) is not None
    }
    assert found["multiply"].part == "x * y"
    assert found["log"].part == "np.log(x - 3)"
    assert found["subtract"].part == "x - 3"
    assert str(found["log"]) == WHERE
    assert all(graph.span(node) is None for node in range(len(graph)))  # of a text it has none


def test_a_loop_s_nodes_share_their_places() -> None:
    def repeated(x):
        y = x
        for _ in range(500):
            y = np.sin(y) * 1.5 + x
        return y

    graph = dl.trace(repeated, 1.0).graph
    assert len(graph) > 1500
    assert set(np.unique(graph.spans)) == {-4, -3, -2, NOWHERE}


def test_the_first_place_stays_where_a_computation_comes_again() -> None:
    def twice(x):
        a = np.sin(x)
        b = np.sin(x)
        return a * b

    graph = dl.trace(twice, 1.0).graph
    line = inspect.getsourcelines(twice)[1]
    (sine,) = (n for n in range(len(graph)) if getattr(graph.primitive(n), "name", "") == "sin")
    assert str(graph.place(sine)).endswith(f"line {line + 1}")


def test_places_pass_through_derivatives_rolling_and_calls() -> None:
    f = dl.trace(model, 1.0, 2.0)
    wanted = {p for p in _places(f) if p.where}
    assert len(wanted) == 4
    inner = dl.trace(lambda a, b: 2.0 * f(a, b), 1.0, 2.0)
    assert wanted < _places(inner)
    for made in (dl.gradient(f), dl.hessian(inner), rolled(f)):
        assert _places(made) & wanted
    explained = dl.explain(dl.gradient(inner), [2.0, 1.0])
    assert explained.first.site.part == "np.log(x - 3)"


def test_a_parsed_function_called_in_traced_code_stands_at_its_call() -> None:
    """Its own places lie in another text."""
    f = dl.parse("log(u) + v")
    g = dl.trace(lambda x, y: np.cos(x) + f(x, y), 1.0, 1.0)
    assert {p.part for p in _places(g)} == {"", "f(x, y)", "np.cos(x)", "np.cos(x) + f(x, y)"}
    assert "f(x, y)" in dl.explain(g, [-1.0, 1.0]).first.render()


def test_transforms_of_callables_name_the_line() -> None:
    seen = []

    def hook(x):
        y = np.sqrt(x)
        seen.append(y.builder.source.place(y.builder.spans[y.id]))
        return y

    assert dl.grad(hook)(4.0) == 0.25
    assert [place.part for place in seen] == ["np.sqrt(x)"]


def test_derivatives_of_equal_graphs_keep_their_own_lines() -> None:
    def first(x):
        return np.sqrt(x)

    def second(x):
        return np.sqrt(x)

    for function in (first, second):
        traced = dl.trace(lambda x, f=function: dl.grad(f)(x), 1.0)
        line = inspect.getsourcelines(function)[1] + 1
        assert any(place.where.endswith(f"line {line}") for place in _places(traced))


def test_errors_and_rewrites_name_the_line() -> None:
    f = dl.trace(model, 1.0, 2.0)
    with pytest.raises(DomainError, match=f"log is undefined.*{WHERE}") as caught:
        check_domain(f, [1.0, 2.0])
    assert caught.value.text is not None
    assert caught.value.text[slice(*caught.value.span)] == "np.log(x - 3)"
    assert WHERE in str(dl.explain(f, [2.0, 1.0]))
    soft = dl.trace(lambda x: np.log(1 + np.exp(x)), 1.0)
    (rewrite,) = dl.stabilise(soft).rewrites
    assert rewrite.where.startswith("test_source.py, line ")
    assert rewrite.where in str(rewrite)
    assert rewrite.to_dict()["where"] == rewrite.where


def test_places_outlive_the_code_they_were_taken_in() -> None:
    f = pickle.loads(pickle.dumps(dl.trace(model, 1.0, 2.0)))
    assert str(dl.explain(f, [2.0, 1.0]).first.site) == WHERE
    again = dl.trace(lambda a, b: f(a, b), 1.0, 1.0)
    assert str(dl.explain(again, [2.0, 1.0]).first.site) == WHERE


def test_code_without_a_source_has_no_place() -> None:
    scope = {"np": np, "__name__": "typed"}
    exec("def f(x):\n    return np.log(x)", scope)
    assert dl.explain(dl.trace(scope["f"], 1.0), [-1.0]).first.site == SourceLocation()


def test_a_source_keeps_what_it_can_of_another() -> None:
    text = SourceMap("1 + log(x)")
    assert str(text.place(packed((4, 10)))) == "column 5"
    assert text.place(NOWHERE) == SourceLocation()
    other = SourceMap()
    here = other.here()
    assert text.adopted(text, [5], 0) == [5]
    (kept, lost) = text.adopted(other, [here, packed((1, 2))], NOWHERE)
    assert text.place(kept) == other.place(here)
    assert lost == NOWHERE
    assert text.adopted(other, [here], NOWHERE) == [kept]
