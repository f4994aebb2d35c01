"""Rounding of balls to float64 against Python's division of integers, which rounds correctly."""

from __future__ import annotations

import math
import random

import pytest

from difflab.balls.library import (
    arb,
    below,
    between,
    exactly,
    fmpq,
    nearest,
    precision,
    upward,
    whole,
)


def numbers() -> list[tuple[int, int]]:
    """Return numbers as digits and an exponent of 2: halfway cases, subnormal and huge ones."""
    draw = random.Random(5)
    found = [
        (draw.getrandbits(draw.choice([1, 30, 53, 54, 55, 90, 200])), draw.randint(-1300, 1100))
        for _ in range(3000)
    ]
    found += [(2 * draw.getrandbits(53) + 1, -draw.randint(1000, 1130)) for _ in range(500)]
    found += [(draw.getrandbits(52) * 2 + 2**53 + 1, draw.randint(-1100, 1000)) for _ in range(500)]
    found += [
        (2**1024 - 2**970, 0),
        (2**1024 - 2**969, 0),
        (2**54 - 1, 970),
        (1, -1075),
        (3, -1076),
    ]
    return [(sign * digits, exponent) for digits, exponent in found for sign in (1, -1)]


def rounded(digits: int, exponent: int) -> float:
    try:
        return digits * 2**exponent / 1 if exponent >= 0 else digits / 2**-exponent
    except OverflowError:
        return math.inf if digits > 0 else -math.inf


def test_an_exact_number_is_rounded_to_the_nearest_ties_to_even() -> None:
    with precision(2600):
        for digits, exponent in numbers():
            number = arb(digits) * arb(2) ** exponent
            assert nearest(number) == rounded(digits, exponent), (digits, exponent)
            assert nearest(exactly(number)) == rounded(digits, exponent)


def test_bounds_are_the_neighbours_of_the_number() -> None:
    with precision(2600):
        for digits, exponent in numbers():
            number = arb(digits) * arb(2) ** exponent
            low, high = below(number), upward(number)
            assert low == -math.inf or arb(low) <= number
            assert high == math.inf or arb(high) >= number
            assert high in (low, math.nextafter(low, math.inf))


def test_a_ball_that_rounds_to_two_numbers_has_no_nearest_one() -> None:
    with precision(200):
        tie = arb(1) + arb(2) ** -53
        assert nearest(tie) == 1.0
        assert nearest(tie + arb(0, 2.0**-150)) is None
        assert nearest(arb(1) / 3) == 1 / 3
        assert nearest(arb(0, 2.0**-100)) is None
        assert nearest(arb(0, 1e-300) * arb(2) ** -200) == 0.0
        assert math.isnan(nearest(arb.nan()) or math.nan)


def test_a_box_contains_its_ends() -> None:
    draw = random.Random(6)
    with precision(80):
        for _ in range(500):
            low, high = sorted(draw.uniform(-1, 1) * 10.0 ** draw.randint(-300, 300) for _ in "ab")
            ball = between(low, high)
            assert ball.contains(arb(low))
            assert ball.contains(arb(high))
            assert below(ball) <= low
            assert upward(ball) >= high


@pytest.mark.parametrize(("ball", "integer"), [(arb(3), 3), (fmpq(6, 2), 3), (fmpq(1, 2), None)])
def test_integers(ball: object, integer: int | None) -> None:
    assert whole(ball) == integer
