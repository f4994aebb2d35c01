"""Every row to the fourth order, by rules alone, against mpmath, and at the edges of domains."""

from __future__ import annotations

import math
from collections.abc import Iterator
from zlib import crc32

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.core.primitive import Primitive
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.graph.rewritten import composed
from tests.autodiff.test_taylor import ROWS, differences
from tests.support.orders import orders
from tests.support.rows import for_each

INF = math.inf
ORDER = 4
MARGIN = 0.02
"""The share of an interval at its ends that random points leave out."""


def lines(row: Primitive, count: int) -> Iterator[Function]:
    """Yield the row along lines through random points of its domain, from where t = 0."""
    rng = np.random.default_rng(crc32(row.name.encode()))
    for _ in range(count):
        shares = rng.uniform(MARGIN, 1 - MARGIN, len(row.samples))
        pairs = zip(shares, row.samples, strict=True)
        point = [float(low + share * (high - low)) for share, (low, high) in pairs]
        slopes = [1.0, *(rng.uniform(0.25, 1.0, 2) * rng.choice([-1.0, 1.0], 2)).tolist()]
        fixed = orders(row)
        along = [*[0.0] * fixed, *slopes[: len(point) - fixed]]
        point[:fixed] = [float(low) for low, _ in row.samples[:fixed]]
        yield _line(row, point, along)


def _line(row: Primitive, point: list[float], along: list[float]) -> Function:
    def moved(nodes: list[Node]) -> list[Node]:
        (t,) = nodes
        return [row(*(p + s * t if s else p for p, s in zip(point, along, strict=True)))]

    return composed(moved, [()])


def derivatives(function: Function, modes: str) -> list[Function]:
    """Return the derivatives of a function of one number, one mode after the other."""
    found = [function]
    for letter in modes:
        found.append(dl.jacobian(found[-1], "forward" if letter == "f" else "reverse"))
    return found


@for_each("name", ROWS)
def test_nested_derivatives_match_mpmath_at_random_points(name: str) -> None:
    for function, modes in zip(lines(ROWS[name], 2), ("frfr", "rrff"), strict=True):
        exact = differences(function, 0.0, ORDER)
        size = max(abs(value) for value in exact)
        for order, derivative in enumerate(derivatives(function, modes)):
            wanted = exact[order] * math.factorial(order)
            found = mpmath.mpf(float(np.ravel(derivative(0.0))[0]))
            allowed = 1e-11 * max(abs(wanted), math.factorial(order) * size, 1e-3)
            assert abs(found - wanted) <= allowed, (name, order, modes)


RISING, FALLING, TURNING = [INF] * 4, [-INF] * 4, [INF, -INF, INF, -INF]
TURNED = [-INF, INF, -INF, INF]
EDGES = [
    ("sqrt(x)", 0.0, TURNING),
    ("ln(x)", 0.0, TURNING),
    ("log2(x)", 0.0, TURNING),
    ("log10(x)", 0.0, TURNING),
    ("log1p(x)", -1.0, TURNING),
    ("asin(x)", 1.0, RISING),
    ("asin(x)", -1.0, TURNING),
    ("acos(x)", 1.0, FALLING),
    ("acos(x)", -1.0, TURNED),
    ("acosh(x)", 1.0, TURNING),
    ("atanh(x)", 1.0, RISING),
    ("atanh(x)", -1.0, TURNING),
    ("1/x", 0.0, TURNED),
    ("x^0.5", 0.0, TURNING),
    ("x^1.5", 0.0, [0.0, INF, -INF, INF]),
    ("x^3", 0.0, [0.0, 0.0, 6.0, 0.0]),
    ("loggamma(x)", 0.0, TURNED),
    ("digamma(x)", 0.0, TURNING),
    ("cbrt(x)", 0.0, TURNING),
    ("cbrt(x)", -0.0, RISING),
    ("erfinv(x)", 1.0, RISING),
    ("erfinv(x)", -1.0, TURNING),
    ("erfcinv(x)", 0.0, TURNED),
    ("erfcinv(x)", 2.0, FALLING),
    ("ndtri(x)", 0.0, TURNING),
    ("ndtri(x)", 1.0, RISING),
    ("logit(x)", 0.0, TURNING),
    ("logit(x)", 1.0, RISING),
    ("entr(x)", 0.0, TURNING),
    ("ei(x)", 0.0, TURNING),
    ("e1(x)", 0.0, TURNED),
    ("log1mexp(x)", 0.0, FALLING),
    ("log_remainder(1, 0, x)", -1.0, TURNED),
    ("log_remainder(2, 0, x)", -1.0, TURNING),
    ("besselk(0, x)", 0.0, TURNED),
    ("gammainc(0.5, x)", 0.0, TURNING),
    ("gammainc(1, x)", 0.0, [1.0, -1.0, 1.0, -1.0]),
    ("betainc(0.5, 2, x)", 0.0, TURNING),
    ("betainc(2, 3, x)", 0.0, [0.0, 12.0, -48.0, 72.0]),
    ("betainc(2, 0.5, x)", 1.0, RISING),
    ("polygamma(1, x)", 0.0, TURNED),
    ("besselj(1, x)", 0.0, [0.5, 0.0, -0.375, 0.0]),
    ("besseli(1, x)", 0.0, [0.5, 0.0, 0.375, 0.0]),
]
"""Functions, an edge of their domain, and the limits of their derivatives there."""


@pytest.mark.parametrize("modes", ["ffff", "rrrr"])
@for_each(("text", "edge", "wanted"), EDGES)
def test_derivatives_at_edges_are_the_limits(
    text: str, edge: float, wanted: list[float], modes: str
) -> None:
    with np.errstate(all="ignore"):
        found = [
            float(np.ravel(derivative(edge))[0])
            for derivative in derivatives(dl.parse(text), modes)[1:]
        ]
    assert found == wanted
