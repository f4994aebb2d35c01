"""Special functions that printed code defines, against mpmath at 40 digits.

Where the samples of the tests are drawn they are as close as SciPy's, which the page of `explore`
would otherwise call; farther out the bounds are those of the table below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special
from numpy.typing import NDArray

from difflab.core.primitive import Primitive
from difflab.graph.interpreters import MpmathInterpreter
from difflab.primitives import TABLE
from tests.primitives.test_spellings import function_of
from tests.support.languages import JAVASCRIPT, C, Language
from tests.support.special_rows import FARTHER, OF_ORDERS

ROWS = {name: TABLE[name] for name in sorted(FARTHER - OF_ORDERS - {"dlambertw"})}
ULPS = {"beta": 32.0, "betaln": 32.0}
"""In the samples; `OTHER_ULPS` for every other row."""
OTHER_ULPS = 8.0
POINTS = 30
ORDERS = [(0, 0), (1, 1), (7, 7), (0, 20), (-5, 0)]
BOUNDS: dict[str, tuple[float, float, list[tuple[tuple[float, float], ...]]]] = {
    "polygamma": (256, 0, [((1, 1), (-20, 30)), ((4, 4), (0.01, 50)), ((2, 2), (-80.5, -49))]),
    "zeta": (8, 0, [((1.1, 8), (0.05, 40)), ((20, 90), (0.5, 30))]),
    "si": (8, 0, [((-4, 4),), ((3, 900),)]),
    "ci": (16, 0.02, [((0.01, 4),), ((4, 50),)]),
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
    *[("si", (x,), y) for x, y in ((math.inf, math.pi / 2), (-math.inf, -math.pi / 2))],
    *[(name, (math.nan,), math.nan) for name in ("si", "ci")],
    *[("ci", (x,), y) for x, y in ((0.0, -math.inf), (-1.0, math.nan), (math.inf, 0.0))],
]


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


LANGUAGE = pytest.mark.parametrize("language", [C, JAVASCRIPT], ids=lambda each: each.name)


def values(
    language: Language, cases: Sequence[tuple[str, Any]], folder: Path
) -> list[NDArray[np.float64]]:
    """Return the values of rows, called by their names, in a language."""
    if not language.there:
        pytest.skip(f"needs {language.needed}")
    functions = [function_of(TABLE[name]) for name, _ in cases]
    found = language.values(functions, [np.array(at) for _, at in cases], folder)
    return [each[:, 0] for each in found]


@LANGUAGE
def test_they_are_accurate_where_samples_are_drawn(language: Language, tmp_path: Path) -> None:
    cases = [(name, drawn(row.samples, 3)) for name, row in ROWS.items()]
    for (name, at), found in zip(cases, values(language, cases, tmp_path), strict=True):
        near_one = 1.0 if name == "betaln" else 0.0  # whose logarithm is near 0
        assert_near(TABLE[name], at, found, ULPS.get(name, OTHER_ULPS), near_one)


@LANGUAGE
def test_farther_out_they_are_within_the_stated_bounds(language: Language, tmp_path: Path) -> None:
    assert set(BOUNDS) == set(ROWS)
    cases = [(name, drawn(box, k)) for name in BOUNDS for k, box in enumerate(BOUNDS[name][2])]
    for (name, at), found in zip(cases, values(language, cases, tmp_path), strict=True):
        ulps, floor, _ = BOUNDS[name]
        assert_near(TABLE[name], at, found, ulps, floor)


@LANGUAGE
def test_the_normal_quantile_of_the_least_numbers_is_scipys(
    language: Language, tmp_path: Path
) -> None:
    """Slopes overflow there, and 1 − x of mpmath's form needs hundreds of digits."""
    at = np.array([[5e-324], [1e-310], [1e-292], [1e-289]])
    (found,) = values(language, [("ndtri", at)], tmp_path)
    np.testing.assert_allclose(found, scipy.special.ndtri(at[:, 0]), rtol=1e-14)


@LANGUAGE
def test_high_orders_lose_no_more_than_exponentials_do(language: Language, tmp_path: Path) -> None:
    cases = [(name, drawn(box, k)) for k, (name, box) in enumerate(HIGH_ORDERS)]
    for (name, at), found in zip(cases, values(language, cases, tmp_path), strict=True):
        assert_near(TABLE[name], at, found, HIGH_ULPS)


@LANGUAGE
def test_edges_have_their_limits(language: Language, tmp_path: Path) -> None:
    cases = [(name, [point]) for name, point, _ in EDGES]
    for (name, point, value), found in zip(EDGES, values(language, cases, tmp_path), strict=True):
        assert found[0] == pytest.approx(value, abs=0.0, nan_ok=True), (name, point)
