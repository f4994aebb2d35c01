"""Dependences between the elements of a graph's values, without computing derivatives.

Every element of every node's value is a vertex. Its edges follow from the primitive's own rule,
so that there is no second table: elementwise rows and selections depend on the arguments that
have a map or a condition; a linear row is applied to vertex ids, which shows where it moves
elements; a row with a tangent map depends on what the map depends on. Rows that mix whole axes
get intermediate vertices, *hubs*, so that k elements which all depend on k others take 2k edges
and not k².

The elements of a large array get vertices only where they need them. Before that the array has
*feeds*, arrays of ids of its shape: each element depends on the vertices at its index in each of
them, 0 for none. A slice of an array slices its feeds, a sum of two arrays has the feeds of both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.autodiff.engine.argumentwise import recorded_tangent
from difflab.core.primitive import ByArgument, Elementwise, LinearMap, Primitive, Select, Transpose
from difflab.core.system import require_memory
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW, Graph, Shape

Ids = NDArray[np.int64]
Marks = NDArray[np.bool_]

Feeds = tuple[Ids, ...]
Shapes = Sequence[Shape]

ONE = 1 << 32
"""Offset of every vertex id, so that a sum of ids shows how many were added."""
LARGE = 256
"""Elements from which an array is processed on its own, not among all nodes of its kind."""
MOST_FEEDS = 12
"""Feeds of an array beyond which its elements get vertices."""


def dependence(function: Function) -> tuple[DependenceEdges, Ids, Ids]:
    """Return the edges of `function`, and the vertices of its inputs and outputs, flattened.

    Examples
    --------
    >>> import difflab as dl
    >>> edges, sources, targets = dependence(dl.parse("x: [3]; sum(x[:2])"))
    >>> sources.tolist(), len(targets)
    ([0, 1, 2], 1)
    """
    # A vertex has one id, an edge has two.
    require_memory(
        32 * function.graph.element_count(), "finding which outputs depend on which inputs"
    )
    edges = DependenceEdges()
    names = edges.add_graph(function.graph, function.input_nodes)
    ends = (function.input_nodes, function.outputs)
    sources, targets = (_joined([names(node) for node in nodes]) for nodes in ends)
    return edges, sources, targets


def _joined(parts: Sequence[Ids]) -> Ids:
    """Return the vertices whose ids are in `parts`, without the offset."""
    whole = np.concatenate([part.ravel() for part in parts]) if parts else np.empty(0, np.int64)
    return whole & (ONE - 1)


class DependenceEdges:
    """A growing list of vertices, and of edges from an element to those that depend on it.

    Attributes
    ----------
    count : int
        The number of vertices.
    """

    def __init__(self) -> None:
        self.count = 0
        self._tails: list[Ids] = []
        self._heads: list[Ids] = []

    def ends(self) -> tuple[Ids, Ids]:
        """Return the two ends of all edges."""
        return _joined(self._tails), _joined(self._heads)

    def add_graph(self, graph: Graph, sources: Iterable[int]) -> Callable[[int], Ids]:
        """Add the elements of a graph as vertices, and the edges reachable from `sources`.

        Returns
        -------
        callable
            Returns the ids of a node's elements, with the shape of its value.
        """
        by_shape = np.array([math.prod(shape) for shape in graph.shape_table])
        sizes = by_shape[graph.shape_ids]
        large = sizes >= LARGE
        offsets = self.count + np.concatenate([[0], np.cumsum(np.where(large, 0, sizes))])
        self.count = int(offsets[-1])
        known: dict[int, Ids] = {}
        feeds: dict[int, Feeds] = {}

        def names(node: int) -> Ids:
            if node not in known and large[node]:
                known[node] = self._fresh(graph.shape(node))
                for feed in feeds.get(node, ()):
                    self._link(feed, known[node])
                feeds[node] = (known[node],)
            elif node not in known:
                start = int(offsets[node]) + ONE
                whole = np.arange(start, start + int(sizes[node]))
                known[node] = whole.reshape(graph.shape(node))
            return known[node]

        reached = np.frombuffer(graph.reached_from(sources), np.bool_)
        self._link_elementwise(graph, reached & ~large, offsets[:-1], sizes)
        for node in sources:
            names(node)
        alone = large | graph.matching(lambda row: _passing(row) is None)
        for node in np.flatnonzero(alone & reached).tolist():
            if node in known:
                continue  # a source
            args = [arg if reached[arg] else None for arg in graph.arguments(node)]
            if large[node]:
                inputs = [() if arg is None else feeds.get(arg) or (names(arg),) for arg in args]
                node_feeds = _moved_feeds(graph, node, inputs)
                if node_feeds is not None:
                    feeds[node] = node_feeds
                    if len(node_feeds) > MOST_FEEDS:
                        names(node)
                    continue
            operands = [None if arg is None else names(arg) for arg in args]
            self._link_row(graph, node, operands, names(node))
        return names

    def _fresh(self, shape: Shape) -> Ids:
        """Return the ids of new vertices, as an array of `shape`."""
        size = math.prod(shape)
        self.count += size
        return np.arange(self.count - size, self.count).reshape(shape) + ONE

    def _link(self, tails: Ids, heads: Ids) -> None:
        """Add the edges between two arrays that broadcast to each other, except from 0."""
        tails, heads = np.broadcast_arrays(tails, heads)
        if tails.size and tails.min() < ONE:
            kept = tails >= ONE
            tails, heads = tails[kept], heads[kept]
        self._tails.append(tails)
        self._heads.append(heads)

    def _link_elementwise(self, graph: Graph, reached: Marks, offsets: Ids, sizes: Ids) -> None:
        """Link the operands of the elementwise rows and selections marked, in one go."""
        users = np.repeat(np.arange(len(graph)), np.diff(graph.starts))
        flows = _flowing(graph.primitives)
        positions = np.minimum(np.arange(len(users)) - graph.starts[users], flows.shape[1] - 1)
        kept = flows[graph.opcode[users], positions] & reached[graph.args] & reached[users]
        args, users = graph.args[kept], users[kept]
        repeats = sizes[users]
        within = ONE + np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        self._link(
            np.repeat(offsets[args], repeats) + within, np.repeat(offsets[users], repeats) + within
        )

    def _link_row(self, graph: Graph, node: int, operands: list[Ids | None], out: Ids) -> None:
        """Link the operands of one row that moves or mixes elements; None marks constants."""
        row = graph.primitives[int(graph.opcode[node]) - FIRST_ROW]
        params = graph.param_table[graph.param_ids[node]]
        shapes = tuple(map(graph.shape, graph.arguments(node)))
        if isinstance(row.rule, LinearMap):
            filled = [
                np.zeros(shape, np.int64) if operand is None else operand
                for operand, shape in zip(operands, shapes, strict=True)
            ]
            self._link_moved(row, row.rule, filled, dict(params), out)
            return
        for index, operand in enumerate(operands):
            entry = row.rule.entries[index] if isinstance(row.rule, ByArgument) else None
            if operand is None or (isinstance(row.rule, ByArgument) and entry is None):
                continue
            if isinstance(entry, Transpose) and "ranks" in dict(params):
                self._link_product(index, dict(params)["ranks"], operand, out)
            elif entry is None or isinstance(entry, Transpose):
                axes = dict(params).get("axes", tuple(range(-operand.ndim, 0)))
                self._link_mixed(operand, out, axes)
            else:
                recorded = recorded_tangent(entry, index, params, shapes, out.shape)
                tangent = recorded.input_nodes[0]
                names = self.add_graph(recorded.graph, [tangent])
                self._link(operand, names(tangent))
                self._link(names(recorded.outputs[0]), out)

    def _link_moved(
        self, row: Primitive, rule: LinearMap, operands: list[Ids], params: dict[str, Any], out: Ids
    ) -> None:
        """Link a linear row by applying it, or its transpose, to vertex ids.

        Usually one of the two only copies: each result depends on one element, or each element
        affects one result. Where both add ids, as for `cumsum`, whole axes are mixed.
        """
        moved = np.asarray(row.computer(np)(*operands, **params))
        if _single(moved):
            kept = moved >= ONE
            self._link(moved[kept], out[kept])
            return
        shapes = tuple(operand.shape for operand in operands)
        for position, operand in enumerate(operands):
            goal = np.asarray(rule.transpose(out, position, shapes, **params))
            if _single(goal):
                kept = (goal >= ONE) & (operand >= ONE)
                self._link(operand[kept], goal[kept])
            else:
                axes = params.get("axes", tuple(range(-operand.ndim, 0)))
                self._link_mixed(operand, out, axes)

    def _link_product(self, index: int, ranks: tuple[int, int], operand: Ids, out: Ids) -> None:
        """Link an operand of a product: rows of the left one, columns of the right one.

        The solution of a linear system depends on the right-hand side in the same way.
        """
        columns = index == 1 and ranks[1] > 1
        axis = -2 if columns else -1
        hubs = self._fresh(tuple(np.delete(operand.shape, axis).tolist()))
        self._link(operand, np.expand_dims(hubs, axis))
        if columns and ranks[0] > 1:
            hubs = hubs[..., None, :]
        elif index == 0 and ranks[1] > 1:
            hubs = hubs[..., None]
        self._link(hubs, out)

    def _link_mixed(self, operand: Ids, out: Ids, axes: tuple[int, ...]) -> None:
        """Let every result along `axes` depend on every element along them."""
        rank = operand.ndim
        kept = tuple(1 if a - rank in axes else size for a, size in enumerate(operand.shape))
        hubs = self._fresh(kept)
        self._link(operand, hubs)
        # The axes that only one of the two has are mixed, and the last ones.
        self._link(hubs.reshape((kept + (1,) * out.ndim)[: out.ndim]), out)


def _moved_feeds(graph: Graph, node: int, inputs: Sequence[Feeds]) -> Feeds | None:
    """Return the feeds of a node from those of its operands; None if its row mixes elements."""
    row = graph.primitive(node)
    flows = None if row is None else _passing(row)
    if flows is not None:
        merged: list[Ids] = []
        for flow, feeds in zip(flows, inputs, strict=True):
            for feed in feeds if flow is not None else ():
                if not any(feed is other or np.array_equal(feed, other) for other in merged):
                    merged.append(feed)
        return tuple(merged)
    if row is None or not isinstance(row.rule, LinearMap):
        return None
    shapes = tuple(map(graph.shape, graph.arguments(node)))
    kernel = partial(row.computer(np), **graph.params(node))
    moved = _layers(kernel, inputs, shapes)
    if moved is None and 1 < len(inputs) <= MOST_FEEDS:  # the sum of the layers of each operand
        parts = [
            _layers(kernel, [f if k == index else () for k, f in enumerate(inputs)], shapes)
            for index in range(len(inputs))
        ]
        if None not in parts:
            return tuple(feed for part in parts for feed in part or ())
    return moved


def _layers(kernel: Callable[..., Any], inputs: Sequence[Feeds], shapes: Shapes) -> Feeds | None:
    """Return the results of a linear kernel, feed by feed; None if it adds ids."""
    moved: list[Ids] = []
    for layer in range(max(map(len, inputs))):
        filled = [
            feeds[layer] if layer < len(feeds) else np.zeros(shape, np.int64)
            for feeds, shape in zip(inputs, shapes, strict=True)
        ]
        moved.append(np.asarray(kernel(*filled)))
        if not _single(moved[-1]):
            return None
    return tuple(moved)


def _single(moved: Ids) -> bool:
    """Whether no two ids were added."""
    return moved.size == 0 or int(moved.max()) < 2 * ONE


def _passing(row: Primitive) -> Sequence[Any] | None:
    """Return an entry for each operand that a row's result depends on elementwise.

    The entry is None for an operand without a derivative. The result is None for a row
    that moves or mixes elements.
    """
    rule = row.rule
    if isinstance(rule, Elementwise) and (row.shape is None or not any(rule.maps)):
        return rule.maps
    return rule.conditions if isinstance(rule, Select) and row.shape is None else None


def _flowing(primitives: Sequence[Primitive]) -> NDArray[np.bool_]:
    """Return by opcode and position whether dependence is elementwise; last column: False."""
    entries = [(), (), *(_passing(row) or () for row in primitives)]
    table = np.zeros((len(entries), 1 + max(map(len, entries))), dtype=np.bool_)
    for opcode, parts in enumerate(entries):
        table[opcode, : len(parts)] = [part is not None for part in parts]
    return table
