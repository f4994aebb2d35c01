"""JAX's loops and choices, as nodes of difflab's graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from difflab.autodiff.control.branches import cond
from difflab.autodiff.control.loops import scan
from difflab.autodiff.control.while_loops import while_loop

__all__ = ["CONTROL"]

Values = Sequence[Any]
Run = Callable[[Any, Values], list[Any]]
"""Evaluates a closed jaxpr."""


def _scan(run: Run, operands: Values, **params: Any) -> list[Any]:
    consts, carries = params["num_consts"], params["num_carry"]
    fixed, xs = list(operands[:consts]), list(operands[consts + carries :])

    def step(carry: list[Any], x: list[Any] | None) -> tuple[list[Any], list[Any]]:
        found = run(params["jaxpr"], [*fixed, *carry, *(x or [])])
        return found[:carries], found[carries:]

    first = list(operands[consts : consts + carries])
    last, ys = scan(step, first, xs or None, params["length"], params["reverse"])
    return [*last, *ys]


def _while(run: Run, operands: Values, **params: Any) -> list[Any]:
    test, body = params["cond_nconsts"], params["body_nconsts"]
    of_test, of_body = list(operands[:test]), list(operands[test : test + body])
    found: list[Any] = while_loop(
        lambda value: run(params["cond_jaxpr"], [*of_test, *value])[0],
        lambda value: run(params["body_jaxpr"], [*of_body, *value]),
        list(operands[test + body :]),
    )
    return found


def _cond(run: Run, operands: Values, **params: Any) -> list[Any]:
    """Choose by the number of a branch: the last one, unless an earlier one is chosen."""
    number, *values = operands
    *earlier, last = params["branches"]

    def branch(jaxpr: Any) -> Callable[..., list[Any]]:
        return lambda *args: run(jaxpr, args)

    chosen = branch(last)
    for place, jaxpr in reversed(list(enumerate(earlier))):
        chosen = _either(number <= place, branch(jaxpr), chosen)
    return chosen(*values)


def _either(
    holds: Any, yes: Callable[..., list[Any]], no: Callable[..., list[Any]]
) -> Callable[..., list[Any]]:
    def chosen(*values: Any) -> list[Any]:
        found: list[Any] = cond(holds, yes, no, *values)
        return found

    return chosen


CONTROL: Mapping[str, Callable[..., list[Any]]] = {"cond": _cond, "scan": _scan, "while": _while}
"""Rules that are called with the evaluation of inner jaxprs, the operands and the parameters."""
