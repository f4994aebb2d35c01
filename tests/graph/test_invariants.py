"""`Graph.verify` accepts what the passes build and names each broken invariant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import difflab as dl
from difflab.errors import ConsistencyError
from difflab.graph.builder import Builder
from difflab.graph.ir import Graph
from difflab.graph.passes import exact
from difflab.primitives import add, sin
from difflab.report.passes import run

TEXT = "v: [3]; W: [3, 3]; sum(where(W@v > 0, exp(v)*2, 1/7 + x1)) + log(1 + exp(x1*1))"
F = dl.parse(TEXT).graph


def changed(graph: Graph, column: str, node: int, value: int) -> Graph:
    """Return the graph with one entry of a column changed."""
    entries = getattr(graph, column).copy()
    entries[node] = value
    return replace(graph, **{column: entries})


def nodes_of(name: str) -> list[int]:
    """Return the operations of a name."""
    return [k for k in range(len(F)) if (row := F.primitive(k)) is not None and row.name == name]


def test_every_pass_of_the_pipeline_keeps_the_invariants(verified_graphs: list[int]) -> None:
    function = dl.parse(TEXT)
    run(function)
    run(dl.gradient(function))
    run(dl.hessian(dl.parse("max(x, y)*log(x + 1) + where(x < y, x^3, y)")))
    assert len(verified_graphs) > 20


BROKEN: dict[str, Callable[[], Graph]] = {
    "does not precede": lambda: changed(F, "args", int(F.starts[nodes_of("exp")[0]]), len(F) - 1),
    "arguments, not 1": lambda: replace(
        F, primitives=tuple(sin if row is add else row for row in F.primitives)
    ),
    "has the shape": lambda: changed(F, "shape_ids", nodes_of("log")[0], int(F.shape_ids[0])),
    "has a number as argument 0, not a truth value": lambda: changed(
        F, "args", int(F.starts[nodes_of("where")[0]]), nodes_of("exp")[0]
    ),
    "shape is not in the table": lambda: changed(F, "shape_ids", 0, 99),
    "parameters are not in the table": lambda: changed(F, "param_ids", 0, -1),
    "not in the table": lambda: changed(F, "opcode", len(F) - 1, 999),
    "columns differ in length": lambda: replace(F, spans=F.spans[1:]),
    "arguments are not those": lambda: replace(F, args=F.args[1:]),
    "two inputs have one name": lambda: replace(F, names=dict.fromkeys(F.names, "x")),
    "inputs are not those": lambda: replace(F, names={}),
    "constants are not those": lambda: replace(F, constants={}),
    "label": lambda: replace(F, labels={len(F): "a"}),
}


@pytest.mark.parametrize(
    "message", [message for message in BROKEN if message != "combines the shapes"]
)
def test_a_broken_invariant_is_named(message: str) -> None:
    F.verify()
    with pytest.raises(ConsistencyError, match=message):
        BROKEN[message]().verify()


def test_a_broadcast_that_is_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Builder, "spread", lambda self, node, shape: node)
    with pytest.raises(ConsistencyError, match="combines the shapes"):
        dl.gradient(dl.parse("v: [3]; W: [2, 3]; sum(W*v)"))


def test_a_shape_that_a_pass_forgets_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    function = dl.parse("v: [3]; sin(v)*v")
    append = Builder._append

    def scalar(self, opcode, args, shape, span):  # type: ignore[no-untyped-def]
        return append(self, opcode, args, shape if opcode < 2 else 0, span)

    monkeypatch.setattr(Builder, "_append", scalar)
    with pytest.raises(ConsistencyError, match=r"has the shape \(\), not \(3,\)"):
        exact.common(function)


def test_a_truth_value_that_a_pass_takes_for_a_number_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Builder, "_as_numbers", lambda self, primitive, args: args)
    with pytest.raises(ConsistencyError, match="has a truth value as argument"):
        dl.parse("(x > 0)*x")
