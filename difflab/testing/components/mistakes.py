"""Transformations of a correct gradient that reproduce common mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy import float64
from numpy.typing import NDArray

Array = NDArray[float64]

COARSE = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-23}
"""Spacing at 1 of the dtypes in which a gradient of float64 may have been computed."""
ROUNDINGS = 4.0
"""Most spacings by which a gradient that was computed in a coarser dtype errs."""


def coarse_dtype(yours: Array) -> str:
    """Return the coarsest dtype that represents a gradient; empty if only float64 does.

    Numbers of few bits, such as small integers, say nothing.

    Examples
    --------
    >>> coarse_dtype(np.array([0.1, 0.2])), coarse_dtype(np.array([0.5, 3.0]))
    ('', '')
    >>> coarse_dtype(np.array([0.1, 0.2], dtype=np.float32).astype(float))
    'float32'
    """
    with np.errstate(all="ignore"):
        for name, eps in COARSE.items():
            # Fewer than half of the bits, or than 16 in all, may be chance.
            bits = -np.log2(eps)
            scaled = np.frexp(yours)[0] * 2.0 ** (bits // 2)
            chance = yours.size * bits < 16 or bool((scaled == np.round(scaled)).all())
            if np.array_equal(_shortened(yours, name), yours):
                return "" if chance else name
    return ""


def _shortened(yours: Array, name: str) -> Array:
    """Return a gradient with the bits of a coarser dtype; NumPy itself has no bfloat16."""
    if name != "bfloat16":
        return yours.astype(name).astype(float64)
    upper: Array = (yours.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)
    return upper.astype(float64)


def precision_text(dtype: str, name: str = "yours") -> str:
    """Return in words that a gradient has the precision of a coarser dtype.

    Examples
    --------
    >>> precision_text("float32")
    'yours has the precision of float32: compute it in float64'
    """
    where = "" if name == "yours" else f"in {name}, "
    return f"{where}yours has the precision of {dtype}: compute it in float64"


def guesses(yours: Array, shape: tuple[int, ...], *, complex_: bool) -> Iterator[tuple[str, Array]]:
    """Yield the correct gradients that each mistake would turn into this one, with its name.

    Parameters
    ----------
    yours : ndarray (size,)
        The gradient under test, flattened; with real and imaginary parts if complex.
    shape : tuple of int
        The shape of the array.
    complex_ : bool
        Whether the array is complex.

    Examples
    --------
    >>> [text for text, right in guesses(np.arange(4.0), (2, 2), complex_=False)][:2]
    ['a sign error: yours is minus the numeric value', 'transposed: axes 0 and 1 are exchanged']
    """
    yield "a sign error: yours is minus the numeric value", -yours
    if complex_:
        conjugate = yours.copy()
        conjugate[1::2] *= -1.0
        yield "the other convention of complex gradients: yours is the conjugate", conjugate
        return
    array = yours.reshape(shape)
    if len(shape) == 2 and min(shape) > 1:
        text = "transposed: axes 0 and 1 are exchanged"
        yield text, array.T.ravel()
        if shape[0] != shape[1]:  # transposed, and then reshaped
            yield text, array.reshape(shape[::-1]).T.ravel()
    for axis, size in enumerate(shape):
        if size > 2:
            where = f" along axis {axis}" if len(shape) > 1 else ""
            for shift in (1, -1):
                moved = np.roll(array, shift, axis).ravel()
                yield f"off by one index{where}: yours is shifted by {-shift:+d}", moved
            yield f"reversed{where}", np.flip(array, axis).ravel()


def factor_text(ratio: float, sizes: dict[str, int]) -> str:
    """Return a factor in words: a fraction, or the number of elements that a mean divides by.

    Examples
    --------
    >>> factor_text(0.5, {}), factor_text(32.0, {"the number of elements of x": 32})
    ('1/2', '32, the number of elements of x')
    """
    text = simple_factor(ratio) or f"{ratio:.6g}"
    for name, size in sizes.items():
        if size > 2 and abs(ratio / size - 1) < 1e-6:
            return f"{size}, {name}"
        if size > 2 and abs(ratio * size - 1) < 1e-6:
            return f"1/{size}, 1 over {name}"
    return text


def simple_factor(ratio: float) -> str:
    """Return a factor as a fraction of small whole numbers; empty if it is none.

    Examples
    --------
    >>> simple_factor(0.125), simple_factor(-2.0000000001), simple_factor(1.001)
    ('1/8', '-2', '')
    """
    near = Fraction(ratio).limit_denominator(16)
    return str(near) if near and abs(ratio / near - 1) < 1e-6 else ""
