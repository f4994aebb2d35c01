"""How far two right computations of the same program may differ, point by point.

Each operation of a program on numbers is computed by its kernel, and again with its operands
moved by their bounds: the largest change, and the rounding of the operation itself, bound its
result. No derivative rule is used. A bound of 0 asks for equality, nan and infinities included;
an infinite one says that no digit is left to be judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from difflab.core.primitive import Elementwise, Primitive, Select
from difflab.execute.lower.schedule import ScalarProgram
from difflab.primitives import (
    bessel,
    beta_functions,
    dawson,
    densities,
    integrals,
    inverses,
    remainders,
    scaled_erfc,
)

__all__ = ["Bounded", "bounded", "exact_row"]

Array = NDArray[Any]

ULPS = 8.0
"""Of one operation, 4 for each of two implementations: what `tests/execute/test_table.py` holds."""
ROUNDED_ULPS = 1.0
"""Of operations that IEEE 754 rounds correctly."""
SPECIAL_ULPS = 32.0
"""Of SciPy's special functions, exponentials of squares, and powers times logarithms."""
ARGUMENT_ULPS = 8.0
"""By which they may take another argument: a square is rounded, SciPy reflects negative ones."""
ROUNDED = {"add", "subtract", "multiply", "divide", "sqrt"}
SPECIAL = {"gamma", "loggamma", "digamma", "polygamma", "erfc", "derf", "dpower_exponent", "dndtri"}
SPECIAL |= {*remainders.__all__, *bessel.__all__, *integrals.__all__, *inverses.__all__}
SPECIAL |= {*dawson.__all__, *beta_functions.__all__, *densities.__all__, *scaled_erfc.__all__}
SPECIAL |= {"erfi", "log_ndtr_derivative"}
EXPONENTIALS = {"dndtri"}
"""Exponentials of what SciPy has rounded, which lose as many more digits as their exponent has."""
PERIOD, PART = 0.4, 0.382
"""A larger error is tried in part as well: some functions have the period 1."""
TOGETHER = 2
"""Moves of all operands at once: all up, and all down."""
SUMS = {"logaddexp"}
"""Of which an operand is a term, so that the result may be much smaller than what was rounded."""
GAMMAS = {*beta_functions.__all__}
"""Of which SciPy adds and subtracts logarithms of gamma that may be larger than the result."""
POWERS = {"gammainc", "gammaincc"}
"""Of which SciPy computes xᵃ by logarithms: as many digits are lost as the exponent has, and what
is less than the least normal number is 0."""
WAVES = {"besselj", "bessely"}
"""Of which SciPy reduces large arguments in working precision."""
SHARE = 1e-3
"""A bound above this share of the value, or above it itself, is infinite: no digit is left."""
LARGEST = np.finfo(float).max


@dataclass(frozen=True)
class Bounded:
    """Values of a program's cells at some points, and by how much they may be wrong."""

    values: dict[int, Any]
    bounds: dict[int, Any]

    def outputs(self, program: ScalarProgram) -> tuple[Array, Array]:
        """Return the flattened outputs and their bounds, ``(points, numbers)``."""
        cells = [int(cell) for output in program.outputs for cell in output.ravel()]
        shape = (len(cells), len(self.values[0]))
        values, bounds = np.empty(shape), np.empty(shape)
        for row, cell in enumerate(cells):
            values[row], bounds[row] = self.values[cell], self.bounds[cell]
        return values.T, bounds.T


@cache
def exact_row(row: Primitive) -> bool:
    """Whether a row rounds nothing: selections, comparisons, roundings to whole numbers, signs."""
    if row.name in {"negative", "absolute"}:
        return True
    if row.structural or isinstance(row.rule, Select):
        return True
    rule = row.rule
    return isinstance(rule, Elementwise) and not any(rule.maps)


def bounded(
    program: ScalarProgram, points: Array, *, outside: bool, other_library: bool = False
) -> Bounded:
    """Compute a program at points ``(n, points)`` with bounds.

    Parameters
    ----------
    program : ScalarProgram
        On single numbers.
    points : array
        The inputs, which are exact.
    outside : bool
        Whether results are held to real arithmetic or to another order of the operations, where
        overflow is an error like any other, or to another target, where it must be the same.
    other_library : bool
        Whether special functions are not SciPy's on the other side.
    """
    values: dict[int, Any] = dict(enumerate(points))
    bounds: dict[int, Any] = dict.fromkeys(range(program.inputs), 0.0)
    values.update({cell: np.float64(value) for cell, value in program.known.items()})
    bounds.update(dict.fromkeys(program.known, 0.0))
    count = points.shape[1]
    with np.errstate(all="ignore"):
        for cell, row, args, _ in program.steps:
            operands = [values[arg] for arg in args]
            errors = [bounds[arg] for arg in args]
            if (outside or other_library) and row.name in SPECIAL:
                errors = _as_if_rounded(row, operands, errors)
            values[cell], bounds[cell] = _operation(row, operands, errors, count, outside)
    return Bounded(values, bounds)


def _as_if_rounded(row: Primitive, operands: list[Any], errors: list[Any]) -> list[Any]:
    """Add what SciPy's functions lose: as much as if their arguments had been rounded."""
    fixed = [low == high for low, high in row.samples]
    return [
        e if whole else e + np.where(np.isfinite(x), ARGUMENT_ULPS * np.spacing(np.abs(x)), 0.0)
        for x, e, whole in zip(operands, errors, fixed, strict=True)
    ]


def _operation(
    row: Primitive, operands: list[Any], errors: list[Any], count: int, outside: bool
) -> tuple[Array, Any]:
    kernel = row.computer(np)
    moved = [_moved(x, e) if np.ndim(e) else None for x, e in zip(operands, errors, strict=True)]
    shifted = [shifts for shifts in moved if shifts is not None]
    rows = 1 + sum(map(len, shifted)) + TOGETHER * (len(shifted) > 1)
    variants = [np.empty((rows, count), np.result_type(x)) for x in operands]
    for place, x in enumerate(operands):
        variants[place][:] = x
    start = 1
    for place, shifts in enumerate(moved):
        if shifts is not None:
            variants[place][start : start + len(shifts)] = shifts
            start += len(shifts)
            if len(shifted) > 1:
                variants[place][rows - TOGETHER :] = shifts[:TOGETHER]
    found = np.asarray(kernel(*variants))
    value = found[0]
    if found.dtype == bool:
        uncertain = np.any(found != value, axis=0) | _lost(row, errors)
        return value, uncertain if np.any(uncertain) else 0.0
    spread = _spread(found[:start])
    if start < rows:  # a product of two zeros changes where both are moved
        both = np.concatenate([found[:1], found[start:]])
        spread = np.maximum(spread, _spread(both) / TOGETHER)
    if not isinstance(row.rule, Select):
        spread = np.where(_lost(row, errors), np.inf, spread)
    bound = spread
    if not exact_row(row):
        bound = spread + _rounding(row, operands, errors, value, spread)
    if outside and not exact_row(row):
        bound = np.where(_overflows(row, operands, value), np.inf, bound)
    bound = np.where(np.isnan(bound), np.inf, bound)
    unjudged = (bound > SHARE * np.maximum(np.abs(value), 1.0)) | (np.abs(value) + bound > LARGEST)
    bound = np.where(unjudged & (bound > 0), np.inf, np.broadcast_to(bound, value.shape))
    # Which zero a computed zero is, is not kept: with bounds of its own it is taken for both.
    return value, bound if np.any(bound) or np.any(value == 0) else 0.0


def _moved(value: Any, error: Array) -> Array:
    """Return a value moved up and down by its bound, and to the zero in between."""
    if np.asarray(value).dtype == bool:
        return (value ^ error)[None]
    shifts = [value + error, value - error]
    if np.any(error > PERIOD):
        shifts.append(value + PART * error)
    near = (np.abs(value) <= error) | (value == 0)
    if np.any(near):
        shifts.append(np.where(near, np.where(value == 0, -value, 0.0), value))
    return np.stack(shifts)


def _spread(found: Array) -> Any:
    """Return how far the variants are from the first: 0 where both are nan, or infinite alike."""
    if len(found) == 1:
        return 0.0
    value, others = found[0], found[1:]
    change = np.abs(others - value)
    change = np.where((others == value) | (np.isnan(others) & np.isnan(value)), 0.0, change)
    return np.sum(np.where(np.isnan(change), np.inf, change), axis=0)


def _lost(row: Primitive, errors: list[Any]) -> Any:
    """Whether an operand has no digit left; truth values are judged by what they select."""
    lost: Any = False
    for place, error in enumerate(errors):
        if np.ndim(error) and place not in row.truths:
            lost = lost | (error == np.inf)
    return lost


def _rounding(
    row: Primitive, operands: list[Any], errors: list[Any], value: Array, spread: Any
) -> Any:
    ulps = ROUNDED_ULPS if row.name in ROUNDED else SPECIAL_ULPS if row.name in SPECIAL else ULPS
    size = np.abs(value)
    if row.name in EXPONENTIALS:
        ulps = ulps * (1.0 + np.abs(np.log(size)))
    if row.name in GAMMAS:
        a, b = operands[:2]
        terms = np.abs(gammaln(a)) + np.abs(gammaln(b)) + np.abs(gammaln(a + b))
        if row.name == "betaln":
            size = np.maximum(size, terms)
        else:  # an exponential of theirs
            ulps = ulps * (1.0 + terms)
    if row.name in POWERS:
        a, x = operands
        ulps = ulps * (1.0 + np.nan_to_num(np.abs(a * np.log(np.abs(x)))))
        size = np.maximum(size, np.finfo(float).tiny / np.finfo(float).eps)
    if row.name in SUMS:
        size = np.maximum.reduce([size, *np.broadcast_arrays(*map(np.abs, operands), value)[:-1]])
    rounding = np.where(np.isfinite(value), ulps * np.spacing(size), 0.0)
    if row.name in WAVES:
        x = np.where(np.isfinite(operands[1]), np.abs(operands[1]), 0.0)
        rounding = rounding + ARGUMENT_ULPS * np.spacing(x) / np.sqrt(np.maximum(x, 1.0))
    zero = value == 0
    if np.any(zero):  # what moves it may vanish, and be seen again where it is enlarged
        certain = np.all(np.stack(np.broadcast_arrays(*errors, value)[:-1]) == 0, axis=0)
        exact = ~_underflows(row, operands, value) & certain
        rounding = np.where(zero & exact & (spread == 0), 0.0, rounding)
    return rounding


def _beside(row: Primitive, operands: list[Any]) -> Any:
    """Return the results at operands that are a little larger."""
    return row.computer(np)(*[x * (1 + 2.0**-20) for x in operands])


def _regular(operands: list[Any]) -> Any:
    """Whether all operands are finite and not zero."""
    regular: Any = True
    for x in operands:
        regular = regular & np.isfinite(x) & (x != 0)
    return regular


def _underflows(row: Primitive, operands: list[Any], value: Array) -> Any:
    """Whether a zero stands for a number that is too small: beside it there are only zeros."""
    return (value == 0) & _regular(operands) & (_beside(row, operands) == 0)


def _overflows(row: Primitive, operands: list[Any], value: Array) -> Any:
    """Whether an infinity stands for a number that is too large, and not for a pole."""
    infinite = np.isinf(value)
    if not np.any(infinite):
        return False
    finite = np.all([np.isfinite(np.broadcast_to(x, value.shape)) for x in operands], axis=0)
    zero = np.any([np.broadcast_to(x == 0, value.shape) for x in operands], axis=0)
    return infinite & finite & ~zero & np.isinf(_beside(row, operands))
