"""The ladder that methods and referee share is held to ball arithmetic, which uses none of it."""

from __future__ import annotations

import numpy as np
import pytest

import difflab as dl
from difflab.methods.numeric.finite import CENTRAL, FORWARD, RICHARDSON, Differences
from difflab.methods.protocol import Problem
from difflab.referee.by_values import reference_by_values
from difflab.referee.proofs import prove
from difflab.referee.referee import refer

CASES = [
    ("ln(x1) + x1*x2 - sin(x2)", [2.0, 5.0]),
    ("exp(x)*y^3/(1 + y)", [0.7, -3.0]),
    ("sqrt(x)*gamma(y)", [1e-6, 3.5]),
    ("atan(x*y) + tanh(z)", [30.0, 0.01, -0.4]),
    ("1e12*x^2 + sin(y)", [1e-5, 10.0]),
]


def proved(text: str, point: list[float], order: int) -> np.ndarray:
    proof = prove(dl.parse(text), point, order, seconds=600.0)
    assert proof.proved.all()
    return proof.exact.astype(float)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(("text", "point"), CASES)
def test_ball_arithmetic_does_not_contradict_differences(
    text: str, point: list[float], order: int
) -> None:
    found = refer(dl.parse(text), point, order=order, timeout=600.0)
    assert found.contradiction == ""
    assert found.proved.all()


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("method", [FORWARD, CENTRAL, RICHARDSON], ids=lambda method: method.name)
@pytest.mark.parametrize(("text", "point"), CASES)
def test_methods_are_within_their_bars_of_what_is_proved(
    text: str, point: list[float], method: Differences, order: int
) -> None:
    truth = proved(text, point, order)
    found = method.prepare(Problem.of(dl.parse(text), order=order))(np.array(point))
    assert found.error is not None
    assert (np.abs(found.value - truth) <= found.error).all()
    # A bar that is wide determines nothing; the digits are those of each method.
    digits = {"finite-forward": 4.0, "finite-central": 6.0, "richardson": 8.0}[method.name]
    if order == 1:
        size = np.abs(truth).max() * 10.0**-digits
        assert (found.error <= np.maximum(10.0**-digits * np.abs(truth), size)).all()


@pytest.mark.parametrize(("text", "point"), CASES)
def test_the_referee_of_code_is_within_its_bounds_of_what_is_proved(
    text: str, point: list[float]
) -> None:
    f = dl.parse(text)
    found = reference_by_values(lambda x: np.array([f.values(each) for each in x]), point)
    truth = proved(text, point, 1)
    assert (np.abs(found.jacobian - truth) <= found.bounds).all()
    assert (found.bounds <= 1e-6 * np.abs(truth)).all()
