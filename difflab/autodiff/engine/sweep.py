"""The state of a sweep: the function's graph and the builder of its derivative."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import cached_property
from itertools import product

from difflab.autodiff.engine.masked import Masked, resolved
from difflab.autodiff.engine.recipe import template
from difflab.autodiff.engine.squares import with_sums_of_squares
from difflab.autodiff.engine.zeros import Zeros
from difflab.core.primitive import Elementwise, Shapes
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import Graph, Shape
from difflab.graph.node import Node
from difflab.primitives import index, pack, reshape, scatter

_GATHERING = frozenset({pack, reshape})
"""Rows whose result has the elements of all arguments in order."""

ElementIndex = tuple[int, ...]
ElementPosition = tuple[int, ElementIndex]


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
        # Inputs and constants, whose opcodes come first, have no rule.
        self.rules = [None, None, *[row.rule for row in self.graph.primitives]]
        self.opcode, self.starts = self.graph.opcode.data, self.graph.starts.data
        self.all_args, self.spans = self.graph.args.data, self.graph.spans.data
        self._users: tuple[list[int], list[int]] | None = None
        self._shapes: tuple[int, Shapes] = -1, Shapes()
        self._reached: tuple[Set[int], bytearray] = (frozenset(), bytearray(len(self.graph)))

    @cached_property
    def zeros(self) -> Zeros:
        """The masks whose values are known."""
        return Zeros(self.builder, len(self.graph))

    def seeded(self, seed: int) -> Masked | None:
        """Return a seed with the mask of its nonzero elements; None if all are zero."""
        return self.zeros.seeded(seed) if seed in self.builder.shape_ids else Masked(seed)

    def shapes(self, number: int) -> Shapes:
        """Return the shapes of a node's arguments; a node's transposes ask for the same."""
        if self._shapes[0] != number:
            self._shapes = number, Shapes(map(self.graph.shape, self.args(number)))
        return self._shapes[1]

    def stamped(
        self, number: int, args: list[int], rule: Elementwise, position: int, part: Masked
    ) -> Masked | None:
        """Apply a rule's map for one argument to the node's cotangent or the argument's tangent.

        None where no derivative flows.
        """
        rule_map = rule.maps[position]
        if rule_map is None:
            return None
        exponent = None
        if rule.of_exponent:
            exponent, name = self.builder.constants.get(args[-1], (None, None))
            if name or exponent == -1:  # the sign of -x⁻² joins that of the cotangent
                exponent = None
        recipe = template(rule_map, len(args), exponent)
        if recipe.passes and not part.clean:
            return part
        builder, multiple = self.builder, recipe.magnitude
        if part.negated and multiple is None:
            part = Masked(resolved(builder, part))
        if part.mask is None and multiple is not None:
            value = multiple.stamp(builder, part.value, number, args)
            if part.negated is not (multiple is recipe):
                return Masked(value)
            made = Masked(value, None, False, True)
            # The negative of a number or of a difference is one.
            return Masked(resolved(builder, made)) if builder.reducible[value] else made
        value = recipe.stamp(builder, part.value, number, args)
        if part.mask is None:
            return Masked(value)
        return self.zeros.stamped(recipe, value, part, [part.value, number, *args])

    def node(self, number: int) -> Node:
        """Return a node of the builder as a `Node`."""
        return Node(self.builder, number)

    def constant(self, value: float) -> Node:
        """Return a constant as a `Node`."""
        return Node(self.builder, self.builder.constant(value))

    def args(self, number: int) -> list[int]:
        """Return the arguments of a node of the function."""
        args: list[int] = self.all_args[self.starts[number] : self.starts[number + 1]].tolist()
        return args

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


def filled(
    sweep: Sweep, derivatives: Mapping[int, Node], nodes: Sequence[int], *, alone: bool = False
) -> list[Node]:
    """Return tangents or cotangents of the shapes of nodes; zeros where there is none.

    Sweeps that are not `alone` append 0 in any case: the next ones, which may use it, find it.
    """
    builder, shape = sweep.builder, sweep.graph.shape
    complete = alone and len(derivatives) == len(nodes)
    zero = -1 if complete else builder.constant(0)
    ids = [derivatives[number].id if number in derivatives else zero for number in nodes]
    pairs = zip(ids, map(shape, nodes), strict=True)
    return [Node(builder, builder.spread(*pair)) for pair in pairs]


def unit(sweep: Sweep, shape: Shape, key: tuple[int, ...]) -> Node:
    """Return an array with 1 at an index and 0 elsewhere; the number 1 for the shape ()."""
    one = Node(sweep.builder, sweep.builder.constant(1))
    return scatter(one, keys=(key,), shape=shape) if shape else one


def packed(sweep: Sweep, parts: list[Node]) -> Node:
    """Return all elements of `parts`, which may be empty, as one vector."""
    builder, ids = sweep.builder, [part.id for part in parts]
    params = (("ranks", tuple([len(builder.shape(node)) for node in ids])),)
    return Node(builder, builder.emit(pack, ids, params))


def function_of(sweep: Sweep, outputs: Sequence[Node], names: Sequence[str]) -> Function:
    """Return the function of the same arguments with nodes of the builder as outputs."""
    function, ids = sweep.function, [node.id for node in outputs]
    arguments = function.arguments
    return Function.build(sweep.builder, function.input_nodes, ids, names, arguments=arguments)


def element_origins(builder: Builder, nodes: Sequence[int]) -> list[ElementPosition]:
    """Return the node and the index that each element of arrays comes from.

    An array that only gathers scalars, as a gradient does, is split into those scalars.
    """
    origins: list[ElementPosition] = []
    for node in nodes:
        row = builder.primitive(node)
        if row in _GATHERING:
            origins += element_origins(builder, builder.arguments(node))
            continue
        shape = builder.shape(node)
        indices = element_indices(shape) if shape else [()]
        if row is scatter:
            args = builder.arguments(node)
            pairs = zip(builder.params(node)["keys"], args, strict=True)
            parts: dict[ElementIndex, ElementPosition] = {key: (part, ()) for key, part in pairs}
            # A part of several elements, and parts that are added up, are not split.
            if len(parts) == len(args) and parts.keys() <= set(indices):
                zero = (builder.constant(0), ())
                origins += [parts.get(key, zero) for key in indices]
                continue
        origins += [(node, key) for key in indices]
    return origins


def element_indices(shape: Shape) -> list[ElementIndex]:
    """Return the index of every number of an array, in order."""
    return list(product(*map(range, shape)))


def number_at(sweep: Sweep, number: int, key: ElementIndex) -> Node:
    """Return one number of a node."""
    node = sweep.node(number)
    picked: Node = index(node, key=key, rank=node.ndim) if key else node
    return picked


def fresh_inputs(
    sweep: Sweep, names: Sequence[str], shapes: Sequence[tuple[int, ...]], suffix: str
) -> list[Node]:
    """Add an input for each name, with a suffix that collides with no input."""
    used = set(sweep.function.inputs)
    while any(name + suffix in used for name in names):
        suffix += "_"
    return [
        Node(sweep.builder, sweep.builder.input(name + suffix, shape))
        for name, shape in zip(names, shapes, strict=True)
    ]
