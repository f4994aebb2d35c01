"""Results and errors of operations in ball arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.balls.evaluation import PRECISIONS, BallInterpreter
from difflab.balls.jets import Jet, Undecided
from difflab.balls.library import Ball, arb, precision, upward
from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError

Array = NDArray[float64]
SHARP = 2.0**-20
"""Radius of an enclosure relative to the error that it is to show."""
WIDER = 1 + 8 * SHARP
"""So that a measured error is a bound of what another enclosure shows of it."""

_exact = np.frompyfunc(lambda number: Jet(arb(number)), 1, 1)


def lifted(value: Any) -> Any:
    """Return numbers as exact balls; truth values are unchanged."""
    array = np.asarray(value)
    if array.dtype == np.bool_:
        return value if array.ndim else bool(value)
    return _exact(array.astype(np.float64))


def jets(value: Any) -> list[Any]:
    """Return the elements of a value as a list."""
    return list(value.ravel().tolist()) if isinstance(value, np.ndarray) else [value]


def farthest(ball: Ball) -> float:
    """Return an upper bound of the absolute value of a ball; infinite if it is undefined."""
    found = upward(abs(arb(ball)))
    return math.inf if math.isnan(found) else found


def apart(numbers: Iterable[float], balls: Iterable[Ball]) -> tuple[Array, bool]:
    """Return bounds of the distances of numbers from balls, and whether they are sharp."""
    errors = [arb(number) - arb(ball) for number, ball in zip(numbers, balls, strict=True)]
    found = np.array(list(map(farthest, errors)))
    radii = np.array([float(error.rad()) for error in errors])
    return found, bool(np.all(np.isfinite(found) & (radii <= SHARP * found)))


def distances(
    row: Primitive, operands: Sequence[Any], result: Any, params: Mapping[str, Any]
) -> Array:
    """Return proved bounds of how far a result is from that of exact arithmetic.

    Raises
    ------
    UnsupportedError
        Ball arithmetic has no such operation, or a bound is infinite.

    Examples
    --------
    >>> from difflab.primitives import exp
    >>> bool(distances(exp, [1.0], np.exp(1.0), {}) < 4.5e-16)
    True
    """
    numbers = np.asarray(result, np.float64)
    found = np.full(numbers.size, math.inf)
    try:
        operation = BallInterpreter().operation(row)
        for bits in PRECISIONS[:4]:
            with precision(bits):
                exact = jets(operation(*map(lifted, operands), **params))
                found, sharp = apart(numbers.ravel().tolist(), (jet.value for jet in exact))
            if sharp:
                break
    except (Undecided, UnsupportedError):
        pass
    if not np.all(np.isfinite(found)):
        text = f"the rounding error of '{row.name}' is unknown: it cannot be bounded"
        raise UnsupportedError(text)
    return WIDER * found.reshape(numbers.shape)
