"""Imaginary parts of a derivative under test: parts of the value, not to be dropped."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from difflab.errors import PointError
from difflab.testing import (
    check_gradient,
    check_hessian,
    check_hvp,
    check_jacobian,
    check_jvp,
    check_vjp,
)
from difflab.testing.gradient import GradientMismatch

X = np.array([1.0, 2.0])


def total(x: Any) -> Any:
    return (x * x).sum()


def of_tree(p: Any) -> Any:
    return total(p["x"])


def product(x: Any, v: Any) -> Any:
    return 2 * x * v


Check = Callable[[complex], None]
CHECKS: dict[str, Check] = {
    "gradient": lambda i: check_gradient(total, lambda x: 2 * x + i, X),
    "gradient, an array": lambda i: check_gradient(total, 2 * X + i, X),
    "gradient of several": lambda i: check_gradient(
        lambda a, b: total(a) + total(b), lambda a, b: (2 * a + i, 2 * b), X, X
    ),
    "gradient of a tree": lambda i: check_gradient(
        of_tree, lambda p: {"x": 2 * p["x"] + i}, {"x": X}
    ),
    "gradient of many": lambda i: check_gradient(
        total, lambda x: 2 * x + i, np.linspace(1.0, 2.0, 3000)
    ),
    "jacobian": lambda i: check_jacobian(lambda x: x * x, lambda x: np.diag(2 * x) + i, X),
    "sparse jacobian": lambda i: check_jacobian(
        lambda x: x * x, lambda x: sparse.diags_array(2 * x + i), X
    ),
    "large sparse jacobian": lambda i: check_jacobian(
        lambda x: x * x, lambda x: sparse.diags_array(2 * x + i), np.linspace(1.0, 2.0, 200)
    ),
    "hessian": lambda i: check_hessian(total, lambda x: 2 * np.eye(2) + i, X),
    "jvp": lambda i: check_jvp(lambda x: x * x, lambda x, v: product(x, v) + i, X),
    "vjp": lambda i: check_vjp(lambda x: x * x, lambda x, v: product(x, v) + i, X),
    "vjp of a tree": lambda i: check_vjp(
        lambda p: {"y": p["x"] * p["x"]}, lambda p, v: {"x": product(p["x"], v["y"]) + i}, {"x": X}
    ),
    "hvp": lambda i: check_hvp(total, lambda x, v: 2 * v + i, X),
}


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("part", [1000j, 1e-6j, complex(0.0, np.nan)])
def test_a_complex_derivative_of_a_real_function_fails_with_the_reason(
    name: str, part: complex
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CHECKS[name](0.0)
        CHECKS[name](0j)  # the dtype alone is no fault
        with pytest.raises(GradientMismatch, match=r"imaginary|not real"):
            CHECKS[name](part)


def test_a_complex_value_of_a_function_is_no_real_one() -> None:
    with pytest.raises(PointError, match="f does not return real numbers"):
        check_gradient(lambda x: total(x) + 1000j, lambda x: 2 * x, X)


def test_complex_arguments_have_complex_gradients() -> None:
    z = np.array([1.0 + 2.0j, 0.5 - 1.0j])
    check_gradient(lambda z: np.sum(np.abs(z) ** 2), lambda z: 2 * z, z)
    with pytest.raises(GradientMismatch):
        check_gradient(lambda z: np.sum(np.abs(z) ** 2), lambda z: 2 * z + 1j, z)
