"""Complex values as two real arrays: what they refuse, and how they pass through transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.arrays import ComplexArray

X = np.array([0.5, -1.0, 2.0])

REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a row": (lambda z: np.sqrt(z), "'sqrt' of complex values has no derivative here"),
    "a reduction": (lambda z: np.max(z), "'max' of complex values has no derivative here"),
    "a comparison": (lambda z: z < 1, "a comparison of complex values has no derivative here"),
    "equality": (lambda z: z == 1, "a comparison of complex values has no derivative here"),
    "a branch": (lambda z: 1 if z else 0, "a branch of complex values"),
    "a number": (lambda z: float(z), "a conversion to a number of complex values"),
    "a root": (lambda z: z**0.5, "powers of complex values have integer exponents"),
    "a complex power": (lambda z: 2.0**z, "powers of complex values have integer exponents"),
    "rfft": (lambda z: np.fft.rfft(z), "rfft takes real values"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_derivative_says_what_to_write(name: str) -> None:
    code, message = REFUSED[name]
    for carrier in (
        lambda: dl.trace(lambda x: code(x + 1j), X),
        lambda: code(dl.tensor(X, requires_grad=True) + 1j),
    ):
        with pytest.raises(dl.DifflabError, match=message) as found:
            carrier()
        assert "write " in str(found.value) or "compute with z.real" in str(found.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.fft.fft(x, 0), "fft needs at least one point, not 0"),
        (lambda x: np.fft.fft(x, 2.5), "n of fft is an integer"),
        (lambda x: np.fft.irfft(x[:1]), "irfft needs at least one point, not 0"),
        (lambda x: np.fft.rfft(x, axis=1), "rfft along axis 1 of the shape"),
        (lambda x: np.fft.ifft(x, norm="unitary"), "norm of ifft is None, 'backward', 'ortho'"),
        (lambda x: np.fft.fft2(x), "fft2 along axis -2 of the shape"),
        (lambda x: np.fft.fftn(x, (2, 2), (0,)), "fftn needs as many sizes as axes"),
    ],
)
def test_wrong_arguments_are_named(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(dl.DifflabError, match=message):
        dl.trace(call, X)
    with pytest.raises(dl.DifflabError, match=message):
        call(dl.tensor(X))


def test_a_function_may_return_and_take_complex_values() -> None:
    rows = np.stack([X, 2 * X])
    found = dl.jit(np.fft.rfft)(X)
    assert isinstance(found, ComplexArray)
    np.testing.assert_allclose(np.asarray(found), np.fft.rfft(X), rtol=1e-14)
    np.testing.assert_allclose(np.abs(found), np.abs(np.fft.rfft(X)), rtol=1e-14)
    mapped = dl.vmap(np.fft.rfft)(rows)
    np.testing.assert_allclose(np.asarray(mapped), np.fft.rfft(rows), rtol=1e-14)
    back = dl.jit(lambda z: np.fft.irfft(z, 3))(found)
    np.testing.assert_allclose(back, X, rtol=1e-14)
    carried, _ = dl.scan(lambda z, x: (z * (1 + 0.5j) + x, x), np.fft.fft(dl.tensor(X)), X)
    z = np.fft.fft(X)
    for x in X:
        z = z * (1 + 0.5j) + x
    np.testing.assert_allclose(np.asarray(carried), z, rtol=1e-13)


def test_single_precision_stays() -> None:
    z = np.fft.fft(dl.tensor(X, dtype=np.float32))
    assert z.dtype == np.complex64
    assert z.real.dtype == np.float32
    assert np.asarray(z * 2 + 1).dtype == np.complex64


def test_constants_of_one_part_take_half_of_the_products() -> None:
    count = lambda f: dl.count(dl.trace(f, X)).operations  # noqa: E731
    assert count(lambda x: (2j * (1j * x)).real) == 3  # two products and a sign
    assert count(lambda x: np.fft.fft(x) * 1j) < count(lambda x: np.fft.fft(x) * (1 + 1j))


def test_it_is_written_back_into_no_tensor() -> None:
    t = dl.tensor(X)
    with pytest.raises(dl.DifflabError, match="cannot convert complex128 to float64"):
        t += 1j


def test_it_is_counted_and_iterated_over_as_numpys_arrays_are() -> None:
    z = np.fft.rfft(dl.tensor(np.arange(8.0).reshape(2, 4)))
    plain = np.fft.rfft(np.arange(8.0).reshape(2, 4))
    assert (z.ndim, z.size, len(z)) == (plain.ndim, plain.size, len(plain))
    for found, expected in zip(z, plain, strict=True):
        np.testing.assert_allclose(np.asarray(found), expected)
    np.testing.assert_allclose(np.asarray(z.T.ravel()), plain.T.ravel())
    with pytest.raises(TypeError, match="no length"):
        len(z[0, 0])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.abs(x.reshape(3, 2) + 1j * x.T).sum(),
        lambda x: np.abs(x.T - 1j * x.T).sum(),
        lambda x: ((x * 1.0) / (1j * x + 1.0)).real.sum(),
        lambda x: (x[::-1].T * (1j * x.T)).imag.sum(),
    ],
    ids=["add", "sub", "truediv", "mul"],
)
def test_a_view_and_a_complex_array_have_a_complex_result(function: Callable[[Any], Any]) -> None:
    point = np.arange(1.0, 7.0).reshape(2, 3)
    np.testing.assert_allclose(dl.trace(function, point)(point), function(point), rtol=1e-14)
