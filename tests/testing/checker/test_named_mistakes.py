"""A named mistake reproduces the gradient under test; structures and precisions are named."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

from difflab.errors import InputError
from difflab.testing import GradientMismatch, check_gradient, check_hessian, check_hvp


def message(f: Any, gradient: Any, *x: Any, **options: Any) -> str:
    with pytest.raises(GradientMismatch) as caught:
        check_gradient(f, gradient, *x, **options)
    return str(caught.value)


def cube(x: Any) -> Any:
    return np.sum(x**3)


@pytest.mark.parametrize("n", [6, 1000])
def test_a_gradient_rounded_to_float32_has_its_precision(n: int) -> None:
    x = np.random.default_rng(1).normal(size=n)
    said = message(cube, lambda x: (3 * x**2).astype(np.float32), x)
    assert "yours has the precision of float32" in said
    assert "permuted" not in said


def test_a_gradient_rounded_to_float16_has_its_precision() -> None:
    x = np.random.default_rng(2).normal(size=6)
    assert "the precision of float16" in message(
        cube, lambda x: (3 * x**2).astype("f2").astype(float), x
    )


def test_a_gradient_rounded_to_bfloat16_has_its_precision() -> None:
    dtypes = pytest.importorskip("ml_dtypes", reason="needs bfloat16")
    x = np.random.default_rng(2).normal(size=6)
    said = message(cube, lambda x: (3 * x**2).astype(dtypes.bfloat16).astype(float), x)
    assert "the precision of bfloat16" in said


@pytest.mark.parametrize("n", [20, 1000])
def test_a_gradient_computed_in_float32_has_its_precision(n: int) -> None:
    x = np.random.default_rng(1).normal(size=n)
    said = message(cube, lambda x: (3 * x.astype("f4") ** 2).astype(float), x)
    assert "yours has the precision of float32" in said


def test_small_whole_numbers_say_nothing_about_a_precision() -> None:
    x = np.array([1.0, 2.0, 3.0])
    said = message(cube, lambda x: 3 * x**2 + np.array([0.0, 0.0, 0.25]), x)
    assert "precision" not in said


@pytest.mark.parametrize(("factor", "text"), [(0.125, "1/8"), (2.0, "2"), (0.0, ""), (1.03, "")])
def test_one_wrong_component_has_a_factor_if_it_is_simple(factor: float, text: str) -> None:
    x = np.array([0.7, 1.1, 0.3])
    said = message(cube, lambda x: 3 * x**2 * np.array([1.0, factor, 1.0]), x)
    assert (f"yours is {text} times the numeric value" in said) == bool(text)
    assert ("wrong factor" in said) == bool(text)


def test_a_factor_close_to_one_is_a_factor() -> None:
    x = np.random.default_rng(3).normal(size=6)
    assert "yours is 1.000001 times" in message(cube, lambda x: 3 * x**2 * (1 + 1e-6), x)


def test_permuted_values_are_permuted() -> None:
    x = np.array([1.0, 2.0, 3.0, 5.0])
    said = message(cube, lambda x: 3 * x[[2, 0, 3, 1]] ** 2, x)
    assert "permuted" in said


def layer(w: Any, b: Any) -> Any:
    return np.sum(np.sin(w**2)) + 3 * np.sum(b)


@pytest.mark.parametrize("n", [5, 400])
def test_missing_parts_are_named_for_several_arguments(n: int) -> None:
    w, b = np.linspace(1.0, 2.0, n), np.ones(3)
    said = message(layer, lambda w, b: (np.cos(w**2), 3 * np.ones(3)), w, b)
    assert "a missing inner derivative: that of `w**2` (test_named_mistakes.py, line" in said
    said = message(layer, lambda w, b: (2 * w * np.cos(w**2), np.zeros(3)), w, b)
    assert "a missing term: `3 * np.sum(b)`" in said


def test_missing_parts_are_named_for_trees() -> None:
    def loss(p: Any) -> Any:
        return np.sum(np.tanh(p["w"] ** 2)) * p["c"][0]

    def slope(p: Any) -> Any:
        return {
            "w": (1 - np.tanh(p["w"] ** 2) ** 2) * p["c"][0],
            "c": [np.sum(np.tanh(p["w"] ** 2))],
        }

    said = message(loss, slope, {"w": np.array([[0.3, 0.7]]), "c": [2.0]})
    assert 'a missing inner derivative: that of `p["w"] ** 2`' in said


TREE = {"layer2": {"b": np.ones(2)}, "w": np.ones((2, 2))}


def network(params: Any) -> Any:
    return np.sum(params["w"] ** 2) + np.sum(params["layer2"]["b"])


@pytest.mark.parametrize(
    ("gradient", "says"),
    [
        ({"layer2": {}, "w": np.ones((2, 2))}, 'params["layer2"]["b"] is missing'),
        ({}, "the gradient has the structure {}"),
        (
            {"layer2": {"b": None}, "w": np.ones((2, 2))},
            'with respect to params["layer2"]["b"] is None: return zeros of the shape (2,)',
        ),
        (
            {"layer2": {"b": np.ones(2), "c": 1.0}, "w": np.ones((2, 2))},
            'params["layer2"]["c"] in the gradient is no part of params',
        ),
    ],
)
def test_the_part_of_another_structure_is_named(gradient: Any, says: str) -> None:
    assert says in message(network, gradient, TREE)
    assert says in message(network, lambda params: gradient, TREE)


def test_a_part_that_is_none_for_an_argument_is_named() -> None:
    said = message(lambda a, b: a * b, lambda a, b: (b, None), 2.0, 3.0)
    assert "with respect to b is None" in said


def test_ulps_are_those_of_float32() -> None:
    x = np.array([1.5, 2.0], dtype=np.float32)
    with pytest.raises(GradientMismatch) as caught:
        check_gradient(cube, lambda x: 3 * x**2 * np.float32(1.001), x)
    (first, _) = caught.value.components
    # One thousandth of 6.75 is 0.00675, and one ULP of float32 there is 2^-21.
    assert first.ulps == pytest.approx(0.00675 * 2**21, rel=0.05)


def test_a_function_that_writes_to_its_only_array_is_impure() -> None:
    def shifted(W: Any) -> Any:
        W -= 1
        return np.sum(W**2)

    for x in (np.ones((3, 2)), np.arange(4.0), [1.0, 2.0], np.ones(300)):
        said = message(shifted, lambda W: 2 * (W - 1), x)
        assert "f changes its argument: after the call, W has other values" in said


def area(w: Any, b: Any) -> Any:
    return np.sum(w**2) * b


def test_argnums_are_those_of_grad() -> None:
    w = np.array([1.0, 2.0])
    check_gradient(area, lambda w, b: 2 * w * b, w, 3.0, argnums=0)
    check_gradient(area, lambda w, b: np.sum(w**2), w, 3.0, argnums=-1)
    check_gradient(area, lambda w, b: (2 * w * b,), w, 3.0, argnums=(0,))
    check_gradient(area, lambda w, b: (np.sum(w**2), 2 * w * b), w, 3.0, argnums=(1, 0))
    check_gradient(area, None, w, 3.0, argnums=1)
    check_gradient(area, 6 * w, w, 3.0, argnums=0)
    said = message(area, lambda w, b: 2 * w, w, 3.0, argnums=0)
    assert "\n  w[0] " in said
    assert "argnums is (0,)" in message(area, lambda w, b: 2 * w * b, w, 3.0, argnums=(0,))
    for wrong in (2, (0, 0), ()):
        with pytest.raises(InputError, match="argnums"):
            check_gradient(area, None, w, 3.0, argnums=wrong)


def test_second_derivatives_of_the_framework_are_checked() -> None:
    x = np.array([0.5, 1.5])
    check_hvp(cube, None, x)
    check_hessian(cube, None, x)
    check_hvp(lambda p: cube(p["a"]) * p["b"], None, {"a": x, "b": 2.0})
    with pytest.raises(InputError, match="the point is missing"):
        check_hvp(cube)
    with pytest.raises(InputError, match="the point is missing"):
        check_hessian(cube)


def test_cancellation_in_a_right_gradient_is_its_own_rounding() -> None:
    # p - 1 for p within 1e-7 of 1 has few digits; a wrong factor is not excused by that.
    def loss(z: Any) -> Any:
        return np.log(np.sum(np.exp(z))) - z[0]

    def slope(z: Any) -> Any:
        p = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
        p[0] -= 1
        return p

    for seed in range(8):
        draw = np.random.default_rng(seed)
        z = draw.normal(size=5)
        z[0] += draw.uniform(14, 19)
        check_gradient(loss, slope, z)
        message(loss, lambda z: slope(z) * (1 + 1e-4), z)


@pytest.mark.parametrize("apart", range(2, 29))
def test_p_minus_1_has_its_own_rounding_wherever_p_is(apart: int) -> None:
    """Also where the points beside round alike, as at 25."""

    def loss(z: Any) -> Any:
        return np.log(np.sum(np.exp(z - z.max()))) + z.max() - z[2]

    def slope(z: Any) -> Any:
        p = np.exp(z - z.max())
        return p / p.sum() - np.eye(4)[2]

    z = np.array([0.0, 1.0, float(apart), 2.0])
    with mpmath.workdps(60):
        p = 1 / sum(mpmath.exp(one - z[2]) for one in z.tolist())
        off = float(abs(slope(z)[2] / (p - 1) - 1))
    if off < 5e-6:  # the documented bound is 1e-5
        check_gradient(loss, slope, z)
    elif off > 2e-5:
        message(loss, slope, z)


def test_the_rounding_of_the_right_formula_is_no_mistake_of_an_operation() -> None:
    def loss(z: Any) -> Any:
        m = z.max()
        return np.log(np.sum(np.exp(z - m))) + m - z[2]

    def slope(z: Any) -> Any:
        p = np.exp(z - z.max())
        return p / p.sum() - np.eye(4)[2]

    said = message(loss, slope, np.array([0.0, 1.0, 36.0, 2.0]))
    assert "inner derivative" not in said
