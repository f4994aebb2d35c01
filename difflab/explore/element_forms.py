"""Operations on arrays, element by element: reductions and Fourier transforms, and all others.

The values are NumPy object arrays of nodes of a graph.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from difflab import primitives as rows
from difflab.core.primitive import Primitive
from difflab.explore.element_matrices import MATRICES
from difflab.explore.element_orders import ORDERS
from difflab.graph.node import Node
from difflab.primitives.fourier_sums import complex_form, inverse_form, real_form

__all__ = ["FORMS"]

Array = Any
Axes = tuple[int, ...]


# --- reductions -------------------------------------------------------------------------------


def _by_lines(compute: Callable[[list[Any]], Any]) -> Callable[..., Array]:
    """Return a reduction along axes, from a function of the elements of one line."""

    def reduced(x: Array, *, axes: Axes, rank: int) -> Array:
        moved = np.moveaxis(x, axes, range(-len(axes), 0))
        kept = moved.shape[: x.ndim - len(axes)]
        found = np.empty(kept, dtype=object)
        for place in np.ndindex(kept):
            found[place] = compute(moved[place].ravel().tolist())
        return found

    return reduced


def _folded(row: Primitive) -> Callable[..., Array]:
    """Return the reduction by an operation of two numbers, from the first element to the last."""
    return _by_lines(partial(reduce, row))


def _norm(elements: list[Any]) -> Any:
    """‖x‖ by hypot, whose squares do not overflow and whose derivative at the origin is 0."""
    first, *others = elements
    return reduce(rows.hypot, others, first) if others else rows.absolute(first)


def _exponentials(x: Array, axes: Axes, rank: int) -> tuple[Array, Array, Array]:
    """Return x − m with the maximum m along the axes, its exponentials, and their sums.

    The results do not depend on m, so that no derivative is propagated through it.
    """
    top = np.expand_dims(FORMS[rows.max_](x, axes=axes, rank=rank), axes)
    shifted = x - np.frompyfunc(rows.stop_gradient, 1, 1)(top)
    parts = np.frompyfunc(rows.exp, 1, 1)(shifted)
    return shifted, parts, np.sum(parts, axis=axes, keepdims=True)


def _softmax(x: Array, *, axes: Axes, rank: int) -> Array:
    _, parts, total = _exponentials(x, axes, rank)
    return parts / total


def _log_softmax(x: Array, *, axes: Axes, rank: int) -> Array:
    shifted, _, total = _exponentials(x, axes, rank)
    return shifted - np.frompyfunc(rows.log, 1, 1)(total)


# --- Fourier transforms -----------------------------------------------------------------------


def _transform(form: Callable[..., Array]) -> Callable[..., Array]:
    """Return a transform without the products by 0 and 1 of its angles."""

    def transformed(x: Array, **params: Any) -> Array:
        builders = [element.builder for element in x.flat if isinstance(element, Node)]
        for builder in builders[:1]:
            builder.simplify = True
        try:
            return form(_angle, x, **params)
        finally:
            for builder in builders[:1]:
                builder.simplify = False

    return transformed


def _angle(k: int, n: int) -> tuple[float, float]:
    """Return cos 2πk/n and sin 2πk/n, exact at quarters of a turn."""
    import mpmath

    with mpmath.workdps(30):
        turn = mpmath.mpf(2 * k) / n
        return float(mpmath.cospi(turn)), float(mpmath.sinpi(turn))


# --- the forms --------------------------------------------------------------------------------


FORMS: dict[Primitive, Callable[..., Array]] = {
    rows.max_: _folded(rows.maximum),
    rows.min_: _folded(rows.minimum),
    rows.norm: _by_lines(_norm),
    rows.logsumexp: _folded(rows.logaddexp),
    rows.softmax: _softmax,
    rows.log_softmax: _log_softmax,
    rows.fft: _transform(complex_form),
    rows.rfft: _transform(real_form),
    rows.irfft: _transform(inverse_form),
    **ORDERS,
    **MATRICES,
}
"""The forms, as functions of arrays with the parameters of the rows."""
