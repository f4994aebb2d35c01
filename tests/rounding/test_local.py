"""Bounds of the rounding of one operation, against exact fractions and mpmath."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from difflab.core.dtypes import format_of
from difflab.primitives import TABLE
from difflab.rounding.local import constant_error, rounding_error

EXACTLY = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
}
DTYPES = ("float64", "float32", "float16")


def operands(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Return numbers of different lengths, among them whole ones and powers of 2."""
    long = rng.uniform(-3, 3, count)
    short = np.round(long * 2.0 ** rng.integers(0, 12, count)) / 8
    return np.where(rng.random(count) < 0.5, long, short)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EXACTLY)
def test_basic_operations_err_by_no_more_than_the_bound(
    name: str, dtype: str, rng: np.random.Generator
) -> None:
    form, row = format_of(dtype), TABLE[name]
    a, b = (form.cast(operands(rng, 400)) for _ in range(2))
    b = np.where(b == 0, form.cast(np.float64(1.5)), b)
    with np.errstate(all="ignore"):
        y = row.computer(np)(a, b)
    assert y.dtype == form.dtype
    bound = rounding_error(row, [a, b], y, {}, form)
    exact = 0
    for left, right, found, most in zip(a, b, y, bound, strict=True):
        truth = EXACTLY[name](Fraction(float(left)), Fraction(float(right)))
        error = abs(Fraction(float(found)) - truth)
        assert error <= Fraction(float(most))
        assert most <= float(form.spacing(np.float64(found))) / 2
        exact += error == 0
        if name in ("add", "subtract"):  # whether others are exact is not always seen
            assert (error == 0) == (most == 0)
    assert exact > 20  # both cases occur


@pytest.mark.parametrize("name", ["sum", "cumsum", "prod", "matmul", "convolve"])
def test_sums_and_products_err_by_no_more_than_the_bound(
    name: str, rng: np.random.Generator
) -> None:
    form, row = format_of("float32"), TABLE[name]
    params: dict[str, Any] = {"axes": (-1,), "rank": 1}
    given = [rng.uniform(-2, 2, 40).astype(np.float32)]
    if name in ("matmul", "convolve"):
        params = {"ranks": (1, 1)} if name == "matmul" else {}
        given.append(rng.uniform(-2, 2, 40).astype(np.float32))
    y = row.computer(np)(*given, **params)
    truth = row.computer(np)(*(x.astype(np.float64) for x in given), **params)
    bound = rounding_error(row, given, y, params, form)
    error = np.abs(np.asarray(y, np.float64) - truth)
    assert np.all(error <= bound * (1 + 1e-6))
    assert np.max(error) > 0


def test_sums_of_whole_numbers_are_exact() -> None:
    given = np.arange(100.0)
    params = {"axes": (-1,), "rank": 1}
    bound = rounding_error(TABLE["sum"], [given], given.sum(), params, format_of("float64"))
    assert float(bound) == 0.0


@pytest.mark.parametrize("name", ["gamma", "erf", "besselj", "sin", "exp", "tanh"])
def test_functions_err_by_no_more_than_the_bound(name: str, rng: np.random.Generator) -> None:
    row = TABLE[name]
    low, high = row.samples[-1]
    x = rng.uniform(low, high, 20)
    first = [np.full(20, 2.0)] if name == "besselj" else []
    y = row.computer(np)(*first, x)
    bound = rounding_error(row, [*first, x], y, {}, format_of("float64"))
    library = getattr(mpmath, {"gamma": "gamma"}.get(name, name))
    with mpmath.workdps(40):
        for at, found, most in zip(x, y, bound, strict=True):
            truth = library(*([2] if first else []), mpmath.mpf(float(at)))
            assert abs(mpmath.mpf(float(found)) - truth) <= most
            assert most <= 2 * row.ulps * np.spacing(abs(found))


def test_loops_are_measured_by_ball_arithmetic() -> None:
    from difflab.language import parse
    from difflab.rounding.budget import error_budget

    found = error_budget(parse("iterate(y = x; 30 times; 4*y*(1 - y))"), {"x": 0.3})
    with mpmath.workdps(60):
        y = mpmath.mpf(0.3)
        for _ in range(30):
            y = 4 * y * (1 - y)
        error = abs(mpmath.mpf(found.value.outputs[0].value) - y)
    assert 0 < error <= found.value.outputs[0].bound
    assert found.value.outputs[0].bound < 1.01 * error + 1e-15


def test_numbers_of_a_graph_are_rounded_to_the_dtype() -> None:
    assert constant_error(0.1, None, format_of("float64")) == 0.0
    assert constant_error(0.1, None, format_of("float32")) == abs(0.1 - float(np.float32(0.1)))
    with mpmath.workdps(40):
        error = float(abs(mpmath.pi - mpmath.mpf(float(np.pi))))
    assert error <= constant_error(float(np.pi), "pi", format_of("float64")) < 4 * error
