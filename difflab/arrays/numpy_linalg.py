"""Counterparts of the functions of `numpy.linalg` and `numpy.fft` with arguments of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from difflab import arrays
from difflab.arrays.complex_array import ComplexArray, is_complex
from difflab.arrays.counterparts import layout
from difflab.arrays.counterparts.calculus import cross, tensordot, vecdot
from difflab.arrays.counterparts.layout import diagonal, matrix_transpose, move_axis, trace
from difflab.arrays.given import (
    as_array,
    as_integer,
    as_integers,
    brief_repr,
    kept_axes,
    mismatch,
    normalized_axes,
    normalized_axis,
    shape_of,
)
from difflab.arrays.shapes import pad, stack
from difflab.core.apply import apply
from difflab.core.place import at_users_line
from difflab.errors import TraceError
from difflab.primitives import fft, irfft, rfft

SAME = (
    *("cholesky", "det", "inv", "lstsq", "matrix_power", "matrix_rank", "multi_dot", "pinv"),
    *("slogdet", "solve", "svdvals"),
)


def _symmetric(compute: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function of a symmetric matrix, whose triangles are the same."""

    def computed(a: Any, UPLO: str = "L") -> Any:
        return compute(a)

    return computed


def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    if not compute_uv:
        return arrays.svdvals(a)
    m, n = shape_of(a)[-2:] if len(shape_of(a)) > 1 else (0, 0)
    if full_matrices and m != n:
        raise at_users_line(
            TraceError,
            f"the full singular vectors of a matrix of shape {(m, n)} have no derivative",
            "write np.linalg.svd(a, full_matrices=False)",
        )
    return arrays.svd(a)


def _qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "r"):
        raise at_users_line(
            TraceError,
            f"there is no derivative of a QR factorisation with mode={mode!r}",
            "write mode='reduced' or mode='r'",
        )
    factors = arrays.qr(a)
    return factors if mode == "reduced" else factors.R


def _lstsq(a: Any, b: Any, rcond: None = None) -> Any:
    if rcond is not None:
        raise at_users_line(
            TraceError, "lstsq has no rcond here", "leave it out: the default is NumPy's"
        )
    return arrays.lstsq(a, b)


def _vector_norm(x: Any, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Return norms of vectors along several axes, too; by default of all elements."""
    x = as_array(x)
    shape = shape_of(x)
    axes = normalized_axes("vector_norm", axis, shape)
    flat = move_axis(x, axes, tuple(range(-len(axes), 0))) if axes else x
    rest = shape_of(flat)[: len(shape) - len(axes)]
    norms = arrays.norm_of_order(arrays.reshape(flat, (*rest, -1)), ord, -1)
    return arrays.reshape(norms, kept_axes(shape, axes)) if keepdims else norms


def _matrix_norm(x: Any, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return arrays.norm_of_order(x, ord, (-2, -1), keepdims)


def _last_axes(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the diagonals of the last two axes; NumPy's own takes the first two."""
    return lambda x, offset=0: compute(x, offset, -2, -1)


LINALG: Mapping[Callable[..., Any], Callable[..., Any]] = {
    **{getattr(np.linalg, name): getattr(arrays, name) for name in SAME},
    np.linalg.cross: lambda x1, x2, *, axis=-1: cross(x1, x2, axis=axis),
    np.linalg.diagonal: _last_axes(diagonal),
    np.linalg.eigh: _symmetric(arrays.eigh),
    np.linalg.eigvalsh: _symmetric(arrays.eigvalsh),
    np.linalg.lstsq: _lstsq,
    np.linalg.matmul: arrays.matmul,
    np.linalg.matrix_norm: _matrix_norm,
    np.linalg.matrix_transpose: matrix_transpose,
    np.linalg.norm: arrays.norm_of_order,
    np.linalg.outer: arrays.outer,
    np.linalg.qr: _qr,
    np.linalg.svd: _svd,
    np.linalg.tensordot: lambda x1, x2, *, axes=2: tensordot(x1, x2, axes),
    np.linalg.trace: _last_axes(trace),
    np.linalg.vecdot: lambda x1, x2, *, axis=-1: vecdot(x1, x2, axis),
    np.linalg.vector_norm: _vector_norm,
}
"""The counterparts by NumPy's function."""


# --- Fourier transforms along one axis -----------------------------------------------------------
# Each transform is a row of `difflab.primitives.fourier` along each of its axes, of real carriers
# or of `ComplexArray`, with NumPy's sizes and norms.

Norm = str | None
INVERSE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The norm that scales the opposite direction as this one scales its own."""


def _scale(name: str, norm: Norm, n: int) -> float:
    """Return the factor by which a norm scales a forward transform."""
    if norm not in INVERSE:
        raise mismatch(
            f"norm of {name} is None, 'backward', 'ortho' or 'forward', not {brief_repr(norm)}"
        )
    return {"ortho": 1 / math.sqrt(n), "forward": 1 / n}.get(norm or "backward", 1.0)


def _length(name: str, n: int | None, size: int) -> int:
    """Return the number of points of a transform, by default `size`."""
    length = size if n is None else as_integer(name, "n", n)
    if length < 1:
        raise mismatch(f"{name} needs at least one point, not {length}")
    return length


def _fitted(x: Any, n: int, axis: int) -> Any:
    """Crop an array along an axis, or append zeros."""
    shape = shape_of(x)
    if n < shape[axis]:
        return x[(slice(None),) * (len(shape) + axis) + (slice(n),)]
    if n == shape[axis]:
        return x
    ends = [(0, 0)] * len(shape)
    ends[axis] = (0, n - shape[axis])
    return pad(x, ends)


def _packed(a: Any) -> Any:
    """Return the parts along a new last axis."""
    z = as_array(a)
    return stack([z.real, z.imag], -1)


def _split(parts: Any) -> ComplexArray:
    """Return the values whose parts lie along the last axis."""
    return ComplexArray(parts[..., 0], parts[..., 1])


def _scaled(values: Any, scale: float) -> Any:
    return values if scale == 1.0 else values * scale


def _along(name: str, parts: Any, n: int | None, axis: int, norm: Norm) -> Any:
    """Return the parts of a transform of complex values, given theirs; `name` says if inverse."""
    inverse = name.startswith("i")
    rank = len(shape_of(parts))
    along = normalized_axis(name, axis, shape_of(parts)[:-1])
    n = _length(name, n, shape_of(parts)[along - 1])
    scale = _scale(name, INVERSE.get(norm, norm) if inverse else norm, n)
    x = _fitted(parts, n, along - 1)
    return _scaled(apply(fft, x, axes=(along - 1, -1), rank=rank, transposed=inverse), scale)


def _real_along(name: str, a: Any, n: int | None, axis: int, norm: Norm) -> Any:
    """Return the parts of a transform of real values."""
    if is_complex(a):
        raise at_users_line(TraceError, f"{name} takes real values", "write np.fft.fft(z)")
    a = as_array(a)
    along = normalized_axis(name, axis, shape_of(a))
    n = _length(name, n, shape_of(a)[along])
    x, rank = _fitted(a, n, along), len(shape_of(a))
    spectrum = apply(rfft, x, axes=(along,), rank=rank, transposed=False)
    return _scaled(spectrum, _scale(name, norm, n))


def _inverse_along(name: str, parts: Any, n: int | None, axis: int, norm: Norm) -> Any:
    """Return the real values of an inverse transform, given the parts of half a spectrum."""
    rank = len(shape_of(parts))
    along = normalized_axis(name, axis, shape_of(parts)[:-1])
    n = _length(name, n, 2 * (shape_of(parts)[along - 1] - 1))
    x = _fitted(parts, n // 2 + 1, along - 1)
    signal = apply(irfft, x, axes=(along - 1, -1), rank=rank, size=n, transposed=False)
    return _scaled(signal, _scale(name, INVERSE.get(norm, norm), n) * n)


def _fft(a: Any, n: int | None = None, axis: int = -1, norm: Norm = None) -> ComplexArray:
    return _split(_along("fft", _packed(a), n, axis, norm))


def _ifft(a: Any, n: int | None = None, axis: int = -1, norm: Norm = None) -> ComplexArray:
    return _split(_along("ifft", _packed(a), n, axis, norm))


def _rfft(a: Any, n: int | None = None, axis: int = -1, norm: Norm = None) -> ComplexArray:
    return _split(_real_along("rfft", a, n, axis, norm))


def _irfft(a: Any, n: int | None = None, axis: int = -1, norm: Norm = None) -> Any:
    return _inverse_along("irfft", _packed(a), n, axis, norm)


def _hfft(a: Any, n: int | None = None, axis: int = -1, norm: Norm = None) -> Any:
    """Return the real spectrum of a Hermitian array that is given by its half."""
    a = as_array(a)
    return _irfft(a.conj(), n, axis, INVERSE.get(norm, norm))


def _ihfft(a: Any, n: int | None = None, axis: int = -1, norm: Norm = None) -> ComplexArray:
    return _rfft(a, n, axis, INVERSE.get(norm, norm)).conj()


# --- Fourier transforms along several axes -------------------------------------------------------

Sizes = Sequence[int] | None


def _sizes_and_axes(
    name: str, a: Any, s: Sizes, axes: Sizes, least: int = 0, doubled: bool = False
) -> list[tuple[int, int]]:
    """Return the number of points and the axis of each transform; the last may double its own."""
    shape = shape_of(a)
    if axes is None:
        count = len(shape) if s is None else len(as_integers(name, "s", s))
        along: tuple[int, ...] = tuple(range(-count, 0))
    else:
        along = as_integers(name, "axes", axes)
    sizes = [-1] * len(along) if s is None else list(as_integers(name, "s", s))
    if len(sizes) != len(along) or len(along) < least:
        raise mismatch(f"{name} needs as many sizes as axes, not {s} and {axes}")
    lengths = [shape[normalized_axis(name, axis, shape)] for axis in along]
    sizes = [old if new == -1 else new for new, old in zip(sizes, lengths, strict=True)]
    if doubled and s is None:
        sizes[-1] = 2 * (lengths[-1] - 1)
    return list(zip(sizes, along, strict=True))


def _several(name: str, axes_of: Sizes) -> Callable[..., Any]:
    """Return a transform along several axes, the last one first, as in NumPy."""

    def computed(a: Any, s: Sizes = None, axes: Sizes = axes_of, norm: Norm = None) -> Any:
        pairs = _sizes_and_axes(name, a, s, axes)
        if not pairs:
            return a
        parts = _packed(a)
        for n, axis in reversed(pairs):
            parts = _along(name, parts, n, axis, norm)
        return _split(parts)

    return computed


def _real_forward(name: str, axes_of: Sizes) -> Callable[..., Any]:
    """Return a transform of real values, real along the last axis and complex along the others."""

    def computed(a: Any, s: Sizes = None, axes: Sizes = axes_of, norm: Norm = None) -> Any:
        *rest, (n, axis) = _sizes_and_axes(name, a, s, axes, least=1)
        parts = _real_along("rfft", a, n, axis, norm)
        for n, axis in reversed(rest):
            parts = _along("fft", parts, n, axis, norm)
        return _split(parts)

    return computed


def _real_inverse(name: str, axes_of: Sizes) -> Callable[..., Any]:
    """Return the inverse of such a transform."""

    def computed(a: Any, s: Sizes = None, axes: Sizes = axes_of, norm: Norm = None) -> Any:
        *rest, (n, axis) = _sizes_and_axes(name, a, s, axes, least=1, doubled=True)
        parts = _packed(a)
        for size, other in rest:
            parts = _along("ifft", parts, size, other, norm)
        return _inverse_along("irfft", parts, n, axis, norm)

    return computed


# --- orders of frequencies -----------------------------------------------------------------------


def _shifted(name: str, half: Callable[[int], int]) -> Callable[..., Any]:
    def shift(x: Any, axes: int | Sequence[int] | None = None) -> Any:
        shape = shape_of(x)
        along = tuple(range(len(shape))) if axes is None else as_integers(name, "axes", axes)
        if not along:
            raise mismatch(f"{name} needs an axis")
        steps = tuple(half(shape[normalized_axis(name, axis, shape)]) for axis in along)
        return layout.FUNCTIONS["roll"](x, steps, along)

    return shift


_LAST = (-2, -1)
FFT: Mapping[Callable[..., Any], Callable[..., Any]] = {
    np.fft.fft: _fft,
    np.fft.ifft: _ifft,
    np.fft.rfft: _rfft,
    np.fft.irfft: _irfft,
    np.fft.hfft: _hfft,
    np.fft.ihfft: _ihfft,
    np.fft.fft2: _several("fft2", _LAST),
    np.fft.ifft2: _several("ifft2", _LAST),
    np.fft.fftn: _several("fftn", None),
    np.fft.ifftn: _several("ifftn", None),
    np.fft.rfft2: _real_forward("rfft2", _LAST),
    np.fft.rfftn: _real_forward("rfftn", None),
    np.fft.irfft2: _real_inverse("irfft2", _LAST),
    np.fft.irfftn: _real_inverse("irfftn", None),
    np.fft.fftshift: _shifted("fftshift", lambda size: size // 2),
    np.fft.ifftshift: _shifted("ifftshift", lambda size: -(size // 2)),
}
"""The counterparts by NumPy's function."""
