"""A graph's values in mpmath, computed again only where an input has moved.

A referee moves one input at a time, and most of a large graph does not depend on it: the
node values at the unmoved point are kept for the precision in force, and a moved point costs
only the nodes that the moved inputs reach. Numbers of an array move alone where the graph takes
them one by one, and long sums are added as trees, so that each term is a few additions from the
total. May import `difflab.graph` and `difflab.lab.ulp`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from difflab.graph.evaluate import ArrayInterpreter, fold_all
from difflab.graph.function import Function
from difflab.graph.interpreters import MpmathInterpreter
from difflab.graph.ir import CONSTANT, FIRST_ROW
from difflab.graph.repetition import balanced, element_places
from difflab.lab.ulp import nearest

__all__ = ["ExactValues"]

Real = Any  # an mpmath number
_KEPT_NODES = 500_000  # beyond it, node values at high precision would fill the memory


class ExactValues:
    """The function as a map of mpmath numbers, at the precision in force.

    Call it with the ``n`` packed inputs; the flattened outputs come back. Inputs that are the
    same objects as in the first call at this precision count as not moved.

    Examples
    --------
    >>> import difflab as dl, mpmath
    >>> values = ExactValues(dl.parse("x*y + y"))
    >>> values([mpmath.mpf(2), mpmath.mpf(5)])
    [mpf('15.0')]
    >>> values.reached(0)
    [True]
    """

    def __init__(self, function: Function, nudge: Callable[[float], float] | None = None) -> None:
        self.function = function
        self._nudge = nudge
        self._inner = balanced(function)
        graph = self._inner.graph
        self._interpreter = MpmathInterpreter()
        self._operations = [self._interpreter.operation(row) for row in graph.primitives]
        self._params = [dict(entry) for entry in graph.param_table]
        self._rows = list(graph.rows())
        self._param_ids = graph.param_ids.tolist()
        self._places = [
            (node, place)
            for node, shape in zip(self._inner.input_nodes, function.input_shapes, strict=True)
            for place in range(math.prod(shape))
        ]
        self._precision = 0
        self._base: Sequence[Real] = ()
        self._kept: list[Any] = []
        self._cone: tuple[frozenset[int], list[int]] = (frozenset(), [])

    def __call__(self, point: Sequence[Real]) -> list[Real]:
        """Return the flattened outputs at `point`."""
        precision = self._interpreter.mp.prec
        if precision != self._precision:
            values: list[Any] = [None] * len(self._rows)
            parts = self.function.split(np.array(point, dtype=object)) if len(point) else []
            for node, part in zip(self._inner.input_nodes, parts, strict=True):
                values[node] = part if part.shape else part.item()
            self._evaluate(values, range(len(self._rows)))
            if len(self._rows) <= _KEPT_NODES:
                self._precision, self._base, self._kept = precision, list(point), values
            return self._flattened(values)
        pairs = zip(point, self._base, strict=True)
        moved = frozenset([i for i, (new, old) in enumerate(pairs) if new is not old])
        if moved != self._cone[0]:
            self._cone = (moved, self._reach(moved))
        values = self._kept.copy()
        self._move(values, point, moved)
        self._evaluate(values, self._cone[1])
        return self._flattened(values)

    def _move(self, values: list[Any], point: Sequence[Real], moved: frozenset[int]) -> None:
        """Put the moved numbers into the inputs that they are, or are parts of."""
        for position in moved:
            node, place = self._places[position]
            if not isinstance(values[node], np.ndarray):
                values[node] = point[position]
                continue
            if values[node] is self._kept[node]:
                values[node] = values[node].copy()
            values[node].flat[place] = point[position]

    def reached(self, position: int) -> list[bool]:
        """Return for each flattened output whether it is made of the packed input `position`."""
        cone = set(self._reach(frozenset([position])))
        return [
            node in cone
            for node, shape in zip(self._inner.outputs, self.function.output_shapes, strict=True)
            for _ in range(math.prod(shape))
        ]

    def _evaluate(self, values: list[Any], nodes: Sequence[int]) -> None:
        """Fill in the values of `nodes`, which are in topological order."""
        constants = self._inner.graph.constants
        for node in nodes:
            opcode, args = self._rows[node]
            if opcode >= FIRST_ROW:
                operation = self._operations[opcode - FIRST_ROW]
                params = self._params[self._param_ids[node]]
                values[node] = operation(*[values[arg] for arg in args], **params)
            elif opcode == CONSTANT:
                values[node] = self._constant(*constants[node])

    def _constant(self, number: float, name: str | None) -> Real:
        """Return the literal as the double that it is; integers and names have no rounding."""
        value = self._interpreter.constant(number, name)
        if self._nudge is None or name is not None or isinstance(number, int):
            return value
        return value + self._interpreter.mp.mpf(self._nudge(number))

    def magnitude(self) -> float:
        """Return the largest size that a number computed on the way has at the last base point."""
        rows, values = self._rows, self._kept
        if self._inner is not self.function and values:
            # The partial sums are those of the function as it is written.
            point = np.array([nearest(number) for number in self._base])
            inputs = dict(zip(self.function.input_nodes, self.function.split(point), strict=True))
            rows = list(self.function.graph.rows())
            with np.errstate(all="ignore"):
                values = fold_all(self.function.graph, inputs, ArrayInterpreter())
        largest = 0.0
        for (opcode, _), value in zip(rows, values, strict=False):
            if opcode >= FIRST_ROW:
                for part in np.ravel(np.asarray(value, dtype=object)):
                    size = abs(nearest(part))
                    if largest < size < math.inf:
                        largest = size
        return largest

    def nudged(self, nudge: Callable[[float], float]) -> ExactValues:
        """Return the same function with every decimal literal moved by ``nudge(literal)``."""
        return ExactValues(self.function, nudge)

    def _flattened(self, values: list[Any]) -> list[Real]:
        flat: list[Real] = []
        for node, shape in zip(self._inner.outputs, self.function.output_shapes, strict=True):
            value = values[node]
            if shape:
                value = np.broadcast_to(np.asarray(value, dtype=object), shape)
                flat.extend(value.ravel().tolist())
            else:
                flat.append(value.item() if isinstance(value, np.ndarray) else value)
        return flat

    def _reach(self, moved: frozenset[int]) -> list[int]:
        """Return the nodes that are made of packed inputs, in topological order."""
        starts, users = self._users
        inputs = {self._places[position][0] for position in moved}
        found: set[int] = set()
        for position in moved:
            node, place = self._places[position]
            found.update(self._takers.get((node, -1), ()), self._takers.get((node, place), ()))
        front = list(found)
        while front:
            node = front.pop()
            for user in users[starts[node] : starts[node + 1]]:
                if user not in found:
                    found.add(user)
                    front.append(user)
        return sorted(found | inputs)

    @cached_property
    def _takers(self) -> dict[tuple[int, int], list[int]]:
        """The nodes that take an input as a whole, at place -1, and those that take one number."""
        starts, users = self._users
        elements = element_places(self._inner.graph).tolist()
        takers: dict[tuple[int, int], list[int]] = {}
        for node in self._inner.input_nodes:
            for user in users[starts[node] : starts[node + 1]]:
                takers.setdefault((node, elements[user]), []).append(user)
        return takers

    @cached_property
    def _users(self) -> tuple[list[int], list[int]]:
        """Return the nodes that take each node, node after node, and where each begins."""
        graph = self._inner.graph
        takers = np.repeat(np.arange(len(graph)), np.diff(graph.starts))
        order = np.argsort(graph.args, kind="stable")
        counts = np.bincount(graph.args, minlength=len(graph))
        starts = np.concatenate([[0], np.cumsum(counts)])
        return starts.tolist(), takers[order].tolist()
