r"""Differential operators of Functions, as Functions, each in several ways.

An operator is a weighted sum of one derivative over a stack of directions. Such a *term* is a
Function whose last inputs are the direction: the second derivative along it, say. A way says by
which sweeps the term is computed, and whether the sum is moved inside of it
(`difflab.autodiff.engine.collapsed`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import accumulate, combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from difflab.autodiff.engine.argnums import cotangents_of, jacobians, tangents_of
from difflab.autodiff.engine.batching import batched
from difflab.autodiff.engine.collapsed import Directions, summed, weighted_sum
from difflab.autodiff.functions.series import along
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.graph.rewritten import inlined, selected
from difflab.primitives import (
    add,
    constant_array,
    pack,
    reshape,
    scatter,
    sqrt,
    sum_,
)

Positions = tuple[int, ...]
Way = Callable[[Function, Positions, Positions], Function]
"""Returns an operator of a function by `sources`, of the chosen outputs."""


# --- terms: derivatives along one direction ---------------------------------------------------


def _reverse(function: Function, sources: Positions, outputs: Positions) -> Function:
    """Return the derivatives along a direction, by reverse sweeps."""
    slopes = jacobians(function, sources, outputs, forward=False)
    return _contracted(slopes, function, sources)


def _forward_over_reverse(function: Function, sources: Positions, outputs: Positions) -> Function:
    """Return the second derivatives along a direction, by tangents of reverse sweeps."""
    slopes = jacobians(function, sources, outputs, forward=False)
    return _contracted(tangents_of(slopes, sources), function, sources)


def _reverse_over_reverse(function: Function, sources: Positions, outputs: Positions) -> Function:
    """Return the second derivatives along a direction, by reverse sweeps of reverse sweeps."""
    first = _reverse(function, sources, outputs)
    slopes = jacobians(first, sources, tuple(range(len(first.outputs))), forward=False)
    return _contracted(slopes, function, sources)


def traced(
    function: Function, sources: Positions, outputs: Positions, *, forward: bool
) -> Function:
    """Return dᵀ J d for outputs with as many elements as `sources`, in order."""
    whole = selected(function, [function.outputs[i] for i in outputs], function.output_names)
    product = tangents_of(whole, sources) if forward else cotangents_of(whole, sources)
    known = len(function.inputs)

    def inner(nodes: list[Node]) -> list[Node]:
        return [_inner(_flat(inlined(product, nodes)), _flat(nodes[known:]))]

    return _over(_inputs(product), inner)


def _contracted(blocks: Function, function: Function, sources: Positions) -> Function:
    """Return the products of Jacobians with a direction.

    `blocks` returns the Jacobian of each output by each source. Its last inputs are the direction;
    else this is added.
    """
    known, count, inputs = len(function.inputs), len(sources), _inputs(blocks)
    if len(inputs) == known:
        suffix = "_dot"
        while any(function.inputs[i] + suffix in function.inputs for i in sources):
            suffix += "_"
        inputs += [(function.inputs[i] + suffix, function.input_shapes[i]) for i in sources]

    def products(nodes: list[Node]) -> list[Node]:
        entries, seeds = inlined(blocks, nodes[: len(blocks.inputs)]), nodes[known:]
        rows = [entries[k : k + count] for k in range(0, len(entries), count)]
        return [reduce(add, map(_inner, row, seeds)) for row in rows]

    return _over(inputs, products)


def _over(
    inputs: Sequence[tuple[str, Shape]], call: Callable[[list[Node]], list[Node]]
) -> Function:
    """Trace code on inputs with these names and shapes."""
    builder = Builder(simplify=True)
    nodes = [Node(builder, builder.input(name, shape)) for name, shape in inputs]
    outputs = [node.id for node in call(nodes)]
    names = [f"y{k + 1}" for k in range(len(outputs))]
    return Function.build(builder, [node.id for node in nodes], outputs, names)


def _inputs(function: Function, count: int | None = None) -> list[tuple[str, Shape]]:
    """Return the names and the shapes of the first inputs, or of all."""
    return list(zip(function.inputs, function.input_shapes, strict=True))[:count]


def _inner(block: Node, seed: Node) -> Node:
    """Return the sums of products over the axes of a direction, the last ones of a block."""
    axes = tuple(range(-seed.ndim, 0))
    product: Node = block * seed
    return sum_(product, axes=axes, rank=product.ndim) if axes else product


def _flat(nodes: Sequence[Node]) -> Node:
    """Return the elements of values as one vector."""
    vector: Node = pack(*nodes, ranks=tuple(node.ndim for node in nodes))
    return vector


# --- stacks of directions ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Rows:
    """Directions in the space of all elements, one a row; without rows the unit vectors."""

    size: int
    rows: NDArray[np.float64] | None = None
    weights: NDArray[np.float64] | None = None

    def seeds(self, shapes: Sequence[Shape]) -> list[Callable[[Builder], Node]]:
        """Return a function that appends the directions of such inputs to a builder."""
        starts = accumulate(map(math.prod, shapes), initial=0)
        return [
            partial(self._seed, start, shape) for start, shape in zip(starts, shapes, strict=False)
        ]

    def _seed(self, start: int, shape: Shape, builder: Builder) -> Node:
        size = math.prod(shape)
        if self.rows is not None:
            part = self.rows[:, start : start + size]
            return _array(part.reshape(self.size, *shape), builder)
        if not size:
            return _array(np.zeros((self.size, *shape)), builder)
        ones = [Node(builder, builder.constant(1))] * size
        keys = tuple((start + k, *key) for k, key in enumerate(np.ndindex(shape)))
        seeds: Node = scatter(*ones, keys=keys, shape=(self.size, *shape))
        return seeds

    @property
    def weighting(self) -> Callable[[Builder], Node] | None:
        """The function that appends the weights to a builder; None if all are 1."""
        return None if self.weights is None else partial(_array, self.weights)


def _array(values: NDArray[np.float64], builder: Builder) -> Node:
    """Append a constant array."""
    params = (("shape", values.shape), ("values", np.ascontiguousarray(values).tobytes()))
    return Node(builder, builder.emit(constant_array, (), params))


def _units(term: Function, known: int) -> _Rows:
    """Return the unit vectors of all elements of the direction of a term."""
    return _Rows(sum(map(math.prod, term.input_shapes[known:])))


def _biharmonic_rows(term: Function, known: int) -> _Rows:
    r"""Return the directions whose weighted fourth derivatives are the biharmonic operator.

    ∂⁴/∂x²∂y² is a combination of the fourth derivatives along x, y, x + y and x − y (Griewank,
    Utke & Walther, 2000, *Evaluating higher derivative tensors by forward propagation of univariate
    Taylor series*), so that Δ² is Σᵢⱼ of that.
    """
    n = _units(term, known).size
    eye = np.eye(n)
    pairs = [eye[i] + sign * eye[j] for i, j in combinations(range(n), 2) for sign in (1, -1)]
    rows = np.reshape([*eye, *pairs], (n + len(pairs), n))
    weights = np.repeat([1 - (n - 1) / 3, 1 / 6], [n, len(pairs)])
    return _Rows(len(rows), rows, weights)


def _collapsed(term: Function, known: int, stack: _Rows) -> Function:
    """Return the sum of a term over directions, moved inside its linear operations."""
    seeds = dict(enumerate(stack.seeds(term.input_shapes[known:]), known))
    vector = len(seeds) == 1 and len(term.input_shapes[known]) == 1
    unit = known if stack.rows is None and vector else None
    total = stack.size if stack.weights is None else float(stack.weights.sum())
    return summed(term, Directions(stack.size, seeds, total, stack.weighting, unit))


def per_direction(term: Function, known: int, size: int) -> Function:
    """Return a term for a stack of directions, its last inputs."""
    flags = [False] * known + [True] * (len(term.inputs) - known)
    return batched(term, flags, size)


def _stacked(term: Function, known: int, stack: _Rows) -> Function:
    """Return a term for each of these directions, along a new first axis."""
    whole = per_direction(term, known, stack.size)

    def values(nodes: list[Node]) -> list[Node]:
        seeds = [seed(nodes[0].builder) for seed in stack.seeds(term.input_shapes[known:])]
        return inlined(whole, [*nodes, *seeds])

    return _over(_inputs(term, known), values)


def _summed(term: Function, known: int, stack: _Rows) -> Function:
    """Return the sum of a term over directions, each of which is computed."""
    whole = _stacked(term, known, stack)

    def totals(nodes: list[Node]) -> list[Node]:
        builder = nodes[0].builder
        weights = None if stack.weights is None else _array(stack.weights, builder)
        return [weighted_sum(part, weights) for part in inlined(whole, nodes)]

    return _over(_inputs(term, known), totals)


def _mean_and_error(stack: Node) -> tuple[Node, Node]:
    """Return the mean of samples along the first axis, and its standard error."""
    size = stack.shape[0]
    mean = weighted_sum(stack) / size
    spread = weighted_sum((stack - mean) ** 2) / (size * (size - 1))
    return mean, sqrt(spread)


def mean_along(term: Function, known: int, size: int, scale: float) -> Function:
    """Return `scale` times the means of a term over a stack of directions, then their errors."""
    whole = per_direction(term, known, size)

    def estimates(nodes: list[Node]) -> list[Node]:
        pairs = [_mean_and_error(part * scale) for part in inlined(whole, nodes)]
        return [node for column in zip(*pairs, strict=True) for node in column]

    return _over(_inputs(whole), estimates)


def bound(function: Function, values: Sequence[NDArray[np.float64]]) -> Function:
    """Return a function with constants for its last inputs."""
    known = len(function.inputs) - len(values)

    def call(nodes: list[Node]) -> list[Node]:
        constants = [_array(np.asarray(value), nodes[0].builder) for value in values]
        return inlined(function, [*nodes, *constants])

    return _over(_inputs(function, known), call)


def sum_of(formulas: Sequence[Function], shapes: Sequence[Shape]) -> Function:
    """Return the sum of functions with an output for each element of values of these shapes."""

    def totals(nodes: list[Node]) -> list[Node]:
        columns = zip(*(inlined(formula, nodes) for formula in formulas), strict=True)
        sums = [reduce(add, column) for column in columns]
        ends = list(accumulate(map(math.prod, shapes), initial=0))
        parts = [sums[start:stop] for start, stop in pairwise(ends)]
        builder = nodes[0].builder
        return [
            _shaped(part, shape) if part else _array(np.zeros(shape), builder)
            for part, shape in zip(parts, shapes, strict=True)
        ]

    return _over(_inputs(formulas[0]), totals)


def _shaped(elements: Sequence[Node], shape: Shape) -> Node:
    """Return elements as an array, or as the number that it is."""
    whole: Node = reshape(_flat(elements), shape=shape, rank=1) if shape else elements[0]
    return whole


# --- operators --------------------------------------------------------------------------------

Term = Way
Rows = Callable[[Function, int], _Rows]
Sum = Callable[[Function, int, _Rows], Function]


def _way(term: Term, total: Sum, rows: Rows = _units) -> Way:
    """Return an operator as the sum of a term over directions."""

    def operator(function: Function, sources: Positions, outputs: Positions) -> Function:
        known, one = len(function.inputs), term(function, sources, outputs)
        return total(one, known, rows(one, known))

    return operator


def _curl(function: Function, sources: Positions, outputs: Positions, *, forward: bool) -> Function:
    """Return the curl: a vector in three dimensions, a scalar in two."""
    blocks = jacobians(function, sources, outputs, forward=forward)
    count = len(sources)

    def parts(nodes: list[Node]) -> list[Node]:
        entries = inlined(blocks, nodes)
        rows = [
            row
            for k, output in enumerate(outputs)
            for row in _rows(entries[k * count : k * count + count], function.output_shapes[output])
        ]
        pairs = ((2, 1), (0, 2), (1, 0)) if len(rows) == 3 else ((1, 0),)
        whole = [rows[i][j] - rows[j][i] for i, j in pairs]
        return [_flat(whole)] if len(whole) > 1 else whole

    return _over(_inputs(function), parts)


def _rows(blocks: Sequence[Node], shape: Shape) -> list[Node]:
    """Return the rows of one output's Jacobian by all elements of the sources."""
    size = math.prod(shape)
    flat = [block.reshape(size, math.prod(block.shape) // size) for block in blocks]
    return [_flat([block[i] for block in flat]) for i in range(size)]


def _twice(way: Way) -> Way:
    """Return an operator of the operator."""

    def operator(function: Function, sources: Positions, outputs: Positions) -> Function:
        once = way(function, sources, outputs)
        return way(once, sources, tuple(range(len(once.outputs))))

    return operator


SECOND: Term = partial(along, order=2)
FOURTH: Term = partial(along, order=4)
TRACE: Term = partial(traced, forward=True)
LAPLACIAN: dict[str, Way] = {
    "collapsed": _way(SECOND, _collapsed),
    "jets": _way(SECOND, _summed),
    "forward-reverse": _way(_forward_over_reverse, _summed),
    "reverse": _way(_reverse_over_reverse, _summed),
}
BIHARMONIC: dict[str, Way] = {
    "collapsed": _way(FOURTH, _collapsed, _biharmonic_rows),
    "jets": _way(FOURTH, _summed, _biharmonic_rows),
    "nested": _twice(LAPLACIAN["collapsed"]),
    "reverse": _twice(LAPLACIAN["reverse"]),
}
DIVERGENCE: dict[str, Way] = {
    "forward": _way(TRACE, _collapsed),
    "reverse": _way(partial(traced, forward=False), _collapsed),
}
CURL: dict[str, Way] = {
    "forward": partial(_curl, forward=True),
    "reverse": partial(_curl, forward=False),
}
