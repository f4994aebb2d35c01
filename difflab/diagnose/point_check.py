"""A point of a function, chosen or checked, and operations that leave a format's range there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.conversions import host_numbers
from difflab.core.dtypes import FloatFormat
from difflab.core.wording import error
from difflab.diagnose.anomalies import computed, failures, needed, operands_of
from difflab.diagnose.findings import AnomalyKind, call_text, number_text
from difflab.diagnose.points import choose_point
from difflab.errors import DomainError, PointError
from difflab.graph.evaluate import Interpreter, RoundedInterpreter
from difflab.graph.function import Function, evaluate, evaluate_all
from difflab.graph.interpreters import MpmathInterpreter
from difflab.graph.ir import FIRST_ROW
from difflab.graph.names import shortened

REAL_DIGITS = 50
FAILURES_EXAMINED = 64
"""Failures examined to find one that is no overflow."""


def check_domain(function: Function, values: Sequence[Any], on: Interpreter | None = None) -> None:
    """Raise when `function` is undefined at a point, naming the subexpression at fault.

    A value that is finite in the reals and only overflows in floating point is accepted: a
    comparison shows how each method handles it.

    Parameters
    ----------
    function : Function
        The function to evaluate.
    values : sequence
        One value per input.
    on : Interpreter, optional
        What evaluates the function; chosen from the values by default.

    Raises
    ------
    DomainError
        The message holds the subexpression, its operands' values and the domain; the
        location is that of the subexpression in the source.

    Examples
    --------
    >>> import difflab as dl
    >>> check_domain(dl.parse("1 + log(x)"), [-1.0])
    Traceback (most recent call last):
        ...
    difflab.errors.DomainError: log is undefined at the point: its argument is -1
      1 + log(x)
          ^~~~~~
    hint: log needs x > 0
    """
    graph = function.graph
    node_values = evaluate_all(function, values, on)
    if all(np.all(np.isfinite(node_values[node])) for node in function.outputs):
        return
    if _finite_in_the_reals(function, values):
        return
    marks = needed(graph, node_values, function.outputs)
    made = list(islice(failures(graph, node_values, range(len(graph)), marks), FAILURES_EXAMINED))
    event = next((event for event in made if event.kind is not AnomalyKind.OVERFLOW), made[0])
    location = graph.place(event.node)
    row = graph.primitive(event.node)
    if row is None:
        is_constant = event.node in graph.constants
        name = "a constant" if is_constant else f"the input '{graph.input_name(event.node)}'"
        raise location.error(DomainError, f"{name} is not a finite number")
    shown = " and ".join(map(number_text, event.operands))
    noun = "argument is" if len(event.operands) == 1 else "arguments are"
    overflow = event.kind is AnomalyKind.OVERFLOW
    state = "overflows" if overflow else "is undefined"
    raise location.error(
        DomainError,
        f"{row.name} {state} at the point: its {noun} {shown}",
        hint=f"{row.name} needs {row.defined}" if row.defined and not overflow else None,
    )


def _finite_in_the_reals(function: Function, values: Sequence[Any]) -> bool:
    """Whether the outputs are known to be finite, with 50 digits and unbounded exponents."""
    floats = [np.asarray(value, dtype=float) for value in values]
    return bool(computed(_computed_finite, function.graph.primitives, function, floats))


def _computed_finite(function: Function, values: Sequence[NDArray[np.float64]]) -> bool:
    import mpmath

    exactly = np.frompyfunc(mpmath.mpf, 1, 1)
    with mpmath.workdps(REAL_DIGITS):
        results = evaluate(function, list(map(exactly, values)), MpmathInterpreter())
        return all(map(mpmath.isfinite, np.concatenate([np.ravel(part) for part in results])))


PointValue = float | NDArray[np.float64]


def checked_point(
    function: Function,
    at: Mapping[str, Any] | None,
    seed: int = 0,
    *,
    inside: bool = True,
    on: Interpreter | None = None,
) -> dict[str, PointValue]:
    """Return the value of every input, in the inputs' order.

    Parameters
    ----------
    function : Function
        The function to evaluate.
    at : mapping or None
        A number, a nested list or an array for every input. If None, a point inside the
        function's domain is chosen.
    seed : int
        The seed of that choice.
    inside : bool
        Whether the function must be defined at the point.
    on : Interpreter, optional
        What evaluates the function; NumPy's kernels by default.

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
    if at is None:
        at = choose_point(function, seed)
    if not isinstance(at, Mapping):
        raise PointError(
            f"the point must be a mapping of input names to values, not {type(at).__name__}",
            hint=f"give a value for each of {shortened(function.inputs)}",
        )
    values = map(_real, function.inputs, function.input_shapes, function.arranged((), at))
    point = dict(zip(function.inputs, values, strict=True))
    if inside:
        check_domain(function, list(point.values()), on)
    return point


def packed(function: Function, point: Mapping[str, PointValue]) -> NDArray[np.float64]:
    """Return the flattened inputs, ``(n,)``."""
    parts = [np.ravel(np.asarray(point[name], dtype=np.float64)) for name in function.inputs]
    return np.concatenate(parts) if parts else np.zeros(0)


def _real(name: str, shape: tuple[int, ...], value: Any) -> PointValue:
    """Return a value of one point: real, finite and without batch axes."""
    array = host_numbers(value, f"the value of '{name}'", PointError)
    if array.dtype.kind not in "fiub":
        raise PointError(f"the value of '{name}' is not a real number")
    if array.shape != shape:
        raise PointError(
            f"the input '{name}' has the shape {shape}, but its value has the shape {array.shape}",
            hint="give one point, not a batch",
        )
    if not np.isfinite(array).all():
        raise PointError(f"the value of '{name}' is not finite")
    # A copy: the caller may change its own array later.
    return np.array(array, dtype=np.float64) if shape else float(array)


MOST = 3
"""Operations that are named."""


def range_faults(function: Function, x: NDArray[np.float64], dtype: FloatFormat) -> list[str]:
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
    function: Function, x: NDArray[np.float64], dtype: FloatFormat, order: int = 1
) -> list[str]:
    """Return the range faults of the derivative in reverse mode, of order 1 or 2."""
    from difflab.autodiff import hessian, jacobian

    derivative = jacobian(function, mode="reverse") if order == 1 else hessian(function)
    return range_faults(derivative, x, dtype)


def _faults(function: Function, x: NDArray[np.float64], dtype: FloatFormat) -> Iterator[str]:
    graph, rows = function.graph, list(function.graph.rows())
    values = evaluate_all(function, function.split(x), RoundedInterpreter(dtype))
    marks = needed(graph, values, function.outputs)
    for node, (opcode, args) in enumerate(rows):
        row = graph.primitive(node)
        if opcode < FIRST_ROW or row is None or marks[node] is None:
            continue
        operands, value = [values[arg] for arg in args], np.asarray(values[node], dtype=np.float64)
        lost = ~np.isfinite(value) | (value == 0)
        if not lost.any() or not all(np.isfinite(each).all() for each in operands):
            continue
        with np.errstate(all="ignore"):
            wide = row.computer(np)(*operands, **graph.params(node))
        wide = np.broadcast_to(np.asarray(wide, dtype=np.float64), value.shape)
        wrong = lost & (np.isnan(value) | (wide != value))
        wrong &= np.asarray(marks[node])
        if wrong.any():
            at = tuple(np.argwhere(wrong)[0].tolist())
            shown = operands_of(graph, node, values, at)
            yield _text(call_text(row, shown), float(value[at]), float(wide[at]), dtype)


def _text(call: str, value: float, wide: float, dtype: FloatFormat) -> str:
    if np.isnan(value):
        return f"nan in {call}"
    if np.isinf(value):
        return f"overflow in {call} = {wide:.9g}: {dtype} ends at {dtype.largest:.6g}"
    return f"underflow in {call} = {wide:.6g}: {dtype} begins at {error(dtype.spacing(0.0))}"
