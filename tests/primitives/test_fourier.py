"""Fourier transforms are products with the matrix of the definition, in every arithmetic."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import sympy

import difflab as dl
from difflab.autodiff.sparsity import sparsity
from difflab.graph.function import evaluate
from difflab.graph.interpreters import MpmathInterpreter, SympyInterpreter
from difflab.primitives import fft, irfft, rfft
from difflab.primitives.fourier import _factors
from tests.support.rows import for_each

SIZES = (1, 2, 3, 4, 5, 6, 9, 12, 14, 30, 97)
EACH = for_each("size", SIZES)


def waves(size: int, kept: int) -> np.ndarray:
    """Return e^{−2πijk/n} for `kept` values of k, by exact turns."""
    turns = np.outer(np.arange(kept), np.arange(size)) % size
    with mpmath.workdps(30):
        table = [complex(mpmath.expjpi(-mpmath.mpf(2 * k) / size)) for k in range(size)]
    return np.array(table)[turns]


def matrix_of_fft(size: int) -> np.ndarray:
    """Return the matrix of `fft` on pairs."""
    w = waves(size, size)
    parts = np.array([[w.real, -w.imag], [w.imag, w.real]])
    return parts.transpose(2, 0, 3, 1).reshape(2 * size, 2 * size)


def matrix_of_rfft(size: int) -> np.ndarray:
    """Return the matrix of `rfft`, from numbers to pairs."""
    w = waves(size, size // 2 + 1)
    return np.stack([w.real, w.imag], axis=1).reshape(-1, size)


def matrix_of_irfft(size: int) -> np.ndarray:
    """Return the matrix of `irfft`: the inverse of `rfft`, zero for parts that must be zero."""
    kept = size // 2 + 1
    weights = np.where((np.arange(kept) == 0) | (2 * np.arange(kept) == size), 1, 2) / size
    w = waves(size, kept).T * weights
    return np.stack([w.real, w.imag], axis=-1).reshape(size, -1)


def applied(name: str, size: int, transposed: bool, x: Any) -> Any:
    """Apply a row to vectors, or stacks of vectors, of flattened operands."""
    lead = x.shape[:-1]
    if name == "fft":
        y = fft(x.reshape(*lead, size, 2), axes=(-2, -1), rank=2, transposed=transposed)
    elif name == "rfft":
        return rfft(x, axes=(-1,), rank=1, transposed=transposed).reshape(*lead, -1)
    else:
        pairs = x.reshape(*lead, size // 2 + 1, 2)
        y = irfft(pairs, axes=(-2, -1), rank=2, size=size, transposed=transposed)
    return y.reshape(*lead, -1)


MATRICES = {"fft": matrix_of_fft, "rfft": matrix_of_rfft, "irfft": matrix_of_irfft}
NAMES = pytest.mark.parametrize("name", MATRICES)
TRANSPOSED = pytest.mark.parametrize("transposed", [False, True])


def matrix_of(name: str, size: int, transposed: bool) -> np.ndarray:
    """Return the matrix of a row: `rfft` transposed is that of `irfft`, and the other way."""
    if transposed:
        other = {"fft": "fft", "rfft": "irfft", "irfft": "rfft"}[name]
        return MATRICES[other](size).T
    return MATRICES[name](size)


@EACH
@NAMES
@TRANSPOSED
def test_a_transform_is_a_product_with_its_matrix(name: str, size: int, transposed: bool) -> None:
    matrix = matrix_of(name, size, transposed)
    found = applied(name, size, transposed, np.eye(matrix.shape[1]))
    np.testing.assert_allclose(found.T, matrix, rtol=0, atol=1e-14)


@NAMES
@TRANSPOSED
@pytest.mark.parametrize("size", [1, 2, 5, 12])
def test_its_derivatives_are_the_matrix(name: str, size: int, transposed: bool) -> None:
    matrix = matrix_of(name, size, transposed)
    function = dl.trace(lambda x: applied(name, size, transposed, x), np.ones(matrix.shape[1]))
    for mode in ("forward", "reverse"):
        found = dl.jacobian(function, mode=mode)(np.ones(matrix.shape[1]))
        np.testing.assert_allclose(found, matrix, rtol=0, atol=1e-14)


@NAMES
@TRANSPOSED
@pytest.mark.parametrize("size", [1, 2, 5, 12])
def test_numbers_of_other_libraries_are_transformed_alike(
    name: str, size: int, transposed: bool
) -> None:
    matrix = matrix_of(name, size, transposed)
    x = np.cos(np.arange(matrix.shape[1]) + 1.0)
    function = dl.trace(lambda x: applied(name, size, transposed, x), x)
    (digits,) = evaluate(function, [np.array([mpmath.mpf(v) for v in x])], MpmathInterpreter())
    np.testing.assert_allclose(np.array(digits, dtype=float), matrix @ x, rtol=0, atol=1e-13)
    exact = np.array([sympy.Float(v) for v in x])
    (symbols,) = evaluate(function, [exact], SympyInterpreter())
    found = [float(each.evalf()) for each in symbols]
    np.testing.assert_allclose(found, matrix @ x, rtol=0, atol=1e-13)
    bounds = dl.enclose(function, at={"x": x})
    margin = 1e-13
    assert np.all(bounds.value.lower <= matrix @ x + margin)
    assert np.all(bounds.value.upper >= matrix @ x - margin)
    assert np.all(bounds.jacobian.upper - bounds.jacobian.lower < 1e-15)
    np.testing.assert_allclose(bounds.jacobian.lower, matrix, rtol=0, atol=1e-14)


def test_the_factors_of_a_length_are_prime() -> None:
    for n in range(1, 200):
        found = _factors(n)
        assert np.prod(found, initial=1) == n
        assert all(sympy.isprime(p) for p in found)


@NAMES
def test_single_precision_is_kept(name: str) -> None:
    matrix = MATRICES[name](8)
    x = np.cos(np.arange(matrix.shape[1])).astype(np.float32)
    found = applied(name, 8, False, x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, matrix @ x, rtol=0, atol=1e-5)
    leaf = dl.tensor(x, requires_grad=True, dtype=np.float32)
    np.sum(np.abs(np.fft.rfft(leaf)) ** 2).backward()
    assert leaf.grad.numpy().dtype == np.float32


def library(name: str) -> Any:
    return pytest.importorskip(name, reason=f"needs {name}: pip install 'difflab[peers]'")


@NAMES
@TRANSPOSED
def test_arrays_of_other_libraries_have_the_same_kernels(name: str, transposed: bool) -> None:
    matrix = matrix_of(name, 6, transposed)
    x = np.cos(np.arange(2 * matrix.shape[1])).reshape(2, -1)
    found = applied(name, 6, transposed, library("torch").tensor(x))
    np.testing.assert_allclose(found.numpy(), x @ matrix.T, rtol=0, atol=1e-14)
    jax = library("jax")
    with jax.enable_x64(True):
        found = applied(name, 6, transposed, jax.numpy.asarray(x))
        np.testing.assert_allclose(np.asarray(found), x @ matrix.T, rtol=0, atol=1e-14)


def test_the_pattern_is_full_along_the_axis_and_empty_across() -> None:
    f = dl.trace(lambda x: np.abs(np.fft.rfft(x, axis=0)), np.ones((6, 3)))
    found = sparsity(f).toarray().reshape(4, 3, 6, 3)
    np.testing.assert_array_equal(found, np.broadcast_to(np.eye(3)[:, None], (4, 3, 6, 3)) > 0)
    large = dl.trace(lambda x: np.fft.irfft(np.fft.rfft(x) ** 2), np.ones((2, 1024)))
    pattern = sparsity(large)
    assert pattern.nnz == 2 * 1024**2
    assert not pattern[:1024, 1024:].nnz


def test_operations_are_counted() -> None:
    counted = lambda f, *shape: dl.count(dl.trace(f, np.ones(shape))).arithmetic  # noqa: E731
    assert counted(lambda x: np.fft.rfft(x), 3, 1024) == 2.5 * 3 * 1024 * 10
    assert counted(lambda x: np.fft.ifft(x, norm="forward"), 1024) == 5 * 1024 * 10
    assert counted(lambda x: np.fft.irfft(x), 513) == 2.5 * 1024 * 10


def test_higher_derivatives_follow() -> None:
    f = dl.trace(lambda x: np.sum(np.fft.irfft(np.fft.rfft(x) ** 3, 5)), np.ones(5))
    x, direction = np.cos(np.arange(5.0)), np.sin(np.arange(5.0))
    # The sum is what the transform is at frequency 0, the cube of the sum of x.
    total, along = x.sum(), direction.sum()
    _, series = dl.jet(lambda x: np.sum(np.fft.irfft(np.fft.rfft(x) ** 3, 5)), (x,), ([direction],))
    assert series[0] == pytest.approx(3 * total**2 * along, rel=1e-13)
    np.testing.assert_allclose(dl.hessian(f)(x), np.full((5, 5), 6 * total), rtol=1e-12)


def test_a_branch_that_is_not_taken_does_not_hide_others() -> None:
    """Frequencies at which the transform of what a branch selects is zero have derivatives too."""

    def f(x: Any) -> Any:
        return np.sin(np.fft.irfft(np.where(x > 2.0, np.sqrt(x - 2.0), x * x)))

    x, direction = np.array([0.125, -0.25]), np.array([0.75, 1.0])
    slope = 2 * x * direction
    z = np.fft.irfft(x * x)
    _, found = dl.jvp(f, (x,), (direction,))
    np.testing.assert_allclose(found, np.cos(z) * np.fft.irfft(slope), rtol=1e-14)
    np.testing.assert_allclose(dl.jacrev(f)(x) @ direction, found, rtol=1e-14)
