"""Checks of gradients that a function declares, and of those whose graph is another function."""

import numpy as np
import pytest

import difflab as dl
from difflab.errors import GraphMismatchError
from difflab.testing import GradientMismatch, check_gradient
from difflab.testing.gradient import judged_gradient


def through(x):
    return np.sum(x + dl.stop_gradient(np.floor(x) - x))


def attended(model):
    return np.sum(model["w"] * dl.stop_gradient(model["v"])) * 2.0


def product(x, y):
    return np.sum(x * dl.stop_gradient(y) + y)


W, V = np.array([1.5, -2.25]), np.array([3.5, 0.25])


@pytest.mark.parametrize(
    ("f", "gradient", "arguments", "component", "yours", "derivative"),
    [
        (through, None, [W], "x[0]", 1.0, 0.0),
        (through, lambda x: np.ones(2), [W], "x[0]", 1.0, 0.0),
        (lambda x: x * dl.stop_gradient(x), None, [3.0], "x", 3.0, 6.0),
        (attended, None, [{"w": W, "v": V}], "x['v'][0]", 0.0, 3.0),
        (product, lambda x, y: (y, np.ones(2)), [W, V], "arguments[1][0]", 1.0, 2.5),
    ],
)
def test_a_declared_gradient_passes(f, gradient, arguments, component, yours, derivative):
    check_gradient(f, gradient, *arguments)
    found = judged_gradient(f, gradient, *arguments)
    assert (found.rules, found.component) == (("stop_gradient",), component)
    assert (found.yours, found.derivative) == (yours, derivative)
    told = f"{component} is {yours:g} where the derivative is {derivative:g}"
    assert told in str(found)


@pytest.mark.parametrize(
    ("f", "gradient", "x"),
    [
        (through, lambda x: np.array([1.0, 2.0]), W),
        (through, lambda x: -np.ones(2), W),
        (lambda x: x * dl.stop_gradient(x), lambda x: 2.5 * x, 3.0),
        (lambda x: np.sum(x * x), lambda x: x, W),
    ],
)
def test_a_wrong_gradient_beside_a_rule_fails(f, gradient, x):
    with pytest.raises(GradientMismatch):
        check_gradient(f, gradient, x)


class Reversed(dl.CustomFunction):
    forward = staticmethod(lambda ctx, x: x * x)
    backward = staticmethod(lambda ctx, y_bar: -y_bar)


def test_a_custom_rule_passes_with_a_warning():
    with pytest.warns(
        UserWarning, match="by the rule of Reversed: x is -1 where the derivative is"
    ):
        check_gradient(lambda x: Reversed.apply(x), None, np.float64(3.0))


def test_a_right_gradient_of_a_function_with_a_rule_is_right():
    assert judged_gradient(lambda x: x * dl.stop_gradient(x), lambda x: 2 * x, 3.0) is None


def test_a_gradient_of_another_graph_is_named():
    by_type = lambda x: np.sum(x) * (3.0 if isinstance(x, np.ndarray) else 1.0)  # noqa: E731
    with pytest.raises(GraphMismatchError, match="the graph is not your function"):
        check_gradient(by_type, None, W)
    check_gradient(by_type, lambda x: np.full(2, 3.0), W)  # judged by its values
