"""The distinct operations of a graph: their formulas as text, and their code in JavaScript.

A graph of ten thousand operations has a few distinct ones; a page holds each once. In a graph of
numbers a slope serves both modes: ``t`` stands for a tangent of the argument or for a cotangent of
the result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from difflab.core.primitive import Primitive
from difflab.drawing.boxes import argument_labels, glyph
from difflab.graph.builder import Builder
from difflab.graph.evaluate import ArrayInterpreter
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, Graph
from difflab.graph.node import Node
from difflab.language.printers.javascript import Code, code
from difflab.primitives import absolute, where
from difflab.report.trace.formulas import IsolatedOperation, OperationFormula, Rules, operation_at

__all__ = ["Operations"]

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
        written, called = self._written(value)
        slopes, texts, taken = [], [], []
        for place, moving in enumerate(moves):
            slope = self.rules.cotangent(operation, place) if moving else None
            condition = self.rules.condition(operation, place)
            parts = ("null", None) if slope is None else self._written(slope)
            slopes.append(parts[0])
            texts.append(None if slope is None else [_text(slope), parts[1]])
            taken.append("null" if condition is None else self._written(condition)[0])
        kink = self._function(_kinks(row, count))[0] if row.kinks is not None else "null"
        self._functions.append(
            f"{{ value: {written}, slopes: [{', '.join(slopes)}], taken: [{', '.join(taken)}], "
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
        written = Function(graph, tuple(nodes), (formula.output,), ("value",))
        script, shown = self._function(written)
        return script, shown or _SLOT.sub(r"\1", formula.template)

    def _function(self, function: Function) -> tuple[str, str]:
        """Return a function of the script, and its expression: empty where it has statements."""
        found: Code = code(function)
        self._members |= found.members
        self._definitions |= found.definitions
        (result,) = found.results
        if not found.lines:
            return f"({ARGUMENTS}) => {result}", result
        body = "\n".join([*found.lines, f"    return {result};"])
        return f"({ARGUMENTS}) => {{\n{body}\n}}", ""


def _text(formula: OperationFormula) -> str:
    """Return the template of a formula, with slots in braces."""
    return _SLOT.sub(r"{\1}", formula.template)


def _kinks(row: Primitive, count: int) -> Function:
    """Return the distance from a kink as a function of the arguments."""
    builder = Builder(simplify=True)
    nodes = [builder.input(f"a{place}") for place in range(count)]
    assert row.kinks is not None
    distance = absolute(row.kinks(*(Node(builder, node) for node in nodes)))
    return Function.build(builder, nodes, [distance.id], ["value"])
