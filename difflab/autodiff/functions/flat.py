"""Derivatives of a Function by its flattened inputs, as one array: gradient, Jacobian, Hessian."""

from __future__ import annotations

import math
from dataclasses import replace

from difflab.autodiff.engine.argnums import curvature
from difflab.autodiff.engine.jacobian_entries import (
    SweepMode,
    check_mode,
    derived,
    entries,
    packed,
)
from difflab.autodiff.engine.sweep import Sweep
from difflab.core.machine import require_memory
from difflab.errors import InputError
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.graph.repetition import rolled
from difflab.primitives import reshape


def gradient(function: Function, mode: SweepMode) -> Function:
    """Return ∇f, on vectors of repeated terms where one reverse sweep differentiates them."""
    return _gradient(_repeating(function, mode), mode)


def _gradient(function: Function, mode: SweepMode) -> Function:
    """Return ∇f, built node by node without rolling up repetition."""
    require_scalar(function, "gradient", "jacobian")
    slope = derived(*entries(function, mode), "gradient", fewest=mode == "auto")
    return replace(slope, arguments=function.arguments)


def _repeating(function: Function, mode: SweepMode) -> Function:
    """Return `function` with its repetition as vectors, where one sweep differentiates it."""
    check_mode(mode)
    if mode != "reverse":
        return function
    return replace(rolled(function), arguments=function.arguments)


def value_and_gradient(function: Function, mode: SweepMode) -> Function:
    """Return f(x) and ∇f(x)."""
    require_scalar(function, "value_and_gradient", "jacobian")
    function = _repeating(function, mode)
    sweep, row = entries(function, mode)
    value = sweep.node(sweep.function.outputs[0])
    value = value if value.shape == () else reshape(value, shape=(), rank=value.ndim)
    return Function.build(
        sweep.builder,
        sweep.function.input_nodes,
        [value.id, row.id],
        [function.output_names[0], "gradient"],
        arguments=function.arguments,
    )


def jacobian(function: Function, mode: SweepMode) -> Function:
    """Return J, of shape (m, n)."""
    m, n = function.m, function.n
    require_memory(8 * m * n, f"the matrix of {m:,} × {n:,} derivatives")
    sweep, flat = entries(function, mode)
    matrix: Node = reshape(flat, shape=(m, n), rank=1)
    whole = derived(sweep, matrix, "jacobian", fewest=mode == "auto")
    return replace(whole, arguments=function.arguments)


def hessian(function: Function) -> Function:
    """Return the second derivatives, of shape (n, n)."""
    require_scalar(function, "hessian", "jacobian(jacobian(f))")
    # On scalars even where terms repeat: a column involves few terms, but whole vectors otherwise.
    slope = _gradient(function, "reverse")
    return replace(jacobian(slope, "auto"), output_names=("hessian",))


def hvp(function: Function) -> Function:
    """Return H ẋ, a vector; for each input ``x`` a direction ``x_dot`` is a further input."""
    require_scalar(function, "hvp", "jvp(jacobian(f))")
    return in_one_vector(curvature(function, tuple(range(len(function.inputs)))), "hvp")


def in_one_vector(function: Function, name: str) -> Function:
    """Return a function with the elements of all outputs in one vector."""
    sweep = Sweep(function)
    vector = packed(sweep, [sweep.node(output) for output in function.outputs])
    return Function.build(sweep.builder, function.input_nodes, [vector.id], [name])


def require_scalar(function: Function, transform: str, instead: str) -> None:
    """Raise `InputError` unless the function has exactly one output element."""
    if len(function.outputs) != 1 or math.prod(function.output_shapes[0]) != 1:
        raise InputError(
            f"{transform} needs a function with one output number, this one has {function.m}",
            hint=f"use {instead}",
        )
