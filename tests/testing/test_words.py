"""The message says what is wrong in words, where one mistake explains the numbers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from difflab.testing import GradientMismatch, ImpureFunction, check_gradient

X = np.array([0.5, 1.5, -0.75])


def f(x: Any) -> Any:
    return np.sum(np.sin(x**2)) + np.exp(x[0] * x[1]) + x[2] ** 3


def gradient(
    x: Any, inner: Any = None, last: float = 3.0, cross: float = 1.0, first: float = 1.0
) -> Any:
    g = first * np.cos(x**2) * (2 * x if inner is None else inner)
    g[:2] += cross * np.exp(x[0] * x[1]) * x[[1, 0]]
    g[2] += last * x[2] ** 2
    return g


MISTAKES = {
    r"missing inner derivative: that of `x\*\*2` .* is left out": {"inner": 1.0},
    r"missing term: `x\[2\] \*\* 3` .* is treated as a constant": {"last": 0.0},
    r"missing term: `np.sum\(np.sin\(x\*\*2\)\)`": {"first": 0.0},
    r"a sign error: the derivative of `np.exp\(x\[0\] \* x\[1\]\)` .* has the wrong sign": {
        "cross": -1.0
    },
    r"a wrong factor: the derivative of `x\[2\] \*\* 3` .* counts twice": {"last": 6.0},
}


@pytest.mark.parametrize("words", MISTAKES)
def test_one_mistake_in_an_operation_is_named(words: str) -> None:
    check_gradient(f, gradient, X)
    with pytest.raises(GradientMismatch, match=words):
        check_gradient(f, lambda x: gradient(x, **MISTAKES[words]), X)


def test_two_mistakes_are_not_explained() -> None:
    with pytest.raises(GradientMismatch) as caught:
        check_gradient(f, lambda x: gradient(x, cross=0.7, last=1.3), X)
    assert "likely" not in str(caught.value)
    assert caught.value.__notes__ == [
        "to repeat: from difflab.testing import numeric_derivative;"
        " print(numeric_derivative(f, x, 0))"
    ]


class Model:
    """Keeps what the value computed for the gradient, as people do."""

    def value(self, x: Any) -> float:
        self.last = np.array(x)
        return float(np.sum(self.last**3))

    def gradient(self, x: Any) -> Any:
        return 3 * self.last**2


def test_a_gradient_that_uses_the_last_call_is_stale() -> None:
    model = Model()
    for x in (X, {"a": X}):
        if isinstance(x, dict):
            with pytest.raises(ImpureFunction, match="stale value, kept from the last call of f"):
                check_gradient(
                    lambda p: model.value(p["a"]), lambda p: {"a": model.gradient(p["a"])}, x
                )
        else:
            with pytest.raises(GradientMismatch, match="stale value"):
                check_gradient(model.value, model.gradient, x)


def test_a_gradient_that_never_changes_is_stale() -> None:
    kept = 3 * (X + 0.1) ** 2
    with pytest.raises(GradientMismatch, match="stale value: the gradient is the same at another"):
        check_gradient(lambda x: sum(float(v) ** 3 for v in x), lambda x: kept, X)


def weighted(x: Any) -> Any:
    return np.sum(np.arange(1.0, x.size + 1).reshape(x.shape) * np.sin(x))


def weighted_gradient(x: Any) -> Any:
    return np.arange(1.0, x.size + 1).reshape(x.shape) * np.cos(x)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda g: g.T, "in x, likely transposed"),
        (lambda g: np.roll(g, 1, axis=1), "in x, likely off by one index along axis 1"),
        (lambda g: np.flip(g, axis=0), "in x, likely reversed along axis 0"),
    ],
)
def test_a_misplaced_gradient_is_told(change: Any, words: str) -> None:
    x = np.random.default_rng(0).uniform(0.1, 1.0, (4, 4))
    with pytest.raises(GradientMismatch, match=words):
        check_gradient(weighted, lambda x: change(weighted_gradient(x)), x)
    in_tree = words.replace("in x", re.escape('in p["x"]'))
    with pytest.raises(GradientMismatch, match=in_tree):
        check_gradient(
            lambda p: weighted(p["x"]), lambda p: {"x": change(weighted_gradient(p["x"]))}, {"x": x}
        )


def test_a_shift_that_does_not_wrap_is_told() -> None:
    x = np.linspace(0.1, 1.0, 12)
    wrong = np.concatenate([[0.0], weighted_gradient(x)[:-1]])
    with pytest.raises(GradientMismatch, match=r"off by one index: yours is shifted by \+1"):
        check_gradient(weighted, wrong, x)


def test_the_conjugate_is_the_other_convention() -> None:
    z = np.array([1.0 + 2.0j, 0.5 - 1.0j, 2.0 + 0.25j])
    with pytest.raises(GradientMismatch, match="the other convention of complex gradients"):
        check_gradient(lambda z: np.sum(np.abs(z) ** 4), lambda z: 4 * np.abs(z) ** 2 * z.conj(), z)
