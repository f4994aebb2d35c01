"""The entries of a Jacobian by vertex elimination; paths of several entries are multiplied once.

Every operation puts its partial derivatives on the edges of the graph; an entry is the sum over
all paths of the products of their edges. To eliminate a vertex, each of its predecessors is
joined to each of its successors by the product of the two edges. From the inputs on this is
forward mode and from the outputs back reverse mode; the vertex with the fewest products first
(Markowitz' rule: A. Griewank and S. Reese, *On the calculation of Jacobian matrices by the
Markowitz rule*, 1991) is often fewer than either, as where many paths pass through few vertices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from difflab.autodiff.engine.masked import Masked, accumulate, both
from difflab.autodiff.engine.recipe import template
from difflab.autodiff.engine.sweep import Sweep
from difflab.core.primitive import Elementwise, Select
from difflab.graph.builder import Builder
from difflab.graph.ir import FIRST_ROW
from difflab.primitives import multiply

PartialEdges = dict[int, dict[int, Masked]]
"""For each vertex its predecessors, with the partial derivative on the edge from each."""


def eliminate(
    sweep: Sweep, columns: Mapping[int, int], outputs: Sequence[int], limit: int
) -> list[dict[int, Masked]] | None:
    """Return the entries of each output's row, by column; those that are absent are zero.

    Parameters
    ----------
    sweep : Sweep
        The graph and the builder to append to.
    columns : mapping of int to int
        The nodes that are scalar elements of the inputs, and their columns of the Jacobian.
    outputs : sequence of int
        The nodes whose derivatives are wanted, each a scalar.
    limit : int
        Nodes of the builder at which to give up.

    Returns
    -------
    list of dict, or None
        None if an operation is not on scalars, or at the limit.
    """
    edges = _linearised(sweep, columns, outputs)
    if edges is None:
        return None
    graph = _Linearised(sweep.builder, edges)
    waiting = [(graph.products(v), -v) for v in edges if v >= 0]
    heapify(waiting)
    while waiting:
        cost, vertex = heappop(waiting)
        if -vertex not in graph.successors or cost != graph.products(-vertex):
            continue  # removed, or queued again with another cost
        touched = graph.remove(-vertex)
        if len(sweep.builder) > limit:
            return None
        for other in touched:
            heappush(waiting, (graph.products(other), -other))
    return [
        _by_column(sweep.builder, edges[_sink(index)], columns) for index in range(len(outputs))
    ]


def _sink(index: int) -> int:
    """Return the extra vertex after an output, so that the output is an inner vertex."""
    return -1 - index


def _linearised(
    sweep: Sweep, columns: Mapping[int, int], outputs: Sequence[int]
) -> PartialEdges | None:
    """Return the partial derivatives of everything between the inputs and the outputs."""
    active = sweep.graph.reached_from(sweep.function.input_nodes)
    edges: PartialEdges = {_sink(index): {} for index in range(len(outputs))}
    wanted = bytearray(len(active))
    for index, node in enumerate(outputs):
        if node < len(active) and active[node]:
            wanted[node] = 1
            edges[_sink(index)][node] = Masked(sweep.constant(1).id)
    for node in range(len(active) - 1, -1, -1):
        if not wanted[node] or node in columns:
            continue
        partials = _partials(sweep, node, active)
        if partials is None:
            return None
        edges[node] = partials
        for arg in partials:
            wanted[arg] = 1
    return edges


def _partials(sweep: Sweep, node: int, active: Sequence[int]) -> dict[int, Masked] | None:
    """Return ∂node/∂arg for the active arguments; None for other kinds of rules."""
    if sweep.opcode[node] < FIRST_ROW or sweep.graph.shape(node) != ():
        return None
    rule, args = sweep.graph.primitives[sweep.opcode[node] - FIRST_ROW].rule, sweep.args(node)
    if not isinstance(rule, Elementwise | Select):
        return None
    sweep.at(node)
    one = sweep.constant(1).id
    parts: dict[int, list[Masked]] = {}
    for position, arg in enumerate(args):
        if not active[arg]:
            continue
        if isinstance(rule, Elementwise):
            rule_map = rule.maps[position]
            if rule_map is not None:
                slope = template(rule_map, len(args)).stamp(sweep.builder, one, node, args)
                parts.setdefault(arg, []).append(Masked(slope))
        else:
            condition = rule.conditions[position]
            if condition is not None:
                mask = condition(*map(sweep.node, args)).id
                parts.setdefault(arg, []).append(Masked(one, mask))
    return {arg: accumulate(sweep.builder, part) for arg, part in parts.items()}


class _Linearised:
    """The graph whose edges are partial derivatives."""

    def __init__(self, builder: Builder, edges: PartialEdges) -> None:
        self.builder = builder
        self.edges = edges
        self.successors: dict[int, set[int]] = {v: set() for v in edges if v >= 0}
        for vertex, sources in edges.items():
            for source in sources:
                if source in edges:
                    self.successors[source].add(vertex)

    def products(self, vertex: int) -> int:
        """Return how many products it takes to eliminate `vertex`."""
        return len(self.edges[vertex]) * len(self.successors[vertex])

    def remove(self, vertex: int) -> set[int]:
        """Eliminate `vertex`; return the inner vertices whose edges changed."""
        sources, users = self.edges.pop(vertex), self.successors.pop(vertex)
        inner = [source for source in sources if source in self.edges]
        for user in sorted(users):
            onto = self.edges[user]
            later = onto.pop(vertex)
            for source, earlier in sources.items():
                path = self._product(later, earlier)
                known = onto.get(source)
                onto[source] = path if known is None else accumulate(self.builder, [known, path])
        for source in inner:
            self.successors[source].discard(vertex)
            self.successors[source] |= users
        return {*inner, *(user for user in users if user >= 0)}

    def _product(self, later: Masked, earlier: Masked) -> Masked:
        """Return the product of the derivatives on two edges, under both masks."""
        value = self.builder.emit(multiply, (later.value, earlier.value))
        if earlier.mask is None or earlier.mask == later.mask:
            return Masked(value, later.mask)
        return Masked(value, both(self.builder, later.mask, earlier.mask))


def _by_column(
    builder: Builder, sources: Mapping[int, Masked], columns: Mapping[int, int]
) -> dict[int, Masked]:
    """Return the edges from inputs by their column; several nodes may be the same number."""
    grouped: dict[int, list[Masked]] = {}
    for source, part in sources.items():
        grouped.setdefault(columns[source], []).append(part)
    return {column: accumulate(builder, parts) for column, parts in grouped.items()}
