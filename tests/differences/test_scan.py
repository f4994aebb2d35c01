"""Noise is seen where it is, and not where a function only moves fast, bends or ends."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from difflab.differences.scan import scan_aside, scan_line

Array = NDArray[np.float64]
Scalar = Callable[[Array], Array]


def along(f: Scalar, x: float) -> tuple[Callable[[Array], Array], Array, float]:
    center = np.atleast_2d(f(x + np.zeros(1))).T

    def changes(moves: Array) -> Array:
        return np.atleast_2d(f(x + moves)).T - center

    return changes, 2.0**-52 * np.abs(center[0]), x


@pytest.mark.parametrize("quantum", [1e-2, 1e-4, 1e-7, 1e-10])
def test_the_noise_of_rounding_is_a_part_of_its_quantum(quantum: float) -> None:
    scan = scan_line(*along(lambda x: np.round(np.exp(x) / quantum) * quantum, 1.0))
    assert 0.02 * quantum < scan.noise[0] < quantum
    found = scan.estimate(scan.noise)
    assert abs(found.value[0] - math.e) <= found.bar[0] < 100 * quantum


def test_pseudo_random_noise_is_seen() -> None:
    def f(x: Array) -> Array:
        return np.sin(x) + 1e-6 * np.sin(1e12 * x)

    scan = scan_line(*along(f, 1.0))
    assert 1e-7 < scan.noise[0] < 1e-5
    found = scan.estimate(scan.noise)
    assert abs(found.value[0] - math.cos(1.0)) <= found.bar[0] < 1e-3


@pytest.mark.parametrize(
    "f",
    [
        np.exp,
        lambda x: np.sin(40.0 * x),
        lambda x: np.sin(1e5 * x),
        lambda x: np.abs(x - 1.01) + x**2,
        lambda x: np.abs(x - 1.0),
        lambda x: np.where(x > 1.1, 3.0, x),
        lambda x: np.sqrt(np.maximum(x - 0.99, 0.0)),
        lambda x: 0 * x + 7.0,
    ],
)
def test_functions_without_noise_show_none(f: Scalar) -> None:
    assert scan_line(*along(f, 1.0)).noise[0] <= 1e-10


def test_a_kink_at_the_point_is_measured() -> None:
    scan = scan_line(*along(lambda x: np.exp(x) + 3.0 * np.abs(x - 1.0), 1.0))
    found = scan.estimate(scan.noise)
    assert 0.0 <= found.half_jump[0] - 3.0 < 1e-4
    assert abs(found.value[0] - math.e) <= found.bar[0] < 1e-2


def test_a_jump_aside_shows_only_there() -> None:
    changes, rounding, _ = along(lambda x: np.exp(x) + 1e-5 * (x > 1.7), 1.0)
    assert scan_line(changes, rounding, 1.0).noise[0] == 0.0
    assert 1e-7 < scan_aside(changes, rounding)[0] < 1e-5


def test_outside_of_the_domain_nothing_is_seen() -> None:
    with np.errstate(invalid="ignore"):
        scan = scan_line(*along(lambda x: np.where(x < 0, np.nan, x**1.5), 0.0))
    assert scan.windows == []


def test_outputs_are_seen_apart() -> None:
    def values(moves: Array) -> Array:
        x = 1.0 + moves
        return np.stack([np.exp(x), np.round(np.exp(x), 3)], axis=1)

    center = values(np.zeros(1))
    scan = scan_line(lambda moves: values(moves) - center, 2.0**-52 * np.abs(center[0]), 1.0)
    assert scan.noise[0] == 0.0
    assert scan.noise[1] > 1e-5
    assert scan.estimate(scan.noise).bar[0] < 1e-10


def test_a_look_takes_some_dozens_of_values() -> None:
    count = 0

    def changes(moves: Array) -> Array:
        nonlocal count
        count += moves.size
        return (np.round(np.exp(1.0 + moves), 3) - round(math.e, 3))[:, None]

    scan_line(changes, np.full(1, 6e-16), 1.0)
    assert count <= 64
