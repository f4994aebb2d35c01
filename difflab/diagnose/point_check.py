"""Validation of a point: a finite real value of the right shape for every input."""

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

PointValue = float | NDArray[float64]


def checked_point(function: Function, at: Mapping[str, Any]) -> dict[str, PointValue]:
    """Return the value of every input, in the inputs' order.

    Parameters
    ----------
    function : Function
        The function to evaluate.
    at : mapping
        A number, a nested list or an array for every input.

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
    if not isinstance(at, Mapping):
        raise PointError(
            f"the point must be a mapping of input names to values, not {type(at).__name__}",
            hint=f"give a value for each of {shortened(function.inputs)}",
        )
    _require_known(function, at)
    _require_complete(function, at)
    shapes = zip(function.inputs, function.input_shapes, strict=True)
    point = {name: _value(name, shape, at[name]) for name, shape in shapes}
    check_domain(function, list(point.values()))
    return point


def packed(function: Function, point: Mapping[str, PointValue]) -> NDArray[float64]:
    """Return the flattened inputs, ``(n,)``."""
    parts = [np.ravel(np.asarray(point[name], dtype=float64)) for name in function.inputs]
    return np.concatenate(parts) if parts else np.zeros(0)


def _require_known(function: Function, at: Mapping[str, Any]) -> None:
    inputs = set(function.inputs)
    for name in at:
        if name not in inputs:
            near = get_close_matches(str(name), function.inputs[:1000], 1)
            known = shortened(function.inputs) or "none"
            raise PointError(
                f"a value is given for '{name}', which is not an input of the expression",
                hint=f"did you mean '{near[0]}'?" if near else f"its inputs: {known}",
            )


def _require_complete(function: Function, at: Mapping[str, Any]) -> None:
    missing = [name for name in function.inputs if name not in at]
    if missing:
        node = function.input_nodes[function.inputs.index(missing[0])]
        raise PointError(
            missing_values(missing), text=function.graph.text, span=function.graph.span(node)
        )


def _value(name: str, shape: tuple[int, ...], value: Any) -> PointValue:
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf" and not _is_integer(value):
            raise TypeError
        array = np.array(value, dtype=float64)  # a copy: the caller may change its own later
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


def _is_integer(value: Any) -> bool:
    """Whether `value` is a Python integer; NumPy converts large ones to object arrays."""
    return isinstance(value, int)


def _described(shape: tuple[int, ...]) -> str:
    return f"has the shape {list(shape)}" if shape else "is a scalar"
