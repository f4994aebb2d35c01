"""Arguments that budgets and searches of dtypes share, and errors that name a point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.diagnose.anomalies import Event, failures, needed
from difflab.diagnose.findings import AnomalyKind, call_text
from difflab.errors import DomainError, InputError
from difflab.graph.function import Function
from difflab.graph.ir import Graph
from difflab.language import given_names, parse

MOST = 2**31
"""A bound of numbers of points and of seeds."""


def function_of(what: str, f: Any, at: Any, over: Any, points: Any, seed: Any) -> Function:
    """Return the function of a public call, whose common arguments are checked.

    Raises
    ------
    InputError
        One of them is of another type; `what` is the call.
    """
    for name, value in (("at", {} if at is None else at), ("over", over)):
        if not isinstance(value, Mapping):
            raise InputError(
                f"{name} of {what} is a mapping of names, not {type(value).__name__}",
                hint="at={'x': 1.5}, over={'x': (0.1, 10)}",
            )
    for name, value, least in (("points", points, 1), ("seed", seed, 0)):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not least <= value < MOST:
            raise InputError(
                f"{name} of {what} is an integer from {least} to 2^31 - 1, not {value!r}"
            )
    if isinstance(f, str):
        return parse(f, [*given_names(at), *over])
    if not isinstance(f, Function):
        raise InputError(
            f"{what} takes the text of a formula or a Function, not {type(f).__name__}",
            hint="record code at an example of its arguments: dl.trace(f, x)",
        )
    return f


def failed(graph: Graph, values: Sequence[Any], outputs: Sequence[int], dtype: str) -> DomainError:
    """Return the error that names the operation that made results not finite."""
    for event in _failures(graph, values, outputs):
        state = "overflows" if event.kind is AnomalyKind.OVERFLOW else f"is {event.result:g}"
        call = call_text(graph.primitive(event.node), event.operands)
        return graph.place(event.node).error(DomainError, f"{call} {state} in {dtype}")
    return DomainError(f"a result is not finite in {dtype}")


def overflow(graph: Graph, values: Sequence[Any], outputs: Sequence[int], dtype: str) -> str:
    """Return which operation overflows on the way to finite outputs; empty if none does."""
    for event in _failures(graph, values, outputs):
        if event.kind is AnomalyKind.OVERFLOW:
            call = call_text(graph.primitive(event.node), event.operands)
            return f"{call} overflows in {dtype}, an error without a bound"
    return ""


def _failures(graph: Graph, values: Sequence[Any], outputs: Sequence[int]) -> Iterator[Event]:
    """Yield an event for each operation on which outputs depend that is not finite."""
    return failures(graph, values, range(len(graph)), needed(graph, values, outputs))


def shown_point(function: Function, point: NDArray[float64]) -> str:
    """Return the values of the inputs at a point as text."""
    parts = zip(function.inputs, function.split(point), strict=True)
    return ", ".join(f"{name} = {np.array2string(part, threshold=3)}" for name, part in parts)


def placed_at(error: DomainError, after: str, before: str = "") -> DomainError:
    """Return an error whose message has more text."""
    return type(error)(
        f"{before}{error.message}{after}", text=error.text, span=error.span, hint=error.hint
    )
