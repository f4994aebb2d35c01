"""A right gradient passes, and a wrong one is named: the checker checked by sabotage."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from difflab.errors import DifflabError, DomainError, PointError
from difflab.testing import GradientMismatch, ImpureFunction, check_gradient

Array = NDArray[np.float64]
F = Callable[[Any], Any]


def rosenbrock(x: Array) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def rosenbrock_gradient(x: Array) -> Array:
    g = np.zeros_like(x)
    inner = x[1:] - x[:-1] ** 2
    g[:-1] = -400.0 * x[:-1] * inner - 2.0 * (1.0 - x[:-1])
    g[1:] += 200.0 * inner
    return g


def branching(x: Array) -> float:
    """Python decides, so it cannot be traced."""
    return float(x[0] * math.sin(x[1])) if x[0] > 0 else 0.0


WEIGHTS = np.array([[1.0, -2.0, 0.5], [0.25, 3.0, 1.0]])

# name: f, its gradient by hand, a point. No component of a gradient is zero.
CASES: dict[str, tuple[F, F, Any]] = {
    "seed": (
        lambda x: np.log(x[0]) + x[0] * x[1] - np.sin(x[1]),
        lambda x: np.array([1 / x[0] + x[1], x[0] - np.cos(x[1])]),
        [2.0, 5.0],
    ),
    "rosenbrock": (rosenbrock, rosenbrock_gradient, [-1.2, 1.0, 0.7, 1.3]),
    "scales": (
        lambda x: 1e12 * x[0] ** 2 + 1e-9 * np.sin(x[1]) + x[2],
        lambda x: np.array([2e12 * x[0], 1e-9 * np.cos(x[1]), 1.0]),
        [1e-3, 0.4, -7.0],
    ),
    "product": (np.prod, lambda x: np.prod(x) / x, [0.5, -1.5, 2.0, 3.0, 0.25]),
    "gaussian": (lambda x: np.exp(-(x @ x)), lambda x: -2 * x * np.exp(-(x @ x)), [1.0, -2.0]),
    "number": (lambda x: x * np.tanh(x), lambda x: np.tanh(x) + x / np.cosh(x) ** 2, 0.7),
    "matrix": (lambda x: np.sum(x**3), lambda x: 3 * x**2, [[1.0, 2.0], [-3.0, 0.5]]),
    "jacobian": (
        lambda x: np.sin(WEIGHTS @ x),
        lambda x: np.cos(WEIGHTS @ x)[:, None] * WEIGHTS,
        [0.3, 0.1, -0.4],
    ),
    "curve": (lambda t: np.array([np.cos(t), t**2]), lambda t: np.array([-np.sin(t), 2 * t]), 0.3),
    "untraceable": (
        branching,
        lambda x: np.array([math.sin(x[1]), x[0] * math.cos(x[1])]),
        [1.5, 0.8],
    ),
    "far": (lambda x: np.sum(np.sqrt(x)), lambda x: 0.5 / np.sqrt(x), [1e20, 1e-20, 1.0]),
}
EACH = pytest.mark.parametrize("name", CASES)


@EACH
def test_a_right_gradient_passes(name: str) -> None:
    f, gradient, x = CASES[name]
    check_gradient(f, gradient, x)
    point = float(x) if np.ndim(x) == 0 else np.array(x)
    check_gradient(f, gradient(point), x)


def _scaled(g: Array) -> Array:
    return 1.0001 * g


def _one_component(g: Array) -> Array:
    wrong = g.copy()
    wrong[np.unravel_index(np.argmin(np.abs(g)), g.shape)] *= 2.0
    return wrong


def _one_sign(g: Array) -> Array:
    wrong = g.copy()
    wrong.flat[-1] *= -1.0
    return wrong


def _one_zero(g: Array) -> Array:
    wrong = g.copy()
    wrong.flat[np.argmin(np.abs(g))] = 0.0
    return wrong


SABOTAGE: dict[str, Callable[[Array], Array]] = {
    "sign": lambda g: -g,
    "factor": _scaled,
    "zero": lambda g: 0 * g,
    "smallest doubled": _one_component,
    "smallest zero": _one_zero,
    "last sign": _one_sign,
    "offset": lambda g: g + 1e-3 * np.abs(g).max(),
    "reversed": lambda g: g.ravel()[::-1].reshape(g.shape),
    "nan": lambda g: np.where(np.arange(g.size).reshape(g.shape) == 0, np.nan, g),
    "infinite": lambda g: g + np.inf,
}


@EACH
@pytest.mark.parametrize("kind", SABOTAGE)
def test_a_wrong_gradient_fails(name: str, kind: str) -> None:
    f, gradient, x = CASES[name]
    if kind == "reversed" and np.size(gradient(np.array(x))) == 1:
        pytest.skip("one component has no order")

    def wrong(point: Any) -> Array:
        return SABOTAGE[kind](np.asarray(gradient(point), dtype=float))

    with pytest.raises(GradientMismatch):
        check_gradient(f, wrong, x)
    with pytest.raises(AssertionError):
        check_gradient(f, wrong(float(x) if np.ndim(x) == 0 else np.array(x)), x)


def test_a_tiny_component_is_judged_on_its_own_scale() -> None:
    """SciPy's check_grad scores this wholly wrong component as 1e-9."""

    def f(x: Array) -> Any:
        return 1e6 * x[0] + 1e-9 * x[1] ** 2

    with pytest.raises(GradientMismatch) as caught:
        check_gradient(f, lambda x: np.array([1e6, 4e-9 * x[1]]), [1.0, 3.0])
    (component,) = caught.value.components
    assert component.name == "x[1]"
    assert component.yours == pytest.approx(12e-9)
    assert component.numeric == pytest.approx(6e-9, rel=1e-6)


# --- ill-conditioned functions: the error bar decides -----------------------------------------


def expanded(x: Any) -> Any:
    """(x - 1)^7 written out: every digit cancels near 1."""
    return x**7 - 7 * x**6 + 21 * x**5 - 35 * x**4 + 35 * x**3 - 21 * x**2 + 7 * x - 1


def expanded_gradient(x: Any) -> Any:
    return 7 * x**6 - 42 * x**5 + 105 * x**4 - 140 * x**3 + 105 * x**2 - 42 * x + 7


def test_a_right_gradient_that_cancels_passes() -> None:
    # Its own rounding is 3e-3 of the derivative.
    check_gradient(expanded, expanded_gradient, 1.01)


def test_an_ill_conditioned_function_still_fails_a_wrong_gradient() -> None:
    with pytest.raises(GradientMismatch):
        check_gradient(expanded, lambda x: 2 * expanded_gradient(x), 1.01)


def test_noise_in_an_untraceable_function_is_not_held_against_the_gradient() -> None:
    def noisy(x: Array) -> float:
        # Rounded to eight digits: no difference of values can be trusted beyond them.
        return float(f"{math.sin(float(x[0])):.8e}")

    check_gradient(noisy, lambda x: np.cos(x), [0.5])
    with pytest.raises(GradientMismatch):
        check_gradient(noisy, lambda x: 1.1 * np.cos(x), [0.5])


def test_rounding_of_large_angles_passes() -> None:
    check_gradient(lambda x: np.sin(x[0]), lambda x: np.cos(x), [1e9])


def test_single_precision_needs_its_own_tolerance() -> None:
    def gradient(x: Array) -> Array:
        return (2 * x).astype(np.float32).astype(np.float64)

    with pytest.raises(GradientMismatch):
        check_gradient(lambda x: np.sum(x**2), gradient, [0.1, 0.2])
    check_gradient(lambda x: np.sum(x**2), gradient, [0.1, 0.2], rtol=1e-6)


# --- kinks and edges --------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-1.0, 0.0, 0.3, 1.0])
def test_at_a_kink_every_value_between_the_sides_passes(value: float) -> None:
    check_gradient(lambda x: np.abs(x[0]) + x[1], [value, 1.0], [0.0, 2.0])
    check_gradient(lambda x: abs(x - 1.5), value, 1.5)


@pytest.mark.parametrize("value", [-1.1, 1.0001, 3.0, math.nan])
def test_at_a_kink_a_value_outside_the_sides_fails(value: float) -> None:
    with pytest.raises(GradientMismatch):
        check_gradient(lambda x: np.abs(x[0]) + x[1], [value, 1.0], [0.0, 2.0])


def test_at_a_kink_of_python_code_a_wild_value_fails() -> None:
    def f(x: Array) -> float:
        return float(x[0]) if x[0] > 1.0 else 1.0

    for value in (0.0, 1.0):
        check_gradient(f, [value], [1.0])
    with pytest.raises(GradientMismatch):
        check_gradient(f, lambda x: np.sign(x - 1.0) + 4.0, [1.0])


def test_at_the_edge_of_the_domain_the_inner_side_decides() -> None:
    check_gradient(lambda x: x**1.5, lambda x: 1.5 * np.sqrt(x), 0.0)
    with pytest.raises(GradientMismatch):
        check_gradient(lambda x: x**1.5, 1.0, 0.0)


def test_an_infinite_slope_is_infinite() -> None:
    check_gradient(np.sqrt, math.inf, 0.0)
    with pytest.raises(GradientMismatch):
        check_gradient(np.sqrt, 1e300, 0.0)


# --- the message ------------------------------------------------------------------------------


def test_the_message_names_the_component_and_both_values() -> None:
    f, gradient, x = CASES["seed"]

    def wrong(point: Array) -> Array:
        return gradient(point) * np.array([1.0, 1.5])

    with pytest.raises(GradientMismatch) as caught:
        check_gradient(f, wrong, x)
    message = str(caught.value)
    assert "wrong in 1 of 2 components" in message
    row = next(line for line in message.splitlines() if "x[1]" in line).split()
    assert float(row[1]) == pytest.approx(1.5 * 1.7163378145367738)
    assert float(row[2]) == pytest.approx(1.7163378145367738)
    assert float(row[3]) < 1e-9  # the numeric method's own error bar
    assert float(row[4]) == pytest.approx(0.5, rel=0.1)  # relative
    # 0.858 in units of 2^-52
    assert float(row[5]) == pytest.approx(0.5 * 1.7163378145367738 * 2**52, rel=0.1)
    assert "x[0]" not in message


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        (lambda g: -g, "sign"),
        (lambda g: 2.0 * g, "2 times the numeric value"),
        (lambda g: g[::-1], "each other's values"),
    ],
)
def test_the_message_says_what_the_mistake_looks_like(
    change: Callable[[Array], Array], hint: str
) -> None:
    f, gradient, x = CASES["seed"]
    with pytest.raises(GradientMismatch, match=hint):
        check_gradient(f, lambda point: change(gradient(point)), x)


def test_a_transposed_jacobian_is_recognised() -> None:
    def f(x: Array) -> Array:
        return np.array([[1.0, 2.0], [3.0, 4.0]]) @ x

    with pytest.raises(GradientMismatch, match="transposed"):
        check_gradient(f, [[1.0, 3.0], [2.0, 4.0]], [0.5, 0.25])


def test_a_component_of_a_jacobian_is_named_by_row_and_column() -> None:
    f, gradient, x = CASES["jacobian"]
    wrong = gradient(np.array(x))
    wrong[1, 2] = 0.0
    with pytest.raises(GradientMismatch, match=r"dy\[1\]/dx\[2\]"):
        check_gradient(f, wrong, x)


def test_a_kink_is_shown_with_both_sides() -> None:
    with pytest.raises(GradientMismatch, match=r"-1\.0 … 1\.0") as caught:
        check_gradient(lambda x: np.abs(x[0]), [2.0], [0.0])
    assert "between the one-sided derivatives" in str(caught.value)


def test_a_long_list_is_cut() -> None:
    with pytest.raises(GradientMismatch, match="and 40 more"):
        check_gradient(lambda x: np.sum(x**2), lambda x: 3 * x, np.arange(1.0, 51.0))


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3,), (2, 1), (1, 1), (4,)])
def test_a_gradient_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(GradientMismatch, match=r"has shape .*; f takes \(2,\) and returns \(\)"):
        check_gradient(lambda x: x @ x, np.ones(shape), [1.0, 2.0])


def test_a_gradient_that_is_no_array_is_refused() -> None:
    with pytest.raises(GradientMismatch, match="not an array of real numbers"):
        check_gradient(lambda x: x @ x, lambda x: "2x", [1.0, 2.0])


def test_a_flat_jacobian_of_a_matrix_function_is_accepted() -> None:
    check_gradient(lambda x: 2 * x, 2 * np.eye(4), [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("x", [[1.0, math.nan], [math.inf, 1.0], [], ["a"], [1.0, 1j]])
def test_a_point_that_is_none_is_refused(x: Any) -> None:
    with pytest.raises(PointError):
        check_gradient(lambda x: np.sum(x), lambda x: np.ones_like(x), x)


def test_a_point_outside_the_domain_is_refused() -> None:
    with pytest.raises(DomainError, match="not finite at"):
        check_gradient(np.log, lambda x: 1 / x, -1.0)


def test_a_function_that_returns_text_is_refused() -> None:
    with pytest.raises(PointError, match="does not return real numbers"):
        check_gradient(lambda x: "nothing", lambda x: x, [1.0])


def test_the_mismatch_is_an_assertion_and_a_difflab_error() -> None:
    assert issubclass(GradientMismatch, AssertionError)
    assert issubclass(GradientMismatch, DifflabError)


def test_the_users_arrays_are_left_alone() -> None:
    x = np.array([1.0, 2.0])

    def f(point: Array) -> Any:
        result = np.sum(point**2)
        point[:] = 0.0
        return result

    def gradient(point: Array) -> Array:
        point *= 2.0
        return point

    with pytest.raises(ImpureFunction, match="f changes its argument: after the call, point"):
        check_gradient(f, gradient, x)
    assert x.tolist() == [1.0, 2.0]
    check_gradient(lambda point: np.sum(point**2), gradient, x)
    assert x.tolist() == [1.0, 2.0]


def test_integers_will_do() -> None:
    check_gradient(lambda x: np.sum(x**2), [2, 4], [1, 2])
