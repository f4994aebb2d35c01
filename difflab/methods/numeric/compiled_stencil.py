"""The first pass of finite differences as one straight-line function, for compilation.

Repeated differentiation of a small formula is dominated by NumPy's call overhead. This module
builds one graph of the values at all points of the stencil, the candidates and the choice of the
best one; subexpressions of inputs that a step does not move are computed once.

The graph performs the operations of `adaptive`'s first pass, up to the order of sums; points that
do not settle are left to `adaptive`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.errors import UnsupportedError
from difflab.execute import Compiled, compile
from difflab.execute.targets.llvm.libraries import available
from difflab.graph.builder import Builder
from difflab.graph.function import Function, evaluate
from difflab.graph.node import Node
from difflab.methods.numeric.extrapolation import GUARD, ODD, SAFETY, Weights, tableau
from difflab.methods.numeric.rules import ROUNDINGS, DifferenceRule
from difflab.methods.numeric.stencil import FOURTH, LEAD, LEAST, NOISE_BOUND, NOISE_STEP, TINY
from difflab.methods.numeric.wide_search import SUSPECT
from difflab.primitives import absolute, add, equal, logical_and, logical_or, not_equal, pack, where

__all__ = ["CompiledStencil", "stencil_function", "suits"]

Array = NDArray[np.float64]

EPS = 2.0**-52

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


class CompiledStencil:
    """The compiled first pass.

    Parameters
    ----------
    fast : Compiled
        The compiled `stencil_function`.
    count : int
        The number of derivatives.
    evaluations : int
        Number of points at which the function is evaluated.
    """

    def __init__(self, fast: Compiled, count: int, evaluations: int) -> None:
        self.evaluations = evaluations
        self._count = count
        self._fast = fast

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
        """Return the Jacobian and its errors, flat; None if any derivative did not settle."""
        found = self._fast(x)
        count = self._count
        return (found[:count], found[count:-1]) if found[-1] else None


class _CenterNodes(NamedTuple):
    """The value at x, and the bound on its errors."""

    center: Node
    noise: Node


class _Moved(NamedTuple):
    """A moved component, and the outputs at the moved point."""

    position: Node
    outputs: list[Node]


class _Ladder(NamedTuple):
    """Quotients on a ladder, their rounding and, of central ones, their curvature."""

    quotients: list[Node]
    roundings: list[Node]
    curvatures: list[Node]


class _DerivativeNodes(NamedTuple):
    """A derivative, its error, the quotients' sizes, and whether it is accurate enough."""

    value: Node
    error: Node
    sizes: Node
    settled: Node


Along = Callable[[float | Node], _Moved]
"""Maps a step, relative to the component's scale, to the function at the moved point."""


def stencil_function(function: Function, rule: DifferenceRule) -> Function:
    """Return values, errors and whether all are settled, as one vector of 2·m·n + 1 elements.

    Parameters
    ----------
    function : Function
        A function whose inputs and outputs are scalars.
    rule : DifferenceRule
        The ladders and candidates.
    """
    builder = Builder()
    x = [Node(builder, builder.input(name)) for name in function.inputs]

    def values(point: Sequence[Node]) -> list[Node]:
        return evaluate(function, point)

    scales = [where(absolute(v) < TINY, 1.0, absolute(v)) for v in x]
    near = _noises(values, x, scales)
    units = rule.units[:, 0].tolist()
    judge = _forward if rule.central is None else _central
    found: dict[tuple[int, int], _DerivativeNodes] = {}
    for i, scale in enumerate(scales):

        def along(unit: float | Node, i: int = i, scale: Node = scale) -> _Moved:
            position = scale * unit + x[i]
            return _Moved(position, values([*x[:i], position, *x[i + 1 :]]))

        for j, entry in enumerate(judge(rule, near, x[i], along, units)):
            settled = _settled(rule, near[j], scale, entry)
            found[j, i] = entry._replace(settled=settled)
    entries = [found[indices] for indices in sorted(found)]
    whole = reduce(logical_and, [entry.settled for entry in entries])
    parts = [*(entry.value for entry in entries), *(entry.error for entry in entries), whole * 1.0]
    ranks = (("ranks", (0,) * len(parts)),)
    out = builder.emit(pack, [part.id for part in parts], ranks)
    return Function.build(builder, [v.id for v in x], [out], ["found"])


def _noises(values: Any, x: list[Node], scales: list[Node]) -> list[_CenterNodes]:
    """Return each output at `x`, and its noise estimated near `x`."""
    drifts = [
        (v + where(v > 0, -NOISE_STEP, NOISE_STEP) * scale) - v
        for v, scale in zip(x, scales, strict=True)
    ]
    lead = [
        values([v + float(k) * drift for v, drift in zip(x, drifts, strict=True)])
        for k in range(LEAD)
    ]
    near = []
    for j, center in enumerate(lead[0]):
        changes = [output[j] - center for output in lead]
        rows = [_dot(row, changes) for row in FOURTH.tolist()]
        seen = NOISE_BOUND * reduce(_larger, map(absolute, rows))
        near.append(_CenterNodes(center, _larger(seen, EPS * absolute(center) + LEAST)))
    return near


def _central(
    rule: DifferenceRule, near: list[_CenterNodes], x: Node, along: Along, units: list[float]
) -> Iterator[_DerivativeNodes]:
    """Yield each output's derivative from central quotients."""
    up, down = [along(unit) for unit in units], [along(-unit) for unit in units]
    weights = rule.central or rule.onesided
    for j, (center, noise) in enumerate(near):
        ladder = _Ladder([], [], [])
        for (above, highs), (below, lows) in zip(up, down, strict=True):
            width, high, low = above - below, highs[j], lows[j]
            size = _larger(absolute(high), absolute(low))
            ladder.quotients.append((high - low) / width)
            ladder.roundings.append(_larger(2.0 * noise, (2.0 * EPS) * size) / width)
            ladder.curvatures.append((high + low - 2.0 * center) / width)
        jumps = _jumps(rule, weights, ladder)
        tails = [] if rule.strict else [_tails(weights, ladder)]
        error, value, jump, *left = _best(rule, weights, ladder, jumps, *tails)
        error = reduce(_larger, [*left, error])
        half_jump = absolute(jump)
        yield _entry(value, error + where(half_jump > error, half_jump, 0.0), ladder)


def _forward(
    rule: DifferenceRule, near: list[_CenterNodes], x: Node, along: Along, units: list[float]
) -> Iterator[_DerivativeNodes]:
    """Yield each output's derivative from forward quotients, checked by a backward quotient."""
    ahead = [along(unit) for unit in units]
    steps = [Node(x.builder, x.builder.constant(units[k])) for k in rule.onesided.level]
    found: list[tuple[tuple[Node, ...], _Ladder]] = []
    for j, (center, noise) in enumerate(near):
        ladder = _Ladder([], [], [])
        for position, outputs in ahead:
            width = position - x
            ladder.quotients.append((outputs[j] - center) / width)
            ladder.roundings.append(_larger(noise, EPS * absolute(outputs[j])) / width * 2.0)
        tails = _tails(rule.onesided, ladder)
        found.append((_best(rule, rule.onesided, ladder, tails, steps), ladder))
    behind = along(-reduce(_smaller, [best[3] for best, _ in found]))
    for j, ((error, value, left, _), ladder) in enumerate(found):
        gap = absolute((near[j].center - behind.outputs[j]) / (x - behind.position) - value)
        error = _larger(left, error)
        yield _entry(value, where(gap > error, gap, error), ladder)


def _entry(value: Node, error: Node, ladder: _Ladder) -> _DerivativeNodes:
    """Return a derivative; its error is nan where any value on the ladder is not finite."""
    sizes = reduce(add, map(absolute, ladder.quotients))
    return _DerivativeNodes(value, error + (sizes - sizes), sizes, sizes)


def _best(
    rule: DifferenceRule, weights: Weights, ladder: _Ladder, *others: list[Node]
) -> tuple[Node, ...]:
    """Return error and value of the candidate with the smallest error, and its part of `others`."""
    best: tuple[Node, ...] = ()
    for k, (value, spread, before) in enumerate(_candidates(rule, weights, ladder)):
        error = _larger(absolute(spread), absolute(before))
        error = error + _dot(weights.gain[k].tolist(), ladder.roundings)
        candidate = (error, value, *(other[k] for other in others))
        if best:
            less = error < best[0]
            candidate = tuple(where(less, *pair) for pair in zip(candidate, best, strict=True))
        best = candidate
    return (SAFETY * best[0], *best[1:])


def _candidates(
    rule: DifferenceRule, weights: Weights, ladder: _Ladder
) -> Iterable[tuple[Node, Node, Node]]:
    """Return each candidate's value, truncation error and lower bound of that error."""
    if rule.tableau is None:
        rows = (weights.value, weights.spread, weights.guard)
        columns = ([_dot(row, ladder.quotients) for row in part.tolist()] for part in rows)
        return zip(*columns, strict=True)
    _, ratio, powers, depth, _ = rule.tableau
    table = tableau(ladder.quotients, ratio, powers, depth)
    return [
        (
            table[k][j],
            table[k][j] - table[k - 1][j - 1],
            GUARD * (table[k][j - 1] - table[k - 1][max(j - 2, 0)]),
        )
        for k, j in rule.tableau.candidates
    ]


def _jumps(rule: DifferenceRule, weights: Weights, ladder: _Ladder) -> list[Node]:
    """Return the jump of the one-sided derivatives according to each candidate."""
    if rule.tableau is None:
        return [_dot(row, ladder.curvatures) for row in weights.jump.tolist()]
    table = tableau(ladder.curvatures, rule.tableau.ratio, ODD, rule.tableau.depth)
    return [table[k][j] for k, j in rule.tableau.candidates]


def _tails(weights: Weights, ladder: _Ladder) -> list[Node]:
    """Return the estimated change of each candidate at shorter steps."""
    tails = []
    for changes, befores, gain in zip(weights.change, weights.before, weights.gain, strict=True):
        change = absolute(_dot(changes.tolist(), ladder.quotients))
        before = absolute(_dot(befores.tolist(), ladder.quotients))
        noise = 4.0 * _dot(gain.tolist(), ladder.roundings)
        ratio = where(change < before, change / before, 1.0)
        left = change * ratio / (1.0 - where(ratio < 0.9, ratio, 0.9))
        tails.append(where(change > noise, SAFETY * left, 0.0))
    return tails


def _settled(
    rule: DifferenceRule, near: _CenterNodes, scale: Node, entry: _DerivativeNodes
) -> Node:
    """Return whether a derivative is accurate, and not zero only in its best candidate."""
    relative = ROUNDINGS * EPS if rule.strict else rule.tolerance
    floor = relative * absolute(near.center) / where(scale > 1.0, scale, 1.0)
    known = entry.error <= _larger(rule.tolerance * absolute(entry.value), floor)
    constant = logical_and(equal(entry.sizes, 0), scale >= SUSPECT)
    settled: Node = logical_and(known, logical_or(not_equal(entry.value, 0), constant))
    return settled


def _dot(weights: Sequence[float], nodes: Sequence[Node]) -> Node:
    terms = [w * node for w, node in zip(weights, nodes, strict=True) if w]
    return reduce(add, terms) if terms else 0.0 * nodes[0]


def _larger(a: Node, b: Node) -> Node:
    """Return the larger; b where a is nan."""
    larger: Node = where(a > b, a, b)
    return larger


def _smaller(a: Node, b: Node) -> Node:
    smaller: Node = where(a < b, a, b)
    return smaller
