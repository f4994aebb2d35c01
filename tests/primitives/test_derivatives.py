"""Every function of numbers to the fourth derivative over its whole domain, edges and tails.

The truths are differences of mpmath's values, see `tests.primitives.truths`. A derivative may be
off by `ULPS` units, times 1 + the condition number of that derivative: the rounding of a function's
arguments changes it by as much. Not held are derivatives above the first that is infinite.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.core.primitive import elementwise
from difflab.primitives import by_spelling
from tests.primitives.truths import FILE, ORDER, ROWS, function_of, indices
from tests.support.orders import orders
from tests.support.rows import for_each, replaced_rule

ULPS = 32.0
LEAST, NOTHING = 1e-290, 1e-305
"""Smaller derivatives are held as if they were `LEAST`; where it is 0, up to `NOTHING`."""
FEWEST = {"maximum": 2, "minimum": 2, "mod": 4, "erfcinv": 9, "ndtri": 9, "logit": 9, "besselk": 9}
"""Points of rows that have fewer than `MOST_HAVE`."""
MOST_HAVE = 13

Point = tuple[float, ...]

LIMITED: dict[str, tuple[Callable[[Point, Sequence[int]], bool], str]] = {
    "atan": (lambda at, index: abs(at[0]) > 1e77, "(1 + x²)² is infinite, 2e-300 becomes 0"),
    "atan2": (
        lambda at, index: max(map(abs, at)) < 1e-77 and sum(index) == 4,
        "the fourth power of the radius is 0",
    ),
    "beta": (
        lambda at, index: min(at) < 2 and min(index) > 0,
        "mixed derivatives: those of the poles 1/a + 1/b cancel; from 0.1 on 1e4 units are lost, "
        "and all digits of them below 1e-6",
    ),
    **dict.fromkeys(
        ("erf", "erfc", "ndtr"),
        (lambda at, index: abs(at[0]) > 1e154, "x² is infinite, and 0 times it nan"),
    ),
}
"""Where rows do not reach the bound, as a condition of the point and the orders, and why."""

TRUTHS: dict[str, list[Any]] = json.loads(FILE.read_text())


def errors(name: str, mode: str) -> Iterator[tuple[Point, tuple[int, ...], float, float, float]]:
    """Yield point, orders, value, truth, and error in units of what is allowed for one ULP."""
    row = ROWS[name]
    fixed = orders(row)
    for constants, group in itertools.groupby(TRUTHS[name], lambda entry: entry[0][:fixed]):
        entries = list(group)
        points = np.array([entry[0][fixed:] for entry in entries])
        derivative = function_of(row, constants)
        free = derivative.n
        infinite: set[int] = set()
        for order in range(1, ORDER + 1):
            derivative = dl.jacobian(derivative, mode)
            with np.errstate(all="ignore"):
                found = derivative.values(points).reshape(-1, *[free] * order)
            for position, index in enumerate(indices(free)):
                if sum(index) != order:
                    continue
                element = tuple(k for k, count in enumerate(index) for _ in range(count))
                for k, (at, truths) in enumerate(entries):
                    truth, condition = map(float, truths[position])
                    if k in infinite:
                        continue
                    value = float(found[k][element])
                    if math.isinf(truth):
                        infinite.add(k)
                    yield tuple(at), index, value, truth, _error(value, truth, condition)


def _error(value: float, truth: float, condition: float) -> float:
    if value == truth or (truth == 0 and abs(value) <= NOTHING):
        return 0.0
    if truth == 0 or not (math.isfinite(value) and math.isfinite(truth)):
        return math.inf
    unit = float(np.spacing(max(abs(truth), LEAST)))
    return abs(value - truth) / unit / (1 + condition)


def limited(name: str, at: Point, index: Sequence[int]) -> bool:
    return name in LIMITED and LIMITED[name][0](at, index)


def test_every_function_of_the_table_has_truths() -> None:
    assert set(TRUTHS) == set(ROWS)
    assert {row.name for row in by_spelling.values() if row.shape is None} >= set(TRUTHS) - {
        *("add", "subtract", "multiply", "divide", "negative", "power"),
    }
    few = {name: len(found) for name, found in TRUTHS.items() if len(found) < MOST_HAVE}
    assert {name for name, count in few.items() if count < FEWEST.get(name, MOST_HAVE)} == set()


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@for_each("name", sorted(ROWS))
def test_four_derivatives_are_within_the_bound(name: str, mode: str) -> None:
    wrong = [
        (at, index, value, truth, f"{error:.3g}")
        for at, index, value, truth, error in errors(name, mode)
        if not error <= ULPS and not limited(name, at, index)
    ]
    assert not wrong, f"{name}: {wrong[:6]}"


@for_each("name", sorted(LIMITED))
def test_no_row_is_limited_that_reaches_the_bound(name: str) -> None:
    found = [
        error
        for mode in ("forward", "reverse")
        for at, index, *_, error in errors(name, mode)
        if limited(name, at, index)
    ]
    assert max(found) > ULPS


def test_a_rule_that_cancels_is_found() -> None:
    """The textbook's second derivative of ln Φ, and the difference of digammas."""
    first, second = by_spelling["log_ndtr"], by_spelling["betaln"]
    digamma, exp, ndtr = (by_spelling[name] for name in ("digamma", "exp", "ndtr"))
    textbook = elementwise(lambda t, y, x: t * (exp(-0.5 * x * x) * 0.3989422804014327 / ndtr(x)))
    with replaced_rule(first, textbook):
        assert max(error for *_, error in errors("log_ndtr", "reverse")) > ULPS
    cancels = elementwise(
        lambda t, y, a, b: t * (digamma(a) - digamma(a + b)),
        lambda t, y, a, b: t * (digamma(b) - digamma(a + b)),
    )
    with replaced_rule(second, cancels):
        assert max(error for *_, error in errors("betaln", "reverse")) > ULPS
