"""Large products, whose panels are copied: exact sums, also of numbers near the ends of the range.

Where sums of whole numbers, or of multiples of one power of two, are representable, every order of
the terms gives the same result; elsewhere the expected value is a sum of fractions.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import difflab as dl

pytest.importorskip("llvmlite")

from difflab.execute.lower.schedule import Schedule
from difflab.execute.targets.llvm.arrays import NativeArrays
from difflab.execute.targets.llvm.arrays.blocks import TERMS
from difflab.execute.targets.llvm.libraries import host

SMALLEST = 5e-324
Array = NDArray[np.float64]


def product(a: Array, b: Array) -> Array:
    fast = dl.compile(dl.trace(lambda a, b: a @ b, a, b), "native")
    assert "native" in fast.reason
    found: Array = fast(a, b)
    return found


def drawn(rows: int, terms: int, columns: int) -> tuple[Array, Array]:
    draw = np.random.default_rng(rows + terms + columns)
    a, b = draw.integers(-9, 9, (rows, terms)), draw.integers(-9, 9, (terms, columns))
    return a.astype(float), b.astype(float)


def panels(a: Array, b: Array) -> bool:
    """Whether the product is written with panels."""
    code = NativeArrays(Schedule.of(dl.trace(lambda a, b: a @ b, a, b)))
    return "umin" in code.source


@pytest.mark.parametrize("bounds", [False, True])
@pytest.mark.parametrize("rows", [16, 21])
@pytest.mark.parametrize("terms", [16, TERMS - 1, TERMS + 3, 2 * TERMS])
@pytest.mark.parametrize("columns", [96, 101, 150])
def test_sums_of_whole_numbers(
    rows: int, terms: int, columns: int, bounds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIFFLAB_CHECK", "bounds" if bounds else "")
    a, b = drawn(rows, terms, columns)
    assert panels(a, b)
    np.testing.assert_array_equal(product(a, b), a @ b)


@pytest.mark.parametrize("bounds", [False, True])
@pytest.mark.parametrize(
    "form",
    [
        lambda a, b: a.T @ b,
        lambda a, b: np.stack([a.T, 2 * a.T]) @ b,
        lambda a, b: a.T @ np.stack([b, 2 * b]),
        lambda a, b: (b.T[::-1] @ a)[:, ::2],
        lambda a, b: np.reshape(a.T @ b, (5, 4, 100)) + (a.T @ b)[0, 0],
    ],
)
def test_views_of_operands(form: Any, bounds: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIFFLAB_CHECK", "bounds" if bounds else "")
    a, b = drawn(20, 40, 100)
    a = a.T.copy()
    fast = dl.compile(dl.trace(form, a, b), "native")
    np.testing.assert_array_equal(fast(a, b), form(a, b))


def test_small_products_have_no_panels() -> None:
    columns = 12 * host().width
    assert panels(*drawn(16, 16, columns))
    for sizes in [(15, 16, columns), (16, 15, columns), (16, 16, columns - 1)]:
        assert not panels(*drawn(*sizes)), sizes


@pytest.mark.parametrize("terms", [16, TERMS + 3])
@pytest.mark.parametrize("columns", [96, 101])
def test_sums_of_subnormal_numbers(terms: int, columns: int) -> None:
    a, b = drawn(17, terms, columns)
    np.testing.assert_array_equal(product(a, b * SMALLEST), (a @ b) * SMALLEST)
    mixed = b.copy()
    mixed[3] *= SMALLEST  # vanishes in sums of whole numbers
    expected = a @ np.where(np.arange(terms)[:, None] == 3, 0.0, b)
    found = product(a, mixed)
    np.testing.assert_allclose(found, expected, rtol=0, atol=81 * SMALLEST)


def test_halves_of_the_smallest_number_add_up() -> None:
    a, b = np.full((16, 64), 0.5), np.full((64, 96), SMALLEST)
    np.testing.assert_array_equal(product(a, b), np.full((16, 96), 32 * SMALLEST))


@pytest.mark.parametrize("seed", range(4))
def test_numbers_of_all_magnitudes(seed: int) -> None:
    draw = np.random.default_rng(seed)
    a, b = draw.normal(size=(16, 33)), draw.normal(size=(33, 97))
    b *= 2.0 ** draw.integers(-1060, 300, b.shape)
    found = product(a, b)
    terms = [Fraction(x) for x in a[5]]
    for column in range(97):
        parts = [x * Fraction(y) for x, y in zip(terms, b[:, column], strict=True)]
        bound = 33 * Fraction(2) ** -52 * sum(map(abs, parts)) + Fraction(SMALLEST)
        assert abs(Fraction(found[5, column]) - sum(parts)) <= bound


@pytest.mark.parametrize(
    ("in_rows", "in_panel"),
    [
        (1.0, 2.0**1000),  # times the scale, it overflows
        (2.0**1000, 1.0),
        (2.0**500, 2.0**500),
        (np.inf, 1.0),
        (1.0, np.inf),
        (np.nan, 1.0),
        (1.0, np.nan),
        (np.inf, -np.inf),
    ],
)
def test_nothing_overflows_beside_subnormal_numbers(in_rows: float, in_panel: float) -> None:
    a, b = np.zeros((16, 20)), np.zeros((20, 96))
    a[2, 7], b[7, 4] = in_rows, in_panel
    a[3, 1], b[1, 5] = 1.0, SMALLEST
    with np.errstate(invalid="ignore"):
        expected = a @ b
    np.testing.assert_array_equal(product(a, b), expected)
    assert product(a, b)[3, 5] == SMALLEST


def test_subnormal_weights_in_a_gradient() -> None:
    """The weights of a softmax underflow; the gradient is that of the plain evaluation."""

    def f(w: Array, x: Array) -> Any:
        return np.sum(dl.arrays.logsumexp(-0.5 * (x @ w) ** 2, 1))

    draw = np.random.default_rng(2)
    w, x = draw.normal(size=(20, 120)), draw.normal(size=(40, 20))
    x *= 37.0 / np.max(np.abs(x @ w))
    w[:, 0] *= 1.03
    g = dl.grad(f)
    np.testing.assert_allclose(dl.compile(dl.trace(g, w, x), "native")(w, x), g(w, x), rtol=1e-11)
