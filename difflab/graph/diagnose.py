"""Where a function is undefined: the subexpression, not only the nan at the end.

May import `function`, `evaluate`, `ir`, `errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive, Select
from difflab.errors import DomainError
from difflab.graph.function import Function, evaluate, evaluate_all
from difflab.graph.interpreters import MpmathInterpreter

__all__ = ["check_domain", "first_undefined"]

REAL_DIGITS = 50


def first_undefined(function: Function, values: Sequence[Any]) -> int | None:
    """Return the node where an output of `function` stops being finite.

    Parameters
    ----------
    function : Function
        What is evaluated.
    values : sequence
        One value per input, at one point.

    Returns
    -------
    int or None
        The earliest node on a path to an output that is nan or infinite although its
        arguments are finite; None where all outputs are finite. What an untaken branch
        holds is not looked at.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("1 + log(x)")
    >>> f.graph.primitive(first_undefined(f, [-1.0]))
    <primitive log>
    """
    graph = function.graph
    found = evaluate_all(function, values)
    pending = [node for node in function.outputs if not _finite(found[node])]
    seen = set(pending)
    while pending:
        node = pending.pop()
        args = _taken(graph.primitive(node), graph.arguments(node), found)
        causes = [arg for arg in args if not _finite(found[arg])]
        if not causes:
            return node
        fresh = [arg for arg in causes if arg not in seen]
        seen.update(fresh)
        pending += fresh
    return None


def check_domain(function: Function, values: Sequence[Any]) -> None:
    """Raise when `function` is undefined at a point, naming the subexpression at fault.

    A value that is finite in the reals and only overflows in floating point is no fault of
    the point: it passes, and how each method fares there is what a comparison shows.

    Parameters
    ----------
    function : Function
        What is evaluated.
    values : sequence
        One value per input.

    Raises
    ------
    DomainError
        Its message holds the subexpression, the operand's value and the domain; its place
        is the subexpression's place in the source.

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
    node = first_undefined(function, values)
    if node is None or _finite_in_the_reals(function, values):
        return
    graph = function.graph
    span = graph.span(node)
    row = graph.primitive(node)
    if row is None:
        name = "a constant" if node in graph.constants else f"the input '{graph.input_name(node)}'"
        raise DomainError(f"{name} is not a finite number", text=graph.text, span=span)
    found = evaluate_all(function, values)
    operands = [found[arg] for arg in graph.arguments(node)]
    shown = " and ".join(_shown(value) for value in operands)
    noun = "argument is" if len(operands) == 1 else "arguments are"
    overflow = not row.defined or _within(row, operands, graph.params(node))
    state = "overflows" if overflow else "is undefined"
    raise DomainError(
        f"{row.name} {state} at the point: its {noun} {shown}",
        text=graph.text,
        span=span,
        hint=None if overflow else f"{row.name} needs {row.defined}",
    )


def _finite_in_the_reals(function: Function, values: Sequence[Any]) -> bool:
    """Whether the outputs are finite when computed with digits and exponents to spare."""
    import mpmath

    exactly = np.frompyfunc(mpmath.mpf, 1, 1)
    with mpmath.workdps(REAL_DIGITS):
        points = [exactly(np.asarray(value, dtype=float)) for value in values]
        results = evaluate(function, points, MpmathInterpreter())
        return all(map(mpmath.isfinite, np.concatenate([np.ravel(part) for part in results])))


def _within(row: Primitive, operands: list[Any], params: dict[str, Any]) -> bool:
    """Whether a row with a limited domain gave an overflow instead: an infinity off a pole."""
    with np.errstate(all="ignore"):
        result = row.computer(np)(*operands, **params)
    pole = any(np.any(np.asarray(value) == 0) for value in operands)
    return bool(np.any(np.isinf(result)) and not pole)


def _taken(row: Primitive | None, args: tuple[int, ...], found: list[Any]) -> list[int]:
    """Return the arguments that matter to a node's value: of a selection, the passed one."""
    if row is None or not isinstance(row.rule, Select):
        return list(args)
    operands = [found[arg] for arg in args]
    taken = [
        arg
        for arg, condition in zip(args, row.rule.conditions, strict=True)
        if condition is not None and np.any(condition(*operands))
    ]
    return taken or list(args)


def _finite(value: Any) -> bool:
    return bool(np.all(np.isfinite(value)))


def _shown(value: Any) -> str:
    array = np.asarray(value, dtype=float)
    return f"{float(array):.6g}" if array.ndim == 0 else f"an array of shape {array.shape}"
