r"""Sums of a function over a stack of directions, moved inside its linear operations.

Most operations of a derivative along a direction are linear in its highest term: for y = φ(x) the
second derivative is φ″·(x₁)² + φ′·x₂. Its sum over directions needs the sum of x₂ alone, not every
x₂. So a Laplacian is computed in one pass that carries the value, one first derivative for each
direction and one sum: "collapsed Taylor mode" (Dangel et al., 2025, arXiv:2505.13644), of which
the "forward Laplacian" (Li et al., 2024, arXiv:2307.08214) is the case of order 2.

A factor that is the same for all directions is kept apart from the stack that it multiplies:
:math:`\sum_r (c\,a_r)(d\,b_r)` is :math:`c\,d \sum_r a_r b_r`, in which neither product is a stack.

Large stacks are computed in blocks of directions, one after the other, and their sums are added, so
that a call holds the first derivatives of one block only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from difflab.autodiff.engine.batching import applied
from difflab.autodiff.engine.sweep import spread
from difflab.core.primitive import ByArgument, LinearMap, Primitive, Transpose
from difflab.graph.algebra import degrees
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.primitives import (
    matmul,
    multiply,
    reshape,
    sum_,
    transpose,
    where,
)

BLOCK_ELEMENTS = 1 << 13
"""Elements of a stack above which it is computed in blocks of directions."""
MOST_BLOCKS = 4
"""Each block repeats the operations on stacks, which costs time where they are small."""


@dataclass(frozen=True)
class Directions:
    """A stack of directions.

    Attributes
    ----------
    size : int
        How many directions.
    seeds : mapping of int to callable
        For some inputs, the function that appends the stack of their directions to a builder.
    total : float
        The sum of the weights.
    weights : callable, optional
        Appends the vector of the weights to a builder; without it they are 1.
    unit : int, optional
        The input, a vector, whose directions are the unit vectors, in order.
    """

    size: int
    seeds: Mapping[int, Callable[[Builder], Node]]
    total: float
    weights: Callable[[Builder], Node] | None = None
    unit: int | None = None


def summed(function: Function, directions: Directions) -> Function:
    """Return the weighted sum of a function over a stack of values of some of its inputs.

    Parameters
    ----------
    function : Function
        Of one direction.
    directions : Directions
        The values of the inputs that differ, which are no inputs of the result.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab.primitives import constant_array
    >>> def stack(builder):
    ...     three = builder.emit(constant_array, (), (("shape", (3,)), ("values", values)))
    ...     return Node(builder, three)
    >>> import numpy as np
    >>> values = np.array([1.0, 2.0, 3.0]).tobytes()
    >>> f = summed(dl.parse("a*d^2 + d"), Directions(3, {1: stack}, 3.0))
    >>> f.inputs, float(f(10.0))
    (('a',), 146.0)
    """
    return _Sums(function, directions).function()


@dataclass(slots=True)
class _Stack:
    """Values of all directions: a stack, times a factor that is the same for all of them."""

    base: Node
    factor: Node | None = None


class _Sums:
    """The nodes of a function in a new graph: as values, as stacks of values and as sums.

    Values need no stacks, and stacks no sums. So all values are appended first, then the stacks of
    each block of directions, which are added up where a sum needs them, then the sums.
    """

    def __init__(self, function: Function, directions: Directions) -> None:
        self.original, self.graph = function, function.graph
        self.directions = directions
        self.builder = Builder(function.graph.source, simplify=True)
        seeded = [function.input_nodes[i] for i in directions.seeds]
        self.differs = self.graph.reached_from(seeded)
        self.args = [args for _, args in self.graph.rows()]
        self.values: dict[int, Node] = {}
        self.block = slice(0, directions.size)
        self.stacks: dict[int, _Stack] = {}  # of the directions of the block
        self.totals: dict[int, _Stack] = {}  # of the directions up to the end of the block
        self.sums: dict[int, Node] = {}
        self.units: set[int] = set()

    def function(self) -> Function:
        """Return the function of the sums of all outputs."""
        original, builder, graph = self.original, self.builder, self.graph
        inputs = []
        for position, node in enumerate(original.input_nodes):
            if position not in self.directions.seeds:
                value = builder.input(graph.input_name(node), graph.shape(node))
                self.values[node] = Node(builder, value)
                inputs.append(value)
        wanted, wanted_sums = self._demands()
        spans = graph.spans.tolist()
        for node in range(len(graph)):
            if wanted[node] and not self.differs[node]:
                builder.span = spans[node]
                self._append_value(node)
        stacked = [node for node in range(len(graph)) if self.differs[node]]
        for block in self._blocks([node for node in stacked if wanted[node]]):
            self._begin(block)
            for node in stacked:
                builder.span = spans[node]
                if wanted[node] and self.graph.primitive(node) is not None:
                    self._append_stack(node)
                if wanted_sums[node]:
                    self._add_up(node)
        for node in range(len(graph)):
            if wanted_sums[node]:
                builder.span = spans[node]
                self.sums[node] = self._sum(node)
        outputs = [builder.spread(self.sums[n].id, graph.shape(n)) for n in original.outputs]
        return Function.build(builder, inputs, outputs, original.output_names, original.structure)

    def _blocks(self, stacked: Sequence[int]) -> list[slice]:
        """Return the blocks of directions, given the nodes that are stacks."""
        size = self.directions.size
        largest = size * max((math.prod(self.graph.shape(node)) for node in stacked), default=0)
        count = max(min(-(-largest // BLOCK_ELEMENTS), size, MOST_BLOCKS), 1)
        return [slice(size * k // count, size * (k + 1) // count) for k in range(count)]

    def _begin(self, block: slice) -> None:
        """Append the directions of a block."""
        self.block, self.stacks = block, {}
        for position, seed in self.directions.seeds.items():
            stack = self._in_block(seed(self.builder))
            self.stacks[self.original.input_nodes[position]] = _Stack(stack)
            if position == self.directions.unit:
                self.units = {stack.id}

    def _in_block(self, whole: Node) -> Node:
        """Return the part of a stack of all directions that belongs to the block."""
        return whole if whole.shape[0] == self._count else whole[self.block]

    @property
    def _count(self) -> int:
        """How many directions the block has."""
        return int(self.block.stop - self.block.start)

    def _demands(self) -> tuple[bytearray, bytearray]:
        """Mark the nodes of which the values, and of which the sums are needed."""
        wanted, wanted_sums = bytearray(len(self.graph)), bytearray(len(self.graph))
        for node in self.original.outputs:
            wanted_sums[node] = 1
        for node in range(len(self.graph) - 1, -1, -1):
            through: Sequence[int] = ()
            if wanted_sums[node]:
                through = self._linear_in(node)
                for position in through:
                    wanted_sums[self.args[node][position]] = 1
                if not through and not self._is_product(node):
                    wanted[node] = 1
            if wanted[node] or wanted_sums[node]:
                for position, arg in enumerate(self.args[node]):
                    if wanted[node] or position not in through:
                        wanted[arg] = 1
        return wanted, wanted_sums

    def _is_product(self, node: int) -> bool:
        """Whether a node is the elementwise product of two values that differ."""
        differs = [self.differs[arg] for arg in self.args[node]]
        return degrees(self.graph, node) == (1, 1) and all(differs)

    def _linear_in(self, node: int) -> Sequence[int]:
        """Return the positions of the arguments in which a node is jointly linear.

        No other argument differs between the directions.
        """
        row, args = self.graph.primitive(node), self.args[node]
        differing = [k for k, arg in enumerate(args) if self.differs[arg]]
        if row is None or not differing:
            return ()
        rule = row.rule
        if row.signs or isinstance(rule, LinearMap):
            return range(len(args))
        if row is where:
            return () if differing[0] == 0 else (1, 2)
        linear = (row.degrees and row.degrees[differing[0]] == 1) or (
            isinstance(rule, ByArgument) and isinstance(rule.entries[differing[0]], Transpose)
        )
        return differing if linear and len(differing) == 1 else ()

    def _append_value(self, node: int) -> None:
        """Append the value of a node, which is the same for all directions."""
        row, args = self.graph.primitive(node), self.args[node]
        if row is None:
            if node in self.graph.constants:
                value = self.builder.constant(*self.graph.constants[node])
                self.values[node] = Node(self.builder, value)
            return
        operands = [self.values[arg].id for arg in args]
        made = self.builder.emit(row, operands, tuple(self.graph.params(node).items()))
        kept = made if row.boolean else self.builder.spread(made, self.graph.shape(node))
        self.values[node] = Node(self.builder, kept)

    def _append_stack(self, node: int) -> None:
        """Append the values of a node for the directions of the block."""
        row = self.graph.primitive(node)
        assert row is not None
        scaled = self._scaled(row, self.args[node])
        self.stacks[node] = scaled or _Stack(self._applied(node, row, self.graph.params(node)))

    def _scaled(self, row: Primitive, args: Sequence[int]) -> _Stack | None:
        """Return a product, a quotient or a negative as a stack times a factor; else None."""
        if row.signs == (-1,):
            stack = self.stacks[args[0]]
            minus = Node(self.builder, self.builder.constant(-1))
            return _Stack(stack.base, _product(minus, stack.factor))
        if row.degrees == (1, -1) and not self.differs[args[1]]:
            stack, divisor = self.stacks[args[0]], self.values[args[1]]
            one = Node(self.builder, self.builder.constant(1))
            return _Stack(stack.base, _product(one, stack.factor) / divisor)
        if row.degrees != (1, 1):
            return None
        a, b = args
        if not (self.differs[a] and self.differs[b]):
            a, b = (a, b) if self.differs[a] else (b, a)
            return _Stack(self.stacks[a].base, _product(self.stacks[a].factor, self.values[b]))
        first, second = self.stacks[a], self.stacks[b]
        return _Stack(first.base * second.base, _product(first.factor, second.factor))

    def _stack(self, node: int) -> Node:
        """Return the values of a node for all directions."""
        stack = self.stacks[node]
        whole = stack.base if stack.factor is None else stack.base * stack.factor
        self.stacks[node] = _Stack(whole)
        return whole

    def _applied(self, node: int, row: Primitive, params: Mapping[str, Any]) -> Node:
        """Apply a row to stacks, and to values that do not differ."""
        args = self.args[node]
        operands = [
            (self._stack(arg), True) if self.differs[arg] else (self.values[arg], False)
            for arg in args
        ]
        if row is matmul and self.units and params["ranks"] in {(1, 2), (1, 1), (2, 1)}:
            rows = self._rows(*operands)
            if rows is not None:
                return rows
        if row.shape is not None:
            return applied(row, self._count, operands, dict(params))
        whole: Node = row(*(operand for operand, _ in operands), **params)
        return whole

    def _rows(self, a: tuple[Node, bool], b: tuple[Node, bool]) -> Node | None:
        """Return the products of the block's unit vectors with a matrix: its rows or columns."""
        if a[0].id in self.units and not b[1]:
            return self._in_block(b[0])
        if b[0].id in self.units and not a[1]:
            return self._in_block(a[0] if a[0].ndim == 1 else transpose(a[0], axes=(-1, -2)))
        return None

    def _add_up(self, node: int) -> None:
        """Add the sum over the directions of the block, of a node whose values it needs."""
        if self._is_product(node):
            stack = self._scaled(multiply, self.args[node])
            assert stack is not None
        elif self._linear_in(node):
            return
        else:
            stack = self.stacks[node]
        weights = self.directions.weights
        part = weighted_sum(
            stack.base, None if weights is None else self._in_block(weights(self.builder))
        )
        before = self.totals.get(node)
        self.totals[node] = _Stack(part if before is None else before.base + part, stack.factor)

    def _sum(self, node: int) -> Any:
        """Return the sum of the values of a node for all directions."""
        if not self.differs[node]:
            return self.values[node] * self.directions.total
        if node in self.totals:
            total = self.totals[node]
            return _product(total.base, total.factor)
        row, through = self.graph.primitive(node), self._linear_in(node)
        assert row is not None
        operands = [
            self.sums[arg] if position in through else self.values[arg]
            for position, arg in enumerate(self.args[node])
        ]
        whole: Node = row(*operands, **self.graph.params(node))
        return spread(whole, self.graph.shape(node))


def weighted_sum(stack: Node, weights: Node | None = None) -> Node:
    """Return the weighted sum of a stack over its first axis."""
    rank, shape = stack.ndim, stack.shape
    total: Node
    if weights is None:
        total = sum_(stack, axes=(-rank,), rank=rank)
    elif rank == 1:
        total = matmul(weights, stack, ranks=(1, 1))
    else:
        flat = reshape(stack, shape=(shape[0], math.prod(shape[1:])), rank=rank)
        total = reshape(matmul(weights, flat, ranks=(1, 2)), shape=shape[1:], rank=1)
    return total


def _product(a: Node | None, b: Node | None) -> Any:
    """Return a·b, where None is 1."""
    return b if a is None else a if b is None else a * b
