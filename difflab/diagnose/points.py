"""Choose a point where a function can be differentiated: inside its domain, off its kinks.

Every input is first drawn from the sampling intervals of the operations that use it. Where a
subexpression is undefined there, or close to a kink or an edge of its domain, only the inputs
that it depends on are drawn again, so that a hundred thousand inputs with a domain each take
few rounds.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.primitive import Primitive, Select
from difflab.core.system import require_memory
from difflab.errors import DomainError, InputError
from difflab.graph.function import Function, evaluate_all
from difflab.graph.ir import FIRST_ROW, packed_slices

PackedPoint = NDArray[np.float64]
PointValues = dict[str, Any]

_USUAL = (0.2, 3.0)
# Ranges from which an input is drawn again, in this order, then at random.
_RANGES = (
    (0.1, 0.95),
    (1.1, 4.0),
    (-0.95, -0.1),
    (-4.0, -1.1),
    (5.0, 20.0),
    (-20.0, -5.0),
    (50.0, 500.0),
    (-500.0, -50.0),
    (0.001, 0.05),
    (-0.05, -0.001),
    (1e3, 1e5),
    (-1e5, -1e3),
    (1e-6, 1e-4),
)
_ROUNDS = 200
_POLISH = 40  # rounds after the first defined point, to move away from kinks
_VISITS = 3_000_000  # node evaluations, about ten seconds; the same on every machine
_MARGIN = 0.01  # minimum distance to a kink or edge, relative to min(|operand|, 1)
_EACH = 160  # bytes per input element: low, high and drawn values, and Python floats
_TINY = 1e-9  # the margin of an operand that is zero
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def choose_point(function: Function, seed: int = 0) -> PointValues:
    """Return a point of short decimals at which `function` is defined and has no kink.

    The same function and seed give the same point. Where every point found lies on a kink,
    as for ``abs(x - x)``, one of these is returned.

    Parameters
    ----------
    function : Function
        The function; its inputs may be arrays.
    seed : int
        The seed of the draws; another seed gives another point.

    Returns
    -------
    dict of str to float or nested list
        A value for every input.

    Raises
    ------
    InputError
        The seed is negative.
    ResourceError
        The point requires more memory than is available.
    DomainError
        No point was found; the message names the subexpression that was undefined most often.

    Examples
    --------
    >>> import difflab as dl
    >>> choose_point(dl.parse("ln(x1) + x1*x2 - sin(x2)"))
    {'x1': 1.9, 'x2': 0.86}
    >>> choose_point(dl.parse("acosh(x) + log(y - 1000)"))["x"] > 1
    True
    """
    if seed < 0:
        raise InputError(f"the seed must be a non-negative integer, not {seed}")
    require_memory(_EACH * function.n, f"a point of {function.n:,} elements")
    search = _PointSearch(function, seed)
    return _named(function, search.point())


def _named(function: Function, packed: PackedPoint) -> PointValues:
    parts = function.split(packed)
    return {name: part.tolist() for name, part in zip(function.inputs, parts, strict=True)}


class _PointSearch:
    """Search that redraws the inputs of undefined or near-kink subexpressions."""

    def __init__(self, function: Function, seed: int) -> None:
        self.function = function
        self.seed = seed
        self.draw = np.random.default_rng(seed)
        self.undefined: Counter[int] = Counter()
        self.graph = graph = function.graph
        self.rows = list(graph.rows())
        self.users = np.repeat(np.arange(len(graph)), np.diff(graph.starts))
        self.selects = any(isinstance(row.rule, Select) for row in graph.primitives)
        bends = np.array([False, False, *(row.kinks is not None for row in graph.primitives)])
        edges = np.array([False, False, *(bool(row.defined) for row in graph.primitives)])
        self.kinked = np.flatnonzero(bends[graph.opcode]).tolist()
        self.bounded = np.flatnonzero(edges[graph.opcode]).tolist()
        # The slice of the packed point that belongs to each input node.
        slices = packed_slices(function.input_shapes)
        self.slices = dict(zip(function.input_nodes, slices, strict=True))

    def point(self) -> PackedPoint:
        """Return the first point without faults, or the defined point with the fewest."""
        point = self._first()
        best: tuple[int, PackedPoint] | None = None
        rounds, last = 0, min(_ROUNDS, max(1, _VISITS // len(self.graph)))
        while rounds < last:
            rounds += 1
            undefined, near = self._faults(point)
            self.undefined.update(undefined)
            if not undefined and best is None:
                last = min(last, rounds + _POLISH)
            if not undefined and (best is None or len(near) < best[0]):
                best = (len(near), point)
            loose = self._inputs_of(undefined + near)
            if not loose.any():
                break
            point = np.where(loose, self._redrawn(rounds), point)
        if best is None:
            raise self._no_point_error(rounds)
        return best[1]

    def _first(self) -> PackedPoint:
        """Draw every input from the sampling intervals of the operations that use it."""
        low = np.full(self.function.n, -math.inf)
        high = np.full(self.function.n, math.inf)
        primitives = self.function.graph.primitives
        for opcode, args in self.rows:
            if opcode < FIRST_ROW:
                continue
            for arg, (least, most) in zip(
                args, primitives[opcode - FIRST_ROW].samples, strict=False
            ):
                part = self.slices.get(arg)
                if part is not None:
                    low[part] = np.maximum(low[part], least)
                    high[part] = np.minimum(high[part], most)
        # Positive values are the easiest to read; an empty interval is ignored.
        positive = np.maximum(low, _USUAL[0])
        low = np.where(positive < high, positive, low)
        high = np.minimum(high, np.maximum(low + 1.0, _USUAL[1]))
        bad = ~(low < high) | ~np.isfinite(low)
        low, high = np.where(bad, _USUAL[0], low), np.where(bad, _USUAL[1], high)
        return _spread(low, high, self.seed)

    def _redrawn(self, rounds: int) -> PackedPoint:
        """Draw all inputs from one range, or each from a random one once all were tried."""
        ranges = np.array(_RANGES)
        if rounds <= len(ranges):
            low, high = np.broadcast_to(ranges[rounds - 1][:, None], (2, self.function.n))
            return _spread(low, high, self.seed + rounds)
        chosen = ranges[self.draw.integers(len(ranges), size=self.function.n)]
        share = self.draw.random(self.function.n)
        return _short(chosen[:, 0] + share * (chosen[:, 1] - chosen[:, 0]))

    def _faults(self, point: PackedPoint) -> tuple[list[int], list[int]]:
        """Return the nodes at fault: undefined though their operands are not, or near a kink.

        Nodes that only an unselected branch needs are omitted.
        """
        values = evaluate_all(self.function, self.function.split(point))
        finite = np.array([_finite(value) for value in values])
        lost = np.bincount(self.users, weights=~finite[self.graph.args], minlength=len(values))
        undefined = np.flatnonzero(~finite & (lost == 0) & (self.graph.opcode >= FIRST_ROW))
        with np.errstate(all="ignore"):
            near = [
                node
                for node in self.kinked
                if not lost[node] and _near_kink(*self._operation(node, values))
            ]
            near += [
                node
                for node in self.bounded
                if not lost[node] and finite[node] and self._near_edge(node, values)
            ]
            if self.selects and (len(undefined) or near):
                needed = self._needed(values, finite)
                return [n for n in undefined.tolist() if n in needed], [
                    n for n in near if n in needed
                ]
        return undefined.tolist(), near

    def _near_edge(self, node: int, values: list[Any]) -> bool:
        """Return whether moving a variable operand by the margin leaves the domain."""
        row, operands = self._operation(node, values)
        compute = row.computer(np)
        params = self.graph.params(node)
        for position, arg in enumerate(self.rows[node][1]):
            if arg in self.graph.constants:
                continue
            margin = _MARGIN * np.minimum(np.abs(operands[position]), 1.0) + _TINY
            for side in (-margin, margin):
                moved = list(operands)
                moved[position] = operands[position] + side
                if not _finite(compute(*moved, **params)):
                    return True
        return False

    def _operation(self, node: int, values: list[Any]) -> tuple[Primitive, list[Any]]:
        row = self.graph.primitives[self.rows[node][0] - FIRST_ROW]
        return row, [values[arg] for arg in self.rows[node][1]]

    def _needed(self, values: list[Any], finite: NDArray[np.bool_]) -> set[int]:
        """Return the nodes that decide an output's value.

        An undefined selection keeps all of its operands.
        """
        pending = list(self.function.outputs)
        needed = set(pending)
        while pending:
            node = pending.pop()
            if self.rows[node][0] < FIRST_ROW:
                continue
            row, operands = self._operation(node, values)
            args = self.rows[node][1]
            if finite[node]:
                args = _deciding_arguments(row, args, operands)
            fresh = [arg for arg in args if arg not in needed]
            needed.update(fresh)
            pending += fresh
        return needed

    def _inputs_of(self, nodes: list[int]) -> NDArray[np.bool_]:
        """Mark the packed input elements that `nodes` depend on."""
        marked = np.zeros(self.function.n, dtype=bool)
        needed = self.graph.needed_for(nodes)
        for node, part in self.slices.items():
            marked[part] = needed[node]
        return marked

    def _no_point_error(self, rounds: int) -> DomainError:
        node, times = self.undefined.most_common(1)[0]
        graph = self.graph
        row = graph.primitive(node)
        name = row.name if row is not None else "a constant"
        return graph.place(node).error(
            DomainError,
            f"no point found where the function is defined: {name} was undefined at {times} "
            f"of {rounds} points",
            hint="specify a point explicitly",
        )


def _finite(value: Any) -> bool:
    # Most values are scalars, for which math is ten times faster.
    return math.isfinite(value) if isinstance(value, float) else bool(np.all(np.isfinite(value)))


def _near_kink(row: Primitive, operands: list[Any]) -> bool:
    """Return whether an operand is within the margin of a kink or a jump."""
    assert row.kinks is not None
    distance = np.abs(row.kinks(*operands))
    sizes = np.maximum.reduce(np.broadcast_arrays(*map(np.abs, operands)))
    return bool(np.any(distance <= _MARGIN * np.minimum(sizes, 1.0)))


def _deciding_arguments(row: Primitive, args: list[int], operands: list[Any]) -> list[int]:
    """Return the arguments that decide the value; a selection's other branches do not."""
    if not isinstance(row.rule, Select):
        return args
    return [
        arg
        for arg, condition in zip(args, row.rule.conditions, strict=True)
        if condition is None or np.any(condition(*operands))
    ]


def _spread(low: PackedPoint, high: PackedPoint, seed: int) -> PackedPoint:
    """Return short decimals spread over the intervals, neighbouring inputs far apart."""
    share = (np.arange(1, len(low) + 1) + seed) * _GOLDEN % 1.0
    return _short(low + share * (high - low))


def _short(values: PackedPoint) -> PackedPoint:
    """Round to two significant digits, the last neither 0 nor 5.

    Constants of formulas often end in these digits, and derivatives often vanish there.
    """
    exponents = 1 - np.floor(np.log10(np.abs(values))).astype(int)
    digits = np.rint(values * 10.0**exponents)
    digits += digits % 5 == 0
    # Dividing by a power of ten gives the double nearest to the short decimal.
    below, above = 10.0 ** np.maximum(exponents, 0), 10.0 ** np.maximum(-exponents, 0)
    return np.asarray(digits / below * above, dtype=np.float64)
