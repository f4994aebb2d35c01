"""The point that a user gives: every input once, as finite real numbers of its shape."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.diagnose.domain import check_domain
from difflab.errors import PointError
from difflab.graph.function import Function
from difflab.graph.names import missing_values, shortened

__all__ = ["checked_point", "packed"]

Value = float | NDArray[float64]


def checked_point(function: Function, at: Mapping[str, Any]) -> dict[str, Value]:
    """Return the value of every input, in the inputs' order.

    Parameters
    ----------
    function : Function
        What the point is for.
    at : mapping
        A number, a nested list or an array for every input.

    Raises
    ------
    PointError
        An input has no value, a value no input; or a value is not real and finite, or has
        another shape than its input.
    DomainError
        The function is undefined at the point; the message names the subexpression.

    Examples
    --------
    >>> import difflab as dl
    >>> checked_point(dl.parse("x1 + x2"), {"x2": 5, "x1": 2})
    {'x1': 2.0, 'x2': 5.0}
    """
    if not isinstance(at, Mapping):
        raise PointError(
            f"the point is a {type(at).__name__}, and not values by name",
            hint=f"give a value for each of {shortened(function.inputs)}",
        )
    _refuse_unknown(function, at)
    _refuse_missing(function, at)
    shapes = zip(function.inputs, function.input_shapes, strict=True)
    point = {name: _value(name, shape, at[name]) for name, shape in shapes}
    check_domain(function, list(point.values()))
    return point


def packed(function: Function, point: Mapping[str, Value]) -> NDArray[float64]:
    """Return the flattened inputs, ``(n,)``."""
    parts = [np.ravel(np.asarray(point[name], dtype=float64)) for name in function.inputs]
    return np.concatenate(parts) if parts else np.zeros(0)


def _refuse_unknown(function: Function, at: Mapping[str, Any]) -> None:
    inputs = set(function.inputs)
    for name in at:
        if name not in inputs:
            near = get_close_matches(str(name), function.inputs[:1000], 1)
            known = shortened(function.inputs) or "none"
            raise PointError(
                f"a value is given for '{name}', which is not an input of the expression",
                hint=f"did you mean '{near[0]}'?" if near else f"its inputs: {known}",
            )


def _refuse_missing(function: Function, at: Mapping[str, Any]) -> None:
    missing = [name for name in function.inputs if name not in at]
    if missing:
        node = function.input_nodes[function.inputs.index(missing[0])]
        raise PointError(
            missing_values(missing), text=function.graph.text, span=function.graph.span(node)
        )


def _value(name: str, shape: tuple[int, ...], given: Any) -> Value:
    try:
        array = np.asarray(given)
        if array.dtype.kind not in "biuf" and not _is_integer(given):
            raise TypeError
        array = np.array(given, dtype=float64)  # the caller's own may change later
    except OverflowError:
        raise PointError(f"the value of '{name}' is too large for a float64") from None
    except (TypeError, ValueError):
        raise PointError(
            f"the value of '{name}' is not a real number or a regular array of them"
        ) from None
    if array.shape != shape:
        raise PointError(
            f"the input '{name}' {_described(shape)}, but its value {_described(array.shape)}"
        )
    if not np.isfinite(array).all():
        raise PointError(f"the value of '{name}' is not finite")
    return array if shape else float(array)


def _is_integer(given: Any) -> bool:
    """Whether it is a Python integer, which NumPy takes for an object when it is long."""
    return isinstance(given, int)


def _described(shape: tuple[int, ...]) -> str:
    return f"has the shape {list(shape)}" if shape else "is a single number"
