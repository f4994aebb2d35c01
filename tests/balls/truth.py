"""Values and derivatives by mpmath: values of its own, and central differences of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, product
from typing import Any

import mpmath
import numpy as np

from difflab.balls.enclosure import Enclosure, Interval
from difflab.core.primitive import Primitive
from difflab.graph.function import Function, evaluate
from difflab.graph.interpreters import MpmathInterpreter

DIGITS = 120
STEP = mpmath.mpf("1e-30")
SLACK = mpmath.mpf("1e-45")
"""What differences err by, relative to the largest derivative: far below a float64's rounding."""


class _Mpmath(MpmathInterpreter):
    """Without the float64 that the expansion of `derf` has for 2/√π."""

    def _scalar(self, primitive: Primitive) -> Any:
        if primitive.name == "derf":
            return lambda x: 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x)
        return super()._scalar(primitive)


def values(function: Function, x: Sequence[Any]) -> list[Any]:
    """Return the flattened outputs at a point of mpmath numbers."""
    parts = function.split(np.array(x, dtype=object))
    inputs = [part if part.shape else part.item() for part in parts]
    found = evaluate(function, inputs, _Mpmath())
    flat = []
    for value, shape in zip(found, function.output_shapes, strict=True):
        whole = np.broadcast_to(np.asarray(value, dtype=object), shape)
        flat += [mpmath.mpf(int(v)) if isinstance(v, bool) else +v for v in whole.ravel().tolist()]
    return flat


def truths(function: Function, x: Sequence[float], order: int) -> list[list[Any]]:
    """Return value, gradient and Hessian of each flattened output, side by side."""
    with mpmath.workdps(DIGITS):
        point = [mpmath.mpf(number) for number in x]
        n = range(len(point))
        corners: dict[tuple[int, ...], list[Any]] = {}

        def at(*moves: tuple[int, int]) -> list[Any]:
            """Return the values some steps away from the point; Hessians share most of them."""
            steps = tuple(sum(sign for place, sign in moves if place == i) for i in n)
            if steps not in corners:
                near = [number + k * STEP for number, k in zip(point, steps, strict=True)]
                corners[steps] = values(function, near)
            return corners[steps]

        rows = [[value] for value in at()]
        for i in n if order >= 1 else ():
            for row, a, b in zip(rows, at((i, 1)), at((i, -1)), strict=True):
                row.append((a - b) / (2 * STEP))
        for i, j in product(n, n) if order == 2 else ():
            signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
            found = [at((i, s), (j, t)) for s, t in signs]
            for row, a, b, c, d in zip(rows, *found, strict=True):
                row.append((a - b - c + d) / (4 * STEP * STEP))
        return rows


def rows_of(e: Enclosure) -> list[list[tuple[float, float]]]:
    """Return the bounds of an enclosure in the order of `truths`."""
    parts = [part for part in (e.value, e.jacobian, e.hessian) if part is not None]
    m = e.value.lower.size
    pairs = [list(map(pair_list, split(part, m))) for part in parts]
    return [list(chain.from_iterable(block[row] for block in pairs)) for row in range(m)]


def split(part: Interval, m: int) -> list[tuple[Any, Any]]:
    low, high = part.lower.reshape(m, -1), part.upper.reshape(m, -1)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def pair_list(row: tuple[Any, Any]) -> list[tuple[float, float]]:
    return list(zip(*row, strict=True))


def check_contains(e: Enclosure, function: Function, x: Sequence[float], order: int) -> None:
    """Fail unless every number of mpmath's lies within its bounds."""
    for bounds, row in zip(rows_of(e), truths(function, x, order), strict=True):
        largest = max(abs(number) for number in row)
        for place, ((low, high), number) in enumerate(zip(bounds, row, strict=True)):
            with mpmath.workdps(DIGITS):
                slack = SLACK * largest + mpmath.mpf("1e-60")
                inside = low - slack <= number <= high + slack
            assert inside, f"at {list(x)}, number {place}: {number} is not in [{low}, {high}]"


def check_tight(e: Enclosure) -> None:
    """Fail unless the bounds of every number are beside it."""
    for bounds in rows_of(e):
        for low, high in bounds:
            steps = np.nextafter(np.nextafter(low, np.inf), np.inf)
            assert low <= high <= steps, (low, high)
