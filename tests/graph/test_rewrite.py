"""`rewrite`: what a copy of a graph keeps, and what a rule changes."""

from __future__ import annotations

import numpy as np

import difflab as dl
from difflab.core.primitive import Params, Primitive
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.rewrite import rewrite
from difflab.graph.rewritten import rewritten, selected
from difflab.primitives import add, cos, exp, multiply, sin

TEXT = "h = sin(x) + y; exp(h) * 2"


def _cosines(
    builder: Builder, node: int, row: Primitive, args: tuple[int, ...], params: Params
) -> int | None:
    return builder.emit(cos, args) if row is sin else None


def test_without_a_rule_a_copy_is_equal_and_keeps_names_places_and_structure() -> None:
    f = dl.parse(TEXT)
    same = rewritten(f, None)
    assert same == f
    assert same.graph.labels == f.graph.labels
    assert [same.graph.span(n) for n in range(len(same.graph))] == [
        f.graph.span(n) for n in range(len(f.graph))
    ]
    traced = dl.grad(dl.parse("x*y"), argnums=(0, 1))
    assert rewritten(traced, None).structure == traced.structure


def test_a_rule_replaces_what_it_returns_and_copies_the_rest() -> None:
    changed = rewritten(dl.parse(TEXT), _cosines)
    assert changed == dl.parse(TEXT.replace("sin", "cos"))
    (total,) = [n for n, name in changed.graph.labels.items() if name == "h"]
    assert changed.graph.primitive(total) is add
    span = changed.graph.span(changed.graph.arguments(total)[0])
    assert span is not None
    assert TEXT[slice(*span)] == "sin(x)"


def test_known_nodes_stand_for_inputs_and_only_chosen_nodes_are_copied() -> None:
    f = dl.parse(TEXT)
    builder = Builder()
    a = builder.input("a")
    (h,) = [n for n, name in f.graph.labels.items() if name == "h"]
    later = [n for n in range(len(f.graph)) if n > h or n in f.graph.constants]
    copied = rewrite(f.graph, builder, known={h: a}, nodes=later)
    assert [n for n in range(len(f.graph)) if copied[n] < 0] == [
        n for n in range(len(f.graph)) if n not in later and n != h
    ]
    part = Function.build(builder, [a], [copied[f.outputs[0]]], ["y"])
    assert part.inputs == ("a",)
    assert part == dl.parse("y = exp(a) * 2; y")
    assert [part.graph.primitive(n) for n in range(len(part.graph))][-1] is multiply
    assert exp in part.graph.primitives


def test_a_rule_is_given_other_operands_where_that_is_asked_for() -> None:
    f = dl.parse("exp(x) + y")
    x, y = f.input_nodes
    given: list[tuple[int, ...]] = []

    def rule(
        builder: Builder, node: int, row: Primitive, args: tuple[int, ...], params: Params
    ) -> None:
        given.append(args)

    rewrite(f.graph, Builder(), rule, operands={f.outputs[0]: [y, x]}, nodes=[x, y, f.outputs[0]])
    assert given == [(1, 0)]


def test_the_place_of_the_builder_stays_and_stands_for_unknown_places() -> None:
    builder = Builder(dl.parse("x + 1").graph.source)
    builder.span = 5
    other = dl.parse("sin(x)")
    copied = rewrite(other.graph, builder)
    assert builder.span == 5
    assert builder.spans[copied[other.outputs[0]]] == 5


def test_a_number_in_place_of_an_array_is_an_array_again() -> None:
    f = dl.parse("x: [3]; y = x*2; sum(y)")

    def zeros(
        builder: Builder, node: int, row: Primitive, args: tuple[int, ...], params: Params
    ) -> int | None:
        return builder.constant(7) if row is multiply else None

    assert float(rewritten(f, zeros)(np.ones(3))) == 21.0


def test_a_hundred_thousand_operations_in_a_chain_are_no_recursion() -> None:
    f = dl.parse("sin(" * 100_000 + "x" + ")" * 100_000)
    assert len(rewritten(f, _cosines).graph) == len(f.graph)


def test_other_outputs_are_kept_with_what_they_need() -> None:
    f = dl.parse(TEXT)
    (h,) = [n for n, name in f.graph.labels.items() if name == "h"]
    part = selected(f, [h], ["h"])
    assert part == dl.parse("h = sin(x) + y; h")
    assert len(part.graph) == 4
