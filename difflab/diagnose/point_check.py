"""A point of a function: chosen or checked, with a finite real value for every input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.conversions import host_numbers
from difflab.diagnose.domain import check_domain
from difflab.diagnose.points import choose_point
from difflab.errors import PointError
from difflab.graph.evaluate import Interpreter
from difflab.graph.function import Function
from difflab.graph.names import shortened

__all__ = ["checked_point", "packed"]

PointValue = float | NDArray[float64]


def checked_point(
    function: Function,
    at: Mapping[str, Any] | None,
    seed: int = 0,
    *,
    inside: bool = True,
    on: Interpreter | None = None,
) -> dict[str, PointValue]:
    """Return the value of every input, in the inputs' order.

    Parameters
    ----------
    function : Function
        The function to evaluate.
    at : mapping or None
        A number, a nested list or an array for every input. If None, a point inside the
        function's domain is chosen.
    seed : int
        The seed of that choice.
    inside : bool
        Whether the function must be defined at the point.
    on : Interpreter, optional
        What evaluates the function; NumPy's kernels by default.

    Raises
    ------
    PointError
        A value is missing, unknown, not real, not finite or of the wrong shape.
    DomainError
        The function is undefined at the point; the message names the subexpression.

    Examples
    --------
    >>> import difflab as dl
    >>> checked_point(dl.parse("x1 + x2"), {"x2": 5, "x1": 2})
    {'x1': 2.0, 'x2': 5.0}
    """
    if at is None:
        at = choose_point(function, seed)
    if not isinstance(at, Mapping):
        raise PointError(
            f"the point must be a mapping of input names to values, not {type(at).__name__}",
            hint=f"give a value for each of {shortened(function.inputs)}",
        )
    values = map(_real, function.inputs, function.input_shapes, function.arranged((), at))
    point = dict(zip(function.inputs, values, strict=True))
    if inside:
        check_domain(function, list(point.values()), on)
    return point


def packed(function: Function, point: Mapping[str, PointValue]) -> NDArray[float64]:
    """Return the flattened inputs, ``(n,)``."""
    parts = [np.ravel(np.asarray(point[name], dtype=float64)) for name in function.inputs]
    return np.concatenate(parts) if parts else np.zeros(0)


def _real(name: str, shape: tuple[int, ...], value: Any) -> PointValue:
    """Return a value of one point: real, finite and without batch axes."""
    array = host_numbers(value, f"the value of '{name}'", PointError)
    if array.dtype.kind not in "fiub":
        raise PointError(f"the value of '{name}' is not a real number")
    if array.shape != shape:
        raise PointError(
            f"the input '{name}' has the shape {shape}, but its value has the shape {array.shape}",
            hint="give one point, not a batch",
        )
    if not np.isfinite(array).all():
        raise PointError(f"the value of '{name}' is not finite")
    # A copy: the caller may change its own array later.
    return np.array(array, dtype=float64) if shape else float(array)
