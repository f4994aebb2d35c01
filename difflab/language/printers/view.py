"""The graph as it is printed, and the values that get a variable."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.core.primitive import Primitive
from difflab.graph.calls import TracedCall, call_name
from difflab.graph.control import WhileLoop
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW, Graph
from difflab.graph.names import display_names
from difflab.graph.passes.expansion import expanded
from difflab.graph.rewritten import rewritten
from difflab.lower.recorded import CONTROL, of_constant_orders
from difflab.primitives import (
    broadcast,
    concatenate,
    diag,
    index,
    pack,
    put,
    reshape,
    scatter,
    sum_,
    sum_in_order,
    transpose,
)

if TYPE_CHECKING:
    from difflab.language.printers.straight import StraightLinePrinter


class _Arguments(Sequence[list[int]]):
    """The arguments of every node, read from the columns of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._args, self._starts = graph.args.data, graph.starts.data

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, node: Any) -> Any:
        return self._args[self._starts[node] : self._starts[node + 1]].tolist()


class PrintedGraph:
    """Arguments and uses of each node, without the nodes that a notation implies.

    Parameters
    ----------
    function : Function
        The function to print.
    implied : set of Primitive
        Primitives that the notation implies; a broadcast too is skipped where the shapes of its
        neighbours imply it. None skips nothing.
    companions : bool
        Whether companions such as ``dlog`` are kept, for a language that has templates for them
        and computes in float64.
    calls : bool
        Whether custom functions and loops are kept, as calls.
    written : tuple of type
        The kinds of control that the notation has, such as `difflab.graph.control.Loop`.
    empty : bool
        Whether arrays without elements are printed, so that they use their arguments.
    orders : bool
        Whether rows of constant orders become rows of their own, of the other arguments.

    Attributes
    ----------
    function : Function
        The function, with companions expanded unless they are kept.
    children : sequence of list of int
        The arguments of each node, as printed.
    uses : array of int
        Number of uses of each node by printed nodes and outputs.
    outputs : list of int
        The output nodes, as printed.
    """

    def __init__(
        self,
        function: Function,
        implied: Set[Primitive] | None = None,
        *,
        companions: bool = False,
        calls: bool = False,
        written: tuple[type, ...] = (),
        empty: bool = True,
        orders: bool = False,
    ) -> None:
        if companions:
            function = expanded(function.in_floats, moves=True)
        else:
            function = expanded(function, customs=not calls, written=written)
        if orders and any(row.orders for row in function.graph.primitives):
            function = rewritten(function, of_constant_orders)
        self.function = function
        self.graph = self.function.graph
        self.children: Sequence[list[int]] = _Arguments(self.graph)
        primitives: list[Primitive | None] = [None] * FIRST_ROW + list(self.graph.primitives)
        self.rows = list(map(primitives.__getitem__, self.graph.opcode.tolist()))
        self.outputs = list(self.function.outputs)
        if implied is not None and {broadcast, pack, *implied} & set(self.graph.primitives):
            self._skip(implied)
        self.uses = self._count(empty)

    def named_values(self) -> dict[int, str]:
        """Return the nodes that the program named and that get their own line, with their names.

        A value whose only use is as an output needs none: it is printed as the output.
        """
        last = set(self.outputs)
        names = display_names(self.graph.labels, self.function.inputs)
        return {
            node: name
            for node, name in names.items()
            if self.uses[node] > (node in last) and not self.leaf(node)
        }

    def own_lines(self, named: Container[int], *, repeats: bool = True) -> list[int]:
        """Return the nodes that get their own line: those named, and those used repeatedly.

        In a small tree a repeated expression is repeated, unless `repeats` is False.
        """
        small = repeats and self.tree_is_small()
        return [
            node
            for node, uses in enumerate(self.uses)
            if node in named or (uses > 1 and not small and not self.leaf(node))
        ]

    def leaf(self, node: int) -> bool:
        """Whether the node is an input or a constant."""
        return self.rows[node] is None

    def _skip(self, implied: Set[Primitive]) -> None:
        """Replace implied nodes by their arguments."""
        self.children = children = list(self.children)
        self._lists = {
            node
            for node, row in enumerate(self.rows)
            if row is pack and not any(self.graph.params(node)["ranks"])
        }
        for node, args in enumerate(children):
            row = self.rows[node]
            printed = [self._printed(arg, implied, False) for arg in args]
            if any(self.rows[arg] is broadcast for arg in printed):
                bare = [self._printed(arg, implied, True) for arg in printed]
                if row is not None and row.shape is None and self._implied(node, bare):
                    printed = bare
            children[node] = printed
        self.outputs = [self._printed(node, implied, False) for node in self.outputs]

    def _printed(self, node: int, implied: Set[Primitive], broadcasts: bool) -> int:
        """Return `node` or, if it is implied, the first printed node below it."""
        while (row := self.rows[node]) is not None:
            listed = self._listed(node) if row is index else None
            if listed is not None:
                node = listed
                continue
            if row is broadcast or (row is reshape and self._lengthens(node)):
                skipped = broadcasts
            else:
                skipped = row in implied or (row is pack and self._copies(node))
            if not skipped:
                break
            node = self.children[node][0]
        return node

    def _listed(self, node: int) -> int | None:
        """Return the scalar that indexing a list of scalars gives; None for other indexing."""
        (below,) = self.children[node]
        (entry, *more) = self.graph.params(node)["key"] or (None,)
        if below not in self._lists or more or not isinstance(entry, int):
            return None
        return self.children[below][entry]

    def _lengthens(self, node: int) -> bool:
        """Whether a reshape only adds leading axes of size 1, as broadcasting does."""
        before, after = self.graph.shape(self.children[node][0]), self.graph.shape(node)
        added = len(after) - len(before)
        return added >= 0 and after == (1,) * added + before

    def _copies(self, node: int) -> bool:
        """Whether a `pack` has a single vector as its argument."""
        ranks: tuple[int, ...] = self.graph.params(node)["ranks"]
        return ranks == (1,)

    def _implied(self, node: int, args: list[int]) -> bool:
        """Whether `args` broadcast implicitly to the shape of `node`."""
        shapes = [self.graph.shape(arg) for arg in args]
        return np.broadcast_shapes(*shapes) == self.graph.shape(node)

    def _count(self, empty: bool) -> array[int]:
        """Count the uses of each node by printed nodes and outputs."""
        args, skipped = self.graph.args, set[int]()
        if not empty and any(0 in shape for shape in self.graph.shape_table):
            shapes = np.array([0 in shape for shape in self.graph.shape_table])
            without = shapes[self.graph.shape_ids]
            args = args[~np.repeat(without, np.diff(self.graph.starts))]
            skipped.update(np.flatnonzero(without).tolist())
        if not isinstance(self.children, _Arguments):
            args = np.fromiter(chain.from_iterable(self.children), dtype=np.int32)
        counts = np.bincount(args, minlength=len(self.children))
        np.add.at(counts, self.outputs, 1)
        unused = np.flatnonzero(counts == 0).tolist()
        uses = array("q", counts.astype(np.int64).tobytes())
        for node in unused:  # grows as it goes
            for arg in () if node in skipped else self.children[node]:
                uses[arg] -= 1
                if not uses[arg]:
                    unused.append(arg)
        return uses

    def tree_is_small(self, limit: int = 200) -> bool:
        """Whether the tree has fewer than `limit` nodes, or at most twice those of the graph."""
        sizes: list[int] = []
        for node, args in enumerate(self.children):
            sizes.append(1 + sum([sizes[arg] for arg in args]) if self.uses[node] else 0)
            if sizes[-1] > 2 * len(self.children) + limit:
                return False
        total = sum(sizes[node] for node in self.outputs)
        return total < limit or total <= 2 * sum(map(bool, self.uses))


def call_results(view: PrintedGraph) -> dict[int, str]:
    """Return the nodes whose values leave the call that computes them, with the names of the calls.

    A call of one operation has no name, nor has a value that is an output and nothing else.
    """
    graph = view.graph
    calls: list[TracedCall | None] = [
        graph.source.call(span) if uses and not view.leaf(node) else None
        for node, (span, uses) in enumerate(zip(graph.spans.tolist(), view.uses, strict=True))
    ]
    sizes = Counter(call for each in calls if each is not None for call in each.path)
    around = {call: frozenset(call.path) for call in set(calls) if call is not None}
    leaving = {
        argument
        for node, arguments in enumerate(view.children)
        if view.uses[node]
        for argument in arguments
        if _leaves(calls[argument], calls[node], around)
    }
    return {
        node: call_name(call)
        for node in sorted(leaving)
        if (call := calls[node]) is not None and sizes[call] > 1
    }


def _leaves(
    call: TracedCall | None,
    user: TracedCall | None,
    around: Mapping[TracedCall, frozenset[TracedCall]],
) -> bool:
    """Whether a value of a call is used outside of it, by an operation of another call or none."""
    return call is not None and (user is None or call not in around[user])


# --- values that get a variable in straight-line code; others are printed inline -----------------
# A number that is read once is a part of the expression that reads it; an array that is read once
# is computed in the loop that reads it, so that `sum(sin(x)*x)` is one loop, without memory.

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
    scalars = operation & ~arrays
    arrays[list(printer.listed)] = False
    forced[graph.args[np.repeat(arrays, np.diff(graph.starts))]] = True
    for args in _first_values(printer):
        forced[[arg for arg in args if uses[arg] == 1 and arg not in printer.named]] = False
    for row, form in printer.forms.items():
        if form.repeated and row in graph.primitives:
            starts = graph.starts[:-1][scalars & graph.applies(row)]
            for position in form.repeated:
                forced[graph.args[starts + position]] = True
    return bytearray(forced)


def _first_values(printer: StraightLinePrinter) -> Iterator[list[int]]:
    """Yield the arguments that a branch or a loop on scalars reads once, before it begins."""
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
        return [child for position, child in enumerate(children) if position not in repeated]
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
