"""Functions of several arguments: the gradient has a part for each."""

from __future__ import annotations

import numpy as np
import pytest

from difflab import parse
from difflab.errors import InputError
from difflab.testing import GradientMismatch, check_gradient

A, B = np.array([2.0, 4.0, 5.0]), np.array([1.0, -2.0, 0.5])


def ratio(top, bottom):
    return np.sum(top / bottom)


def slopes(top, bottom):
    return 1 / bottom, -top / bottom**2


def test_right_gradients_pass():
    check_gradient(ratio, slopes, A, B)
    check_gradient(ratio, list(slopes(A, B)), A, B)
    check_gradient(ratio, None, A, B)
    check_gradient(ratio, slopes, 2.0, 4.0)
    check_gradient(lambda *x: x[0] * x[1], lambda a, b: (b, a), 2.0, 4.0)
    check_gradient(
        lambda p, b: np.sum(p["w"]) * b, lambda p, b: ({"w": b}, p["w"]), {"w": 2.0}, 3.0
    )
    check_gradient(lambda a, b: np.sum(a), lambda a, b: (np.ones(3), np.zeros(3)), A, B)


def test_a_wrong_component_has_the_name_of_its_argument():
    with pytest.raises(GradientMismatch, match=r"\n  bottom\[2\] ") as caught:
        check_gradient(ratio, lambda a, b: (1 / b, -a / b**2 * [1, 1, -1]), A, B)
    assert [each.name for each in caught.value.components] == ["bottom[2]"]
    assert "a sign error" in str(caught.value)


def test_the_inputs_of_a_function_are_its_arguments():
    f = parse("top/bottom")
    check_gradient(f, lambda bottom, top: (-top / bottom**2, 1 / bottom), 4.0, 2.0)
    with pytest.raises(GradientMismatch, match=r"\n  bottom "):
        check_gradient(f, lambda bottom, top: (top / bottom**2, 1 / bottom), 4.0, 2.0)


def test_a_wrong_component_among_many_is_found():
    many = np.linspace(1.0, 2.0, 4000)

    def wrong(top, bottom):
        found = slopes(top, bottom)
        found[1][1234] *= 1.5
        return found

    check_gradient(ratio, slopes, many, many)
    with pytest.raises(GradientMismatch, match=r"\n  bottom\[1234\] "):
        check_gradient(ratio, wrong, many, many)


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        (lambda a, b: (b,), r"has 1 part; it must return 2, for top, bottom"),
        (lambda a, b: 1 / b, r"is one ndarray, not a part for each argument"),
        (lambda a, b: (np.ones(2), b), r"respect to top has the shape \(2,\); it must be \(3,\)"),
    ],
)
def test_the_shape_of_the_gradient_is_named(gradient, message):
    with pytest.raises(GradientMismatch, match=message):
        check_gradient(ratio, gradient, A, B)


@pytest.mark.parametrize("arguments", [(A,), ((A, B),), (A, B, B)])
def test_arguments_that_do_not_fit_are_named(arguments):
    with pytest.raises(InputError, match=r"f cannot be called with \d argument") as caught:
        check_gradient(ratio, slopes, *arguments)
    assert "all of them in turn" in caught.value.hint


def test_state_is_found_behind_the_arguments():
    calls = []

    def counted(a, b):
        calls.append(1)
        return a * b * len(calls)

    with pytest.raises(GradientMismatch, match="the call changed calls"):
        check_gradient(counted, lambda a, b: (b, a), 2.0, 3.0)


def test_the_fixture_takes_several(check_gradient):
    check_gradient(ratio, slopes, A, B)
