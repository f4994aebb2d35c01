"""The state of a sweep: the function's graph and the builder of its derivative."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from difflab.autodiff.engine.squares import with_sums_of_squares
from difflab.autodiff.engine.zeros import Zeros
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import Graph, Shape
from difflab.graph.node import Node
from difflab.primitives import scatter


class Sweep:
    """A function's graph and the builder that its derivative is appended to.

    The builder continues the graph, so that node numbers of the function stay valid and the
    derivative shares every intermediate result with it. With `resolves`, a masked cotangent is
    replaced by zero, where its mask is false, when it reaches an input. With `joins`, cotangents
    are added when they arrive, not when all have: fewer of them are alive at a time. Without
    `squares` those of norms stay as they are: each node has its own derivative.
    """

    def __init__(
        self,
        function: Function,
        *,
        resolves: bool = True,
        joins: bool = False,
        squares: bool = True,
    ) -> None:
        self.function = function
        self.joins = joins or any(row.workspace for row in function.graph.primitives)
        self.resolves = resolves
        self.graph: Graph = with_sums_of_squares(function) if squares else function.graph
        self.builder = Builder.continuing(self.graph)
        self.zeros = Zeros(self.builder)
        self.opcode: list[int] = self.graph.opcode.tolist()
        self.starts: list[int] = self.graph.starts.tolist()
        self.all_args: list[int] = self.graph.args.tolist()
        self.spans: list[int] = self.graph.spans.tolist()
        self._users: tuple[list[int], list[int]] | None = None
        self._reached: tuple[Set[int], bytearray] = (frozenset(), bytearray(len(self.graph)))

    def node(self, number: int) -> Node:
        """Return a node of the builder as a `Node`."""
        return Node(self.builder, number)

    def constant(self, value: float) -> Node:
        """Return a constant as a `Node`."""
        return Node(self.builder, self.builder.constant(value))

    def args(self, number: int) -> list[int]:
        """Return the arguments of a node of the function."""
        return self.all_args[self.starts[number] : self.starts[number + 1]]

    def users(self, number: int) -> list[int]:
        """Return the nodes of the function that use a node, those that do so twice twice."""
        if self._users is None:
            self._users = self.graph.users()
        starts, users = self._users
        return users[starts[number] : starts[number + 1]]

    def reached_from(self, sources: Set[int]) -> bytearray:
        """Mark the nodes that depend on `sources`; sweeps of one Jacobian ask for the same."""
        if self._reached[0] != sources:
            self._reached = sources, self.graph.reached_from(sources)
        return self._reached[1]

    def at(self, number: int) -> None:
        """Give the nodes appended next the source location of node `number`."""
        self.builder.span = self.spans[number]


def spread(node: Node, shape: tuple[int, ...]) -> Node:
    """Return `node` broadcast to `shape`."""
    return Node(node.builder, node.builder.spread(node.id, shape))


def filled(sweep: Sweep, found: Mapping[int, Node], numbers: Sequence[int]) -> list[Node]:
    """Return tangents or cotangents of the shapes of nodes; zeros where none is found."""
    zero = sweep.constant(0)
    return [spread(found.get(number, zero), sweep.graph.shape(number)) for number in numbers]


def unit(sweep: Sweep, shape: Shape, key: tuple[int, ...]) -> Node:
    """Return an array with 1 at an index and 0 elsewhere; the number 1 for the shape ()."""
    one = sweep.constant(1)
    return scatter(one, keys=(key,), shape=shape) if shape else one


def fresh_inputs(
    sweep: Sweep, names: Sequence[str], shapes: Sequence[tuple[int, ...]], suffix: str
) -> list[Node]:
    """Add an input for each name, with a suffix that collides with no input."""
    taken = set(sweep.function.inputs)
    while any(name + suffix in taken for name in names):
        suffix += "_"
    return [
        Node(sweep.builder, sweep.builder.input(name + suffix, shape))
        for name, shape in zip(names, shapes, strict=True)
    ]
