"""Slopes that are recorded and swept in reverse: the truth is mpmath's, the cost is a count."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.balls import evaluation
from difflab.balls.evaluation import PRECISIONS, evaluated
from difflab.balls.library import arb
from difflab.balls.rounded import rounded_derivative
from difflab.balls.slopes import Recorded

N = 40
POINT = (1 + 0.1 * np.sin(np.arange(N))).tolist()


def exponentials(x: list[mpmath.mpf]) -> list[mpmath.mpf]:
    """The gradient of Σ softmax(x)² is 2 p (p - Σ p²)."""
    parts = [mpmath.exp(entry) for entry in x]
    p = [part / mpmath.fsum(parts) for part in parts]
    squares = mpmath.fsum(entry**2 for entry in p)
    return [2 * entry * (entry - squares) for entry in p]


def quotients(x: list[mpmath.mpf]) -> list[mpmath.mpf]:
    """That of Σ x/(1 - s) with s = Σ x is 1/(1 - s)²: one sum twice."""
    return [1 / (1 - mpmath.fsum(x)) ** 2 for _ in x]


def products(x: list[mpmath.mpf]) -> list[mpmath.mpf]:
    """That of -Π x/3."""
    return [-mpmath.fprod(x) / entry / 3 for entry in x]


CASES = [
    (f"x: [{N}]; sum(softmax(x)^2)", exponentials),
    (f"x: [{N}]; sum(x/(1 - sum(x)))", quotients),
    (f"x: [{N}]; -prod(x)/3", products),
]


@pytest.mark.parametrize(("text", "truth"), CASES)
def test_gradients_of_many_inputs_are_correctly_rounded(text, truth) -> None:
    with mpmath.workdps(60):
        expected = [float(entry) for entry in truth(list(map(mpmath.mpf, POINT)))]
    assert rounded_derivative(dl.parse(text), POINT, 1)[0].tolist() == expected


@pytest.mark.parametrize("bits", [PRECISIONS[0], evaluation.FRACTIONS_FROM])
@pytest.mark.parametrize("text", [*(text for text, _ in CASES), f"x: [{N}]; x[1]*x[2] - x[1]"])
def test_recorded_slopes_are_those_of_each_input(text, bits, monkeypatch) -> None:
    function, balls = dl.parse(text), [arb(number) for number in POINT]
    (recorded,) = evaluated(function, balls, bits, order=1)
    monkeypatch.setattr(evaluation, "MANY", N)
    (plain,) = evaluated(function, balls, bits, order=1)
    assert list(recorded.slopes) == list(plain.slopes)
    for place, slope in plain.slopes.items():
        assert arb(recorded.slopes[place]).overlaps(arb(slope))


def test_the_cost_is_linear_in_the_inputs(monkeypatch) -> None:
    parts: list[int] = []
    record = Recorded.__init__

    def counted(self, *given) -> None:
        parts.append(len(given))
        record(self, *given)

    monkeypatch.setattr(Recorded, "__init__", counted)
    counts = []
    for n in (100, 200):
        parts.clear()
        evaluated(dl.parse(f"x: [{n}]; sum(softmax(x)^2)"), [arb(1)] * n, 80, order=1)
        counts.append(sum(parts))
    assert 100 < counts[0] < counts[1] <= 2 * counts[0]


def test_a_fault_has_no_slopes() -> None:
    (found,) = evaluated(dl.parse(f"x: [{N}]; sum(abs(x))"), [arb(0)] * N, 80, order=1)
    assert found.fault is not None
    assert found.slopes == {}
