"""The boxes and arrows of a graph of moderate size: one box per operation or composition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any

from difflab.core.primitive import Primitive
from difflab.core.wording import counted
from difflab.drawing.compositions import Composition, opens
from difflab.drawing.model import BoxKind, Diagram, DiagramBox, DiagramEdge, one_line
from difflab.drawing.order import (
    constant_text,
    key_text,
    output_labels,
    short,
    subscript,
    trace_names,
)
from difflab.graph.described import length
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, FIRST_ROW, INPUT, Graph

LISTED = 12
"""Most operations of a composition that its tooltip names."""


class Boxes:
    """Every node that the outputs need as a box, in evaluation order.

    A constant is drawn at each operation that uses it: the arrows of a shared box would cross the
    whole picture. Constants inside a composition are not drawn.

    Parameters
    ----------
    function : Function
    order : sequence of int
        Its needed nodes.
    compositions : sequence of Composition
        The operations that share a box.
    values : sequence, optional
        The value of every node.

    Attributes
    ----------
    names : dict of int to str
        The names of nodes.
    carriers : dict of int to int
        The node whose value leaves a box, by the box's position.
    """

    def __init__(
        self,
        function: Function,
        order: Sequence[int],
        compositions: Sequence[Composition],
        values: Sequence[Any] | None,
    ) -> None:
        self.function, self.graph, self.values = function, function.graph, values
        self.order = order
        self.names = trace_names(function, order)
        self.carriers: dict[int, int] = {}
        self.composition = {each.nodes[0]: each for each in compositions}
        self.owner = {node: each.nodes[0] for each in compositions for node in each.nodes}

    def picture(self, heading: str, subtitle: str) -> Diagram:
        """Return the picture under a heading."""
        graph = self.graph
        uses = self._uses()
        literals = dict.fromkeys((a, user) for a, user, _ in uses if graph.opcode[a] == CONSTANT)
        inputs = [node for node in self.order if graph.opcode[node] == INPUT]
        ends = [-1 - position for position in range(len(self.function.outputs))]
        keys: list[object] = [*inputs, *literals, *self._operations(uses), *ends]
        number = {key: box for box, key in enumerate(keys)}
        boxes = [self._drawn(key) for key in keys]
        edges = [
            DiagramEdge(number[node if node in number else (node, user)], number[user], label)
            for node, user, label in uses
        ]
        for box, key in enumerate(keys):
            leaving = self._leaving(key) if isinstance(key, int) and key >= 0 else []
            if len(leaving) == 1:
                self.carriers[box] = leaving[0]
        late = tuple(number[key] for key in literals)
        return Diagram(heading, subtitle, tuple(boxes), tuple(edges), late)

    def _uses(self) -> list[tuple[int, int, str]]:
        """Return (argument, user, label) of every arrow; compositions go by their first node."""
        graph, owner = self.graph, self.owner
        uses: list[tuple[int, int, str]] = []
        joined: dict[tuple[int, int, str], None] = {}
        for node in self.order:
            labels = argument_labels(graph, node)
            for argument, label in zip(graph.arguments(node), labels, strict=True):
                source, user = owner.get(argument, argument), owner.get(node, node)
                if user not in self.composition:
                    uses.append((source, user, label))
                elif source != user and graph.opcode[source] != CONSTANT:
                    joined[source, user, ""] = None
        ends = [
            (owner.get(node, node), -1 - position, "")
            for position, node in enumerate(self.function.outputs)
        ]
        return [*uses, *joined, *ends]

    def _operations(self, uses: Sequence[tuple[int, int, str]]) -> list[int]:
        """Return operations and compositions in topological order."""
        rank = {node: number for number, node in enumerate(self.order)}
        users: dict[int, list[int]] = {}
        waiting: Counter[int] = Counter()
        for source, user, _ in uses:
            if user >= 0 and self.graph.opcode[source] >= FIRST_ROW:
                users.setdefault(source, []).append(user)
                waiting[user] += 1
        nodes = {self.owner.get(node, node) for node in self.order}
        ready = sorted(
            (rank[node], node)
            for node in nodes
            if self.graph.opcode[node] >= FIRST_ROW and not waiting[node]
        )
        operations = []
        while ready:
            _, node = heappop(ready)
            operations.append(node)
            for user in users.get(node, ()):
                waiting[user] -= 1
                if not waiting[user]:
                    heappush(ready, (rank[user], user))
        return operations

    def _leaving(self, node: int) -> list[int]:
        """Return the nodes of a box whose values are used outside of it."""
        if node not in self.composition:
            return [node]
        inside = set(self.composition[node].nodes)
        used = {
            argument
            for user in self.order
            if user not in inside
            for argument in self.graph.arguments(user)
        }
        return sorted(inside & (used | set(self.function.outputs)))

    def _drawn(self, key: object) -> DiagramBox:
        """Return the box of a node, of a constant at its use, or of an output."""
        node = key[0] if isinstance(key, tuple) else key
        assert isinstance(node, int)
        if node < 0:
            return self._output(-1 - node)
        if node in self.composition:
            return self._composition(self.composition[node])
        return replace(_box(self.graph, node, self.names, self.values), nodes=(node,))

    def _composition(self, composition: Composition) -> DiagramBox:
        """Return the box of a composition, captioned by its results."""
        leaving = self._leaving(composition.nodes[0])
        caption = ", ".join(subscript(self.names[node]) for node in leaving)
        if self.values is not None and len(leaving) == 1 and self.values[leaving[0]] is not None:
            caption = f"{caption} = {short(self.values[leaving[0]])}"
        rows = [self.graph.primitive(node) for node in composition.nodes[:LISTED]]
        listed = ", ".join("" if row is None else row.name for row in rows)
        more = ", …" * (len(composition.nodes) > LISTED)
        lines = (one_line(composition.name, 24), counted(len(composition.nodes), "operation"))
        tip = one_line(f"{composition.name}: {listed}{more}")
        nodes = tuple(composition.nodes)
        return DiagramBox(BoxKind.SUMMARY, lines, one_line(caption, 40), tip, nodes=nodes)

    def _output(self, position: int) -> DiagramBox:
        """Return the box of an output."""
        name, node = output_labels(self.function)[position], self.function.outputs[position]
        has_value = self.values is not None and self.values[node] is not None
        caption = f"= {short(self.values[node])}" if self.values is not None and has_value else ""
        value = subscript(self.names[node])
        tip = f"output {one_line(name)}" + (f" = {value}" if value != name else "")
        return DiagramBox(BoxKind.OUTPUT, (one_line(name, 24),), caption, tip)


def _box(
    graph: Graph, node: int, names: dict[int, str], values: Sequence[Any] | None
) -> DiagramBox:
    """Return the box of one node; its caption is the node's name in the evaluation trace."""
    code = int(graph.opcode[node])
    name = one_line(subscript(names[node]), 24)
    if code == CONSTANT:
        return DiagramBox(
            BoxKind.CONSTANT, (names[node],), tip=f"constant {constant_text(graph, node)}"
        )
    value = None if values is None else values[node]
    caption = name if value is None else f"{name} = {short(value)}"
    if code == INPUT:
        label = one_line(graph.input_name(node), 24)
        return DiagramBox(BoxKind.INPUT, (label,), caption, f"input {label}: {caption}")
    primitive = graph.primitive(node)
    arguments = ", ".join(one_line(subscript(names[a]), 24) for a in graph.arguments(node)[:8])
    title = "" if primitive is None else primitive.name
    lines: tuple[str, ...] = (glyph(primitive, graph.params(node)),)
    kind = BoxKind.MOVE if primitive is not None and primitive.structural else BoxKind.OPERATION
    if primitive is not None and opens(primitive):
        kind = BoxKind.COARSE
        lines += tuple(filter(None, [length(primitive.holds)]))
    return DiagramBox(kind, lines, caption, f"{name} = {title}({arguments})")


def glyph(primitive: Primitive | None, params: dict[str, Any] | None = None) -> str:
    """Return the sign that stands for an operation in a picture."""
    if primitive is None:
        return "?"
    if primitive.name == "index" and params:
        return one_line(key_text(params["key"]), 16)
    return primitive.glyph


def argument_labels(graph: Graph, node: int) -> tuple[str, ...]:
    """Return a mark for every argument where their order matters, else empty texts."""
    primitive, count = graph.primitive(node), len(graph.arguments(node))
    if primitive is None or count < 2 or primitive.commutative:
        return ("",) * count
    return primitive.roles or tuple(str(position + 1) for position in range(count))
