"""JAX's primitives as NumPy functions, which compute on arrays and on traced values.

A rule is called with the operands and the parameters of the primitive. Shapes are explicit in a
jaxpr: operands of an elementwise primitive have one shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from string import ascii_letters
from typing import Any

import numpy as np

from difflab import primitives as rows
from difflab.arrays.reductions import taken_at
from difflab.errors import UnsupportedError
from difflab.graph.node import Node

Rule = Callable[..., Any]


def _of(compute: Rule) -> Rule:
    """Return the rule of a function of the operands alone."""
    return lambda *args, **_: compute(*args)


def _along(compute: Rule) -> Rule:
    """Return the rule of a reduction."""
    return lambda x, axes, **_: compute(x, axis=tuple(axes))


# --- elementwise ------------------------------------------------------------------------------


def _rounded(x: Any, rounding_method: Any) -> Any:
    """Round halves to even, or away from zero: each step of the latter is exact."""
    if int(rounding_method) == 1:
        return np.round(x)
    whole = np.trunc(x)
    return whole + np.trunc(2.0 * (x - whole))


def _even(compute: Rule) -> Rule:
    """Return the rule of the larger or smaller of two: at a tie each has half of the derivative.

    The halves are exact, so the value is that of the row.
    """

    def rule(a: Any, b: Any) -> Any:
        if not (isinstance(a, Node) or isinstance(b, Node)):
            return compute(a, b)
        return 0.5 * compute(a, b) + 0.5 * compute(b, a)

    return rule


def _selected(which: Any, *cases: Any) -> Any:
    """Choose by a truth value, or by a number of the case."""
    if len(cases) == 2:
        return np.where(_truth(which), cases[1], cases[0])
    pairs = reversed(list(enumerate(cases[:-1])))
    return reduce(lambda rest, pair: np.where(which == pair[0], pair[1], rest), pairs, cases[-1])


def _truth(value: Any) -> Any:
    return value if isinstance(value, Node) else np.asarray(value, bool)


def _converted(x: Any, new_dtype: Any, kind: str, **_: Any) -> Any:
    """Convert between truth values, integers and floats, all of 64 bits."""
    to = np.dtype(new_dtype).kind
    if not isinstance(x, Node):
        return x.astype(np.float64 if to == "f" else new_dtype)
    if to == "b":
        return x if kind == "b" else x != 0
    return np.trunc(x) if kind == "f" and to in "iu" else x


def _quotient(a: Any, b: Any, kind: str) -> Any:
    if kind == "f":
        return np.divide(a, b)
    if isinstance(a, Node) or isinstance(b, Node):
        return np.trunc(a / b)
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))


def _of_truths(logical: Rule, bitwise: Rule) -> Rule:
    """Return the rule of an operator of truth values, which is one of bits for integers."""

    def rule(*args: Any, kind: str) -> Any:
        if kind == "b":
            return logical(*args)
        if any(isinstance(arg, Node) for arg in args):
            raise UnsupportedError("difflab has no operations on the bits of integers")
        return bitwise(*args)

    return rule


# --- shapes -----------------------------------------------------------------------------------


def _spread(x: Any, shape: Any, broadcast_dimensions: Any, **_: Any) -> Any:
    sizes = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, x.shape, strict=True):
        sizes[axis] = size
    return np.broadcast_to(np.reshape(x, sizes), shape)


def _cut(x: Any, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    steps = strides or (1,) * len(x.shape)
    return x[tuple(map(slice, start_indices, limit_indices, steps))]


def _reshaped(x: Any, new_sizes: Any, dimensions: Any = None, **_: Any) -> Any:
    return np.reshape(x if dimensions is None else np.transpose(x, dimensions), new_sizes)


def _padded(x: Any, value: Any, padding_config: Any) -> Any:
    """Pad each axis in front, behind and between its elements; negative sizes cut."""
    for axis, sizes in enumerate(padding_config):
        before, behind, between = map(int, sizes)
        if between and x.shape[axis] > 1:
            x = _opened(x, value, axis, between)
        x = _along_axis(x, axis, max(-before, 0), x.shape[axis] - max(-behind, 0))
        parts = [x]
        if before > 0:
            parts.insert(0, _filled(value, x.shape, axis, before))
        if behind > 0:
            parts.append(_filled(value, x.shape, axis, behind))
        x = x if len(parts) == 1 else np.concatenate(parts, axis)
    return x


def _opened(x: Any, value: Any, axis: int, between: int) -> Any:
    """Return an array with padding behind each element of an axis, except the last one."""
    wide = np.reshape(x, (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :]))
    gaps = _filled(value, wide.shape, axis + 1, between)
    shape = (*x.shape[:axis], x.shape[axis] * (between + 1), *x.shape[axis + 1 :])
    whole = np.reshape(np.concatenate([wide, gaps], axis + 1), shape)
    return _along_axis(whole, axis, 0, shape[axis] - between)


def _filled(value: Any, shape: Sequence[int], axis: int, size: int) -> Any:
    return np.broadcast_to(value, (*shape[:axis], size, *shape[axis + 1 :]))


def _along_axis(x: Any, axis: int, start: int, end: int) -> Any:
    whole = (start, end) == (0, x.shape[axis])
    return x if whole else x[(slice(None),) * axis + (slice(start, max(start, end)),)]


def _counted(*_: Any, dtype: Any, shape: Any, dimension: int, **__: Any) -> Any:
    along = [1] * len(shape)
    along[dimension] = -1
    return np.broadcast_to(np.arange(shape[dimension], dtype=dtype).reshape(along), shape)


def _running(compute: Rule) -> Rule:
    """Return the rule of sums or products of the elements so far."""

    def rule(x: Any, axis: int, reverse: bool) -> Any:
        return np.flip(compute(np.flip(x, axis), axis), axis) if reverse else compute(x, axis)

    return rule


def _sorted(*operands: Any, dimension: int, num_keys: int, **_: Any) -> list[Any]:
    """Sort by the first operand; further operands take its order."""
    if num_keys != 1:
        raise UnsupportedError("difflab sorts by one key")
    if not any(isinstance(operand, Node) for operand in operands):
        order = np.argsort(operands[0], dimension, stable=True)
    else:
        order = np.argsort(operands[0], dimension)
    return [np.take_along_axis(operand, order, dimension) for operand in operands]


# --- products and parts at computed positions -------------------------------------------------


def _product(a: Any, b: Any, dimension_numbers: Any, **_: Any) -> Any:
    """Contract axes of two arrays; batch axes come first, then those of `a` and of `b`."""
    (left, right), (left_batch, right_batch) = dimension_numbers
    letters = iter(ascii_letters)
    of_a, of_b = [""] * len(a.shape), [""] * len(b.shape)
    for i, j in [*zip(left_batch, right_batch, strict=True), *zip(left, right, strict=True)]:
        of_a[i] = of_b[j] = next(letters)
    batch = [of_a[i] for i in left_batch]
    free = []
    for own in (of_a, of_b):
        for axis, letter in enumerate(own):
            if not letter:
                own[axis] = next(letters)
                free.append(own[axis])
    return np.einsum(f"{''.join(of_a)},{''.join(of_b)}->{''.join([*batch, *free])}", a, b)


def _part(x: Any, *starts: Any, slice_sizes: Any) -> Any:
    """Cut a part whose position is computed, moved inside of the array where it is not."""
    for axis, (start, size) in enumerate(zip(starts, slice_sizes, strict=True)):
        if size == x.shape[axis]:
            continue
        first = np.clip(start, 0, x.shape[axis] - size)
        if isinstance(first, Node):
            x = taken_at(x, first + np.arange(float(size)), axis)
        else:
            x = _along_axis(x, axis, int(first), int(first) + size)
    return x


def _with_part(x: Any, part: Any, *starts: Any) -> Any:
    """Replace a part whose position is computed."""
    inside: Any = np.asarray(True)
    for axis, start in enumerate(starts):
        size, rank = part.shape[axis], len(x.shape)
        first = np.clip(start, 0, x.shape[axis] - size)
        indices = np.arange(float(x.shape[axis])) - first
        within = np.logical_and(indices >= 0, indices < size)
        inside = np.logical_and(inside, np.reshape(within, (-1, *(1,) * (rank - axis - 1))))
        part = taken_at(part, np.clip(indices, 0, size - 1), axis)
    return np.where(inside, part, x)


# --- matrices ---------------------------------------------------------------------------------


def _triangular(a: Any, b: Any, *, lower: bool, **params: Any) -> Any:
    """Solve with a triangle of a matrix."""
    a = np.tril(a) if lower else np.triu(a)
    if params["unit_diagonal"]:
        eye = np.eye(a.shape[-1])
        a = a * (1.0 - eye) + eye
    a = np.matrix_transpose(a) if params["transpose_a"] else a
    if params["left_side"]:
        return np.linalg.solve(a, b)
    turned = np.linalg.solve(np.matrix_transpose(a), np.matrix_transpose(b))
    return np.matrix_transpose(turned)


_NUMPY = (
    *("acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "pow"),
    *("abs", "cbrt", "ceil", "cos", "cosh", "exp", "exp2", "expm1", "floor", "log", "log1p"),
    *("sign", "sin", "sinh", "sqrt", "square", "tan", "tanh"),
)
"""Primitives that have the name of a function of NumPy."""
_SYNONYMS = {
    "add_any": "add",
    "eq": "equal",
    "eq_to": "equal",
    "ge": "greater_equal",
    "gt": "greater",
    "is_finite": "isfinite",
    "le": "less_equal",
    "le_to": "less_equal",
    "lt": "less",
    "lt_to": "less",
    "mul": "multiply",
    "ne": "not_equal",
    "neg": "negative",
    "rem": "fmod",
    "sub": "subtract",
}
_ROWS: Mapping[str, Rule] = {
    "bessel_i0e": lambda x: rows.besseli(0.0, x) * np.exp(-np.abs(x)),
    "bessel_i1e": lambda x: rows.besseli(1.0, x) * np.exp(-np.abs(x)),
    "digamma": rows.digamma,
    "erf": rows.erf,
    "erf_inv": rows.erfinv,
    "erfc": rows.erfc,
    "igamma": rows.gammainc,
    "igammac": rows.gammaincc,
    "lgamma": rows.loggamma,
    "logistic": rows.sigmoid,
    "polygamma": rows.polygamma,
    "regularized_incomplete_beta": rows.betainc,
    "stop_gradient": rows.stop_gradient,
}

RULES: Mapping[str, Rule] = {
    **{name: _of(getattr(np, name)) for name in _NUMPY},
    **{name: _of(getattr(np, known)) for name, known in _SYNONYMS.items()},
    **{name: _of(row) for name, row in _ROWS.items()},
    "argmax": lambda x, axes, **_: np.argmax(x, axes[0]),
    "argmin": lambda x, axes, **_: np.argmin(x, axes[0]),
    "broadcast_in_dim": _spread,
    "cholesky": lambda x, **_: np.linalg.cholesky(x),
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
    "concatenate": lambda *parts, dimension: np.concatenate(parts, dimension),
    "copy": _of(lambda x: x),
    "copy_p": _of(lambda x: x),
    "cumprod": _running(np.cumprod),
    "cumsum": _running(np.cumsum),
    "dot_general": _product,
    "dynamic_slice": _part,
    "dynamic_update_slice": _with_part,
    "expand_dims": lambda x, dimensions: np.expand_dims(x, tuple(dimensions)),
    "integer_pow": lambda x, y: x ** float(y),
    "iota": _counted,
    "optimization_barrier": lambda *values: list(values),
    "max": _of(_even(np.maximum)),
    "min": _of(_even(np.minimum)),
    "pad": _padded,
    "reduce_and": _along(np.all),
    "reduce_max": _along(np.max),
    "reduce_min": _along(np.min),
    "reduce_or": _along(np.any),
    "reduce_prod": _along(np.prod),
    "reduce_sum": _along(np.sum),
    "reshape": _reshaped,
    "rev": lambda x, dimensions: np.flip(x, tuple(dimensions)),
    "round": _rounded,
    "rsqrt": lambda x, **_: 1.0 / np.sqrt(x),
    "select_n": _selected,
    "slice": _cut,
    "sort": _sorted,
    "split": lambda x, sizes, axis: np.split(x, np.cumsum(sizes)[:-1].tolist(), axis),
    "squeeze": lambda x, dimensions: np.squeeze(x, tuple(dimensions)),
    "stack": lambda *parts, axis: np.stack(parts, axis),
    "transpose": lambda x, permutation: np.transpose(x, permutation),
    "triangular_solve": _triangular,
    "unstack": lambda x, axis: list(np.moveaxis(x, axis, 0)),
}
"""The rules of primitives that compute alike on all kinds of numbers."""

RULES_BY_KIND: Mapping[str, Rule] = {
    "and": _of_truths(np.logical_and, np.bitwise_and),
    "convert_element_type": _converted,
    "div": _quotient,
    "not": _of_truths(np.logical_not, np.bitwise_not),
    "or": _of_truths(np.logical_or, np.bitwise_or),
    "xor": _of_truths(np.logical_xor, np.bitwise_xor),
}
"""The rules that also take the `kind` of the first operand: truth values, integers or floats."""
