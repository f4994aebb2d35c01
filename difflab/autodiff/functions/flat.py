"""Derivatives of a Function by its flattened inputs, as one array: gradient, Jacobian, Hessian."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

from difflab.autodiff.engine.argnums import curvature
from difflab.autodiff.engine.jacobian_entries import SweepMode, derived, entries
from difflab.autodiff.engine.reverse import by_reverse
from difflab.autodiff.engine.squares import squares_once
from difflab.autodiff.engine.sweep import Sweep, function_of, packed
from difflab.autodiff.functions.chosen import Names, derivative_by
from difflab.core.system import require_memory
from difflab.errors import InputError
from difflab.graph.checks import require_function
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.graph.repetition import LEAST_NODES, rolled
from difflab.primitives import reshape


def gradient(function: Function, mode: SweepMode = "reverse", wrt: Names | None = None) -> Function:
    """Return ∇f as a function of the same inputs.

    ``∇f(x) = (∂f/∂x₁, …, ∂f/∂xₙ)`` with the inputs flattened in order. In reverse mode it
    needs at most a small constant times the operations of f, independently of n (Baur & Strassen,
    1983). A large f with many terms of the same form is differentiated on vectors of those terms.

    All inputs are differentiated by, in one array. `grad`, as in JAX, differentiates by the first
    input or argument alone unless it is given `argnums`, and also takes Python code.

    Parameters
    ----------
    function : Function
        With one scalar output.
    mode : {"reverse", "forward", "auto"}
        The direction of the sweep.
    wrt : str or sequence of str, optional
        The inputs to differentiate by, such as ``"x1"``, and elements of arrays, such as
        ``"w[0,2]"``, in the order of the names; all inputs when None.

    Returns
    -------
    Function
        Its output has the shape batch + (n,), where n counts the elements of the chosen inputs.

    Raises
    ------
    InputError
        The function has several outputs, `mode` is unknown, or `wrt` names no input.

    Examples
    --------
    >>> import difflab as dl
    >>> g = dl.gradient(dl.parse("ln(x1) + x1*x2 - sin(x2)"))
    >>> g(2.0, 5.0).round(12).tolist()
    [5.5, 1.716337814537]
    >>> dl.gradient(dl.parse("a*x^2 + b"), wrt="x")(2.0, 5.0, 3.0)
    array([12.])
    """
    require_scalar(function, "gradient", "jacobian", "dl.grad(f, argnums)(*arguments)")
    if wrt is not None:
        return derivative_by(partial(gradient, mode=mode), function, wrt, "gradient")
    sweep, slope = _swept(function, mode)
    if mode == "auto":
        return derived(sweep, slope, "gradient", fewest=True)
    return function_of(sweep, [slope], ["gradient"])


def value_and_gradient(
    function: Function, mode: SweepMode = "reverse", wrt: Names | None = None
) -> Function:
    """Return a function with the outputs f(x) and ∇f(x), which share their computation.

    Parameters
    ----------
    function : Function
        With one scalar output.
    mode : {"reverse", "forward", "auto"}
        The direction of the sweep.
    wrt : str or sequence of str, optional
        The inputs to differentiate by, such as ``"x1"``, and elements of arrays, such as
        ``"w[0,2]"``, in the order of the names; all inputs when None.

    Returns
    -------
    Function
        Its outputs have the shapes batch and batch + (n,).

    Raises
    ------
    InputError
        The function has several outputs, or `wrt` names no input.

    Examples
    --------
    >>> import difflab as dl
    >>> value, slope = dl.value_and_gradient(dl.parse("x^2"))(3.0)
    >>> float(value), slope.tolist()
    (9.0, [6.0])
    """
    what = "value_and_gradient"
    require_scalar(function, what, "jacobian", "dl.value_and_grad(f, argnums)(*arguments)")
    if wrt is not None:
        return derivative_by(partial(value_and_gradient, mode=mode), function, wrt, what)
    sweep, slope = _swept(function, mode)
    value = sweep.node(sweep.function.outputs[0])
    value = value if value.shape == () else reshape(value, shape=(), rank=value.ndim)
    return function_of(sweep, [value, slope], [function.output_names[0], "gradient"])


def _swept(function: Function, mode: str) -> tuple[Sweep, Node]:
    """Return ∇f, on vectors of repeated terms where one reverse sweep differentiates them."""
    if not isinstance(mode, str) or mode != "reverse":
        return entries(function, mode)
    if len(function.graph) >= LEAST_NODES:
        function = rolled(function)
    return by_reverse(squares_once(function))


def jacobian(function: Function, mode: SweepMode) -> Function:
    """Return J, of shape (m, n)."""
    m, n = function.m, function.n
    require_memory(8 * m * n, f"the matrix of {m:,} × {n:,} derivatives")
    sweep, flat = entries(function, mode)
    matrix: Node = reshape(flat, shape=(m, n), rank=1)
    return derived(sweep, matrix, "jacobian", fewest=mode == "auto")


def hessian(function: Function) -> Function:
    """Return the second derivatives, of shape (n, n)."""
    require_scalar(function, "hessian", "jacobian(jacobian(f))")
    # On scalars even where terms repeat: a column involves few terms, but whole vectors otherwise.
    slope = derived(*entries(function, "reverse"), "gradient", fewest=False)
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


def require_scalar(function: Any, what: str, instead: str, of_code: str = "") -> None:
    """Raise `InputError` unless `function` is a Function with exactly one output element.

    `instead` is the transform for several outputs, `of_code` that for Python code, if there is one.
    """
    if not isinstance(function, Function):
        require_function(function, what, of_code)
    if len(function.outputs) != 1 or math.prod(function.graph.shape(function.outputs[0])) != 1:
        raise InputError(
            f"{what} needs a function with one output number, this one has {function.m}",
            hint=f"use {instead}",
        )
