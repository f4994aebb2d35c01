"""Detection of the subexpression at which a function is undefined."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from difflab.diagnose.anomalies import failures, needed
from difflab.diagnose.findings import AnomalyKind, number_text
from difflab.errors import DomainError
from difflab.graph.evaluate import Interpreter
from difflab.graph.function import Function, evaluate, evaluate_all
from difflab.graph.interpreters import MpmathInterpreter

__all__ = ["check_domain"]

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
    found = evaluate_all(function, values, on)
    if all(np.all(np.isfinite(found[node])) for node in function.outputs):
        return
    if _finite_in_the_reals(function, values):
        return
    marks = needed(graph, found, function.outputs)
    made = list(islice(failures(graph, found, range(len(graph)), marks), FAILURES_EXAMINED))
    event = next((event for event in made if event.kind is not AnomalyKind.OVERFLOW), made[0])
    place = graph.place(event.node)
    row = graph.primitive(event.node)
    if row is None:
        known = event.node in graph.constants
        name = "a constant" if known else f"the input '{graph.input_name(event.node)}'"
        raise place.error(DomainError, f"{name} is not a finite number")
    shown = " and ".join(map(number_text, event.operands))
    noun = "argument is" if len(event.operands) == 1 else "arguments are"
    overflow = event.kind is AnomalyKind.OVERFLOW
    state = "overflows" if overflow else "is undefined"
    raise place.error(
        DomainError,
        f"{row.name} {state} at the point: its {noun} {shown}",
        hint=f"{row.name} needs {row.defined}" if row.defined and not overflow else None,
    )


def _finite_in_the_reals(function: Function, values: Sequence[Any]) -> bool:
    """Whether the outputs are finite when computed with 50 digits and unbounded exponents."""
    import mpmath

    exactly = np.frompyfunc(mpmath.mpf, 1, 1)
    with mpmath.workdps(REAL_DIGITS):
        points = [exactly(np.asarray(value, dtype=float)) for value in values]
        results = evaluate(function, points, MpmathInterpreter())
        return all(map(mpmath.isfinite, np.concatenate([np.ravel(part) for part in results])))
