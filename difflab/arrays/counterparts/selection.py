"""NumPy's functions that select, clip, round and compare, and its elementwise functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from difflab import arrays
from difflab import primitives as rows
from difflab.arrays import shaped
from difflab.arrays.counterparts.calculus import vecdot
from difflab.arrays.given import as_array, as_integer, mismatch, shape_of
from difflab.core.ownership import unchanged
from difflab.core.place import at_users_line
from difflab.errors import TraceError

STATIC = (
    "its shape would depend on the values: select by np.where(condition, a, b), or compute"
    " the indices in advance from NumPy arrays and write x[indices]"
)
"""Hint for functions whose result has a shape that depends on the values."""


def clipped(
    a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Any:
    """Return the values clipped to two bounds, either of which may be None."""
    low = a_min if min is None else min
    high = a_max if max is None else max
    if low is None:
        return unchanged(a) if high is None else rows.minimum(high, a)
    return rows.maximum(low, a) if high is None else rows.clip(a, low, high)


def rounded(a: Any, decimals: int = 0) -> Any:
    """Round to `decimals` decimal places, halves to even."""
    places = as_integer("round", "decimals", decimals)
    if places == 0:
        return rows.round_(a)
    scale = 10.0 ** abs(places)
    return rows.round_(a * scale) / scale if places > 0 else rows.round_(a / scale) * scale


def _truncated(x: Any) -> Any:
    return rows.where(rows.less(x, 0), rows.ceil(x), rows.floor(x))


def taken(a: Any, indices: Any, axis: int | None = None) -> Any:
    """Return entries at static indices, along an axis or of the flattened array."""
    flat = arrays.reshape(a, -1) if axis is None else a
    return arrays.take(flat, indices, axis or 0)


def _select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0.0) -> Any:
    if len(condlist) != len(choicelist) or not condlist:
        raise mismatch("select takes as many choices as conditions, at least one")
    selected = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        selected = rows.where(condition, choice, selected)
    return selected


def _piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """Return the last function whose condition holds; a function more is for the other elements.

    Each function is computed for all elements, which is the same for elementwise functions.
    """
    x = as_array(x)
    conditions = _conditions(condlist, x)
    others, functions = 0.0, list(funclist)
    if len(functions) == len(conditions) + 1:
        others = functions.pop()
    elif len(functions) != len(conditions):
        raise mismatch(
            f"piecewise takes a function per condition, and at most one more: there are"
            f" {len(conditions)} conditions and {len(functions)} functions"
        )
    pieces = x.filled(0.0) + _piece(others, x, args, kw)
    for condition, function in zip(conditions, functions, strict=True):
        pieces = rows.where(condition, _piece(function, x, args, kw), pieces)
    return pieces


def _conditions(condlist: Any, x: Any) -> list[Any]:
    """Return the conditions of a sequence of them; a single one may be given without brackets."""
    if isinstance(condlist, list | tuple):
        several = not x.shape or bool(shape_of(condlist[0]))
    else:
        several = len(shape_of(condlist)) > len(x.shape)
    return list(condlist) if several else [condlist]


def _piece(function: Any, x: Any, args: tuple[Any, ...], kw: Mapping[str, Any]) -> Any:
    return function(x, *args, **kw) if callable(function) else function


def _nan_to_num(
    x: Any,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Any:
    largest = float.fromhex("0x1.fffffffffffffp+1023")
    x = as_array(x)
    high = rows.where(rows.equal(x, math.inf), largest if posinf is None else posinf, x)
    low = rows.where(rows.equal(x, -math.inf), -largest if neginf is None else neginf, high)
    finite = rows.where(rows.not_equal(x, x), nan, low)
    if copy:
        return finite
    x[...] = finite
    return x


def _isclose(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    a, b = as_array(a), as_array(b)
    near = rows.absolute(a - b) <= atol + rtol * rows.absolute(b)
    close = rows.logical_or(rows.equal(a, b), rows.logical_and(near, rows.absolute(b) < math.inf))
    if not equal_nan:
        return close
    return rows.logical_or(close, rows.logical_and(rows.not_equal(a, a), rows.not_equal(b, b)))


def _allclose(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    return _decided(shaped.all(_isclose(a, b, rtol, atol, equal_nan)))


def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    a, b = as_array(a1), as_array(a2)
    if shape_of(a) != shape_of(b):
        return False
    same = rows.equal(a, b)
    both = rows.logical_and(rows.not_equal(a, a), rows.not_equal(b, b))
    return _decided(shaped.all(rows.logical_or(same, both) if equal_nan else same))


def _decided(truth: Any) -> Any:
    """Return a bool, as NumPy does, unless the value is not known while code is traced."""
    known = getattr(truth, "__difflab_value__", lambda: truth)()
    return truth if known is None else bool(known)


def known(name: str, value: Any) -> Any:
    """Return the elements on which the shape of a result depends.

    Raises
    ------
    TraceError
        The value is traced, and not for one point.
    """
    elements = getattr(value, "__difflab_value__", lambda: as_array(value))()
    if elements is None:
        raise at_users_line(
            TraceError, f"numpy.{name} needs the elements, and a traced value has none yet", STATIC
        )
    return np.asarray(elements)


def nonzero(a: Any) -> tuple[Any, ...]:
    """Return the indices of the elements that are not zero."""
    return np.nonzero(known("nonzero", a))


def _extract(condition: Any, arr: Any) -> Any:
    chosen = np.flatnonzero(known("extract", condition))
    return arrays.take(arrays.reshape(arr, -1), chosen)


def _compress(condition: Any, a: Any, axis: int | None = None) -> Any:
    return taken(a, np.flatnonzero(known("compress", condition)), axis)


def _angle(z: Any, deg: bool = False) -> Any:
    """Return the angle of complex values; of real ones 0 or π."""
    angle = rows.atan2(z.imag, z.real)
    return angle * (180 / math.pi) if deg else angle


def _full_like(a: Any, fill_value: Any) -> Any:
    if isinstance(fill_value, int | float):
        return a.filled(float(fill_value))
    return unchanged(arrays.broadcast_to(fill_value, a.shape))


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "all": shaped.all,
    "allclose": _allclose,
    "angle": _angle,
    "any": shaped.any,
    "argmin": lambda a, axis=None: arrays.argmax(-as_array(a), axis),
    "argwhere": lambda a: np.argwhere(known("argwhere", a)),
    "around": rounded,
    "array_equal": _array_equal,
    "clip": clipped,
    "compress": _compress,
    "count_nonzero": shaped.count,
    "extract": _extract,
    "fix": _truncated,
    "flatnonzero": lambda a: np.flatnonzero(known("flatnonzero", a)),
    "full_like": _full_like,
    "i0": lambda x: rows.besseli(0, x),
    "imag": lambda val: val.imag,
    "isclose": _isclose,
    "isneginf": lambda x: rows.equal(x, -math.inf),
    "isposinf": lambda x: rows.equal(x, math.inf),
    "nan_to_num": _nan_to_num,
    "nonzero": nonzero,
    "piecewise": _piecewise,
    "real": lambda val: val.real,
    "round": rounded,
    "select": _select,
    "sinc": lambda x: rows.cos_remainder(1, 0, rows.multiply(x, math.pi)),
    "take": taken,
}


# --- elementwise ------------------------------------------------------------------------------


def _signbit(x: Any) -> Any:
    """Whether the sign is negative, that of -0.0 too: the angle of (-1, x) has it."""
    return rows.less(rows.atan2(x, -1.0), 0)


def _ignoring_nan(choose: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: rows.where(
        rows.not_equal(a, a), b, rows.where(rows.not_equal(b, b), a, choose(a, b))
    )


def _fmod(a: Any, b: Any) -> Any:
    """The remainder with the sign of the dividend."""
    rest = rows.mod(rows.absolute(a), rows.absolute(b))
    return rows.where(_signbit(a), -rest, rest)


def _heaviside(x: Any, h: Any) -> Any:
    step = rows.where(
        rows.less(x, 0), 0.0, rows.where(rows.not_equal(x, x), rows.stop_gradient(x), 1.0)
    )
    return rows.where(rows.equal(x, 0), h, step)


def _parts(x: Any) -> tuple[Any, Any]:
    whole = _truncated(x)
    return rows.where(rows.equal(rows.absolute(x), math.inf), 0.0 * whole, x - whole), whole


_LOG_2 = math.log(2.0)


def _logaddexp2(a: Any, b: Any) -> Any:
    return rows.logaddexp(rows.multiply(a, _LOG_2), rows.multiply(b, _LOG_2)) / _LOG_2


UFUNCS: Mapping[str, Callable[..., Any]] = {
    "bitwise_and": shaped.bitwise_and,
    "bitwise_or": shaped.bitwise_or,
    "bitwise_xor": shaped.bitwise_xor,
    "conjugate": lambda x: unchanged(x.conj()),
    "copysign": lambda a, b: rows.where(_signbit(b), -rows.absolute(a), rows.absolute(a)),
    "deg2rad": lambda x: x * (math.pi / 180),
    "degrees": lambda x: x * (180 / math.pi),
    "divmod": lambda a, b: (rows.floor(a / b), a % b),
    "floor_divide": lambda a, b: rows.floor(a / b),
    "fmax": _ignoring_nan(rows.maximum),
    "fmin": _ignoring_nan(rows.minimum),
    "fmod": _fmod,
    "heaviside": _heaviside,
    "invert": shaped.invert,
    "isfinite": lambda x: rows.absolute(x) < math.inf,
    "isinf": lambda x: rows.absolute(x) == math.inf,
    "isnan": lambda x: x != x,
    "ldexp": lambda x, n: rows.multiply(x, 2.0 ** as_array(n)),
    "logaddexp": rows.logaddexp,
    "logaddexp2": _logaddexp2,
    "logical_xor": shaped.logical_xor,
    "matmul": arrays.matmul,
    "modf": _parts,
    "positive": unchanged,
    "rad2deg": lambda x: x * (180 / math.pi),
    "radians": lambda x: x * (math.pi / 180),
    "reciprocal": lambda x: rows.divide(1.0, x),
    "signbit": _signbit,
    "square": lambda x: x * x,
    "trunc": _truncated,
    "vecdot": vecdot,
}
"""NumPy's elementwise functions that are not rows of the table."""
