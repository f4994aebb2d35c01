"""Choice of the values that get a variable in straight-line code; others are printed inline.

A number that is read once is a part of the expression that reads it; an array that is read once
is computed in the loop that reads it, so that `sum(sin(x)*x)` is one loop, without memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from difflab.core.primitive import Primitive
from difflab.graph.control import WhileLoop
from difflab.graph.ir import FIRST_ROW
from difflab.language.printers.recorded import CONTROL
from difflab.primitives import (
    concatenate,
    diag,
    index,
    pack,
    put,
    scatter,
    sum_,
    sum_in_order,
    transpose,
)

if TYPE_CHECKING:
    from difflab.language.printers.straight import StraightLinePrinter


_READ_ONCE = frozenset({concatenate, diag, index, pack, put, scatter, sum_, transpose})
"""Rows whose loops read no element twice."""


def forced_nodes(printer: StraightLinePrinter) -> bytearray:
    """Mark scalars that must have a name: used twice, written twice, or used in loops."""
    graph = printer.graph
    uses, operation = np.array(printer.view.uses), graph.opcode >= FIRST_ROW
    operation &= uses > 0
    forced = operation & (uses > 1)
    forced[[node for node in printer.named if operation[node]]] = True
    looped = [False] * FIRST_ROW + [row.shape is not None for row in graph.primitives]
    arrays = np.array([shape != () for shape in graph.shape_table])
    arrays = operation & (np.array(looped)[graph.opcode] | arrays[graph.shape_ids])
    numbers = operation & ~arrays
    arrays[list(printer.listed)] = False
    forced[graph.args[np.repeat(arrays, np.diff(graph.starts))]] = True
    for args in _first_values(printer):
        forced[[arg for arg in args if uses[arg] == 1 and arg not in printer.named]] = False
    for row, form in printer.forms.items():
        if form.repeated and row in graph.primitives:
            starts = graph.starts[:-1][numbers & graph.applies(row)]
            for position in form.repeated:
                forced[graph.args[starts + position]] = True
    return bytearray(forced)


def _first_values(printer: StraightLinePrinter) -> Iterator[list[int]]:
    """Yield the arguments that a branch or a loop of numbers reads once, before it begins."""
    if any(row.name == CONTROL for row in printer.graph.primitives):
        for node, row in enumerate(printer.view.rows):
            if row is not None and row.name == CONTROL and printer.view.uses[node]:
                loop = isinstance(row.holds, WhileLoop)
                count = len(row.holds.output_shapes) if loop else 1
                yield printer.view.children[node][:count]


def is_copy(printer: StraightLinePrinter, node: int) -> bool:
    """Whether an array has the elements of its only argument, in their order."""
    row, children = printer.view.rows[node], printer.view.children[node]
    if row is None or not row.in_order or len(children) != 1:
        return False
    return bool(printer.graph.shape(node) and printer.graph.shape(children[0]))


def fused_nodes(printer: StraightLinePrinter, longest: int) -> bytearray:
    """Mark the arrays that get no name.

    Parameters
    ----------
    printer : StraightLinePrinter
        The printer, which knows its forms and the nodes that are named.
    longest : int
        Maximum number of nodes in one expression.
    """
    view, graph = printer.view, printer.graph
    marks = bytearray(len(graph))
    if not any(graph.shape_table):
        return marks
    inside = bytearray(len(graph))  # arrays whose only reader takes an expression for an element
    if printer.writes_outputs:
        for node in view.outputs:
            inside[node] = 1
    for node in _near_arrays(printer):
        row = view.rows[node]
        if row is None or not view.uses[node]:
            continue
        copies = is_copy(printer, node)
        alone = view.uses[node] == 1 and node not in printer.named and node not in printer.listed
        array = bool(graph.shape(node)) and 0 not in graph.shape(node)
        if inside[node] and alone and array and (copies or row.shape is None):
            marks[node] = 1
        for child in _inside(printer, node, row, fused=bool(marks[node])):
            inside[child] = 1
    _shortened(printer, marks, longest)
    return marks


def _near_arrays(printer: StraightLinePrinter) -> list[int]:
    """Return the nodes that are arrays or read arrays, the last one first."""
    graph = printer.graph
    arrays = np.array([shape != () for shape in graph.shape_table])[graph.shape_ids]
    near = arrays.copy()
    near[np.repeat(np.arange(len(graph)), np.diff(graph.starts))[arrays[graph.args]]] = True
    nodes: list[int] = np.flatnonzero(near)[::-1].tolist()
    return nodes


def _inside(printer: StraightLinePrinter, node: int, row: Primitive, *, fused: bool) -> list[int]:
    """Return the arguments whose elements may be expressions in the loops of a node."""
    children = printer.view.children[node]
    if row.shape is None:
        repeated = printer.forms[row].repeated
        return [child for place, child in enumerate(children) if place not in repeated]
    if is_copy(printer, node):
        return children if fused else []
    if row is sum_in_order:
        return children
    if row not in _READ_ONCE or (row is index and not printer.graph.shape(node)):
        return []
    return [child for child in children if not _is_truth(printer, child)]


def _is_truth(printer: StraightLinePrinter, node: int) -> bool:
    row = printer.view.rows[node]
    return row is not None and row.boolean


def _shortened(printer: StraightLinePrinter, marks: bytearray, longest: int) -> None:
    """Unmark arrays whose expression is long, and copies of arrays that have a name."""
    sizes: dict[int, int] = {}
    for node in np.flatnonzero(marks).tolist():
        children = printer.view.children[node]
        sizes[node] = 1 + sum(sizes.get(child, 1) for child in children)
        if is_copy(printer, node):
            marks[node] = marks[children[0]]
        elif sizes[node] > longest:
            marks[node] = 0
        if not marks[node]:
            sizes[node] = 1
