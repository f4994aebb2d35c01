"""Operations that leave the range of a floating-point format: overflow, underflow and nan."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.dtypes import FloatFormat
from difflab.core.quantities import error
from difflab.diagnose.anomalies import needed, operands_of
from difflab.diagnose.findings import call_text
from difflab.graph.evaluate import RoundedInterpreter
from difflab.graph.function import Function, evaluate_all
from difflab.graph.ir import FIRST_ROW

MOST = 3
"""Operations that are named."""


def range_faults(function: Function, x: NDArray[float64], dtype: FloatFormat) -> list[str]:
    """Return the operations that leave the range of a format at a point, in evaluation order.

    Parameters
    ----------
    function : Function
        The function, or a derivative.
    x : ndarray (n,)
        The point, of numbers of the format.
    dtype : FloatFormat
        The format to which every operation is rounded.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab.core.dtypes import FORMATS
    >>> range_faults(dl.parse("exp(x)/2"), np.array([12.0]), FORMATS["float16"])
    ['overflow in exp(12) = 162754.791: float16 ends at 65504']
    """
    faults = []
    for text in _faults(function, x, dtype):
        faults.append(text)
        if len(faults) == MOST:
            break
    return faults


def derivative_faults(
    function: Function, x: NDArray[float64], dtype: FloatFormat, order: int = 1
) -> list[str]:
    """Return the same of the derivative in reverse mode, of order 1 or 2."""
    from difflab.autodiff import hessian, jacobian

    derivative = jacobian(function, mode="reverse") if order == 1 else hessian(function)
    return range_faults(derivative, x, dtype)


def _faults(function: Function, x: NDArray[float64], dtype: FloatFormat) -> Iterator[str]:
    graph, rows = function.graph, list(function.graph.rows())
    found = evaluate_all(function, function.split(x), RoundedInterpreter(dtype))
    marks = needed(graph, found, function.outputs)
    for node, (opcode, args) in enumerate(rows):
        row = graph.primitive(node)
        if opcode < FIRST_ROW or row is None or marks[node] is None:
            continue
        operands, value = [found[arg] for arg in args], np.asarray(found[node], dtype=float64)
        lost = ~np.isfinite(value) | (value == 0)
        if not lost.any() or not all(np.isfinite(each).all() for each in operands):
            continue
        with np.errstate(all="ignore"):
            wide = row.computer(np)(*operands, **graph.params(node))
        wide = np.broadcast_to(np.asarray(wide, dtype=float64), value.shape)
        wrong = lost & (np.isnan(value) | (wide != value))
        wrong &= np.asarray(marks[node])
        if wrong.any():
            at = tuple(np.argwhere(wrong)[0].tolist())
            shown = operands_of(graph, node, found, at)
            yield _text(call_text(row, shown), float(value[at]), float(wide[at]), dtype)


def _text(call: str, value: float, wide: float, dtype: FloatFormat) -> str:
    if np.isnan(value):
        return f"nan in {call}"
    if np.isinf(value):
        return f"overflow in {call} = {wide:.9g}: {dtype} ends at {dtype.largest:.6g}"
    return f"underflow in {call} = {wide:.6g}: {dtype} begins at {error(dtype.spacing(0.0))}"
