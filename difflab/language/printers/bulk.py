"""Lines of a function of scalars, printed by primitive rather than node by node.

A function of a million operations has few kinds of them. The texts of all operations of one kind,
whose operands need the same parentheses, are formatted together, the deepest operations of each
expression first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from difflab.graph.ir import FIRST_ROW
from difflab.language.printers.expressions import ATOM, Part
from difflab.primitives import index

if TYPE_CHECKING:
    from difflab.language.printers.straight import StraightLinePrinter


Nodes = NDArray[np.int64]

LEAST = 2_000
"""Nodes from which on a function of numbers is printed row by row."""
_FEW = 4
"""Rounds end where one settles less than this part of the rest."""
_MOST_OPERANDS = 3


@dataclass(frozen=True)
class _Group:
    """Nodes that are written alike.

    Attributes
    ----------
    nodes : array
        Operations of one row, whose operands need the same parentheses.
    template : str
        Their text for ``%``.
    fields : list of array
        For each ``%s`` the nodes whose texts or names are filled in.
    lines : bool
        Whether the texts are lines; otherwise they are expressions inside of others.
    """

    nodes: Nodes
    template: str
    fields: list[Nodes]
    lines: bool


def bulk_lines(printer: StraightLinePrinter, longest: int) -> int:
    """Write the lines of the first nodes that get names, as `StraightLinePrinter.compute` does.

    Returns
    -------
    int
        The node from which on lines are still to be written. It is 0, but for large functions that
        compute scalars, from scalars and from elements of input arrays, before any array, such as
        their gradient.
    """
    printed = _printed(printer)
    elements = _elements(printer, printed)
    nodes = np.setdiff1d(printed, elements, assume_unique=True)
    scalar = _are_scalar(printer, nodes)
    nodes, arrays = nodes[scalar], nodes[~scalar]
    end = int(arrays.min(initial=len(printer.graph)))
    if len(nodes) < LEAST or nodes.max(initial=0) > end:
        return 0
    for element in elements.tolist():
        printer.compute_array(element, index)
    columns = _operands(printer)
    owners = _own_lines(printer, nodes, columns, longest)
    texts, levels = _leaves(printer)
    texts[owners], levels[owners] = _names(printer, owners), ATOM
    lines, owned = np.empty(len(texts), dtype=object), np.zeros(len(texts), dtype=np.bool_)
    owned[owners] = True
    settled = levels > 0
    for ready in _rounds(nodes, columns, settled):
        for group in _groups(printer, ready, columns, levels, owned):
            operands = [texts[field].tolist() for field in group.fields]
            expressions = map(group.template.__mod__, zip(*operands, strict=True))
            into = lines if group.lines else texts
            into[group.nodes] = np.fromiter(expressions, dtype=object, count=len(group.nodes))
        settled[ready] = True
    printer.lines += lines[owners].tolist()
    return end


def _are_scalar(printer: StraightLinePrinter, nodes: Nodes) -> NDArray[np.bool_]:
    """Return for each node whether it computes a number from at most three others."""
    graph = printer.graph
    arrays = np.array([shape != () for shape in graph.shape_table], dtype=np.bool_)
    looped = np.array([row.shape is not None for row in graph.primitives], dtype=np.bool_)
    among = arrays[graph.shape_ids[nodes]] | looped[graph.opcode[nodes] - FIRST_ROW]
    scalar: NDArray[np.bool_] = ~among & (np.diff(graph.starts)[nodes] <= _MOST_OPERANDS)
    return scalar


def _elements(printer: StraightLinePrinter, nodes: Nodes) -> Nodes:
    """Return the nodes that are elements of arrays with a name, such as the inputs."""
    graph = printer.graph
    chosen = nodes[graph.applies(index)[nodes]]
    arrays = [node for node in printer.names if graph.shape(node)]
    elements: Nodes = chosen[np.isin(graph.args[graph.starts[chosen]], arrays)]
    return elements


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
        np.where(counts > position, args[graph.starts[:-1] + position], len(graph))
        for position in range(_MOST_OPERANDS)
    ]


def _own_lines(
    printer: StraightLinePrinter, nodes: Nodes, columns: list[Nodes], longest: int
) -> Nodes:
    """Return the nodes that get a name: those that must, and those whose expression is long.

    The size of an expression follows from those of its operands. Most are known after a few
    rounds; the rest, such as the sums of a long chain, follow one after the other.
    """
    forced = np.frombuffer(printer.forced, dtype=np.bool_)[nodes]
    rest = nodes[~forced]
    sizes = np.append(np.ones(len(printer.graph), dtype=np.int64), 0)
    settled = np.ones(len(sizes), dtype=np.bool_)
    settled[rest] = False
    long = np.zeros(len(sizes), dtype=np.bool_)
    for ready in _rounds(rest, columns, settled):
        if _FEW * len(ready) < np.count_nonzero(~settled):
            break
        total = 1 + sum(sizes[column[ready]] for column in columns)
        long[ready] = total > longest
        sizes[ready] = np.where(total > longest, 1, total)
        settled[ready] = True
    rest = np.flatnonzero(~settled)
    one_by_one, counts = [], sizes.tolist() if len(rest) else []
    operands = [column[rest].tolist() for column in columns]
    for node, a, b, c in zip(rest.tolist(), *operands, strict=True):
        size = 1 + counts[a] + counts[b] + counts[c]
        if size > longest:
            one_by_one.append(node)
        else:
            counts[node] = size
    long[one_by_one] = True
    long[nodes[forced]] = True
    return np.flatnonzero(long)


def _names(printer: StraightLinePrinter, nodes: Nodes) -> NDArray[np.object_]:
    """Declare and return the names of nodes in the program, and new names."""
    graph, names = printer.graph, np.empty(len(nodes), dtype=object)
    named = np.isin(nodes, list(printer.named))
    names[named] = [printer.named[node] for node in nodes[named].tolist()]
    names[~named] = printer.fresh.several("t", len(nodes) - int(named.sum()))
    printer.names.update(zip(nodes.tolist(), names.tolist(), strict=True))
    boolean = np.array([row.boolean for row in graph.primitives])
    truths = boolean[graph.opcode[nodes] - FIRST_ROW]
    for truth in dict.fromkeys(truths.tolist()):  # the first that occurs is declared first
        printer.declare_scalars(names[truths == truth].tolist(), truths=truth)
    return names


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


def _groups(
    printer: StraightLinePrinter,
    nodes: Nodes,
    columns: list[Nodes],
    levels: NDArray[np.int64],
    owned: NDArray[np.bool_],
) -> Iterator[_Group]:
    """Yield the nodes of one row, the same parentheses and the same kind of text together."""
    graph = printer.graph
    opcodes = graph.opcode[nodes]
    for opcode in np.unique(opcodes).tolist():
        members = nodes[opcodes == opcode]
        row = graph.primitives[opcode - FIRST_ROW]
        parts = printer.form(row).parts
        line = printer.indent + printer.definition(truth=row.boolean)
        inside = ~owned[members]
        levels[members[inside]] = printer.describe(int(members[0]))[1]
        needs = [part for part in parts if not isinstance(part, str)]
        pattern = inside.astype(np.int64)
        for bit, (position, need) in enumerate(needs, 1):
            pattern |= (levels[columns[position][members]] < need).astype(np.int64) << bit
        for which in np.unique(pattern).tolist():
            group = members[pattern == which]
            template = _template(parts, which >> 1, printer.brackets)
            fields = [columns[position][group] for position, _ in needs]
            if which & 1:
                yield _Group(group, template, fields, lines=False)
            else:
                yield _Group(group, line % ("%s", template), [group, *fields], lines=True)


def _template(parts: tuple[Part, ...], pattern: int, brackets: tuple[str, str]) -> str:
    """Return a template for ``%``, with brackets around the operands whose bit is set."""
    template, bit = "", 0
    for part in parts:
        if isinstance(part, str):
            template += part.replace("%", "%%")
            continue
        template += "%s".join(brackets) if pattern >> bit & 1 else "%s"
        bit += 1
    return template
