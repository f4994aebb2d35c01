"""The graph itself: immutable columns in single-assignment order.

A graph is a straight-line program. Node ``i`` applies a primitive to nodes before ``i``; its
operation, arguments, parameters, shape and source location are columns of integers,
so that a million nodes are seven arrays. `Builder` (in `difflab.graph.builder`) makes graphs.

The grammar::

    graph  ::= node*
    node   ::= input name shape | constant number | primitive node* params
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from difflab.core.place import SourceLocation
from difflab.core.primitive import Custom, Params, Primitive, Shape
from difflab.errors import ConsistencyError, UnsupportedError
from difflab.graph.source import SourceMap

__all__ = ["CONSTANT", "FIRST_ROW", "INPUT", "Graph", "Number", "Params", "Shape", "packed_slices"]

INPUT = 0
CONSTANT = 1
FIRST_ROW = 2

Number = float | int
Value = TypeVar("Value")


@dataclass(frozen=True, eq=False, slots=True)
class Graph:
    """Nodes in topological order, as columns.

    Attributes
    ----------
    opcode : (nodes,) int16
        0 for an input, 1 for a constant, else 2 + the position in `primitives`.
    starts : (nodes + 1,) int64
        Where each node's arguments begin in `args`.
    args : (edges,) int32
        The arguments, node after node.
    param_ids, shape_ids : (nodes,) int32
        Positions in `param_table` and `shape_table`.
    spans : (nodes,) int64
        The location of each node in `source`; -1 for none.
    primitives : tuple of Primitive
        The rows that occur.
    constants : dict of int to (number, name)
        Value and, for ``pi`` and ``e``, name of every constant node.
    names : dict of int to str
        Name of every input node.
    source : SourceMap
        The text, or the Python code, that the spans point into.
    labels : dict of int to str
        The program's variable names: those on the left of ``=``.
    """

    opcode: NDArray[np.int16]
    starts: NDArray[np.int64]
    args: NDArray[np.int32]
    param_ids: NDArray[np.int32]
    shape_ids: NDArray[np.int32]
    spans: NDArray[np.int64]
    primitives: tuple[Primitive, ...]
    param_table: tuple[Params, ...]
    shape_table: tuple[Shape, ...]
    constants: dict[int, tuple[Number, str | None]]
    names: dict[int, str]
    source: SourceMap
    labels: dict[int, str] = field(default_factory=dict)

    @property
    def text(self) -> str | None:
        """The program that the graph was parsed from."""
        return self.source.text

    def __len__(self) -> int:
        return len(self.opcode)

    def primitive(self, node: int) -> Primitive | None:
        """Return the row that `node` applies; None for inputs and constants."""
        opcode = int(self.opcode[node])
        return self.primitives[opcode - FIRST_ROW] if opcode >= FIRST_ROW else None

    def arguments(self, node: int) -> tuple[int, ...]:
        """Return the arguments of `node`."""
        return tuple(self.args[self.starts[node] : self.starts[node + 1]].tolist())

    def params(self, node: int) -> dict[str, Any]:
        """Return the static parameters of `node`."""
        return dict(self.param_table[self.param_ids[node]])

    def shape(self, node: int) -> Shape:
        """Return the shape of `node`'s value at one point."""
        return self.shape_table[self.shape_ids[node]]

    def place(self, node: int) -> SourceLocation:
        """Return where `node` was written, in the text or in Python."""
        return self.source.place(int(self.spans[node]))

    def span(self, node: int) -> tuple[int, int] | None:
        """Return the span of `node` in the source text."""
        return self.place(node).span if self.spans[node] >= 0 else None

    def element_count(self) -> int:
        """Return the number of elements of all nodes' values, at one point."""
        used = np.bincount(self.shape_ids, minlength=len(self.shape_table)).tolist()
        sizes = map(math.prod, self.shape_table)
        return sum(count * size for count, size in zip(used, sizes, strict=True))

    def constant(self, node: int) -> Number:
        """Return the number that a constant node holds."""
        return self.constants[node][0]

    def constant_name(self, node: int) -> str | None:
        """Return ``"pi"`` or ``"e"`` for the named constants."""
        return self.constants[node][1]

    def input_name(self, node: int) -> str:
        """Return the name of an input node."""
        return self.names[node]

    def rows(self) -> Iterator[tuple[int, list[int]]]:
        """Yield opcode and arguments of every node, in order, as Python integers."""
        args = self.args.tolist()
        starts = self.starts.tolist()
        for node, opcode in enumerate(self.opcode.tolist()):
            yield opcode, args[starts[node] : starts[node + 1]]

    def last_uses(self) -> NDArray[np.int64]:
        """Return for each node the last node that uses it; -1 if none does."""
        last = np.full(len(self), -1, dtype=np.int64)
        users = np.repeat(np.arange(len(self)), np.diff(self.starts))
        last[self.args] = users
        return last

    def users(self) -> tuple[list[int], list[int]]:
        """Return the nodes that use each node: those of k are ``users[starts[k]:starts[k + 1]]``.

        Returns
        -------
        starts, users : list of int
            A node that uses another twice comes twice.
        """
        order = np.argsort(self.args, kind="stable")
        users = np.repeat(np.arange(len(self)), np.diff(self.starts))[order]
        counts = np.bincount(self.args, minlength=len(self))
        return [0, *np.cumsum(counts).tolist()], users.tolist()

    def needed_for(self, nodes: Iterable[int]) -> bytearray:
        """Mark `nodes` and all that they are computed from."""
        starts, args = self.starts.tolist(), self.args.tolist()
        marks = bytearray(len(self))
        for node in nodes:
            marks[node] = 1
        for node in range(len(self) - 1, -1, -1):
            if marks[node]:
                for arg in args[starts[node] : starts[node + 1]]:
                    marks[arg] = 1
        return marks

    def numbers_after(self, outputs: Sequence[int]) -> NDArray[np.int64]:
        """Return the id of each node once the graph is `pruned` to `outputs`; -1 if dropped.

        Unused nodes are removed repeatedly: the time is linear in the dropped nodes.
        """
        counts = np.bincount(self.args, minlength=len(self))
        counts[np.array([*outputs, *self.names], dtype=np.int64)] += 1
        dead = (counts == 0).nonzero()[0].tolist()
        if not dead:
            return np.arange(len(self))
        uses = counts.tolist()
        starts, args = self.starts.data, self.args.data
        for node in dead:  # grows as it goes
            for arg in args[starts[node] : starts[node + 1]]:
                uses[arg] -= 1
                if uses[arg] == 0:
                    dead.append(arg)
        alive = np.ones(len(self), dtype=np.bool_)
        alive[dead] = False
        return np.where(alive, alive.cumsum() - 1, -1)

    def pruned(self, outputs: Sequence[int]) -> tuple[Graph, tuple[int, ...]]:
        """Return the graph that `outputs` need, with all inputs, and the new ids of `outputs`."""
        numbers = self.numbers_after(outputs)
        if numbers.size and numbers[-1] == len(self) - 1:  # the usual case, five times as fast
            columns = ("opcode", "starts", "args", "param_ids", "shape_ids", "spans")
            tables = ("constants", "names", "labels")
            copies = {name: getattr(self, name).copy() for name in (*columns, *tables)}
            return replace(self, **copies), tuple(outputs)
        alive = numbers >= 0
        sizes = self.starts[1:] - self.starts[:-1]
        kept = sizes[alive]
        starts = np.zeros(len(kept) + 1, dtype=np.int64)
        kept.cumsum(out=starts[1:])
        number_of = numbers.data
        graph = Graph(
            opcode=self.opcode[alive],
            starts=starts,
            args=numbers[self.args[alive.repeat(sizes)]].astype(np.int32),
            param_ids=self.param_ids[alive],
            shape_ids=self.shape_ids[alive],
            spans=self.spans[alive],
            primitives=self.primitives,
            param_table=self.param_table,
            shape_table=self.shape_table,
            constants=_renumbered(self.constants, number_of),
            names=_renumbered(self.names, number_of),
            source=self.source,
            labels=_renumbered(self.labels, number_of),
        )
        return graph, tuple(map(number_of.__getitem__, outputs))

    def reached_from(self, nodes: Iterable[int]) -> bytearray:
        """Mark `nodes` and all that depends on any of them: where a derivative can flow."""
        marks = bytearray(len(self))
        for node in nodes:
            marks[node] = 1
        users = np.arange(len(self)).repeat(self.starts[1:] - self.starts[:-1])
        for arg, user in zip(self.args.tolist(), users.tolist(), strict=True):
            if marks[arg]:
                marks[user] = 1
        return marks

    def applies(self, *rows: Primitive) -> NDArray[np.bool_]:
        """Return for each node whether it applies one of `rows`."""
        return self.matching(lambda row: row in rows)

    def structural_rows(self) -> NDArray[np.bool_]:
        """Return for each node whether it only moves data."""
        return self.matching(lambda row: row.structural)

    def matching(self, test: Callable[[Primitive], bool]) -> NDArray[np.bool_]:
        """Return for each node whether it applies a row that passes `test`."""
        return np.array([False, False, *map(test, self.primitives)])[self.opcode]

    def verify(self) -> None:
        """Raise an error unless the graph keeps its invariants.

        They are: arguments precede the operations that use them; the columns are of one length and
        refer to rows of their tables; inputs have names and constants have values; every operation
        has the arguments that its primitive takes, truth values where it takes those, and the
        shape that follows from theirs.

        Raises
        ------
        ConsistencyError
            An invariant is broken; the message names the node.

        Examples
        --------
        >>> from dataclasses import replace
        >>> import difflab as dl
        >>> graph = dl.parse("x*y + 1").graph
        >>> graph.verify()
        >>> replace(graph, args=graph.args[::-1]).verify()
        Traceback (most recent call last):
            ...
        difflab.errors.ConsistencyError: node 2 (multiply) uses node 3, which does not precede it
        """
        self._verify_columns()
        for node, (opcode, args) in enumerate(self.rows()):
            fault = self._fault(node, opcode, args)
            if fault:
                row = self.primitive(node)
                name = "input or constant" if row is None else row.name
                raise ConsistencyError(f"node {node} ({name}) {fault}")

    def _verify_columns(self) -> None:
        """Raise an error unless the columns fit each other and their tables."""
        size, last = len(self), FIRST_ROW + len(self.primitives)
        leaves = (
            ("inputs", INPUT, self.names),
            ("constants", CONSTANT, self.constants),
        )
        columns = (self.starts[1:], self.param_ids, self.shape_ids, self.spans)
        faults = {
            "the columns differ in length": any(len(column) != size for column in columns),
            "the arguments are not those of the nodes": bool(np.any(np.diff(self.starts) < 0))
            or (self.starts[0], self.starts[-1]) != (0, len(self.args)),
            "an operation is not in the table": bool(
                np.any((self.opcode < 0) | (self.opcode >= last))
            ),
            "parameters are not in the table": _outside(self.param_ids, self.param_table),
            "a shape is not in the table": _outside(self.shape_ids, self.shape_table),
            "two inputs have one name": len(set(self.names.values())) < len(self.names),
            "a label is of no node": not all(0 <= node < size for node in self.labels),
        }
        for kind, code, table in leaves:
            nodes = np.flatnonzero(self.opcode == code).tolist()
            faults[f"the {kind} are not those of the table"] = nodes != sorted(table)
        for fault, present in faults.items():
            if present:
                raise ConsistencyError(f"the graph is broken: {fault}")

    def _fault(self, node: int, opcode: int, args: list[int]) -> str:
        """Return how a node breaks an invariant; empty if it keeps all."""
        late = [arg for arg in args if not 0 <= arg < node]
        if late:
            return f"uses node {late[0]}, which does not precede it"
        if opcode < FIRST_ROW:
            scalar = opcode == INPUT or self.shape(node) == ()
            return "has arguments" if args else "" if scalar else "is an array of one number"
        row = self.primitives[opcode - FIRST_ROW]
        if row.arity not in (None, len(args)):
            return f"has {len(args)} arguments, not {row.arity}"
        for position, arg in enumerate(args):
            truth = (
                self.opcode[arg] >= FIRST_ROW
                and self.primitives[self.opcode[arg] - FIRST_ROW].boolean
            )
            if truth != (position in row.truths) and row.name != "as_number":
                kinds = ("a number", "a truth value")
                return f"has {kinds[truth]} as argument {position}, not {kinds[not truth]}"
        shapes = tuple(map(self.shape, args))
        if row.shape is not None:
            expected = row.shape(shapes, **self.params(node))
        else:
            expected = np.broadcast_shapes(*shapes)
            if not {(), expected}.issuperset(shapes):
                return f"combines the shapes {' and '.join(map(str, shapes))}"
        return (
            ""
            if self.shape(node) == expected
            else f"has the shape {self.shape(node)}, not {expected}"
        )

    def scalars(self) -> NDArray[np.bool_]:
        """Return for each node whether its value is a number."""
        return np.array([shape == () for shape in self.shape_table])[self.shape_ids]

    def __reduce__(self) -> tuple[Callable[..., Graph], tuple[dict[str, Any]]]:
        # Rows are pickled by name or content: their rules are functions, which cannot be pickled.
        # Not by __getstate__, which dataclasses with slots overwrote until Python 3.11.3.
        state = {name: getattr(self, name) for name in self.__slots__}
        own = [row for row in self.primitives if isinstance(row.rule, Custom)]
        users = [row.name for row in own if row.holds is None]
        if users:
            raise UnsupportedError(
                f"a graph with the custom function {users[0]} cannot be stored: it is Python code"
            )
        state["primitives"] = [
            row.name if row.holds is None else (row.holding, row.holds) for row in self.primitives
        ]
        return _restored, (state,)


def packed_slices(shapes: Iterable[Shape]) -> list[slice]:
    """Return the slice of each array in the concatenation of the flattened arrays.

    Examples
    --------
    >>> packed_slices([(), (2, 2)])
    [slice(0, 1, None), slice(1, 5, None)]
    """
    return [slice(*ends) for ends in pairwise(accumulate(map(math.prod, shapes), initial=0))]


def _outside(ids: NDArray[np.int32], table: Sequence[Any]) -> bool:
    """Whether an index is not one of a table's."""
    return bool(np.any((ids < 0) | (ids >= len(table))))


def _renumbered(values: dict[int, Value], numbers: Sequence[int]) -> dict[int, Value]:
    """Return a dict keyed by the new ids of nodes, without those whose id is -1."""
    return {numbers[node]: value for node, value in values.items() if numbers[node] >= 0}


def _restored(state: dict[str, Any]) -> Graph:
    from difflab.primitives import TABLE

    rows = [
        TABLE[entry] if isinstance(entry, str) else entry[0](entry[1])
        for entry in state["primitives"]
    ]
    return Graph(**{**state, "primitives": tuple(rows)})
