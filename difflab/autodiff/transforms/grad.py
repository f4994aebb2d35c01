"""Derivatives of one number that code returns: `grad`, and with the value `value_and_grad`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from difflab.autodiff.engine.argnums import gradients
from difflab.autodiff.lifting import Argnums, Call, F, lifted
from difflab.errors import InputError
from difflab.graph.pytree import LEAF, unflatten


def grad(fun: F, argnums: Argnums = 0, has_aux: bool = False, *, verify: bool = False) -> F:
    """Return the function whose value is the gradient of `fun`.

    ``grad(f)(x)`` is ∂f/∂x by one reverse sweep, shaped like x. The function is traced once
    per call, at the point of the call, so it may branch and loop on values; values it captures
    besides its arguments are constants.

    As in JAX, only the first argument is differentiated by unless `argnums` says otherwise; that
    also holds for the inputs of a Function. `gradient` of a Function is ∇f by all inputs, in one
    array.

    Parameters
    ----------
    fun : callable or Function
        With a real scalar result. A callable is written with NumPy; its arguments and
        results may be tuples, lists and dicts of float64 scalars and arrays, or of tensors:
        the gradient of a tensor is a tensor, recorded if the tensor requires grad.
    argnums : int or sequence of int
        Which positional arguments (or inputs) to differentiate by; negative ones count from
        the last. Other arguments, and keyword arguments, are passed unchanged.
    has_aux : bool
        Whether `fun` returns a pair of the scalar and auxiliary data.
    verify : bool
        Whether each call also runs `fun` itself on the arrays, at the point and beside it, and
        compares what it computes with the graph: for tests of code that may be something else
        on traced values.

    Returns
    -------
    callable or Function
        Returns the gradient, a tuple of gradients where `argnums` is a sequence; with
        `has_aux` the pair of that and the auxiliary data. Of a Function, a Function with one
        output for each of `argnums`.

    Raises
    ------
    InputError
        When called: the result is not a scalar, `argnums` is invalid, a differentiated
        argument holds integers, or the code cannot be traced.
    GraphMismatchError
        When called, with `verify`: the graph is not the function of the code.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> round(float(dl.grad(np.tanh)(2.0)), 12)
    0.070650824853
    >>> loss = lambda model, x: np.sum((model["w"] * x + model["b"]) ** 2)
    >>> model = {"w": 2.0, "b": 1.0}
    >>> {name: float(slope) for name, slope in dl.grad(loss)(model, np.ones(3)).items()}
    {'b': 18.0, 'w': 18.0}
    >>> dl.grad(dl.parse("x^2*y"), argnums=(0, 1))(3.0, 5.0)
    (np.float64(30.0), np.float64(9.0))
    """
    return lifted(partial(_gradient, with_value=False), fun, argnums, has_aux, "grad", verify)


def value_and_grad(
    fun: F, argnums: Argnums = 0, has_aux: bool = False, *, verify: bool = False
) -> F:
    """Return the function whose result is the pair of `fun`'s value and its gradient.

    Both are computed by one call. Parameters and errors are those of `grad`.

    Parameters
    ----------
    fun : callable or Function
        With a real scalar result.
    argnums : int or sequence of int
        Which positional arguments (or inputs) to differentiate by.
    has_aux : bool
        Whether `fun` returns a pair of the scalar and auxiliary data.
    verify : bool
        As for `grad`.

    Returns
    -------
    callable or Function
        Returns ``(value, gradient)``, with `has_aux` ``((value, aux), gradient)``.

    Examples
    --------
    >>> import difflab as dl
    >>> value, slope = dl.value_and_grad(lambda x: x**3)(2.0)
    >>> float(value), float(slope)
    (8.0, 12.0)
    >>> dl.value_and_grad(dl.parse("x^2*y"), argnums=(0, 1))(3.0, 5.0)
    (np.float64(45.0), (np.float64(30.0), np.float64(9.0)))
    """
    transform = partial(_gradient, with_value=True)
    return lifted(transform, fun, argnums, has_aux, "value_and_grad", verify)


def _gradient(call: Call, *, with_value: bool) -> Any:
    """Return the cotangents of the arguments for a result that is one number."""
    require_number(call)
    run, count = call.run, len(call.run.function.outputs)

    def form(parts: Sequence[Any]) -> Any:
        slopes = unflatten(call.arguments, parts[count:])
        if with_value:
            return (parts[0], run.aux(parts)) if call.has_aux else parts[0], slopes
        return (slopes, run.aux(parts)) if call.has_aux else slopes

    return call.returned(call.derived(gradients), form, [*run.precisions, *call.precisions])


def require_number(call: Call) -> None:
    """Raise `InputError` unless the result of a call is one number."""
    function, structure, what = call.run.function, call.run.structure, call.what
    if call.values is None:
        extra = len(function.outputs) - 1
        if math.prod(function.output_shapes[0]) != 1 or (extra and not call.has_aux):
            raise InputError(
                f"{what} needs a function with one output number, this one has {function.m}",
                hint="use jacrev or jacfwd, or has_aux=True where other outputs are auxiliary",
            )
        if call.has_aux and not extra:
            raise InputError(f"has_aux=True of {what} needs a function with further outputs")
    elif structure != LEAF:
        raise InputError(
            f"{what} needs a function that returns one number, this one returns {structure}",
            hint="use has_aux=True for a pair (value, auxiliary data), jacrev for several results",
        )
    elif function.output_shapes[0] != ():
        raise InputError(
            f"{what} needs a function that returns one number, this one returns an array of "
            f"shape {function.output_shapes[0]}",
            hint="reduce it (np.sum), or use jacrev or jacfwd",
        )
