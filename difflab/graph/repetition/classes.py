"""Classes: scalars that the same operation computes from scalars of the same classes.

The graph is read level by level, as arrays: a scalar's class is its operation and the classes of
its arguments, so members of a class lie on one level and none depends on another. Within a
class the members, its *lanes*, are ordered as the lanes are that they are computed from: so
neighbours in the text are neighbours in the vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, INPUT, Graph
from difflab.graph.repetition.chains import Chains
from difflab.primitives import index, power

OFTEN = 32
"""Uses from which a constant is part of the structure, not data."""

PATIENCE = 200
"""Classes to read before giving up on a graph that has too many for the nodes read so far."""

Nodes = NDArray[np.int64]


class LaneKind(Enum):
    """Kinds of the lanes of a class."""

    INPUT = auto()
    """Scalar inputs."""
    CONSTANT = auto()
    """Constants of the graph."""
    ELEMENTS = auto()
    """The elements of one array; a lane is a flat index."""
    OPERATION = auto()
    """The results of one elementwise row."""
    SUM = auto()
    """Long sums."""
    WHOLE = auto()
    """A single node that is copied unchanged."""


@dataclass(frozen=True)
class LaneClass:
    """Scalars that are computed alike."""

    kind: LaneKind
    nodes: Nodes


@dataclass
class LaneClasses:
    """The classes of a graph, in an order in which they can be computed.

    Attributes
    ----------
    members : list of LaneClass
        Every class.
    of, lane : (nodes,) array of int
        The class of each node, and its index in that class.
    """

    members: list[LaneClass]
    of: Nodes
    lane: Nodes


def classes(function: Function, chains: Chains, lanes: int) -> LaneClasses | None:
    """Return the classes of a function; None if they hold fewer than `lanes` nodes on average."""
    graph = function.graph
    finder = _Finder(graph, chains, function.input_nodes)
    seen = 0
    for nodes in _levels(graph, chains):
        finder.add(nodes)
        seen += len(nodes)
        groups = len(finder.classes.members)
        if groups * lanes > (seen if groups > PATIENCE else len(graph)):
            return None
    return finder.classes


def _levels(graph: Graph, chains: Chains) -> Iterator[Nodes]:
    """Yield the nodes level by level; the last node of a sum takes all of its terms."""
    size = len(graph)
    users = np.repeat(np.arange(size), np.diff(graph.starts))
    ends = _ends(chains)
    summed = chains.inside.copy()
    summed[ends] = True
    kept = ~summed[users]
    users = np.concatenate(
        [users[kept], np.repeat(ends, [len(terms) for terms in chains.terms.values()])]
    )
    args = np.concatenate([graph.args[kept], *chains.terms.values()]).astype(np.int64)
    waiting = np.bincount(users, minlength=size)
    by_arg = np.argsort(args, kind="stable")
    users = users[by_arg]
    ends_of = np.cumsum(np.bincount(args, minlength=size))
    starts_of = np.concatenate([[0], ends_of[:-1]])
    ready = np.flatnonzero((waiting == 0) & ~chains.inside)
    while len(ready):
        yield ready
        targets = users[_ranges(starts_of[ready], ends_of[ready])]
        np.subtract.at(waiting, targets, 1)
        ready = _distinct(targets[waiting[targets] == 0])


def _distinct(nodes: NDArray[Any]) -> NDArray[Any]:
    """Return nodes in order, each once; `np.unique` would load NumPy's masked arrays for that."""
    ordered = np.sort(nodes)
    return ordered[_changes(ordered, first=True)]


def _changes(values: NDArray[Any], *, first: bool = False) -> NDArray[np.bool_]:
    """Mark the values that differ from the one before; `first`: and the first, if there is one."""
    changed = values[1:] != values[:-1]
    return np.concatenate([[True], changed])[: len(values)] if first else changed


def _ends(chains: Chains) -> Nodes:
    return np.array(list(chains.terms), dtype=np.int64)


def _ranges(starts: Nodes, ends: Nodes) -> Nodes:
    """Return the concatenation of the ranges from each start to its end."""
    sizes = ends - starts
    offsets = np.cumsum(sizes) - sizes
    ranges: Nodes = np.arange(sizes.sum()) + np.repeat(starts - offsets, sizes)
    return ranges


class _Finder:
    """Assigns classes to nodes, level by level."""

    def __init__(self, graph: Graph, chains: Chains, inputs: Sequence[int]) -> None:
        self.graph = graph
        self.chains = chains
        size = len(graph)
        self.classes = LaneClasses([], np.full(size, -1), np.zeros(size, dtype=np.int64))
        scalar = graph.scalars()
        self.scalar = scalar
        self.inputs = np.array([node for node in inputs if scalar[node]], dtype=np.int64)
        self.summed = np.zeros(size, dtype=np.bool_)
        self.summed[_ends(chains)] = True
        self.elementwise = graph.matching(lambda row: row.shape is None) & scalar & ~self.summed
        self.element = element_indices(graph)
        self.exponents = self._exponents()
        self.arity = np.diff(graph.starts)

    def add(self, nodes: Nodes) -> None:
        """Read a level."""
        opcode = self.graph.opcode[nodes]
        self._constants(nodes[opcode == CONSTANT])
        inputs = (opcode == INPUT) & self.scalar[nodes]
        if inputs.any():
            self._new(LaneKind.INPUT, self.inputs)
        operation = self.elementwise[nodes]
        element = self.element[nodes] >= 0
        summed = self.summed[nodes]
        self._from_arrays(nodes[element])
        self._operations(nodes[operation])
        self._sums(nodes[summed].tolist())
        rest = ~(operation | element | summed | inputs | (opcode == CONSTANT))
        for node in nodes[rest]:
            self._new(LaneKind.WHOLE, np.array([node]))

    def _new(self, kind: LaneKind, nodes: Nodes) -> None:
        self.classes.of[nodes] = len(self.classes.members)
        self.classes.lane[nodes] = np.arange(len(nodes))
        self.classes.members.append(LaneClass(kind, nodes))

    def _constants(self, nodes: Nodes) -> None:
        """Class constants: each frequent one alone, and all others, which are data, together."""
        if not len(nodes):
            return
        graph = self.graph
        uses = np.bincount(graph.args[~self.exponents], minlength=len(graph))
        alone = uses[nodes] >= OFTEN
        for node in nodes[alone]:
            self._new(LaneKind.CONSTANT, np.array([node]))
        if not alone.all():
            self._new(LaneKind.CONSTANT, nodes[~alone])
        self.classes.lane[nodes] = 0  # they do not determine the order of their results

    def _exponents(self) -> NDArray[np.bool_]:
        """Mark the arguments that are whole exponents, which decide how a power is computed."""
        graph = self.graph
        marked = np.zeros(len(graph.args), dtype=np.bool_)
        whole = np.zeros(len(graph), dtype=np.bool_)
        for node, (value, _) in graph.constants.items():
            whole[node] = float(value).is_integer()
        slots = graph.starts[:-1][graph.applies(power)] + 1
        marked[slots] = whole[graph.args[slots]]
        return marked

    def _from_arrays(self, nodes: Nodes) -> None:
        """Class the elements of arrays; those of one array are on one level."""
        if not len(nodes):
            return
        sources = self.graph.args[self.graph.starts[nodes]]
        for source in _distinct(sources):
            chosen = nodes[sources == source]
            self._new(LaneKind.ELEMENTS, chosen)
            self.classes.lane[chosen] = self.element[chosen]

    def _operations(self, nodes: Nodes) -> None:
        """Class the results of elementwise rows."""
        if not len(nodes):
            return
        graph, lane_classes = self.graph, self.classes
        arity = self.arity[nodes]
        kinds: list[NDArray[Any]] = [graph.opcode[nodes]]
        lanes: list[NDArray[Any]] = [nodes]
        for position in range(int(arity.max())):
            there = arity > position
            slots = np.where(there, graph.starts[nodes] + position, 0)
            args = graph.args[slots]
            groups = np.where(self.exponents[slots], ~args, lane_classes.of[args] + 1)
            kinds.append(np.where(there, groups, 0))
            lanes.insert(1, np.where(there, lane_classes.lane[args], 0))
        order = np.lexsort([*lanes, *reversed(kinds)])  # by class, by the first argument's lane, …
        differs = np.any([_changes(kind[order]) for kind in kinds], axis=0)
        ends = (np.flatnonzero(differs) + 1).tolist()
        for start, stop in pairwise([0, *ends, len(nodes)]):
            self._new(LaneKind.OPERATION, nodes[order[start:stop]])

    def _sums(self, nodes: Sequence[int]) -> None:
        """Class long sums by the classes of their terms."""
        alike: dict[tuple[bytes, bytes], list[int]] = {}
        for node in nodes:
            terms, negated = self.chains.terms[node], self.chains.negated[node]
            alike.setdefault((self.classes.of[terms].tobytes(), negated.tobytes()), []).append(node)
        for members in alike.values():
            self._new(LaneKind.SUM, np.array(members))


def element_indices(graph: Graph) -> Nodes:
    """Return for each node that is an element of an array its flat index, else -1."""
    indices = np.full(len(graph), -1)
    scalar = graph.scalars()
    nodes = np.flatnonzero(graph.applies(index) & scalar)
    keys = [dict(params).get("key") for params in graph.param_table]
    shapes = graph.shape_table
    sources = graph.args[graph.starts[nodes]]
    pairs = zip(graph.param_ids[nodes].tolist(), graph.shape_ids[sources].tolist(), strict=True)
    indices[nodes] = [flat(keys[param], shapes[shape]) for param, shape in pairs]
    return indices


def flat(key: Sequence[int], shape: Sequence[int]) -> int:
    """Return the row-major flat index of a key in an array."""
    offset = 0
    for entry, size in zip(key, shape, strict=True):
        offset = offset * size + entry
    return offset
