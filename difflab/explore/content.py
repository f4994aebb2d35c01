"""The content of a page: the graph, its operations and its picture, as JSON and as JavaScript."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive
from difflab.core.strict_json import strict
from difflab.drawing import BoxKind, Diagram, diagram
from difflab.drawing.boxes import argument_labels, glyph
from difflab.drawing.layout import XY, Arrow, Placement, place
from difflab.drawing.model import DiagramBox, one_line
from difflab.drawing.order import evaluation_order, output_labels, trace_names
from difflab.drawing.scene import text_width
from difflab.drawing.svg import path
from difflab.explore.scalars import scalar_function, unrolled
from difflab.graph.builder import Builder
from difflab.graph.evaluate import ArrayInterpreter
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, FIRST_ROW, Graph
from difflab.graph.node import Node
from difflab.graph.source import NOWHERE
from difflab.language.printers.javascript import JavaScriptCode, code
from difflab.primitives import absolute, where
from difflab.report.summary import heading
from difflab.report.trace.formulas import IsolatedOperation, OperationFormula, Rules, operation_at

_SLOT = re.compile("\ue000(\\w+)\ue001")
ARGUMENTS = "t, y, a0, a1, a2"
"""The parameters of every function of the script; an operation on numbers has at most three."""


class Operations:
    """Collects distinct operations, as the records and the script of a page.

    Attributes
    ----------
    records : list of dict
        For each operation its texts: ``name``, ``glyph``, ``formula``, ``code`` and, for every
        argument, ``slopes``.
    """

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.rules = Rules(ArrayInterpreter())
        self._numbers: dict[tuple[IsolatedOperation, tuple[bool, ...]], int] = {}
        self._functions: list[str] = []
        self._members: set[str] = set()
        self._definitions: dict[str, str] = {}

    def number(self, graph: Graph, node: int) -> int:
        """Return the number of a node's operation."""
        moves = tuple(graph.opcode[argument] != CONSTANT for argument in graph.arguments(node))
        key = (operation_at(graph, node), moves)
        if key not in self._numbers:
            self._numbers[key] = len(self.records)
            self._add(*key, argument_labels(graph, node))
        return self._numbers[key]

    def script(self) -> str:
        """Return the script that defines ``OPERATIONS``: functions for every operation."""
        members = f"const {{ {', '.join(sorted(self._members))} }} = Math;" * bool(self._members)
        functions = ",\n".join(self._functions)
        return "\n".join(
            [members, *self._definitions.values(), f"const OPERATIONS = [\n{functions}\n];"]
        )

    def _add(
        self, operation: IsolatedOperation, moves: Sequence[bool], labels: Sequence[str]
    ) -> None:
        row, count = operation.primitive, len(operation.arguments)
        value = self.rules.result(operation)
        script, called = self._written(value)
        slopes, texts, conditions = [], [], []
        for position, moving in enumerate(moves):
            slope = self.rules.cotangent(operation, position) if moving else None
            condition = self.rules.condition(operation, position)
            parts = ("null", None) if slope is None else self._written(slope)
            slopes.append(parts[0])
            texts.append(None if slope is None else [_text(slope), parts[1]])
            conditions.append("null" if condition is None else self._written(condition)[0])
        kink = self._function(_kinks(row, count))[0] if row.kinks is not None else "null"
        self._functions.append(
            f"{{ value: {script}, slopes: [{', '.join(slopes)}], taken: [{', '.join(conditions)}], "
            f"kink: {kink} }}"
        )
        self.records.append(
            {
                "name": row.name,
                "glyph": glyph(row),
                "labels": list(labels),
                "formula": _text(value),
                "code": called,
                "slopes": texts,
                "needs": row.defined,
                "kink": row.convention if row.kinks is not None else "",
                "branch": row is where,
            }
        )

    def _written(self, formula: OperationFormula) -> tuple[str, str]:
        """Return a formula as a function of the script, and as an expression to show."""
        graph = formula.graph
        nodes = sorted(formula.slots)
        function = Function(graph, tuple(nodes), (formula.output,), ("value",))
        script, shown = self._function(function)
        return script, shown or _SLOT.sub(r"\1", formula.template)

    def _function(self, function: Function) -> tuple[str, str]:
        """Return a function of the script, and its expression: empty where it has statements."""
        script: JavaScriptCode = code(function)
        self._members |= script.members
        self._definitions |= script.definitions
        (result,) = script.results
        if not script.lines:
            return f"({ARGUMENTS}) => {result}", result
        body = "\n".join([*script.lines, f"    return {result};"])
        return f"({ARGUMENTS}) => {{\n{body}\n}}", ""


def _text(formula: OperationFormula) -> str:
    """Return the template of a formula, with slots in braces."""
    return _SLOT.sub(r"{\1}", formula.template)


def _kinks(row: Primitive, count: int) -> Function:
    """Return the distance from a kink as a function of the arguments."""
    builder = Builder(simplify=True)
    nodes = [builder.input(f"a{position}") for position in range(count)]
    assert row.kinks is not None
    distance = absolute(row.kinks(*(Node(builder, node) for node in nodes)))
    return Function.build(builder, nodes, [distance.id], ["value"])


LABEL, SMALL = 15.0, 12.0
NUMBER = " = −0.95892"
"""The longest number in a box, but for those with an exponent of three digits."""
WIDEST = 1500.0
"""A picture wider than this runs downwards."""


def picture(
    function: Function, index: Mapping[int, int], names: Mapping[int, str]
) -> dict[str, Any]:
    """Return the boxes, arrows and size of the graph of a function of scalars.

    Parameters
    ----------
    function : Function
    index : mapping of int to int
        The number of each node on the page.
    names : mapping of int to str
        The name of each node.

    Examples
    --------
    >>> import difflab as dl
    >>> drawn = picture(dl.parse("x*x"), {0: 0, 1: 1}, {0: "x", 1: "v1"})
    >>> [box["lines"] for box in drawn["boxes"]], [arrow["place"] for arrow in drawn["arrows"]]
    ([['x'], ['×'], ['y']], [0, 1, None])
    """
    drawn = diagram(function, title="")
    sizes = [_size(box, names.get((*box.nodes, -1)[0], "")) for box in drawn.boxes]
    ends = [(edge.source, edge.target) for edge in drawn.edges]
    lead = 26.0
    placement = place(sizes, ends, late=drawn.late, layer_gap=44.0 + lead, lead=lead)
    horizontal = placement.width <= WIDEST
    if not horizontal:
        spacing = 16.0 + max((text_width(edge.label, SMALL) for edge in drawn.edges), default=2.0)
        placement = place(
            sizes, ends, late=drawn.late, horizontal=False, port_spacing=spacing, lead=22.0
        )
    return {
        "width": round(placement.width, 1),
        "height": round(placement.height, 1),
        "horizontal": horizontal,
        "summary": drawn.subtitle,
        "boxes": _boxes(drawn, placement, index),
        "arrows": _arrows(function, drawn, placement, index),
        "trunks": [
            [before, path(curve)]
            for before, (_, curve) in zip(placement.trunk_before, placement.trunks, strict=True)
        ],
        "dots": [[round(x, 1), round(y, 1)] for x, y in placement.junctions],
    }


def _size(box: DiagramBox, name: str) -> XY:
    wide = max(text_width(line, LABEL) for line in box.lines)
    if box.kind is BoxKind.CONSTANT:
        return max(wide + 18.0, 34.0), 30.0
    if _collapsed(box):
        return max(wide, text_width(box.caption, SMALL)) + 24.0, 34.0 + 20.0 * len(box.lines)
    widest = text_width(one_line(name, 24) + NUMBER, SMALL) + 14.0
    return max(wide + 24.0, widest), 66.0 if box.kind is not BoxKind.OUTPUT else 50.0


def _collapsed(box: DiagramBox) -> bool:
    """Whether a box represents several nodes, whose values do not fit in it."""
    return len(box.nodes) > 1


def _boxes(drawn: Diagram, placement: Placement, index: Mapping[int, int]) -> list[dict[str, Any]]:
    entries = []
    for box, (x, y), (width, height) in zip(
        drawn.boxes, placement.centres, placement.sizes, strict=True
    ):
        entries.append(
            {
                "kind": str(box.kind),
                "lines": list(box.lines),
                "caption": box.caption if _collapsed(box) else "",
                "tip": box.tip,
                "nodes": _runs(sorted(index[node] for node in box.nodes)),
                "at": [round(v, 1) for v in (x, y, width, height)],
            }
        )
    return entries


def _runs(indices: list[int]) -> list[list[int]]:
    """Return sorted integers as runs of consecutive ones: the first of each and its length."""
    runs: list[list[int]] = []
    for number in indices:
        if runs and number == sum(runs[-1]):
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    return runs


def _arrows(
    function: Function, drawn: Diagram, placement: Placement, index: Mapping[int, int]
) -> list[dict[str, Any]]:
    """Return the arrows, each with the argument that it is, where its ends are single nodes."""
    seen: Counter[tuple[int, int]] = Counter()
    arrows: list[Arrow] = sorted(placement.arrows, key=lambda arrow: arrow.edge)
    entries = []
    for arrow in arrows:
        edge = drawn.edges[arrow.edge]
        source, target = (drawn.boxes[end].nodes for end in (edge.source, edge.target))
        position: int | None = None
        if len(source) == 1 and len(target) == 1:
            uses = [k for k, a in enumerate(function.graph.arguments(target[0])) if a == source[0]]
            position = uses[seen[edge.source, edge.target]]
            seen[edge.source, edge.target] += 1
        curve = arrow.curve
        entries.append(
            {
                "ends": [edge.source, edge.target],
                "place": position,
                "label": edge.label,
                "trunk": placement.arrow_before[arrow.edge],
                "path": path(curve),
                "tip": [round(v, 1) for v in curve.end],
            }
        )
    return entries


SHOWN_TEXT = 20_000
"""Most characters of a program that a page shows."""
LINKED = 3000
"""Most operations that are linked to their places in the program."""


@dataclass(frozen=True)
class Content:
    """The data of a page, and the script with the functions of its operations."""

    data: dict[str, Any]
    script: str


def content(function: Function, point: Mapping[str, Any]) -> Content:
    """Return the content of the page of a function at a point.

    Parameters
    ----------
    function : Function
    point : mapping of str to number or array
        A value for every input.

    Raises
    ------
    InputError
        The function cannot be written as operations on numbers, or a loop takes too many turns at
        the point.
    UnsupportedError
        JavaScript has no function for an operation.

    Examples
    --------
    >>> import difflab as dl
    >>> contents = content(dl.parse("x*sin(x)"), {"x": 2.0})
    >>> contents.data["inputs"], contents.data["steps"]
    ([['x', 2.0]], [0, 1, 1, 2, 1])
    """
    opened = unrolled(function, point)
    scalars = scalar_function(opened.function)
    graph = scalars.graph
    order = evaluation_order(scalars)
    index = {node: position for position, node in enumerate(order)}
    names = trace_names(scalars, order)
    constants = [node for node in order if graph.opcode[node] == CONSTANT]
    operations = [node for node in order if graph.opcode[node] >= FIRST_ROW]
    collected = Operations()
    steps = []
    for node in operations:
        back = [index[node] - index[each] for each in graph.arguments(node)]
        steps.append([collected.number(graph, node), *back])
    flat = [np.asarray(point[name], dtype=float).ravel().tolist() for name in function.inputs]
    values = list(chain.from_iterable(flat))
    text = heading(function)
    data = {
        "text": text if len(text) <= SHOWN_TEXT else text[:SHOWN_TEXT] + " …",
        "inputs": [list(pair) for pair in zip(scalars.inputs, values, strict=True)],
        "constants": [[names[node], strict(float(graph.constant(node)))] for node in constants],
        "steps": list(chain.from_iterable(steps)),
        "names": _given(names, operations, index),
        "spans": _spans(function, scalars, operations),
        "outputs": [[label, index[n]] for label, n in _outputs(scalars)],
        "operations": collected.records,
        "picture": picture(scalars, index, names),
        "turns": max(opened.turns, default=0),
    }
    return Content(data, collected.script())


def _outputs(scalars: Function) -> list[tuple[str, int]]:
    return list(zip(output_labels(scalars), scalars.outputs, strict=True))


def _given(
    names: Mapping[int, str], operations: Sequence[int], index: Mapping[int, int]
) -> dict[str, str]:
    """Return the names that are not v1, v2, … in order."""
    renamed, count = {}, 0
    for node in operations:
        count += 1
        if names[node] != f"v{count}":
            renamed[str(index[node])] = names[node]
            count -= 1
    return renamed


def _spans(function: Function, scalars: Function, operations: Sequence[int]) -> list[int]:
    """Return start and end of each operation in the text, one after the other; empty if many."""
    text = function.text
    short = text is not None and len(text) <= SHOWN_TEXT and len(operations) <= LINKED
    if not short or scalars.graph.text != text:
        return []
    spans = []
    for node in operations:
        span = int(scalars.graph.spans[node])
        spans += [0, 0] if span <= NOWHERE else [span >> 32, span & 0xFFFFFFFF]
    return spans
