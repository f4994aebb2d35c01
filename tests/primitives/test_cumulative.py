"""Recurrences along an axis: every way of computing one gives its definition, at any numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab import arrays
from difflab.errors import ShapeError
from difflab.execute.choice import LONG_RECURRENCES
from difflab.primitives import cumulative
from tests.support import standin
from tests.support.cases import recurrence
from tests.support.rows import for_each

jax = pytest.importorskip("jax", reason="needs JAX: pip install 'difflab[peers]'")
jnp = jax.numpy
jax.config.update("jax_enable_x64", True)

RNG = np.random.default_rng(13)
INF, NAN = math.inf, math.nan
SHAPES = [(1,), (2,), (700,), (2, 700), (700, 3), (9, 40), (2, 3, 50), (4, 0)]
TARGETS = ["numpy", "native"]


def terms(shape: tuple[int, ...], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients below 1, one fewer along the first axis, and terms."""
    return rng.uniform(-1, 1, (shape[0] - 1, *shape[1:])), rng.normal(size=shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_lines_and_steps_give_the_definition(
    shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    a, b = terms(shape, rng)
    wanted = recurrence(np, a, b)
    for axis in range(len(shape)):
        moved = [np.moveaxis(part, 0, axis) for part in (a, b)]
        found = arrays.linear_recurrence(*moved, axis)
        np.testing.assert_allclose(found, np.moveaxis(wanted, 0, axis), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_results_have_the_dtype_of_the_operands(dtype: str, rng: np.random.Generator) -> None:
    a, b = (part.astype(dtype) for part in terms((700,), rng))
    if dtype[0] == "c":
        b = b * (1 + 2j)
    found = arrays.linear_recurrence(a, b)
    assert found.dtype == b.dtype
    tolerance = 200 * np.finfo(dtype).eps
    np.testing.assert_allclose(found, recurrence(np, a, b), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("size", [4, 600])
@pytest.mark.parametrize("odd", [INF, -INF, NAN, 0.0])
def test_numbers_that_are_not_finite_spread_as_in_the_definition(
    size: int, odd: float, rng: np.random.Generator
) -> None:
    for position in range(3):
        a, b = terms((size,), rng)
        (a, b, a)[position][size // 2] = odd
        if position == 2:
            b[: size // 2 + 1] = 0.0  # the product of 0 and an infinity is nan
            a[size // 2 + 1 :] = 0.5
        with np.errstate(invalid="ignore"):
            found, wanted = arrays.linear_recurrence(a, b), recurrence(np, a, b)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


def test_coefficients_whose_products_overflow() -> None:
    a = np.repeat([1e200, 1e-200], 600)
    b = np.concatenate([[1e-300], np.zeros(1200)])
    np.testing.assert_array_equal(
        arrays.linear_recurrence(a[599:602], b[:4]), [1e-300, 1e-100, 1e-300, 0]
    )


LIBRARIES = ["standin", "jax", "torch"]


def put_in(library: str) -> Any:
    """Return what makes an array of a library."""
    if library == "torch":
        torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'difflab[peers]'")
        return torch.from_numpy
    return standin.asarray if library == "standin" else jnp.asarray


def computed_in(library: str, a: Any, b: Any) -> Any:
    """Return the recurrence along the first axis that a library computes, on the host."""
    put = put_in(library)
    function = dl.trace(lambda a, b: arrays.linear_recurrence(a, b, 0), a, b)
    found = function(put(a), put(b))
    return found.get() if library == "standin" else np.asarray(found)


@pytest.mark.parametrize("library", LIBRARIES)
@for_each("shape", [(1,), (2, 3), (5,), (64, 3), (700,), (4, 0)])
def test_other_libraries_give_the_definition(
    library: str, shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    for factor in (1.0, 1.5):
        a, b = terms(shape, rng)
        found, wanted = computed_in(library, factor * a, b), recurrence(np, factor * a, b)
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


def repeated(*numbers: float, times: int = 1) -> np.ndarray:
    return np.repeat(numbers, times)


EXTREMES = {
    "products overflow": (repeated(1e200, 1e200, 1e-300), [1e-300, 0.0, 0.0, 0.0]),
    "products vanish": (repeated(1e-200, 1e-200, 1e300), [1e300, 0.0, 0.0, 0.0]),
    "many vanish": (repeated(0.4, times=1100), [1e300, *[0.0] * 1100]),
    "many overflow": (repeated(1e10, 1e-10, times=40), [1e-300, *[0.0] * 80]),
    "an infinite coefficient": (repeated(-0.5, INF, 2.0), [1.0, 0.5, 2.0, -1.0]),
    "an infinite term": (repeated(-0.5, 0.0, 2.0), [1.0, -INF, 2.0, -1.0]),
    "no number": (repeated(0.5, 0.0, 2.0), [1.0, NAN, 2.0, -1.0]),
    "infinity times zero": (repeated(0.0, INF, 2.0), [1.0, 0.0, 2.0, -1.0]),
    "zero before infinity": (repeated(0.0, INF, 2.0), [1.0, 3.0, 2.0, -1.0]),
}


@pytest.mark.parametrize("library", LIBRARIES)
@for_each("case", EXTREMES)
def test_other_libraries_give_the_definition_at_extremes(library: str, case: str) -> None:
    a, b = map(np.array, EXTREMES[case])
    with np.errstate(all="ignore"):
        wanted = recurrence(np, a, b)
        np.testing.assert_allclose(computed_in(library, a, b), wanted, rtol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
def test_other_libraries_agree_at_wild_numbers(library: str) -> None:
    rng = np.random.default_rng(5)
    wild = np.array([0.0, 1e200, 1e-200, -1e100, 1e-300, 0.5, -1.0, 3.0])
    odd = np.array([INF, -INF, NAN])
    for number in range(40):
        a, b = rng.choice(wild, 6), rng.choice(wild, 7)
        (a, b)[number % 2][rng.integers(6)] = rng.choice(odd)
        with np.errstate(all="ignore"):
            wanted = recurrence(np, a, b)
            np.testing.assert_allclose(computed_in(library, a, b), wanted, rtol=1e-12)


def test_products_of_single_precision_overflow_sooner() -> None:
    a = np.array([1e25, 1e25, 1e-30], dtype=np.float32)
    b = np.array([1e-30, 0.0, 0.0, 0.0], dtype=np.float32)
    found = computed_in("standin", a, b)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [1e-30, 1e-5, 1e20, 1e-10], rtol=1e-5)


@pytest.mark.parametrize("bound", [1.0, 3.0])
def test_a_device_takes_few_steps_for_usual_numbers(
    bound: float, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.delattr(cumulative, "_in_steps")
    a, b = terms((5000, 2) if bound == 1.0 else (200, 2), rng)
    found, wanted = computed_in("standin", bound * a, b), recurrence(np, bound * a, b)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"takes coefficients of the shape \(2,\), not \(3,\)"):
        arrays.linear_recurrence(np.ones(3), np.ones(3))
    with pytest.raises(ShapeError, match="axis"):
        arrays.linear_recurrence(np.ones(2), np.ones(3), 1)


# --- targets ----------------------------------------------------------------------------------


def program(a: Any, b: Any) -> Any:
    """Use the rows along each axis, forwards and backwards."""
    y = arrays.linear_recurrence(a[:, ::-1], b[:, ::-1], 0) * np.cumprod(b, axis=1)
    return np.sum(np.cumsum(y[::-1], axis=0) * np.cos(b)) + np.sum(np.cumsum(np.cumprod(b)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(7, 5), (1, 4), (3, 1), (40, 30)])
def test_targets_compute_value_and_gradient(
    target: str, shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    if target == "native":
        pytest.importorskip("llvmlite")
    a, b = terms(shape, rng)
    graph = dl.trace(program, a, b)
    derivative = dl.gradient(graph)
    for function in (graph, derivative):
        fast = dl.compile(function, target)
        assert fast.reason.startswith(target)
        np.testing.assert_allclose(fast(a, b), function(a, b), rtol=1e-11, atol=1e-12)
    points = [np.stack([part, 0.5 * part, -part]) for part in (a, b)]
    batch = dl.compile(derivative, target)(*points)
    each = [derivative(*point) for point in zip(*points, strict=True)]
    np.testing.assert_allclose(batch, each, rtol=1e-11, atol=1e-12)


def test_long_recurrences_are_compiled_unless_products_of_matrices_take_longer() -> None:
    pytest.importorskip("llvmlite")
    long, short = np.ones(LONG_RECURRENCES), np.ones(LONG_RECURRENCES - 1)
    assert dl.compile(dl.trace(np.cumsum, long)).reason == "native: it has long recurrences"
    assert dl.compile(dl.trace(np.cumsum, short)).reason.startswith("numpy")
    matrix = dl.trace(lambda x: np.cumsum(x) * (x @ x), long)
    assert dl.compile(matrix).reason.startswith("numpy")


# --- derivatives ------------------------------------------------------------------------------


def test_the_gradient_of_a_product_is_one_recurrence() -> None:
    graph = dl.gradient(dl.trace(lambda x: np.sum(np.cumprod(x)), np.ones(1000))).graph
    assert [row.name for row in graph.primitives if row.holds is None].count("cumprod") == 1
    assert graph.primitives.count(cumulative.linear_recurrence) == 1
    assert len(graph) < 20


POINTS = [
    ([2, 0, 3, 0], [1, 14, 0, 0]),
    ([2, NAN, 3, 4], [NAN, 2, NAN, NAN]),
    ([2, INF, 3, 4], [INF, 2, INF, -INF]),
    ([2, INF, 0, 4], [-INF, -4, INF, NAN]),
    ([2, 0, INF, 4], [NAN, INF, 0, NAN]),
    ([NAN, 0, 2, 0], [1, NAN, NAN, NAN]),
]
"""Points, and Σⱼ wⱼ ∂yⱼ/∂xᵢ under the weights 1, −2, 3, −½, in the arithmetic of IEEE 754."""


@pytest.mark.parametrize(("point", "wanted"), POINTS)
def test_running_products_at_zeros_and_numbers_that_are_not_finite(
    point: list[float], wanted: list[float]
) -> None:
    weights, x = np.array([1.0, -2.0, 3.0, -0.5]), np.array(point, dtype=float)

    def loss(x: Any) -> Any:
        return np.sum(np.cumprod(x) * weights)

    with np.errstate(all="ignore"):
        for found in (dl.grad(loss)(x), dl.jit(dl.grad(loss))(x), eager(loss, x)):
            np.testing.assert_array_equal(found, wanted)
    theirs = np.asarray(jax.grad(lambda x: jnp.sum(jnp.cumprod(x) * weights))(jnp.asarray(x)))
    same = ~np.isnan(theirs)  # JAX subtracts infinities of its tree of products
    np.testing.assert_array_equal(theirs[same], np.array(wanted, dtype=float)[same])


def eager(loss: Any, x: Any) -> Any:
    """Return the gradient of a loss by a tensor's tape."""
    leaf = dl.tensor(x, requires_grad=True)
    loss(leaf).backward()
    return leaf.grad


def test_long_products_agree_with_jax_to_the_second_order(rng: np.random.Generator) -> None:
    x, v = rng.uniform(0.9, 1.1, 3000), rng.normal(size=3000)
    x[[5, 1700]] = 0.0
    weights = rng.normal(size=3000)
    loss, theirs = (
        lambda x, xp=xp: xp.sum(xp.cumprod(x[:1500]) * weights[:1500] + xp.cumsum(x[1500:] ** 2))
        for xp in (np, jnp)
    )
    np.testing.assert_allclose(dl.grad(loss)(x), jax.grad(theirs)(x), rtol=1e-9, atol=1e-9)
    found = dl.hvp(loss, (x,), (v,))
    wanted = jax.jvp(jax.grad(theirs), (x,), (v,))[1]
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)
