"""Fourier transforms of numbers that are no floats: of many digits, symbolic, and balls.

The forms have the parameters of the rows of `difflab.primitives.fourier`. They compute by the
mixed-radix algorithm of J. W. Cooley and J. W. Tukey, *An algorithm for the machine calculation of
complex Fourier series* (1965).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["complex_form", "inverse_form", "mpmath_angle", "real_form", "sympy_angle"]

Array = Any
Axes = tuple[int, ...]
Angle = Callable[[int, int], tuple[Any, Any]]
"""Maps k and n to the cosine and the sine of 2πk/n, in a library's numbers."""


def _factors(n: int) -> list[int]:
    """Return the prime factors of n.

    Examples
    --------
    >>> _factors(12), _factors(1)
    ([2, 2, 3], [])
    """
    found, divisor = [], 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            found.append(divisor)
            n //= divisor
        divisor += 1
    return [*found, n] if n > 1 else found


def _transformed(re: Array, im: Array, angle: Angle) -> tuple[Array, Array]:
    """Return the transform along the first of two axes, in n·Σp operations for n = Πp.

    With n = p·m, j = a·m + b and k = c·p + d, the sum over a is multiplied by e^{−iωbd}, and what
    is left is a transform over b of length m.
    """
    size = len(re)
    table = np.empty((2, size), dtype=object)
    for k in range(size):
        table[:, k] = angle(k, size)
    rest, columns = size, 1
    for p in _factors(size):
        rest //= p
        re, im = re.reshape(p, rest, 1, -1), im.reshape(p, rest, 1, -1)
        a, b, d = np.ogrid[:p, :rest, :p]
        cos, sin = table[:, (a * rest + b) * d * columns % size, None]
        re, im = _sum(re * cos + im * sin), _sum(im * cos - re * sin)
        re, im = re.reshape(rest, -1), im.reshape(rest, -1)
        columns *= p
    return re.reshape(size, -1), im.reshape(size, -1)


def _doubled(size: int) -> Array:
    """Return 2 for the numbers of half a spectrum that stand for their conjugates too, else 1."""
    weights = np.full((size // 2 + 1, 1, 1), 2)
    weights[0] = 1
    if size % 2 == 0:
        weights[-1] = 1
    return weights


def _sum(terms: Array) -> Array:
    """Return the sum along the first axis."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def complex_form(angle: Angle, x: Array, *, axes: Axes, rank: int, transposed: bool) -> Array:
    """Compute `fft` by a library's numbers."""
    moved = np.moveaxis(np.asarray(x, dtype=object), axes[0], 0)
    re, im = (moved[..., part].reshape(len(moved), -1) for part in (0, 1))
    if transposed:  # the conjugate of the transform of the conjugate, by swapping the parts
        im, re = _transformed(im, re, angle)
    else:
        re, im = _transformed(re, im, angle)
    return np.moveaxis(np.stack([re, im], axis=-1).reshape(moved.shape), 0, axes[0])


def real_form(angle: Angle, x: Array, *, axes: Axes, rank: int, transposed: bool) -> Array:
    """Compute `rfft` by a library's numbers."""
    moved = np.moveaxis(np.asarray(x, dtype=object), axes[0], 0)
    size, kept = len(moved), len(moved) // 2 + 1
    flat = moved.reshape(size, -1)
    parts = np.stack([part[:kept] for part in _transformed(flat, 0 * flat, angle)], axis=-1)
    if transposed:
        parts = parts * _doubled(size) / size
    return np.moveaxis(parts.reshape(kept, *moved.shape[1:], 2), 0, axes[0] - 1)


def inverse_form(
    angle: Angle, x: Array, *, axes: Axes, rank: int, size: int, transposed: bool
) -> Array:
    """Compute `irfft` by a library's numbers: the real part of a sum over half of the spectrum."""
    moved = np.moveaxis(np.asarray(x, dtype=object), axes[0], 0)
    half = moved.reshape(len(moved), -1, 2)
    if not transposed:
        half = half * _doubled(size) / size
    whole = np.concatenate([half, np.zeros((size - len(half), *half.shape[1:]), dtype=int)])
    found = _transformed(whole[..., 1], whole[..., 0], angle)[1]
    return np.moveaxis(found.reshape(size, *moved.shape[1:-1]), 0, axes[0] + 1)


def mpmath_angle(mp: Any) -> Angle:
    """Return the angles in mpmath's numbers, at its working precision."""
    return lambda k, n: (mp.cospi(mp.mpf(2 * k) / n), mp.sinpi(mp.mpf(2 * k) / n))


def sympy_angle(sympy: Any) -> Angle:
    """Return the angles in SymPy's expressions."""

    def angle(k: int, n: int) -> tuple[Any, Any]:
        turn = 2 * sympy.pi * sympy.Rational(k, n)
        return sympy.cos(turn), sympy.sin(turn)

    return angle
