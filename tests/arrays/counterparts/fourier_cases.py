"""Calls of NumPy's Fourier transforms, and arithmetic of complex values, as `cases` has others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["FOURIER"]

RNG = np.random.default_rng(9)
V, W, T = RNG.normal(size=6), RNG.normal(size=5), RNG.normal(size=(2, 3, 4))
M = RNG.normal(size=(4, 3))
SPECTRUM = RNG.normal(size=4) + 1j * RNG.normal(size=4)
WAVES = 1j * np.arange(4)


def both(xp: Any, z: Any) -> Any:
    """Return the parts of complex values in one real array."""
    return xp.stack([xp.real(z), xp.imag(z)])


def complex_of(x: Any) -> Any:
    """Return complex values that depend on real ones."""
    return x + 1j * x * x


FOURIER: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "fft": (lambda np, x: both(np, np.fft.fft(x)), (V,)),
    "fft of complex values": (lambda np, x: both(np, np.fft.fft(complex_of(x), axis=0)), (M,)),
    "fft of odd length": (lambda np, x: both(np, np.fft.fft(complex_of(x), norm="ortho")), (W,)),
    "fft cropped": (lambda np, x: both(np, np.fft.fft(x, 3, norm="forward")), (V,)),
    "fft padded": (lambda np, x: both(np, np.fft.fft(x, n=7, axis=1)), (T,)),
    "ifft": (lambda np, x: both(np, np.fft.ifft(complex_of(x))), (V,)),
    "ifft forward": (lambda np, x: both(np, np.fft.ifft(x, 8, 0, "forward")), (M,)),
    "rfft": (lambda np, x: both(np, np.fft.rfft(x)), (V,)),
    "rfft of odd length": (lambda np, x: both(np, np.fft.rfft(x, norm="ortho")), (W,)),
    "rfft along an axis": (lambda np, x: both(np, np.fft.rfft(x, 5, axis=-3)), (T,)),
    "irfft": (lambda np, x: np.fft.irfft(complex_of(x)), (V,)),
    "irfft of odd length": (lambda np, x: np.fft.irfft(complex_of(x), 9, norm="ortho"), (W,)),
    "irfft of real values": (lambda np, x: np.fft.irfft(x, 5, axis=0, norm="forward"), (M,)),
    "hfft": (lambda np, x: np.fft.hfft(complex_of(x), 7), (W,)),
    "hfft ortho": (lambda np, x: np.fft.hfft(complex_of(x), norm="ortho", axis=0), (M,)),
    "ihfft": (lambda np, x: both(np, np.fft.ihfft(x, 8)), (V,)),
    "ihfft forward": (lambda np, x: both(np, np.fft.ihfft(x, norm="forward")), (W,)),
    "fft2": (lambda np, x: both(np, np.fft.fft2(complex_of(x), (2, 5))), (T,)),
    "ifft2": (lambda np, x: both(np, np.fft.ifft2(x, axes=(0, 2), norm="ortho")), (T,)),
    "fftn": (lambda np, x: both(np, np.fft.fftn(complex_of(x))), (T,)),
    "ifftn": (lambda np, x: both(np, np.fft.ifftn(x, (3, 3), (1, 0))), (T,)),
    "rfft2": (lambda np, x: both(np, np.fft.rfft2(x)), (M,)),
    "rfftn": (lambda np, x: both(np, np.fft.rfftn(x, axes=(2, 0), norm="forward")), (T,)),
    "irfft2": (lambda np, x: np.fft.irfft2(complex_of(x), (4, 5)), (M,)),
    "irfftn": (lambda np, x: np.fft.irfftn(complex_of(x), norm="ortho"), (T,)),
    "fftshift": (lambda np, x: both(np, np.fft.fftshift(np.fft.fft(x))), (W,)),
    "ifftshift": (lambda np, x: np.fft.ifftshift(x, axes=(0, 2)), (T,)),
    "a spectral derivative": (lambda np, x: np.fft.irfft(WAVES * np.fft.rfft(x), 6), (V,)),
    "a convolution": (
        lambda np, x, y: np.fft.irfft(np.fft.rfft(x, 10) * np.fft.rfft(y, 10), 10),
        (V, W),
    ),
    "a power spectrum": (lambda np, x: np.abs(np.fft.rfft(x)) ** 2, (V,)),
    "phases": (lambda np, x: np.angle(np.fft.fft(x + 1)[1:3]), (W,)),
    "phases in degrees": (lambda np, x: np.angle(complex_of(x), deg=True), (W,)),
    "quotients": (lambda np, x: both(np, (2 - 1j) / np.fft.fft(x) / (1 + 3j)), (V,)),
    "quotients of two": (lambda np, x: both(np, np.fft.fft(x)[1:] / complex_of(x[1:])), (W,)),
    "powers": (lambda np, x: both(np, complex_of(x) ** 3 + complex_of(x) ** -2), (W,)),
    "exponentials": (lambda np, x: both(np, np.exp(complex_of(x)) - np.exp(-1j * x)), (W,)),
    "conjugates": (lambda np, x: both(np, np.conj(SPECTRUM[:3] - x) * complex_of(x)), (M,)),
    "sums": (lambda np, x: both(np, np.sum(complex_of(x), axis=1) / 2), (M,)),
    "means": (lambda np, x: both(np, complex_of(x).mean(0) * complex_of(x).sum()), (M,)),
    "products of matrices": (lambda np, x: both(np, complex_of(x) @ (1j - x.T)), (M,)),
    "moved elements": (
        lambda np, x: both(np, np.roll(complex_of(x).T[::-1], 1).reshape(2, -1)),
        (M,),
    ),
    "joined values": (lambda np, x: both(np, np.concatenate([complex_of(x), 1j * x, x])), (W,)),
    "chosen values": (lambda np, x: both(np, np.where(W > 0, complex_of(x), 1j)), (W,)),
    "squares": (lambda np, x: np.abs(np.square(complex_of(x))), (W,)),
}
