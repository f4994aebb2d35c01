"""Results at points as rows of one array."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from difflab.execute import Compiled

__all__ = ["result_rows", "result_shape"]


def result_shape(compiled: Compiled) -> tuple[int, ...]:
    """Return the shape of the result at a point: several outputs are flattened side by side.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x*y")
    >>> result_shape(dl.compile(dl.hessian(f))), result_shape(dl.compile(dl.value_and_gradient(f)))
    ((2, 2), (3,))
    """
    shapes = compiled.function.output_shapes
    return shapes[0] if len(shapes) == 1 else (compiled.function.m,)


def result_rows(compiled: Compiled, points: NDArray[np.float64], whole: int) -> NDArray[np.float64]:
    """Return the flattened results ``(k, m)`` at some of `whole` points; True is 1.0."""
    shapes = compiled.function.output_shapes
    found = [
        np.asarray(result, np.float64).reshape(len(points), math.prod(shape))
        for result, shape in zip(compiled.part(points, whole), shapes, strict=True)
    ]
    return found[0] if len(found) == 1 else np.concatenate(found, axis=1)
