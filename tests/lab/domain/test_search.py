"""The search finds what is planted: a box of a ten-thousandth of the domain, and a narrow peak."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import difflab as dl
from difflab.lab.domain.answers import Candidate, prepared
from difflab.lab.domain.box import box_of, evenly
from difflab.lab.domain.compare import SCAN
from difflab.lab.domain.search import Search
from difflab.methods.protocol import Problem
from tests.lab.domain.planted import HIGH, LOW, SEED, Planted, gradient

F = dl.parse(SEED)
BOX = box_of(F, {"x1": (LOW[0], HIGH[0]), "x2": (LOW[1], HIGH[1])})


def candidate(method: Any) -> Candidate:
    return prepared(method, Problem(F.values, F.n, F.m, F))


def inside(points: NDArray[Any], method: Planted) -> NDArray[np.bool_]:
    unit = (points - LOW) / (HIGH - LOW)
    return ((unit >= method.low) & (unit <= method.high)).all(axis=1)


def test_a_ten_thousandth_of_the_volume_is_found_in_nine_of_ten_seeds() -> None:
    found = 0
    for seed in range(10):
        corner = np.random.default_rng(seed).random(2) * 0.99
        method = Planted(tuple(corner), tuple(corner + 0.01))
        search = Search(BOX, [candidate(method)], gradient, seed)
        search.scan(evenly(2, SCAN * 10_000, seed))
        search.climb(0)
        found += bool(inside(search.suspects(0), method).any())
    assert found >= 9


def test_it_climbs_a_peak_that_no_point_of_the_scan_meets() -> None:
    peak = np.array([0.3217, 0.7741])

    class Peaked(Planted):
        def _found(self, points: NDArray[Any]) -> NDArray[Any]:
            distance = np.linalg.norm(self._unit(points) - peak, axis=1)
            return gradient(points) * (1 + 1e-9 / (distance + 1e-9))[:, None, None]

    search = Search(BOX, [candidate(Peaked())], gradient, 1)
    search.scan(evenly(2, 256, 1))
    before = np.linalg.norm((search.suspects(0) - LOW) / (HIGH - LOW) - peak, axis=1).min()
    search.climb(0)
    after = np.linalg.norm((search.suspects(0) - LOW) / (HIGH - LOW) - peak, axis=1).min()
    assert before > 5e-3
    assert after < 5e-4


def test_nan_where_there_is_a_derivative_is_the_worst() -> None:
    class Missing(Planted):
        def _found(self, points: NDArray[Any]) -> NDArray[Any]:
            value = gradient(points)
            value[self._unit(points)[:, 0] > 0.9] = np.nan
            return value

    search = Search(BOX, [candidate(Missing())], gradient, 0)
    search.scan(evenly(2, 64, 0))
    worst = search.suspects(0)
    assert ((worst[:, 0] - LOW[0]) / (HIGH[0] - LOW[0]) > 0.9).any()


@pytest.mark.parametrize("unknown", [np.nan])
def test_without_a_known_derivative_nothing_is_suspected(unknown: float) -> None:
    search = Search(BOX, [candidate(Planted())], lambda x: np.full((len(x), 1, 2), unknown), 0)
    search.scan(evenly(2, 64, 0))
    search.climb(0)
    assert len(search.suspects(0)) == 0
