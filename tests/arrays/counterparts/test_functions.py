"""NumPy's functions on every carrier: values are NumPy's, derivatives JAX's or differences."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import difflab as dl
from tests.arrays.counterparts.cases import OF_DIFFERENCES, OF_JAX, Code
from tests.support.rows import for_each

ALL = OF_JAX | OF_DIFFERENCES


def total(code: Code, xp: Any, shape: tuple[int, ...]) -> Code:
    """Return a number that depends on all of a result, not linearly."""
    weights = np.cos(np.arange(np.prod(shape))).reshape(shape)
    return lambda *args: xp.sum(xp.sin(code(xp, *args)) * weights)


def directions(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a direction for each argument; zero along what is nan."""
    return tuple(
        np.where(np.isnan(x), 0.0, np.sin(1.0 + np.arange(x.size)).reshape(x.shape)) for x in args
    )


@for_each("name", ALL)
def test_values_are_numpys_on_every_carrier(name: str) -> None:
    code, args = ALL[name]
    with np.errstate(all="ignore"):
        expected = np.asarray(code(np, *args))
        found = [
            dl.trace(lambda *a: code(np, *a), *args)(*args),
            dl.jit(lambda *a: code(np, *a))(*args),
            code(np, *map(dl.tensor, args)),
            code(np, *(dl.tensor(x, requires_grad=True) * 1.0 for x in args)).detach(),
        ]
    for each in found:
        assert np.shape(each) == expected.shape
        np.testing.assert_allclose(np.asarray(each), expected, rtol=1e-13, atol=1e-14)


@cache
def derivatives(name: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the gradient and its derivative along `directions`, by reverse, then forward mode."""
    code, args = ALL[name]
    f = total(code, np, np.shape(code(np, *args)))
    places = tuple(range(len(args)))
    return dl.jvp(lambda *a: dl.grad(f, places)(*a), args, directions(args))


@for_each("name", OF_JAX)
def test_first_and_second_derivatives_are_jaxs(name: str) -> None:
    jax = pytest.importorskip("jax", reason="needs JAX: pip install 'difflab[peers]'")
    code, args = OF_JAX[name]
    with np.errstate(all="ignore"):
        f = total(code, jax.numpy, np.shape(code(np, *args)))
        found = derivatives(name)
    places = tuple(range(len(args)))
    with jax.enable_x64(True):
        both = jax.jit(lambda a, d: jax.jvp(lambda *x: jax.grad(f, places)(*x), a, d))
        expected = both(args, directions(args))
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def eager_slopes(value: Any, leaves: list[Any]) -> list[Any]:
    """Return recorded gradients; zeros where a value does not depend on a leaf."""
    found: Any = [None] * len(leaves)
    if value.requires_grad:
        found = dl.eager.grad(value, leaves, create_graph=True, allow_unused=True)
    pairs = zip(found, leaves, strict=True)
    return [np.zeros_like(leaf) if slope is None else slope for slope, leaf in pairs]


@for_each("name", ALL)
def test_derivatives_of_tensors_are_those_of_traced_code(name: str) -> None:
    code, args = ALL[name]
    leaves = [dl.tensor(x, requires_grad=True) for x in args]
    with np.errstate(all="ignore"):
        f = total(code, np, np.shape(code(np, *args)))
        first, second = derivatives(name)
        slopes = eager_slopes(f(*leaves), leaves)
        along = sum(np.sum(s * d) for s, d in zip(slopes, directions(args), strict=True))
        bends = eager_slopes(along, leaves)
    for one, other in ((slopes, first), (bends, second)):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b, rtol=1e-11, atol=1e-12)


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")  # NumPy 2.5
@for_each("name", OF_DIFFERENCES)
def test_derivatives_are_differences_of_numpys_values(name: str) -> None:
    code, args = OF_DIFFERENCES[name]
    f = total(code, np, np.shape(code(np, *args)))
    along, step = directions(args), 1e-3

    def at(t: float) -> Any:
        return f(*(x + t * d for x, d in zip(args, along, strict=True)))

    values = [at(k * step) for k in range(-3, 4)]
    slope = np.dot([-1, 9, -45, 0, 45, -9, 1], values) / (60 * step)
    bend = np.dot([2, -27, 270, -490, 270, -27, 2], values) / (180 * step**2)
    first, second = derivatives(name)
    for found, expected, places in ((first, slope, 9), (second, bend, 6)):
        given = sum(np.sum(g * d) for g, d in zip(found, along, strict=True))
        assert given == pytest.approx(expected, rel=10.0**-places, abs=10.0**-places)


KEYS: dict[str, Code] = {
    "order": lambda np, x: x[np.argsort(x[:, 1])],
    "of a vector": lambda np, x: x[0][np.argsort(-x[0])[:2]] * x[1, :2],
    "largest": lambda np, x: x[0][np.argmax(x[0])] * x[1],
    "lists in a tuple": lambda np, x: x[[0, 2, 0], [1, 1, 3]],
    "a list and a slice": lambda np, x: x[1:, [3, 0]],
    "a mask and a slice": lambda np, x: x[np.array([True, False, True]), ::-1],
    "a matrix of indices": lambda np, x: x[0][np.array([[0, 1], [3, 3]])],
}


@pytest.mark.parametrize("name", KEYS)
def test_arrays_are_indexed_by_lists_and_by_computed_indices(name: str) -> None:
    code, x = KEYS[name], np.random.default_rng(2).normal(size=(3, 4))
    expected = code(np, x)
    weights = np.cos(np.arange(expected.size)).reshape(expected.shape)

    def weighted(v: Any) -> Any:
        return np.sum(code(np, v) ** 2 * weights)

    np.testing.assert_array_equal(dl.trace(lambda v: code(np, v), x)(x), expected)
    np.testing.assert_array_equal(code(np, dl.tensor(x)), expected)
    leaf = dl.tensor(x, requires_grad=True)
    weighted(leaf).backward()
    steps = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-6
        steps[place] = (weighted(x + step) - weighted(x - step)) / 2e-6
    np.testing.assert_allclose(dl.grad(weighted)(x), steps, atol=1e-8)
    np.testing.assert_allclose(leaf.grad, steps, atol=1e-8)


@pytest.mark.parametrize("name", ["cumulative_prod", "cumulative_sum"])
def test_running_totals_begin_with_their_neutral_element_whatever_follows(name: str) -> None:
    for start in (np.inf, np.nan, 2.0):
        x = np.array([start, 3.0, 0.5])
        expected = getattr(np, name)(x, include_initial=True)
        found = getattr(np, name)(dl.tensor(x), include_initial=True)
        np.testing.assert_array_equal(found.numpy(), expected)
