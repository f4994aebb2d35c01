"""Special functions that only JavaScript spells, against mpmath at 40 digits.

Where the samples of the tests are drawn they are as close as SciPy's, which the page of `explore`
would otherwise call; farther out the bounds are those of the table below.
"""

from __future__ import annotations

import math
import re
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

from difflab.core.primitive import Primitive
from difflab.graph.interpreters import MpmathInterpreter
from difflab.primitives import TABLE, helpers, javascript
from difflab.primitives.javascript_bessel import BESSEL
from difflab.primitives.javascript_special import SPECIAL
from tests.support.node import Script, needs_node, run

ONLY_THERE = {
    name: row for name, row in TABLE.items() if row.shape is None and row.javascript and not row.c
}
ULPS = {"beta": 32.0, "betaln": 32.0}
"""In the samples; `OTHER_ULPS` for every other row."""
OTHER_ULPS = 8.0
POINTS = 30
ORDERS = [(0, 0), (1, 1), (7, 7), (0, 20), (-5, 0)]
FARTHER: dict[str, tuple[float, float, list[tuple[tuple[float, float], ...]]]] = {
    "polygamma": (256, 0, [((1, 1), (-20, 30)), ((4, 4), (0.01, 50)), ((2, 2), (-80.5, -49))]),
    "zeta": (8, 0, [((1.1, 8), (0.05, 40)), ((20, 90), (0.5, 30))]),
    "gammainc": (32, 0, [((0.3, 40), (0.01, 80))]),
    "gammaincc": (64, 0, [((1, 40), (0.01, 80))]),
    "gammainc_derivative": (256, 1, [((n, n), (0.3, 40), (0.01, 80)) for n in (1, 2, 3, 5)]),
    "betainc_derivative": (
        *(512, 1),
        [((n, n), (0.3, 40), (0.3, 40), (0.01, 0.99)) for n in (1, 2, 3)],
    ),
    "beta": (512, 0, [((0.05, 45), (0.05, 45))]),
    "betaln": (512, 1, [((0.05, 200), (0.05, 200))]),
    "betainc": (512, 1e-3, [((0.3, 40), (0.3, 40), (0.01, 0.99))]),
    "polygamma_difference": (32, 0, [((n, n), (0.05, 200), (1e-9, 200)) for n in (0, 1, 3)]),
    "erfcinv": (8, 0, [((1e-12, 1e-2),), ((0.001, 1.999),)]),
    "derfcinv": (32, 0, [((1e-12, 1e-2),), ((0.001, 1.999),)]),
    "ndtri": (8, 0, [((1e-12, 1e-2),), ((0.001, 0.999),)]),
    "dndtri": (32, 0, [((1e-12, 1e-2),), ((0.001, 0.999),)]),
    "erfcx": (8, 0, [((-5, 60),)]),
    "erfi": (16, 0, [((-20, 20),), ((-3, 3),)]),
    "derfi": (8, 0, [((-20, 20),)]),
    "ndtr": (8, 0, [((-30, 9),)]),
    "dndtr": (8, 0, [((-30, 9),)]),
    "log_ndtr": (8, 0, [((-60, 9),)]),
    "dawsn": (16, 0, [((-60, 60),)]),
    "dawsn_derivative": (32, 0, [((n, n), (-50, 50)) for n in (1, 2, 5, 9)]),
    "besselj": (32, 0.1, [*((n, (0.5, 40)) for n in ORDERS), ((40, 40), (10, 60))]),
    "bessely": (32, 0.1, [(n, (0.5, 40)) for n in ORDERS]),
    "besseli": (64, 0, [(n, (0.5, 40)) for n in ORDERS]),
    "besselk": (64, 0, [(n, (0.5, 300)) for n in ORDERS]),
    **dict.fromkeys(("airyai", "airyaiprime"), (256, 0.1, [((-20, 0),), ((0.9, 1.1),)])),
    **dict.fromkeys(("airybi", "airybiprime"), (512, 0.1, [((-20, 20),)])),
}
"""Bounds in units of the last place of a value, or of a number if that is larger, and boxes."""
HIGH_ORDERS: list[tuple[str, tuple[tuple[float, float], ...]]] = [
    *[("besselk", ((100, 100), (0.5, 40))), ("besselj", ((200, 200), (5, 20)))],
    *[("besseli", ((175, 200), (80, 120)))],
]
"""Where powers and gamma functions overflow, or nearly: functions and boxes."""
HIGH_ULPS = 4096.0
"""An exponential of some hundreds loses as many units."""
EDGES: list[tuple[str, tuple[float, ...], float]] = [
    *[("erfi", (x,), x) for x in (math.inf, -math.inf, 0.0)],
    *[("erfcinv", (x,), y) for x, y in ((0.0, math.inf), (2.0, -math.inf), (2.5, math.nan))],
    *[("ndtr", (x,), y) for x, y in ((-math.inf, 0.0), (math.inf, 1.0), (math.nan, math.nan))],
    *[("erfcx", (x,), y) for x, y in ((-math.inf, math.inf), (math.inf, 0.0))],
    *[("dawsn", (x,), 0.0) for x in (math.inf, -math.inf, 0.0)],
    *[("polygamma", (1.0, x), math.inf) for x in (0.0, -3.0, -math.inf)],
    *[("polygamma", (1.0, math.inf), 0.0), ("polygamma", (0.5, 2.0), math.nan)],
    *[("zeta", (1.0, 2.0), math.inf), ("zeta", (2.0, -0.5), math.nan)],
    *[("gammainc", (2.0, x), y) for x, y in ((0.0, 0.0), (math.inf, 1.0), (-1.0, math.nan))],
    *[("betainc", (2.0, 3.0, x), y) for x, y in ((0.0, 0.0), (1.0, 1.0), (1.5, math.nan))],
    *[("besselj", (n, 0.0), y) for n, y in ((0.0, 1.0), (2.0, 0.0), (-1.0, 0.0))],
    *[("bessely", (0.0, x), y) for x, y in ((0.0, -math.inf), (-1.0, math.nan))],
    *[("besselk", (0.0, x), y) for x, y in ((0.0, math.inf), (-1.0, math.nan), (math.inf, 0.0))],
    *[("airyai", (math.inf,), 0.0), ("airybi", (math.inf,), math.inf)],
]


def script(row: Primitive, points: Any) -> Script:
    """Return the spelling of a row as a function."""
    letters = "abcd"[: row.arity]
    called = row.javascript.format(*letters)
    defined = helpers.used([called], helpers.JAVASCRIPT).values()
    words = {word for text in (called, *defined) for word in re.findall(r"\w+", text)}
    head = [f"const {{ {', '.join(sorted(words & javascript.MATH))} }} = Math;", *defined]
    source = "\n".join([*head, f"function f({', '.join(letters)}) {{ return {called}; }}"])
    return Script(source, [()] * len(letters), points)


def drawn(box: Any, number: int) -> Any:
    ends = np.array(box, dtype=float)
    return np.random.default_rng(number).uniform(ends[:, 0], ends[:, 1], (POINTS, len(ends)))


def exact(row: Primitive, points: Any) -> Any:
    compute = MpmathInterpreter().operation(row)
    with mpmath.workdps(40):
        return np.array([float(mpmath.re(compute(*map(mpmath.mpf, p)))) for p in points.tolist()])


def assert_near(row: Primitive, at: Any, found: Any, ulps: float, floor: float = 0.0) -> None:
    expected = exact(row, at)
    allowed = ulps * np.spacing(np.maximum(np.abs(expected), floor))
    wrong = np.flatnonzero(~(np.abs(found - expected) <= allowed))
    told = [f"{at[k].tolist()}: {found[k]}, not {expected[k]}" for k in wrong[:6]]
    assert not told, f"{row.name} at {'; '.join(told)}"


@needs_node
def test_they_are_accurate_where_samples_are_drawn() -> None:
    at = [drawn(row.samples, 3) for row in ONLY_THERE.values()]
    scripts = [script(row, points) for row, points in zip(ONLY_THERE.values(), at, strict=True)]
    for row, points, found in zip(ONLY_THERE.values(), at, run(scripts), strict=True):
        near_one = 1.0 if row.name == "betaln" else 0.0  # whose logarithm is near 0
        assert_near(row, points, found[:, 0], ULPS.get(row.name, OTHER_ULPS), near_one)


@needs_node
def test_farther_out_they_are_within_the_stated_bounds() -> None:
    assert set(FARTHER) == set(ONLY_THERE)
    cases = [(name, drawn(box, k)) for name in FARTHER for k, box in enumerate(FARTHER[name][2])]
    results = run([script(TABLE[name], at) for name, at in cases])
    for (name, at), found in zip(cases, results, strict=True):
        ulps, floor, _ = FARTHER[name]
        assert_near(TABLE[name], at, found[:, 0], ulps, floor)


@needs_node
def test_the_normal_quantile_of_the_least_numbers_is_scipys() -> None:
    """Slopes overflow there, and 1 − x of mpmath's form needs hundreds of digits."""
    at = np.array([[5e-324], [1e-310], [1e-292], [1e-289]])
    (found,) = run([script(TABLE["ndtri"], at)])
    np.testing.assert_allclose(found[:, 0], scipy.special.ndtri(at[:, 0]), rtol=1e-14)


@needs_node
def test_high_orders_lose_no_more_than_exponentials_do() -> None:
    cases = [(name, drawn(box, k)) for k, (name, box) in enumerate(HIGH_ORDERS)]
    results = run([script(TABLE[name], at) for name, at in cases])
    for (name, at), found in zip(cases, results, strict=True):
        assert_near(TABLE[name], at, found[:, 0], HIGH_ULPS)


@needs_node
def test_edges_have_their_limits() -> None:
    results = run([script(TABLE[name], [point]) for name, point, _ in EDGES])
    for (name, point, value), found in zip(EDGES, results, strict=True):
        assert found[0, 0] == pytest.approx(value, abs=0.0, nan_ok=True), (name, point)


def test_every_definition_is_used() -> None:
    called = [row.javascript for row in ONLY_THERE.values()]
    assert len({*SPECIAL, *BESSEL} - set(helpers.used(called, helpers.JAVASCRIPT).values())) == 0
