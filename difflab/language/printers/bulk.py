"""The lines of a function of numbers, row by row rather than node by node.

A function of a million operations has few kinds of them. The texts of all operations of one kind,
whose operands need the same parentheses, are formatted together, the deepest operations of each
expression first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from difflab.graph.ir import FIRST_ROW
from difflab.language.printers.forms import ATOM
from difflab.language.printers.writer import Part

if TYPE_CHECKING:
    from difflab.language.printers.straight import StraightLinePrinter

__all__ = ["bulk_lines"]

Nodes = NDArray[np.int64]

LEAST = 2_000
"""Nodes from which on a function of numbers is printed row by row."""
_MOST_OPERANDS = 3


def bulk_lines(printer: StraightLinePrinter, longest: int) -> bool:
    """Write the line of every node that gets a name, as `StraightLinePrinter.compute` does.

    Returns
    -------
    bool
        Whether they are written: of large functions that compute with numbers only.
    """
    nodes = _printed(printer)
    if len(nodes) < LEAST or not _is_scalar(printer, nodes):
        return False
    columns = _operands(printer)
    owners = _own_lines(printer, nodes, columns, longest)
    texts, levels = _leaves(printer)
    names = np.array(_names(printer, owners.tolist()), dtype=object)
    expressions = np.empty(len(texts), dtype=object)
    owned = np.zeros(len(texts), dtype=np.bool_)
    owned[owners] = True
    texts[owners], levels[owners] = names, ATOM
    settled = owned | (levels > 0)
    for ready in _rounds(nodes, columns, settled):
        for members, rendered in _rendered(printer, ready, columns, texts, levels, owned):
            expressions[members] = rendered
            inside = ~owned[members]
            texts[members[inside]] = rendered[inside]
        settled[ready] = True
    printer.names.update(zip(owners.tolist(), names.tolist(), strict=True))
    rows = map(printer.view.rows.__getitem__, owners.tolist())
    lines = map(printer.scalar, names.tolist(), expressions[owners].tolist(), rows)
    printer.lines += map(printer.indent.__add__, lines)
    return True


def _is_scalar(printer: StraightLinePrinter, nodes: Nodes) -> bool:
    """Whether nodes compute numbers from at most three others."""
    graph = printer.graph
    if np.diff(graph.starts)[nodes].max(initial=0) > _MOST_OPERANDS:
        return False
    arrays = np.array([shape != () for shape in graph.shape_table])
    looped = np.array([row.shape is not None for row in graph.primitives])
    among = arrays[graph.shape_ids[nodes]] | looped[graph.opcode[nodes] - FIRST_ROW]
    return not np.any(among)


def _printed(printer: StraightLinePrinter) -> Nodes:
    """Return the operations that are printed, but for lists of outputs."""
    used = np.array(printer.view.uses) > 0
    used[list(printer.listed)] = False
    return np.flatnonzero(used & (printer.graph.opcode >= FIRST_ROW))


def _operands(printer: StraightLinePrinter) -> list[Nodes]:
    """Return the first, second and third operand of every node; where it has none, one more."""
    graph = printer.graph
    counts, args = np.diff(graph.starts), np.append(graph.args, [0] * _MOST_OPERANDS)
    return [
        np.where(counts > place, args[graph.starts[:-1] + place], len(graph))
        for place in range(_MOST_OPERANDS)
    ]


def _own_lines(
    printer: StraightLinePrinter, nodes: Nodes, columns: list[Nodes], longest: int
) -> Nodes:
    """Return the nodes that get a name: those that must, and those whose expression is long."""
    sizes = [1] * len(printer.graph) + [0]
    forced = np.frombuffer(printer.forced, dtype=np.bool_)[nodes]
    long = []
    rest = nodes[~forced]
    places = [column[rest].tolist() for column in columns]
    for node, a, b, c in zip(rest.tolist(), *places, strict=True):
        size = 1 + sizes[a] + sizes[b] + sizes[c]
        if size > longest:
            long.append(node)
        else:
            sizes[node] = size
    return np.sort(np.concatenate([nodes[forced], np.array(long, dtype=np.int64)]))


def _names(printer: StraightLinePrinter, nodes: list[int]) -> list[str]:
    """Return the names of nodes in the program, and new names."""
    named = printer.named
    numbered = iter(printer.fresh.several("t", len(nodes) - len(named.keys() & set(nodes))))
    return [named[node] if node in named else next(numbered) for node in nodes]


def _leaves(printer: StraightLinePrinter) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """Return the texts and levels of all nodes; those of inputs and constants are known."""
    graph = printer.graph
    levels = np.zeros(len(graph) + 1, dtype=np.int64)
    levels[-1] = ATOM
    texts = np.empty(len(graph) + 1, dtype=object)
    for node, name in printer.names.items():
        texts[node], levels[node] = name, ATOM
    for node in graph.constants:
        if node not in printer.names and printer.view.uses[node]:
            (texts[node],), levels[node] = printer.describe(node)
    return texts, levels


def _rounds(nodes: Nodes, columns: list[Nodes], settled: NDArray[np.bool_]) -> Iterator[Nodes]:
    """Yield nodes whose operands are settled, until all have been."""
    while len(nodes):
        ready = settled[columns[0][nodes]]
        for column in columns[1:]:
            ready &= settled[column[nodes]]
        yield nodes[ready]
        nodes = nodes[~ready]


def _rendered(
    printer: StraightLinePrinter,
    nodes: Nodes,
    columns: list[Nodes],
    texts: NDArray[np.object_],
    levels: NDArray[np.int64],
    owned: NDArray[np.bool_],
) -> Iterator[tuple[Nodes, NDArray[np.object_]]]:
    """Yield nodes of one row and the same parentheses with their expressions."""
    graph = printer.graph
    opcodes = graph.opcode[nodes]
    for opcode in np.unique(opcodes).tolist():
        members = nodes[opcodes == opcode]
        row = graph.primitives[opcode - FIRST_ROW]
        parts = printer.form(row).parts
        levels[members[~owned[members]]] = printer.describe(int(members[0]))[1]
        needs = [part for part in parts if not isinstance(part, str)]
        pattern = np.zeros(len(members), dtype=np.int64)
        for bit, (position, need) in enumerate(needs):
            pattern |= (levels[columns[position][members]] < need).astype(np.int64) << bit
        for which in np.unique(pattern).tolist():
            group = members[pattern == which]
            template = _template(parts, which, printer.brackets)
            operands = [texts[columns[position][group]].tolist() for position, _ in needs]
            found: list[Any] = list(map(template.__mod__, zip(*operands, strict=True)))
            yield group, np.array(found, dtype=object)


def _template(parts: tuple[Part, ...], pattern: int, brackets: tuple[str, str]) -> str:
    """Return a template for ``%``, with brackets around the operands whose bit is set."""
    written, bit = "", 0
    for part in parts:
        if isinstance(part, str):
            written += part.replace("%", "%%")
            continue
        written += "%s".join(brackets) if pattern >> bit & 1 else "%s"
        bit += 1
    return written
