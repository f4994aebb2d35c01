"""The first pass of finite differences as one straight-line function, for compilation.

Repeated differentiation of a small formula is dominated by NumPy's call overhead. This module
builds one graph of the values at all points of the stencil, the candidates and the choice of the
best one; subexpressions of inputs that a step does not move are computed once.

The operations are those of `difflab.differences.first`, which is recorded from arrays of nodes, up
to the order of sums; points at which it does not converge are left to it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.differences.extrapolation import GUARD, ODD, Weights, tableau
from difflab.differences.first import DifferenceRule, LadderPoint, judged
from difflab.differences.sampling import LEAD, Arithmetic, lead_points, noise_of, scale_of
from difflab.differences.wide import SUSPECT
from difflab.errors import UnsupportedError
from difflab.execute import Compiled, compile
from difflab.execute.targets.llvm.libraries import available
from difflab.graph.builder import Builder
from difflab.graph.function import Function, inline
from difflab.graph.node import Node
from difflab.primitives import add, equal, logical_and, logical_or, not_equal, pack, where

Array = NDArray[np.float64]

LARGEST = 8_000
"""Maximum operations: compilation then takes no longer than a few hundred uncompiled calls."""
ENTRY_OPERATIONS = 700
"""Operations of the tableau per derivative."""


def suits(function: Function, rule: DifferenceRule) -> bool:
    """Return whether the first pass of `rule` on `function` is small enough to compile."""
    operations = len(function.graph) * evaluations(function, rule)
    operations += ENTRY_OPERATIONS * function.m * function.n
    numbers = not any((*function.input_shapes, *function.output_shapes))
    return numbers and function.n > 0 and operations <= LARGEST


def evaluations(function: Function, rule: DifferenceRule) -> int:
    """Return the number of points at which the first pass evaluates the function."""
    behind = 1 if rule.central is None else 0
    return LEAD + (len(rule.signed_units) + behind) * function.n


@dataclass(frozen=True, eq=False)
class CompiledStencil:
    """The compiled first pass.

    Attributes
    ----------
    fast : Compiled
        The compiled `stencil_function`.
    count : int
        The number of derivatives.
    evaluations : int
        Number of points at which the function is evaluated.
    """

    fast: Compiled
    count: int
    evaluations: int

    @classmethod
    def of(cls, function: Function, rule: DifferenceRule) -> CompiledStencil | None:
        """Compile the first pass, to machine code if llvmlite is installed; None if unsuitable."""
        if not suits(function, rule):
            return None
        whole = stencil_function(function, rule)
        for target in ("native", "python") if available() else ("python",):
            with suppress(UnsupportedError):
                fast = compile(whole, target, packed=True)
                if fast.reason.startswith(target):
                    return cls(fast, function.m * function.n, evaluations(function, rule))
        return None

    def __call__(self, x: Array) -> tuple[Array, Array] | None:
        """Return the Jacobian and its errors, flat; None if any derivative did not converge."""
        out, count = self.fast(x), self.count
        return (out[:count], out[count:-1]) if out[-1] else None

    def batch(self, points: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Return Jacobians and errors, flat, and which converged, at the points ``(N, n)``."""
        out, count = self.fast(points), self.count
        return out[:, :count], out[:, count:-1], out[:, -1] != 0


def stencil_function(function: Function, rule: DifferenceRule) -> Function:
    """Return values, errors and whether all have converged, as one vector of 2·m·n + 1 elements.

    Parameters
    ----------
    function : Function
        A function whose inputs and outputs are scalars.
    rule : DifferenceRule
        The ladders and candidates.
    """
    builder = Builder()
    inputs = (Node(builder, builder.input(name)) for name in function.inputs)
    x = np.fromiter(inputs, dtype=object)

    def values(points: NDArray[Any]) -> NDArray[Any]:
        ids = (inline(function, builder, [node.id for node in point]) for point in points)
        nodes = [Node(builder, node) for outputs in ids for node in outputs]
        return np.fromiter(nodes, dtype=object).reshape(len(points), function.m)

    scale = scale_of(x, NODES)
    near = noise_of(values(lead_points(x, scale, on=NODES)), NODES)
    columns: list[tuple[Nodes, Nodes, Nodes]] = []
    for i in range(x.size):

        def sample(steps: NDArray[Any], i: int = i) -> tuple[NDArray[Any], NDArray[Any]]:
            moved = x[i : i + 1] + steps
            points = np.repeat(x[None, :], len(moved), axis=0)
            points[:, i] = moved[:, 0]
            return values(points)[:, None, :], moved

        point = LadderPoint(x[i : i + 1], scale[i : i + 1], near)
        body, moved = sample(rule.signed_units * point.scale)
        value, error, quotients = judged(rule, point, body, moved, sample, NODES)
        # nan where the value, or any value on the ladder, is not finite.
        sizes = np.add.reduce(np.abs(quotients), axis=0)
        error = error[0] + ((sizes - sizes) + (near.center - near.center))
        wanted = rule.wanted(near, value, point.scale, NODES)[0]
        sure = _CONVERGED(point.scale, value[0], error, sizes, wanted)
        columns.append((value[0], error, sure))
    vectors = (np.stack(part, axis=1).ravel() for part in zip(*columns, strict=True))
    derivatives, errors, converged = vectors
    parts = [*derivatives, *errors, reduce(logical_and, converged) * 1.0]
    ranks = (("ranks", (0,) * len(parts)),)
    out = builder.emit(pack, [part.id for part in parts], ranks)
    return Function.build(builder, [v.id for v in x], [out], ["derivatives"])


def _converged(scale: Node, value: Node, error: Node, sizes: Node, wanted: Node) -> Node:
    """Return whether a derivative is accurate, and not zero only in its best candidate."""
    constant = logical_and(equal(sizes, 0), scale >= SUSPECT)
    sure = logical_or(not_equal(value, 0), constant)
    converged: Node = logical_and(error <= wanted, sure)
    return converged


_CONVERGED = np.frompyfunc(_converged, 5, 1)


# --- the operations on arrays of nodes ----------------------------------------------------------

Nodes = NDArray[Any]
"""An array whose elements are nodes."""
Pick = list[list[Node]]
"""For each column, whether each candidate but the first is better than those before it."""


def _applied(matrix: Array, columns: Nodes) -> Nodes:
    rows = matrix.tolist()
    products = [_dot(row, column) for row in rows for column in columns.T]
    return np.fromiter(products, dtype=object).reshape(len(rows), columns.shape[1])


def _dot(weights: Sequence[float], nodes: Sequence[Node]) -> Node:
    terms = [w * node for w, node in zip(weights, nodes, strict=True) if w]
    return reduce(add, terms) if terms else 0.0 * nodes[0]


def _least(errors: Nodes) -> Pick:
    pick: Pick = []
    for best, *others in errors.T:
        better = []
        for error in others:
            better.append(error < best)
            best = where(better[-1], error, best)
        pick.append(better)
    return pick


def _chosen(candidates: Nodes, pick: Pick) -> Nodes:
    chosen = []
    for (best, *others), better in zip(candidates.T, pick, strict=True):
        for less, candidate in zip(better, others, strict=True):
            best = where(less, candidate, best)
        chosen.append(best)
    return np.fromiter(chosen, dtype=object)


def _candidates(weights: Weights, quotients: Nodes) -> tuple[Nodes, Nodes, Nodes]:
    """Return each candidate's value, truncation error and lower bound of that error."""
    if weights.tableau is None:
        rows = (weights.value, weights.spread, weights.guard)
        value, spread, guard = (_applied(matrix, quotients) for matrix in rows)
        return value, spread, guard
    _, ratio, powers, depth, _ = weights.tableau
    table, entries = tableau(quotients, ratio, powers, depth), weights.tableau.candidates
    return (
        np.stack([table[k][j] for k, j in entries]),
        np.stack([table[k][j] - table[k - 1][j - 1] for k, j in entries]),
        np.stack([GUARD * (table[k][j - 1] - table[k - 1][max(j - 2, 0)]) for k, j in entries]),
    )


def _picked(weights: Weights, name: str, array: Nodes, pick: Pick) -> Nodes:
    if name == "jump" and weights.tableau is not None:
        table = tableau(array, weights.tableau.ratio, ODD, weights.tableau.depth)
        return _chosen(np.stack([table[k][j] for k, j in weights.tableau.candidates]), pick)
    return _chosen(_applied(getattr(weights, name), array), pick)


_LARGER = np.frompyfunc(lambda a, b: where(a > b, a, b), 2, 1)  # b where a is nan
NODES = Arithmetic(
    where=np.frompyfunc(where, 3, 1),
    greater=np.frompyfunc(operator.gt, 2, 1),
    larger=_LARGER,
    smaller=np.frompyfunc(lambda a, b: where(a < b, a, b), 2, 1),
    larger_known=_LARGER,
    applied=_applied,
    candidates=_candidates,
    least=_least,
    chosen=_chosen,
    picked=_picked,
)
"""The operations on arrays of nodes."""

CALLS = 200
"""Calls before compilation, which takes as long as two to three times this number of calls."""


class Repeated:
    """The derivatives of one function by one rule, compiled after `CALLS` calls.

    Parameters
    ----------
    function : Function
        The function to differentiate.
    rule : DifferenceRule or None
        The difference rule; None if the method uses none.

    Attributes
    ----------
    compiled : CompiledStencil or None
        The compiled first pass, once there is one.
    """

    def __init__(self, function: Function, rule: DifferenceRule | None) -> None:
        self.compiled: CompiledStencil | None = None
        self._rule = rule if rule is not None and suits(function, rule) else None
        self._calls = 0

    def count(self, function: Function) -> CompiledStencil | None:
        """Count a call; return the compiled first pass, None if the method itself is faster."""
        self._calls += 1
        if self._rule is not None and self._calls > CALLS:
            self.compiled = CompiledStencil.of(function, self._rule)
            self._rule = None
        return self.compiled
