"""The first pass of an extrapolation as one straight-line function, to be compiled.

A formula that is differentiated again and again spends its time on setting NumPy's functions
off, not on its values. Here the values at all points of the stencil, the tableau and the choice
of its best entry are one graph, written from the function's own: what it computes of the inputs
that a step does not move is computed once.

It is `adaptive`'s first pass, operation by operation, up to the order in which a sum is added;
what does not settle is left to that.
May import `rescue`, `rules`, `stencil`, `weights`, `execute`, `graph` and `primitives`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import reduce
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.errors import UnsupportedError
from difflab.execute import Compiled, compile
from difflab.graph.builder import Builder
from difflab.graph.function import Function, inline
from difflab.graph.node import Node
from difflab.methods.rescue import SUSPECT
from difflab.methods.rules import ROUNDINGS, Rule
from difflab.methods.stencil import FOURTH, LEAD, LEAST, NOISE_BOUND, NOISE_STEP, TINY
from difflab.methods.weights import GUARD, ODD, SAFETY, tableau
from difflab.primitives import (
    absolute,
    add,
    equal,
    logical_and,
    logical_or,
    not_equal,
    pack,
    where,
)

__all__ = ["Straight", "straight", "suits"]

Array = NDArray[np.float64]

EPS = 2.0**-52

LARGEST = 8_000
"""Operations up to which compiling takes no longer than some hundred calls that are not."""
ENTRY_OPERATIONS = 700
"""Operations of the tableau of one derivative."""


def suits(function: Function, rule: Rule) -> bool:
    """Tell whether the first pass of `rule` on `function` can be one short function."""
    if rule.tableau is None or not rule.strict:
        return False
    points = LEAD + len(rule.signed_units) * function.n
    operations = len(function.graph) * points + ENTRY_OPERATIONS * function.m * function.n
    numbers = not any((*function.input_shapes, *function.output_shapes))
    return numbers and function.n > 0 and operations <= LARGEST


class Straight:
    """The first pass, compiled.

    Parameters
    ----------
    fast : Compiled
        What `straight` gives.
    count : int
        How many derivatives there are.
    evaluations : int
        Points at which the function is evaluated.
    """

    def __init__(self, fast: Compiled, count: int, evaluations: int) -> None:
        self.evaluations = evaluations
        self._count = count
        self._fast = fast

    @classmethod
    def of(cls, function: Function, rule: Rule) -> Straight | None:
        """Compile it, to machine code where llvmlite is installed; None where it does not suit."""
        if not suits(function, rule):
            return None
        whole = straight(function, rule)
        for target in ("native", "python") if find_spec("llvmlite") else ("python",):
            with suppress(UnsupportedError):
                fast = compile(whole, target, packed=True)
                if fast.reason.startswith(target):
                    points = LEAD + len(rule.signed_units) * function.n
                    return cls(fast, function.m * function.n, points)
        return None

    def __call__(self, x: Array) -> tuple[Array, Array] | None:
        """Return the Jacobian and its errors, flat; None where they did not settle at once."""
        found = self._fast(x)
        count = self._count
        return (found[:count], found[count:-1]) if found[-1] else None


class _Near(NamedTuple):
    """The value at x, and the bound on its errors."""

    center: Node
    noise: Node


class _Entry(NamedTuple):
    """A derivative, its error and whether that is as small as can be expected."""

    value: Node
    error: Node
    settled: Node


def straight(function: Function, rule: Rule) -> Function:
    """Return values, errors and whether all are settled, as one vector of 2·m·n + 1 numbers.

    Parameters
    ----------
    function : Function
        Its inputs and outputs are numbers.
    rule : Rule
        A strict one, of central quotients in a tableau.
    """
    builder = Builder()
    x = [Node(builder, builder.input(name)) for name in function.inputs]

    def values(point: Sequence[Node]) -> list[Node]:
        return [Node(builder, node) for node in inline(function, builder, [v.id for v in point])]

    scales = [where(absolute(v) < TINY, 1.0, absolute(v)) for v in x]
    near = _noises(values, x, scales)
    units = rule.units[:, 0].tolist()
    found: dict[tuple[int, int], _Entry] = {}
    for i, (v, scale) in enumerate(zip(x, scales, strict=True)):
        up, down = [scale * unit + v for unit in units], [scale * -unit + v for unit in units]
        widths = [right - left for right, left in zip(up, down, strict=True)]
        sides = [[values([*x[:i], moved, *x[i + 1 :]]) for moved in side] for side in (up, down)]
        for j in range(len(near)):
            right, left = ([output[j] for output in side] for side in sides)
            value, error, size = _extrapolated(rule, near[j], right, left, widths)
            found[j, i] = _Entry(value, error, _settled(rule, near[j], scale, value, error, size))
    slopes, errors, tests = zip(*(found[place] for place in sorted(found)), strict=True)
    parts = [*slopes, *errors, reduce(logical_and, tests) * 1.0]
    ranks = (("ranks", (0,) * len(parts)),)
    out = builder.emit(pack, [part.id for part in parts], ranks)
    return Function.build(builder, [v.id for v in x], [out], ["found"])


def _noises(values: Any, x: list[Node], scales: list[Node]) -> list[_Near]:
    """Return each output at `x`, and the noise that is seen beside it."""
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
        near.append(_Near(center, _larger(seen, EPS * absolute(center) + LEAST)))
    return near


def _extrapolated(
    rule: Rule, near: _Near, up: list[Node], down: list[Node], widths: list[Node]
) -> tuple[Node, Node, Node]:
    """Return the best entry of the tableau, its error and the sum of the quotients' sizes.

    The error is nan where any value is not finite.
    """
    weights, entries = rule.central, rule.tableau
    assert weights is not None
    assert entries is not None
    quotients, roundings, curvatures = [], [], []
    for right, left, width in zip(up, down, widths, strict=True):
        size = _larger(absolute(right), absolute(left))
        quotients.append((right - left) / width)
        roundings.append(_larger(2.0 * near.noise, (2.0 * EPS) * size) / width)
        curvatures.append((right + left - 2.0 * near.center) / width)
    table = tableau(quotients, entries.ratio, entries.powers, entries.depth)
    odd = tableau(curvatures, entries.ratio, ODD, entries.depth)
    best: tuple[Node, Node, Node] | None = None
    for (k, j), gain in zip(entries.candidates, weights.gain.tolist(), strict=True):
        before = GUARD * (table[k][j - 1] - table[k - 1][max(j - 2, 0)])
        spread = table[k][j] - table[k - 1][j - 1]
        error = _larger(absolute(spread), absolute(before)) + _dot(gain, roundings)
        if best is None:
            best = error, table[k][j], odd[k][j]
        else:
            less = error < best[0]
            chosen = zip((error, table[k][j], odd[k][j]), best, strict=True)
            best = tuple(where(less, new, old) for new, old in chosen)
    assert best is not None
    error, half_jump = SAFETY * best[0], absolute(best[2])
    total = error + where(half_jump > error, half_jump, 0.0)
    sizes = reduce(add, map(absolute, quotients))
    return best[1], total + (sizes - sizes), sizes


def _settled(rule: Rule, near: _Near, scale: Node, value: Node, error: Node, sizes: Node) -> Node:
    """Tell whether a derivative is known, and is not zero by the look of its best entry alone."""
    floor = ROUNDINGS * EPS * absolute(near.center) / where(scale > 1.0, scale, 1.0)
    known = error <= _larger(rule.tolerance * absolute(value), floor)
    constant = logical_and(equal(sizes, 0), scale >= SUSPECT)
    settled: Node = logical_and(known, logical_or(not_equal(value, 0), constant))
    return settled


def _dot(weights: Sequence[float], nodes: Sequence[Node]) -> Node:
    return reduce(add, [w * node for w, node in zip(weights, nodes, strict=True) if w])


def _larger(a: Node, b: Node) -> Node:
    """Return the larger; b where a is nan."""
    larger: Node = where(a > b, a, b)
    return larger
