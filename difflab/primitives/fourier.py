r"""Rows of convolutions, and of discrete Fourier transforms as linear maps of real arrays.

A complex array is a real array whose last axis holds its real and its imaginary parts. With
:math:`\omega = 2\pi/n` and :math:`m = \lfloor n/2 \rfloor + 1`,

- `fft` is :math:`Y_k = \sum_j X_j e^{-i\omega jk}`, of n complex numbers;
- `rfft` is the same of n real numbers, without the conjugates: m complex numbers;
- `irfft` is the inverse of `rfft`: m complex numbers give `size` = n real ones.

Each row takes the parameter `transposed`: the transpose of the matrix of that real linear map. So
the rows are closed under differentiation: `fft` transposed is
:math:`\sum_k Y_k e^{+i\omega jk}`, and the transposes of `rfft` and `irfft` are each other's
kernels with weights: 1 where a number is its own conjugate (k = 0, and k = n/2 for even n), and 2
elsewhere.

`axes` are the axis and, where the operand is complex, −1 for the parts, counted from the end;
`rank` is the number of the operand's axes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2, prod
from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive, Shape, Transpose, bilinear, tangent

__all__ = ["convolve", "correlate", "fft", "irfft", "rfft"]


Array = Any
Axes = tuple[int, ...]


# --- convolution and correlation -----------------------------------------------------------------
# Each is the transpose of the other, in both arguments. Axes before the last one, which both have,
# and batch axes before those, are stacks.


def _convolve(xp: ModuleType, a: Array, v: Array) -> Array:
    if xp is np and a.ndim == v.ndim == 1:
        return np.convolve(a, v)
    last = a.shape[-1] - 1
    places = np.arange(last + v.shape[-1])[:, None] - np.arange(v.shape[-1])
    inside = (places >= 0) & (places <= last)
    parts = a[..., xp.asarray(np.clip(places, 0, last))]
    if xp is np and v.dtype.kind in "fc" and np.isfinite(v).all():
        parts[..., ~inside] = 0.0
        return np.matmul(parts, v[..., None])[..., 0]
    # Zeros around `a` would be multiplied by infinities.
    return xp.sum(xp.where(xp.asarray(inside), parts * v[..., None, :], 0.0), axis=-1)


def _correlate(xp: ModuleType, a: Array, v: Array) -> Array:
    if xp is np and a.ndim == v.ndim == 1:
        return np.convolve(a, v[::-1], "valid")  # `np.correlate` would conjugate complex steps
    places = np.arange(a.shape[-1] - v.shape[-1] + 1)[:, None] + np.arange(v.shape[-1])
    return xp.matmul(a[..., xp.asarray(places)], v[..., None])[..., 0]


convolve: Primitive = Primitive(
    name="convolve",
    kernel=_convolve,
    rule=bilinear(lambda t, a, v: correlate(t, v), lambda t, a, v: correlate(t, a)),
    shape=lambda shapes: (*shapes[0][:-1], shapes[0][-1] + shapes[1][-1] - 1),
)
correlate: Primitive = Primitive(
    name="correlate",
    kernel=_correlate,
    rule=bilinear(lambda t, a, v: convolve(t, v), lambda t, a, v: correlate(a, t)),
    shape=lambda shapes: (*shapes[0][:-1], shapes[0][-1] - shapes[1][-1] + 1),
)


# --- transforms of mpmath values, SymPy expressions and balls ------------------------------------
# The forms have the parameters of the rows. They compute by the mixed-radix algorithm of J. W.
# Cooley and J. W. Tukey, *An algorithm for the machine calculation of complex Fourier series*
# (1965).

Angle = Callable[[int, int], tuple[Any, Any]]
"""Maps k and n to the cosine and the sine of 2πk/n, in a library's numbers."""


def _factors(n: int) -> list[int]:
    """Return the prime factors of n.

    Examples
    --------
    >>> _factors(12), _factors(1)
    ([2, 2, 3], [])
    """
    factors, divisor = [], 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            factors.append(divisor)
            n //= divisor
        divisor += 1
    return [*factors, n] if n > 1 else factors


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
    """Return the weights of half a spectrum: 2 for frequencies that stand for a conjugate too."""
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
    """Compute `fft` in the scalars of a library."""
    moved = np.moveaxis(np.asarray(x, dtype=object), axes[0], 0)
    re, im = (moved[..., part].reshape(len(moved), -1) for part in (0, 1))
    if transposed:  # the conjugate of the transform of the conjugate, by swapping the parts
        im, re = _transformed(im, re, angle)
    else:
        re, im = _transformed(re, im, angle)
    return np.moveaxis(np.stack([re, im], axis=-1).reshape(moved.shape), 0, axes[0])


def real_form(angle: Angle, x: Array, *, axes: Axes, rank: int, transposed: bool) -> Array:
    """Compute `rfft` in the scalars of a library."""
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
    """Compute `irfft` in the scalars of a library: the real part of a sum over half a spectrum."""
    moved = np.moveaxis(np.asarray(x, dtype=object), axes[0], 0)
    half = moved.reshape(len(moved), -1, 2)
    if not transposed:
        half = half * _doubled(size) / size
    whole = np.concatenate([half, np.zeros((size - len(half), *half.shape[1:]), dtype=int)])
    real = _transformed(whole[..., 1], whole[..., 0], angle)[1]
    return np.moveaxis(real.reshape(size, *moved.shape[1:-1]), 0, axes[0] + 1)


def _mpmath_angle(mp: Any) -> Angle:
    """Return the function of cosine and sine of 2πk/n, at mpmath's working precision."""
    return lambda k, n: (mp.cospi(mp.mpf(2 * k) / n), mp.sinpi(mp.mpf(2 * k) / n))


def _sympy_angle(sympy: Any) -> Angle:
    """Return the function of cosine and sine of 2πk/n, as SymPy expressions."""

    def angle(k: int, n: int) -> tuple[Any, Any]:
        turn = 2 * sympy.pi * sympy.Rational(k, n)
        return sympy.cos(turn), sympy.sin(turn)

    return angle


# --- kernels of the transforms -------------------------------------------------------------------
# With NumPy they take `out`, the array of the result, complex if that is pairs of parts.


def _joined(xp: ModuleType, x: Array) -> Array:
    """Return the complex array whose real and imaginary parts lie along the last axis."""
    if xp is np:
        dtype = np.result_type(x.dtype, np.complex64)
        return np.ascontiguousarray(x, dtype=dtype.char.lower()).view(dtype)[..., 0]
    return x[..., 0] + 1j * x[..., 1]


def _parts(xp: ModuleType, z: Array) -> Array:
    """Return the real and imaginary parts along a new last axis."""
    if xp is np:
        return np.ascontiguousarray(z).view(z.dtype.char.lower()).reshape(*z.shape, 2)
    return xp.stack([z.real, z.imag], axis=-1)


def _weighted(
    xp: ModuleType, parts: Array, n: int, inner: float, axes: Axes, **out: Array
) -> Array:
    """Multiply self-conjugate coefficients by 1, and others by `inner`, in their dtype."""
    weights = np.full(n // 2 + 1, inner)
    weights[0] = 1.0
    if n % 2 == 0:
        weights[-1] = 1.0
    # Two columns of weights are multiplied in one loop over an array's rows.
    columns = np.repeat(weights.reshape(-1, *(1,) * (-1 - axes[0])), 2, axis=-1)
    return xp.multiply(parts, xp.asarray(columns, dtype=parts.dtype), **out)


def _by_parts(kernel: Callable[..., Array]) -> Callable[..., Array]:
    """Apply a real linear map to complex values, as complex steps do, part by part."""

    def computed(xp: ModuleType, x: Array, **params: Any) -> Array:
        if xp.iscomplexobj(x):
            return kernel(xp, x.real, **params) + 1j * kernel(xp, x.imag, **params)
        return kernel(xp, x, **params)

    return computed


def _fft(
    xp: ModuleType, x: Array, *, axes: Axes, rank: int, transposed: bool, **out: Array
) -> Array:
    z, axis = _joined(xp, x), axes[0] + 1
    if transposed:
        return _parts(xp, xp.fft.ifft(z, axis=axis, norm="forward", **out))
    return _parts(xp, xp.fft.fft(z, axis=axis, **out))


def _rfft(
    xp: ModuleType, x: Array, *, axes: Axes, rank: int, transposed: bool, **out: Array
) -> Array:
    (axis,) = axes
    if not transposed:
        return _parts(xp, xp.fft.rfft(x, axis=axis, **out))
    parts = _parts(xp, xp.fft.rfft(x, axis=axis, norm="forward", **out))
    place = {"out": parts} if out else {}
    return _weighted(xp, parts, x.shape[axis], 2.0, (axis - 1, -1), **place)


def _irfft(
    xp: ModuleType,
    x: Array,
    *,
    axes: Axes,
    rank: int,
    size: int,
    transposed: bool,
    **out: Array,
) -> Array:
    axis = axes[0] + 1
    if not transposed:
        return xp.fft.irfft(_joined(xp, x), size, axis=axis, **out)
    z = _joined(xp, _weighted(xp, x, size, 0.5, axes))
    return xp.fft.irfft(z, size, axis=axis, norm="forward", **out)


# --- rows of the transforms ----------------------------------------------------------------------


def _columns(form: Callable[..., Array]) -> dict[str, Any]:
    """Return the row's forms for mpmath and SymPy."""
    return {
        "mpmath": lambda mp, x, **params: form(_mpmath_angle(mp), x, **params),
        "sympy": lambda sympy, x, **params: form(_sympy_angle(sympy), x, **params),
    }


def _operations(real: bool) -> Callable[..., int]:
    """Return the count 5 n log₂ n of a complex transform, half of it of a real one.

    It is that of the radix-2 algorithm, by which libraries of transforms are compared: M. Frigo
    and S. G. Johnson, *The design and implementation of FFTW3* (2005).
    """

    def counted(shapes: tuple[Shape, ...], *, axes: Axes, size: int = 0, **_: Any) -> int:
        (shape,) = shapes
        n = size or shape[axes[0]]
        lines = prod(shape) // (shape[axes[0]] * (2 if len(axes) == 2 else 1))
        return ceil((2.5 if real else 5.0) * lines * n * log2(n))

    return counted


def _brackets(
    shape: Shape, *, axes: Axes, rank: int, transposed: bool, size: int | None = None
) -> str:
    """Return the axis, the size and whether the map is transposed, as the language writes them."""
    integers = [axes[0] + rank]
    integers += [] if size is None else [size]
    integers += [1] if transposed else []
    return "" if integers == [rank - len(axes)] else str(integers)


def _rfft_shape(shapes: tuple[Shape, ...], *, axes: Axes, **_: Any) -> Shape:
    shape = list(shapes[0])
    shape[axes[0]] = shape[axes[0]] // 2 + 1
    return (*shape, 2)


def _irfft_shape(shapes: tuple[Shape, ...], *, axes: Axes, size: int, **_: Any) -> Shape:
    shape = list(shapes[0])
    shape[axes[0]] = size
    return tuple(shape[:-1])


fft: Primitive = Primitive(
    name="fft",
    kernel=_by_parts(_fft),
    rule=tangent(
        Transpose(
            lambda t, x, *, axes, rank, transposed: fft(
                t, axes=axes, rank=rank, transposed=not transposed
            )
        )
    ),
    brackets=_brackets,
    arithmetic=_operations(real=False),
    shape=lambda shapes, **_: shapes[0],
    **_columns(complex_form),
)
rfft: Primitive = Primitive(
    name="rfft",
    kernel=_by_parts(_rfft),
    rule=tangent(
        Transpose(
            lambda t, x, *, axes, rank, transposed: irfft(
                t,
                axes=(axes[0] - 1, -1),
                rank=rank + 1,
                size=x.shape[axes[0]],
                transposed=not transposed,
            )
        )
    ),
    brackets=_brackets,
    arithmetic=_operations(real=True),
    shape=_rfft_shape,
    **_columns(real_form),
)
irfft: Primitive = Primitive(
    name="irfft",
    kernel=_by_parts(_irfft),
    rule=tangent(
        Transpose(
            lambda t, x, *, axes, rank, size, transposed: rfft(
                t, axes=(axes[0] + 1,), rank=rank - 1, transposed=not transposed
            )
        )
    ),
    brackets=_brackets,
    arithmetic=_operations(real=True),
    shape=_irfft_shape,
    **_columns(inverse_form),
)
