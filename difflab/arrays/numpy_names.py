"""Counterparts of NumPy's functions, for values that override them (NEP 13 and NEP 18)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from difflab import arrays
from difflab.arrays import in_place, numpy_linalg
from difflab.arrays.counterparts import (
    calculus,
    joining,
    layout,
    ordering,
    selection,
    special,
    statistics,
)
from difflab.arrays.counterparts.selection import STATIC, UFUNCS, nonzero
from difflab.core.ownership import unchanged
from difflab.core.primitive import Primitive
from difflab.primitives import TABLE

SAME = (
    *("argmax", "broadcast_to", "einsum", "max", "mean", "min", "outer", "prod", "reshape"),
    *("squeeze", "stack", "sum", "transpose"),
)


def _like(value: float) -> Callable[..., Any]:
    return lambda a: a.filled(value)


def _dtype_of(value: Any) -> Any:
    """Return the dtype of a carrier; other values are returned unchanged."""
    return value.dtype if hasattr(type(value), "__difflab_apply__") else value


FAMILIES = (calculus, in_place, joining, layout, ordering, selection, statistics)

# A call with unsupported NumPy parameters fails to bind.
ARRAY_FUNCTIONS: Mapping[Callable[..., Any], Callable[..., Any]] = {
    **{getattr(np, name): getattr(arrays, name) for name in SAME},
    **numpy_linalg.FFT,
    **numpy_linalg.LINALG,
    **{getattr(np, name): own for family in FAMILIES for name, own in family.FUNCTIONS.items()},
    np.amax: arrays.max,
    np.amin: arrays.min,
    np.copy: unchanged,
    np.empty_like: _like(0.0),
    np.ndim: lambda a: a.ndim,
    np.ones_like: _like(1.0),
    np.result_type: lambda *args: np.result_type(*map(_dtype_of, args)),
    np.shape: lambda a: a.shape,
    np.size: lambda a: a.size,
    np.zeros_like: _like(0.0),
}


def of_ufunc(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """Return the counterpart of a universal function of NumPy or SciPy, or None.

    Examples
    --------
    >>> of_ufunc(np.sin)
    <primitive sin>
    """
    row = rows_by_numpy_name().get(ufunc.__name__)
    if row is not None and row.arity == ufunc.nin:
        return row
    return UFUNCS.get(ufunc.__name__) or special.UFUNCS.get(ufunc.__name__)


def of_function(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Callable[..., Any] | None:
    """Return the counterpart of a NumPy array function, or None if it rejects these arguments.

    Examples
    --------
    >>> of_function(np.sum, (1.0,), {"out": 0}) is None
    True
    """
    compute = ARRAY_FUNCTIONS.get(function)
    if compute is None:
        row = rows_by_numpy_name().get(function.__name__)
        if row is not None and not kwargs and len(args) == row.arity:
            return row
        return nonzero if function is np.where and len(args) == 1 and not kwargs else None
    if len(args) == 1 and not kwargs:
        return compute
    try:
        inspect.signature(compute).bind(*args, **kwargs)
    except TypeError:
        return None
    return compute


WRITTEN = {
    "choose": "np.where(condition, a, b)",
    "apply_along_axis": "dl.vmap(function)(x), or a loop over the rows",
    "partition": "np.partition(x, kth): the method would sort in place",
    "lexsort": "np.argsort of one combined key",
    "tolist": "list(x), or tensor.detach().numpy().tolist() for the elements of a tensor",
}
"""NumPy functions without a counterpart, written with functions that have one."""

DEPENDENT = frozenset(
    {"argwhere", "compress", "extract", "flatnonzero", "nonzero", "unique", "where"}
)
"""Functions whose result has a shape that depends on the values."""


def full_name(function: Callable[..., Any]) -> str:
    """Return the name by which a function of NumPy's, or a universal one of SciPy's, is called.

    Examples
    --------
    >>> full_name(np.linalg.cond)
    'numpy.linalg.cond'
    """
    name = function.__name__
    module = getattr(function, "__module__", None) or (
        "numpy" if hasattr(np, name) else "scipy.special"
    )
    return f"{module}.{name}"


def alternative_to(name: str) -> str:
    """Return the replacement of a function of NumPy's or SciPy's that cannot be used.

    Examples
    --------
    >>> alternative_to("logsumexp")
    'write difflab.arrays.logsumexp'
    """
    if name in WRITTEN:
        return f"write {WRITTEN[name]}"
    if name in DEPENDENT:
        return STATIC
    known = {function.__name__ for function in ARRAY_FUNCTIONS}
    known |= rows_by_numpy_name().keys() | UFUNCS.keys()
    if name in known:
        return f"numpy.{name} is supported as a function, without out=, where=, dtype= and initial="
    for module, names in (("arrays", arrays.__all__), ("primitives", TABLE)):
        if name in names:
            return f"write difflab.{module}.{name}"
    return (
        "write it with functions of difflab.arrays and rows of the table of primitives, or state"
        " its derivative in a dl.CustomFunction"
    )


@cache
def rows_by_numpy_name() -> Mapping[str, Primitive]:
    """Return the rows by NumPy's function names."""
    synonyms = {
        "abs": TABLE["absolute"],
        "digamma": TABLE["digamma"],
        "fabs": TABLE["absolute"],
        "float_power": TABLE["power"],
        "mod": TABLE["mod"],
        "true_divide": TABLE["divide"],
    }
    return {row.ufunc: row for row in TABLE.values() if row.ufunc} | synonyms
