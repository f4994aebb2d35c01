"""`grad` and `value_and_grad` of Python functions, as in JAX.

Applied to a `Function`, each returns a `Function`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from difflab.autodiff.arguments import ActiveArguments, Argnums
from difflab.autodiff.engine.argnums import gradients
from difflab.autodiff.functions.grad import function_gradient
from difflab.autodiff.recording import Recording, computed
from difflab.core.attributes import like
from difflab.errors import InputError
from difflab.graph.checks import require_callable
from difflab.graph.function import Function
from difflab.graph.pytree import LEAF

__all__ = ["grad", "value_and_grad"]

AnyCallable = Callable[..., Any]


@overload
def grad(
    fun: Function, argnums: Argnums = 0, has_aux: bool = False, *, verify: bool = False
) -> Function: ...
@overload
def grad(
    fun: AnyCallable, argnums: Argnums = 0, has_aux: bool = False, *, verify: bool = False
) -> AnyCallable: ...
def grad(
    fun: AnyCallable, argnums: Argnums = 0, has_aux: bool = False, *, verify: bool = False
) -> AnyCallable:
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
    if isinstance(fun, Function):
        return function_gradient(fun, argnums, has_aux, with_value=False)
    return _gradient_of(fun, argnums, has_aux, with_value=False, verify=verify)


@overload
def value_and_grad(
    fun: Function, argnums: Argnums = 0, has_aux: bool = False, *, verify: bool = False
) -> Function: ...
@overload
def value_and_grad(
    fun: AnyCallable, argnums: Argnums = 0, has_aux: bool = False, *, verify: bool = False
) -> AnyCallable: ...
def value_and_grad(
    fun: AnyCallable, argnums: Argnums = 0, has_aux: bool = False, *, verify: bool = False
) -> AnyCallable:
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
    if isinstance(fun, Function):
        return function_gradient(fun, argnums, has_aux, with_value=True)
    return _gradient_of(fun, argnums, has_aux, with_value=True, verify=verify)


def _gradient_of(
    fun: AnyCallable, argnums: Argnums, has_aux: bool, *, with_value: bool, verify: bool
) -> AnyCallable:
    what = "value_and_grad" if with_value else "grad"
    require_callable(fun, what)

    @like(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        chosen = ActiveArguments(fun, argnums, args, kwargs, what)
        run = chosen.record(has_aux, verify)
        _require_scalar_result(run, what)
        sources = tuple(range(len(chosen.values)))
        parts = computed(run.derived(gradients, sources), [*chosen.values, *run.captured])
        outputs = run.typed(parts[: len(parts) - len(sources)])
        slopes = chosen.tree(parts[len(outputs) :])
        if with_value:
            return ((outputs[0], run.aux(outputs)) if has_aux else outputs[0]), slopes
        return (slopes, run.aux(outputs)) if has_aux else slopes

    return gradient


def _require_scalar_result(run: Recording, what: str) -> None:
    """Raise `InputError` unless the result is a scalar."""
    if run.structure != LEAF:
        raise InputError(
            f"{what} needs a function that returns one number, this one returns {run.structure}",
            hint="use has_aux=True for a pair (value, auxiliary data), jacrev for several results",
        )
    if run.function.output_shapes[0] != ():
        raise InputError(
            f"{what} needs a function that returns one number, this one returns an array of "
            f"shape {run.function.output_shapes[0]}",
            hint="reduce it (np.sum), or use jacrev or jacfwd",
        )
