"""Break-even numbers of calls, by algebra."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from difflab.bench.dimensions.winners import Cost, costs, envelope, pays


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((10, 1), (0, 3), (5, inf)),  # 10 + k <= 3 k
        ((0, 3), (10, 1), (1, 5)),
        ((1, 1), (2, 2), (1, inf)),
        ((2, 2), (1, 1), None),
        ((2, 1), (1, 1), None),
        ((1, 1), (1, 1), (1, inf)),
    ],
)
def test_break_even(first, second, expected):
    assert pays(Cost(*first), Cost(*second)) == expected


def test_the_intervals_are_where_the_total_is_least():
    generator = np.random.default_rng(2)
    for _ in range(50):
        cell = {name: Cost(*np.exp(generator.normal(0, 3, 2)).tolist()) for name in "abcde"}
        intervals = envelope(cell)
        for calls in np.exp(generator.uniform(0, 12, 20)):
            cheapest = min(cell, key=lambda name: cell[name].prepare + calls * cell[name].call)
            (found,) = [name for name, (low, high) in intervals.items() if low <= calls <= high]
            assert found == cheapest


def row(n, status, call=None):
    found = {"n": n, "m": 1, "method": "f", "status": status, "call_seconds": call, "timeout": 2.0}
    return {**found, "prepare_seconds": None if call is None else 7 * call}


def test_a_timeout_is_extrapolated_and_a_wrong_answer_is_not():
    rows = [row(n, "ok", 1e-3 * n**2) for n in (1, 2, 4, 8)]
    rows += [row(16, "timeout"), row(32, "disagree"), row(64, "unsupported")]
    found = costs(rows)
    assert not found[8, 1]["f"].extrapolated
    beyond = found[16, 1]["f"]
    assert (beyond.call, beyond.prepare) == pytest.approx((0.256, 1.792))
    assert rows[4]["timeout"] <= beyond.total(1)
    rows[4]["timeout"] = 5.0
    assert costs(rows)[16, 1]["f"].total(1) == pytest.approx(5.0)
    assert beyond.extrapolated
    assert found[32, 1] == found[64, 1] == {}
