"""Code that rounds, iterates or steps: right gradients pass, wrong ones fail, the rest is said."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from difflab.errors import InputError
from difflab.testing import GradientMismatch, GradientUnjudged, check_gradient

Array = NDArray[np.float64]
F = Callable[[Any], Any]


def wave(x: Array) -> float:
    """Python's own functions: not to be traced."""
    return 10.0 * math.sin(x[0]) * x[1]


def wave_gradient(x: Array) -> Array:
    return np.array([10.0 * math.cos(x[0]) * x[1], 10.0 * math.sin(x[0])])


def newton(u: float, residual: float) -> float:
    """The root of y^3 + y = u."""
    y = 1.0
    while abs(y**3 + y - u) > residual:
        y -= (y**3 + y - u) / (3 * y * y + 1)
    return y


def newton_gradient(x: Array) -> Array:
    y = newton(x[0], 1e-15 * abs(x[0]))
    return np.array([x[1] / (3 * y * y + 1), y])


def bisected(u: float) -> float:
    low, high = 0.0, 4.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if middle**3 + middle > u else (middle, high)
    return (low + high) / 2


def summed(x: Array) -> float:
    """The series of exp, until a term is below 1e-6."""
    total, term, k = 0.0, 1.0, 0
    while abs(term) > 1e-6:
        total, k = total + term, k + 1
        term *= x[0] / k
    return total * math.cos(x[1])


def single(x: Array) -> float:
    a, b = np.asarray(x, dtype=np.float32)
    return float(np.float32(10) * np.sin(a) * b)


def oscillation(x: Array) -> float:
    """y(1) of y'' + c y' + k y = 0 by a solver that chooses its steps."""
    from scipy.integrate import solve_ivp

    def slope(t: float, y: Array) -> list[float]:
        return [y[1], -x[0] * y[0] - x[1] * y[1]]

    return float(solve_ivp(slope, (0.0, 1.0), [1.0, 0.0], rtol=1e-6, atol=1e-9).y[0, -1])


# mpmath's derivative of exp(-c/2) (cos w + c/(2w) sin w), w = sqrt(k - c²/4), at (2, 0.3).
OSCILLATION = np.array([-0.31945050847442458, 0.23403108069810168])

# name: f, its gradient by hand, a point, and how far a component must be off to be noticed.
NOISY: dict[str, tuple[F, F, list[float], float]] = {
    "two decimals": (lambda x: round(wave(x), 2), wave_gradient, [1.0, 2.0], 0.05),
    "np.round": (
        lambda x: np.round(10.0 * np.sin(x[0]) * x[1], 2),
        wave_gradient,
        [1.0, 2.0],
        0.05,
    ),
    "printed": (lambda x: float(f"{wave(x):.6e}"), wave_gradient, [1.0, 2.0], 1e-3),
    "single": (single, wave_gradient, [1.0, 2.0], 1e-3),
    "newton": (lambda x: newton(x[0], 1e-5) * x[1], newton_gradient, [3.0, 2.0], 1e-3),
    "bisection": (lambda x: bisected(x[0]) * x[1], newton_gradient, [3.0, 2.0], 1e-3),
    "series": (
        summed,
        lambda x: math.exp(x[0]) * np.array([math.cos(x[1]), -math.sin(x[1])]),
        [1.5, 0.7],
        1e-3,
    ),
    "ivp": (oscillation, lambda x: OSCILLATION, [2.0, 0.3], 1e-3),
}
EACH = pytest.mark.parametrize("name", NOISY)


@EACH
def test_a_right_gradient_of_noisy_values_passes(name: str) -> None:
    f, gradient, x, _ = NOISY[name]
    check_gradient(f, gradient, x)
    check_gradient(f, gradient(np.array(x)), x)


@EACH
@pytest.mark.parametrize("component", [0, 1])
def test_a_wrong_gradient_of_noisy_values_fails(name: str, component: int) -> None:
    f, gradient, x, noticed = NOISY[name]
    for factor in (1.0 + noticed, 0.0, -1.0):
        wrong = gradient(np.array(x)).copy()
        wrong[component] *= factor
        with pytest.raises(GradientMismatch) as caught:
            check_gradient(f, wrong, x)
        assert [found.name for found in caught.value.components] == [f"x[{component}]"]
        if name == "ivp":
            break  # a solver takes its time


def test_the_noise_is_named() -> None:
    f, gradient, x, _ = NOISY["two decimals"]
    with pytest.raises(GradientMismatch, match=r"noisy: off by about [1-9]e-03") as caught:
        check_gradient(f, -gradient(np.array(x)), x)
    assert "polynomials through" in str(caught.value)


# --- what cannot be judged ---------------------------------------------------------------------


def hidden(x: Array) -> float:
    """The second term is lost in the rounding of the first."""
    return float(1e12 * x[0] ** 2 + 1e-6 * x[1])


@pytest.mark.parametrize("second", [5e-6, 1e-6, 0.0, -1e-6])
def test_a_component_that_rounding_hides_is_not_judged(second: float) -> None:
    for gradient in ([2e12, second], lambda x: [2e12 * x[0], second]):
        with pytest.raises(GradientUnjudged, match=r"could not judge component x\[1\]") as caught:
            check_gradient(hidden, gradient, [1.0, 2.0])
        assert caught.value.components == ()
        assert [found.name for found in caught.value.unjudged] == ["x[1]"]


def test_a_hidden_component_that_would_show_is_wrong() -> None:
    with pytest.raises(GradientMismatch) as caught:
        check_gradient(hidden, [2e12, 5.0], [1.0, 2.0])
    assert not isinstance(caught.value, GradientUnjudged)


def test_high_precision_judges_what_rounding_hides() -> None:
    def f(x: Array) -> Any:
        return 1e12 * x[0] ** 2 + 1e-6 * x[1]

    check_gradient(f, [2e12, 1e-6], [1.0, 2.0])
    for second in (5e-6, 0.0):
        with pytest.raises(GradientMismatch, match="wrong in 1 of 2"):
            check_gradient(f, [2e12, second], [1.0, 2.0])


def test_what_does_not_matter_need_not_be_judged() -> None:
    check_gradient(hidden, [2e12, 5e-6], [1.0, 2.0], atol=0.1)
    with pytest.raises(GradientMismatch):
        check_gradient(hidden, [2e12, 1.0], [1.0, 2.0], atol=0.1)
    with pytest.warns(UserWarning, match="could not judge"):
        check_gradient(hidden, [2e12, 5e-6], [1.0, 2.0], unjudged="warn")
    with pytest.raises(GradientMismatch, match="wrong in 1 of 2"):
        check_gradient(hidden, [3e12, 5e-6], [1.0, 2.0], unjudged="warn")


def test_only_failing_and_warning_are_known() -> None:
    with pytest.raises(InputError, match="'fail' or 'warn'"):
        check_gradient(hidden, [2e12, 1e-6], [1.0, 2.0], unjudged="pass")  # type: ignore[arg-type]


def test_the_wrong_are_named_beside_those_not_judged() -> None:
    with pytest.raises(GradientMismatch) as caught:
        check_gradient(hidden, [-2e12, 5e-6], [1.0, 2.0])
    assert not isinstance(caught.value, GradientUnjudged)
    assert [found.name for found in caught.value.components] == ["x[0]"]
    assert [found.name for found in caught.value.unjudged] == ["x[1]"]
    assert "could not judge component x[1]" in str(caught.value)


def test_rounding_too_coarse_for_a_component_is_said() -> None:
    def f(x: Array) -> float:
        return round(wave(x) + 1e-3 * x[2], 2)

    right = [*wave_gradient(np.array([1.0, 2.0])), 1e-3]
    with pytest.raises(GradientUnjudged, match=r"could not judge component x\[2\]"):
        check_gradient(f, right, [1.0, 2.0, 3.0])


# --- zeros -------------------------------------------------------------------------------------


def test_a_component_without_influence_has_derivative_zero() -> None:
    check_gradient(lambda x: math.sin(x[0]), [math.cos(0.5), 0.0], [0.5, 3.0])
    with pytest.raises(GradientMismatch):
        check_gradient(lambda x: math.sin(x[0]), [math.cos(0.5), 1e-6], [0.5, 3.0])


@pytest.mark.parametrize("f", [np.floor, np.sign, math.floor, lambda x: float(x > 0.2)])
def test_a_function_of_steps_has_derivative_zero(f: F) -> None:
    check_gradient(f, 0.0, 0.6)


def test_at_a_minimum_the_derivative_is_zero() -> None:
    check_gradient(lambda x: (math.exp(x) - 1.0) ** 2 + 5.0, 0.0, 0.0)
    check_gradient(lambda x: float(x - 1.0) ** 2 + 3.0, 0.0, 1.0)


# --- functions that are not what they seem -----------------------------------------------------


def test_code_that_computes_otherwise_when_traced_is_judged_by_its_values() -> None:
    def f(x: Any) -> Any:
        return np.sum(x**2) if type(x) is np.ndarray else np.sum(x**3)

    check_gradient(f, lambda x: 2 * x, [1.5, 2.0])
    with pytest.raises(GradientMismatch):
        check_gradient(f, lambda x: 3 * x**2, [1.5, 2.0])


@pytest.mark.parametrize("distance", [1e-1, 1e-2, 1e-3, 1e-5])
def test_a_kink_beside_the_point_is_no_noise(distance: float) -> None:
    def f(x: float) -> float:
        return math.exp(x) + abs(x - 1.0 - distance)

    check_gradient(f, math.exp(1.0) - 1.0, 1.0)
    with pytest.raises(GradientMismatch):
        check_gradient(f, math.exp(1.0), 1.0)


def test_errors_of_the_code_away_from_the_point_are_left_alone() -> None:
    def f(x: float) -> float:
        if abs(x - 1.0) > 0.05:
            raise ValueError("too far")
        return round(math.sin(x), 6)

    check_gradient(f, math.cos(1.0), 1.0)


def test_fast_waves_are_no_noise() -> None:
    check_gradient(lambda x: math.sin(1e6 * x), 1e6 * math.cos(1e6), 1.0)
    with pytest.raises(GradientMismatch):
        check_gradient(lambda x: math.sin(1e6 * x), 1.1e6 * math.cos(1e6), 1.0)


# --- random functions --------------------------------------------------------------------------

NUMBERS = st.floats(0.5, 2.0)
SIGNED = NUMBERS | NUMBERS.map(lambda value: -value)


def formula(a: float, b: float, c: float) -> tuple[F, F]:
    """Return a function that cannot be traced and its gradient by hand."""

    def f(x: Array) -> float:
        return a * math.sin(b * x[0]) + c * x[0] * x[1] ** 2 + math.exp(a * x[1])

    def gradient(x: Array) -> Array:
        return np.array(
            [
                a * b * math.cos(b * x[0]) + c * x[1] ** 2,
                2 * c * x[0] * x[1] + a * math.exp(a * x[1]),
            ]
        )

    return f, gradient


def apart(gradient: Array) -> bool:
    """Whether no component is so small that its relative errors are those of cancellation."""
    return bool(np.all(np.abs(gradient) > 0.1))


@settings(max_examples=40, deadline=None)
@given(SIGNED, NUMBERS, SIGNED, st.tuples(SIGNED, SIGNED), st.integers(0, 1))
def test_random_functions_are_judged(
    a: float, b: float, c: float, x: tuple[float, float], component: int
) -> None:
    f, gradient = formula(a, b, c)
    check_gradient(f, gradient, x)
    right = gradient(np.array(x))
    if apart(right):
        right[component] *= 1.001
        with pytest.raises(GradientMismatch) as caught:
            check_gradient(f, right, x)
        assert [found.name for found in caught.value.components] == [f"x[{component}]"]


@settings(max_examples=40, deadline=None)
@given(
    SIGNED,
    NUMBERS,
    SIGNED,
    st.tuples(SIGNED, SIGNED),
    st.integers(0, 1),
    st.integers(1, 8),
    st.sampled_from([0.0, -1.0, 0.5, 2.0]),
)
def test_random_rounded_functions_are_not_accused_and_faults_do_not_pass(
    a: float,
    b: float,
    c: float,
    x: tuple[float, float],
    component: int,
    digits: int,
    factor: float,
) -> None:
    f, gradient = formula(a, b, c)

    def rounded(point: Array) -> float:
        return round(f(point), digits)

    right = gradient(np.array(x))
    if not apart(right):
        return
    try:
        check_gradient(rounded, right, x)
    except GradientUnjudged:
        assert digits <= 2
    right[component] *= factor
    with pytest.raises(GradientMismatch):
        check_gradient(rounded, right, x)


def test_a_kink_beside_the_point_that_curvature_hides_is_no_noise() -> None:
    a, b, c, at = 2.4002062895531653, 1.212700846560361, 2.803289, -2.4272543999999998

    def f(x: Array) -> float:
        return float(a * x[0] ** 3 - b * x[0] * x[1] + c * x[1] ** 4 + 1.03 * abs(x[0] - at))

    def gradient(x: Array) -> Array:
        return np.array([3 * a * x[0] ** 2 - b * x[1] - 1.03, 4 * c * x[1] ** 3 - b * x[0]])

    check_gradient(f, gradient, [-2.4273544, 0.9752915])
