"""Evaluation of jaxprs on arrays and on traced values.

What depends on no traced value is computed with NumPy, or by JAX where NumPy has no such function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from difflab.errors import InputError, UnsupportedError
from difflab.graph.node import Node
from difflab.interop.formats.jaxpr.control import CONTROL
from difflab.interop.formats.jaxpr.movement import MOVEMENTS
from difflab.interop.formats.jaxpr.operations import RULES, RULES_BY_KIND
from difflab.interop.formats.jaxpr.rules import CUSTOM, custom_call

__all__ = ["evaluated"]

_INNER = ("jaxpr", "call_jaxpr", "fun_jaxpr")
_CALLS = frozenset(
    {
        *("checkpoint", "closed_call", "core_call", "jit", "pjit", "remat2"),
        *CUSTOM,
    }
)
"""Primitives that stand for the jaxpr that they hold."""


def evaluated(closed: Any, args: Sequence[Any]) -> list[Any]:
    """Return the outputs of a closed jaxpr.

    Parameters
    ----------
    closed : jax.extend.core.ClosedJaxpr
        The program.
    args : sequence of array or Node
        A value for each input.

    Raises
    ------
    InputError
        A primitive has no counterpart, or its values are complex.
    """
    # Calls nest as deep as those that JAX traced, which took Python calls of its own.
    return _run(closed.jaxpr, closed.consts, args)


def _run(jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, map(_value, consts), strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))

    def read(atom: Any) -> Any:
        return _value(atom.val) if hasattr(atom, "val") else values[atom]

    for step in jaxpr.eqns:
        results = _applied(step, [read(atom) for atom in step.invars])
        values.update(zip(step.outvars, map(_value, results), strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _value(value: Any) -> Any:
    """Return an array of NumPy; traced values and the keys of random numbers stay."""
    plain = isinstance(getattr(value, "dtype", np.dtype(float)), np.dtype)
    return np.asarray(value) if plain and not isinstance(value, Node) else value


def _widened(value: Any) -> Any:
    """Return floats of two bytes, which no graph holds, as the same numbers in float64."""
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.itemsize != 2:
        return value
    return value.astype(np.float64) if value.dtype.kind in "fV" else value


def _applied(step: Any, operands: list[Any]) -> Sequence[Any]:
    """Return the results of one primitive."""
    name, params = step.primitive.name, step.params
    traced = any(isinstance(operand, Node) for operand in operands)
    if traced:  # the graph computes in float64
        operands = [_widened(operand) for operand in operands]
    if name in CUSTOM and traced:
        return custom_call(evaluated, step, operands)
    if name in _CALLS:
        return _called(params, operands)
    if name == "custom_linear_solve" and not traced:  # its code hides the matrix from derivatives
        return _solved(params, operands)
    try:
        if name in RULES:
            found = RULES[name](*operands, **params)
        elif name in RULES_BY_KIND:
            kind = np.dtype(step.invars[0].aval.dtype).kind
            found = RULES_BY_KIND[name](*operands, kind=kind, **params)
        elif not traced:
            found = step.primitive.bind(*operands, **params)
        elif name in CONTROL:
            found = CONTROL[name](evaluated, operands, **params)
        elif name in MOVEMENTS:
            found = MOVEMENTS[name](step.primitive, *operands, **params)
        else:
            raise UnsupportedError("it has no counterpart")
    except UnsupportedError as error:
        raise _unread(step, error) from error
    return found if step.primitive.multiple_results else [found]


def _called(params: Mapping[str, Any], operands: list[Any]) -> list[Any]:
    inner = next(params[key] for key in _INNER if key in params)
    return _run(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), operands)


def _solved(params: Mapping[str, Any], operands: list[Any]) -> list[Any]:
    """Run the code that solves, on its constants and the right-hand sides."""
    counts, solve = params["const_lengths"], params["jaxprs"].solve
    start = counts.matvec + counts.vecmat
    return evaluated(solve, operands[start : start + counts.solve] + operands[sum(counts) :])


def _unread(step: Any, error: UnsupportedError) -> InputError:
    results = ", ".join(str(var.aval.str_short()) for var in step.outvars)
    return InputError(
        f"difflab does not read JAX's primitive {step.primitive.name!r} "
        f"with the result {results}: {error}",
        hint="docs/reference/formats.md lists those that it reads",
    )
