r"""Rows of discrete Fourier transforms along one axis, as linear maps of real arrays.

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

from difflab.core.primitive import Primitive, Shape, Transpose, tangent
from difflab.primitives.fourier_sums import (
    complex_form,
    inverse_form,
    mpmath_angle,
    real_form,
    sympy_angle,
)

__all__ = ["fft", "irfft", "rfft"]

Array = Any
Axes = tuple[int, ...]


# --- kernels ----------------------------------------------------------------------------------
# With NumPy they take `out`, the array of the result, complex if that is pairs of parts.


def _joined(xp: ModuleType, x: Array) -> Array:
    """Return the complex numbers whose parts lie along the last axis."""
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
    """Multiply what is its own conjugate by 1, and other parts by `inner`, in the parts' dtype."""
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


# --- the rows ---------------------------------------------------------------------------------


def _columns(form: Callable[..., Array]) -> dict[str, Any]:
    """Return the row's forms on the numbers of mpmath and SymPy."""
    return {
        "mpmath": lambda mp, x, **params: form(mpmath_angle(mp), x, **params),
        "sympy": lambda sympy, x, **params: form(sympy_angle(sympy), x, **params),
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
