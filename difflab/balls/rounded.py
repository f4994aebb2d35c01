"""Correctly rounded results: the precision is raised until a ball rounds to one float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from difflab.balls.evaluation import PRECISIONS, evaluated, evaluator, fault_nodes
from difflab.balls.jets import Jet
from difflab.balls.library import Ball, arb, nearest, precision, upward
from difflab.balls.limit import TIMEOUT, in_time, reached
from difflab.errors import UnsupportedError
from difflab.graph.function import Function
from difflab.graph.names import element_names

Array = NDArray[np.float64]
Read = Callable[[Function, Sequence[Jet]], list[float] | None]
"""Returns the numbers of expansions, rounded; None if a ball does not round to one number."""


def rounded_values(
    function: Function, points: Iterable[Sequence[float]], timeout: float = TIMEOUT
) -> Array:
    """Return the flattened outputs at points, each rounded to the nearest float64.

    Parameters
    ----------
    function : Function
        The function, such as a derivative, which is evaluated as it is.
    points : iterable of sequences of float
        The flattened inputs.
    timeout : float
        Seconds for each point.

    Returns
    -------
    (N, m) array
        nan where the function is undefined, infinite where the result overflows.

    Raises
    ------
    UnsupportedError
        A result cannot be decided: it may be halfway between two floats, or the function
        undefined.
    MethodTimeout
        A point takes longer; the message states it and the precision.

    Examples
    --------
    >>> import difflab as dl
    >>> rounded_values(dl.parse("x/3*3 - x"), [[1.0], [0.1]]).tolist()
    [[0.0], [0.0]]
    """
    rows = [in_time(_at_point, function, point, timeout=timeout) for point in points]
    return np.array(rows, dtype=np.float64).reshape(-1, function.m)


def _at_point(function: Function, point: Sequence[float]) -> list[float]:
    with precision(PRECISIONS[0]):
        reached(_stage(point, PRECISIONS[0]))
        balls = [arb(number) for number in point]
        row = _values(function, evaluator(function, PRECISIONS[0], 0)(balls))
        return _raised(function, balls, 0, _values) if row is None else row


def _stage(point: Sequence[float], bits: int) -> str:
    return f"the inputs are {_shown(point)}; at {bits} bits"


def _shown(point: Sequence[float]) -> str:
    """Return the first inputs of a point."""
    return ", ".join(f"{float(number):.6g}" for number in point[:6])


def rounded_derivative(function: Function, x: Sequence[float], order: int) -> Array:
    """Return the Jacobian or the Hessian, each number rounded to the nearest float64.

    The derivatives are FLINT's: no rule of difflab is used.

    Parameters
    ----------
    function : Function
        The function; with one output number for order 2.
    x : sequence of float
        The flattened inputs.
    order : int
        1 for the Jacobian, 2 for the Hessian.

    Returns
    -------
    (m, n) or (n, n) array

    Raises
    ------
    UnsupportedError
        There is no derivative, as the message says, or a number cannot be decided.

    Examples
    --------
    >>> import difflab as dl
    >>> rounded_derivative(dl.parse("ln(x1) + x1*x2 - sin(x2)"), [2.0, 5.0], 1)
    array([[5.5       , 1.71633781]])
    """
    balls = [arb(number) for number in x]
    with precision(PRECISIONS[0]):
        outputs = evaluator(function, PRECISIONS[0], order)(balls)
        read = _gradients if order == 1 else _hessian
        row = read(function, outputs)
        if row is None:
            row = _raised(function, balls, order, read)
    return np.array(row).reshape((function.m if order == 1 else function.n, function.n))


def _raised(function: Function, balls: Sequence[Ball], order: int, read: Read) -> list[float]:
    """Return the rounded values, at the lowest precision that determines them."""
    outputs: list[Jet] = []
    for bits in PRECISIONS[1:]:
        reached(_stage(balls, bits))
        outputs = evaluated(function, balls, bits, order)
        with precision(bits):
            row = read(function, outputs)
        if row is not None:
            return row
        if order and any(output.fault and output.fault.certain for output in outputs):
            break
    raise UnsupportedError(_refusal(function, balls, order))


def _refusal(function: Function, balls: Sequence[Ball], order: int) -> str:
    """Return why a result cannot be rounded."""
    point = _shown(balls)
    bits = PRECISIONS[-1]
    nodes = fault_nodes(function, balls, bits, order)
    names = element_names(function.output_names, function.output_shapes)
    for name, entry in zip(names, nodes, strict=True):
        if entry is not None:
            site = str(function.graph.place(entry.node))
            where = f" ({site})" if site else ""
            return f"{name} at {point}: {entry.fault.kind}: {entry.fault.reason}{where}"
    if any(math.isinf(upward(output.value)) for output in evaluated(function, balls, bits, 0)):
        return f"at {point} a result could not be bounded"
    return f"at {point} a result is halfway between two numbers, as far as {bits} bits can tell"


def _values(function: Function, outputs: Sequence[Jet]) -> list[float] | None:
    row = []
    for output in outputs:
        number = nearest(output.value)
        undefined = number is not None and number != number
        if number is None or (undefined and not (output.fault and output.fault.certain)):
            return None
        row.append(number)
    return row


def _gradients(function: Function, outputs: Sequence[Jet]) -> list[float] | None:
    row = []
    for output in outputs:
        if output.fault is not None:
            return None
        for place in range(function.n):
            number = nearest(output.slopes[place]) if place in output.slopes else 0.0
            if number is None:
                return None
            row.append(number)
    return row


def _hessian(function: Function, outputs: Sequence[Jet]) -> list[float] | None:
    (output,) = outputs
    if output.fault is not None:
        return None
    row = np.zeros((function.n, function.n))
    for (i, j), curve in (output.curves or {}).items():
        number = nearest(curve)
        if number is None:
            return None
        row[i, j] = row[j, i] = number
    flat: list[float] = row.ravel().tolist()
    return flat
