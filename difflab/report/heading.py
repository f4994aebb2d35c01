"""A function and a point as headings: in full, unless they are long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from difflab.core.quantities import exact, shape_text, significant
from difflab.core.table import Column
from difflab.graph.function import Function
from difflab.report.style import clean

READABLE = 400
"""Most nodes of a graph whose text is shown."""


def heading(function: Function) -> str:
    """Return the program that was parsed, else the function as text, or its inputs and outputs.

    Examples
    --------
    >>> import difflab as dl
    >>> heading(dl.parse("x^2 # a square")), heading(dl.gradient(dl.parse("x^2")))
    ('x^2 # a square', 'gradient = [2*x]')
    """
    if function.text is not None:
        return function.text
    if len(function.graph) > READABLE:
        return repr(function)
    from difflab.language.printers import text

    return text(function, whole=True, calls=True)


_SHOWN = 6


def point_text(point: Mapping[str, Any]) -> str:
    """Return the values of the first inputs and of the last, in one line."""
    names = list(point)
    texts = [f"{clean(name)} = {_values(point[name])}" for name in names[:_SHOWN]]
    if len(names) > _SHOWN:
        last = names[-1]
        texts[-1] = f"…, {clean(last)} = {_values(point[last])}  ({len(names)} inputs)"
    return ", ".join(texts)


def _values(value: Any) -> str:
    """Return a scalar or a few elements in full, an array as its first entries and its shape."""
    array = np.asarray(value)
    if array.ndim == 0:
        return exact(array.item())
    if array.size <= _SHOWN:
        return f"[{', '.join(map(_values, array))}]"
    first = array.reshape(-1, array.shape[-1])[0]
    shown = ", ".join(map(significant, first[:3].tolist()))
    return f"{'[' * array.ndim}{shown}, …{']' * array.ndim} of shape {shape_text(array.shape)}"


def method_column(rows: Sequence[Any]) -> Column:
    """Return the column of the methods, wide enough for a method and its dtype."""
    return Column("method", wrap=True, widest=15 if {r.dtype for r in rows} <= {"float64"} else 24)
