"""`grad`, `value_and_grad`, `jacfwd`, `jacrev`, `hessian`: of Python functions, as in JAX.

Applied to a `Function`, each returns a `Function`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, overload

import numpy as np

from difflab.autodiff.arguments import ActiveArguments, Argnums, composed
from difflab.autodiff.engine.argnums import gradients, jacobians, swept
from difflab.autodiff.functions import transforms
from difflab.autodiff.functions.grad import function_gradient, function_jacobian
from difflab.autodiff.recording import Recording, computed
from difflab.core.devices import array_module
from difflab.errors import InputError
from difflab.graph.checks import require_callable, require_flag
from difflab.graph.function import Function
from difflab.graph.pytree import LEAF, unflatten
from difflab.graph.values import first_carrier

__all__ = ["grad", "hessian", "jacfwd", "jacrev", "value_and_grad"]

STACKED_ELEMENTS = 1 << 21
"""Approximate maximum number of elements of a value when one sweep handles many seeds."""

AnyCallable = Callable[..., Any]


@overload
def grad(fun: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function: ...
@overload
def grad(fun: AnyCallable, argnums: Argnums = 0, has_aux: bool = False) -> AnyCallable: ...
def grad(fun: AnyCallable, argnums: Argnums = 0, has_aux: bool = False) -> AnyCallable:
    """Return the function whose value is the gradient of `fun`.

    ``grad(f)(x)`` is ∂f/∂x by one reverse sweep, shaped like x. The function is traced once
    per call, at the point of the call, so it may branch and loop on values; values it captures
    besides its arguments are constants.

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
    return _gradient_of(fun, argnums, has_aux, with_value=False)


@overload
def value_and_grad(fun: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function: ...
@overload
def value_and_grad(
    fun: AnyCallable, argnums: Argnums = 0, has_aux: bool = False
) -> AnyCallable: ...
def value_and_grad(fun: AnyCallable, argnums: Argnums = 0, has_aux: bool = False) -> AnyCallable:
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
    return _gradient_of(fun, argnums, has_aux, with_value=True)


def _gradient_of(
    fun: AnyCallable, argnums: Argnums, has_aux: bool, *, with_value: bool
) -> AnyCallable:
    what = "value_and_grad" if with_value else "grad"
    require_callable(fun, what)

    @wraps(fun, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        chosen = ActiveArguments(fun, argnums, args, kwargs, what)
        run = chosen.record(has_aux)
        _require_scalar_result(run, what)
        sources = tuple(range(len(chosen.values)))
        parts = computed(run.derived(gradients, sources), [*chosen.values, *run.captured])
        outputs = parts[: len(parts) - len(sources)]
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


@overload
def jacfwd(fun: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function: ...
@overload
def jacfwd(fun: AnyCallable, argnums: Argnums = 0, has_aux: bool = False) -> AnyCallable: ...
def jacfwd(fun: AnyCallable, argnums: Argnums = 0, has_aux: bool = False) -> AnyCallable:
    """Return the function whose value is the Jacobian of `fun`, by forward mode.

    For a result of shape s and an argument of shape t the Jacobian has the shape s + t. One
    sweep is applied to all unit tangents of an argument at once: best for few inputs.

    Parameters
    ----------
    fun : callable or Function
        As for `grad`, with any results.
    argnums : int or sequence of int
        Which positional arguments (or inputs) to differentiate by.
    has_aux : bool
        Whether a callable returns a pair of its result and auxiliary data.

    Returns
    -------
    callable or Function
        Returns the result's tree with, in place of each leaf, the argument's tree of
        Jacobians, as in JAX.

    Raises
    ------
    InputError
        As `grad`, except that any results are allowed.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> dl.jacfwd(lambda x: x[0] * x[1:])(np.array([5.0, 2.0, 3.0])).tolist()
    [[2.0, 5.0, 0.0], [3.0, 0.0, 5.0]]
    """
    return _jacobian_of(fun, argnums, has_aux, forward=True)


@overload
def jacrev(fun: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function: ...
@overload
def jacrev(fun: AnyCallable, argnums: Argnums = 0, has_aux: bool = False) -> AnyCallable: ...
def jacrev(fun: AnyCallable, argnums: Argnums = 0, has_aux: bool = False) -> AnyCallable:
    """Return the function whose value is the Jacobian of `fun`, by reverse mode.

    The same as `jacfwd`, by one sweep applied to all unit cotangents of a result at once: best
    for few outputs.

    Parameters
    ----------
    fun : callable or Function
        As for `jacfwd`.
    argnums : int or sequence of int
        Which positional arguments (or inputs) to differentiate by.
    has_aux : bool
        Whether a callable returns a pair of its result and auxiliary data.

    Returns
    -------
    callable or Function
        As `jacfwd`.

    Raises
    ------
    InputError
        As `jacfwd`.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> J = dl.jacrev(lambda x, y: {"product": x * y, "sum": x + y}, argnums=(0, 1))(2.0, 3.0)
    >>> {name: [float(number) for number in row] for name, row in J.items()}
    {'product': [3.0, 2.0], 'sum': [1.0, 1.0]}
    """
    return _jacobian_of(fun, argnums, has_aux, forward=False)


def _jacobian_of(
    fun: AnyCallable, argnums: Argnums, has_aux: bool, *, forward: bool
) -> AnyCallable:
    what = "jacfwd" if forward else "jacrev"
    require_flag(has_aux, "has_aux", what)
    if isinstance(fun, Function):
        if has_aux:
            raise InputError(f"{what} of a Function differentiates every output: omit has_aux")
        return function_jacobian(fun, argnums, what, forward=forward)
    require_callable(fun, what)

    @wraps(fun, updated=())
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen = ActiveArguments(fun, argnums, args, kwargs, what)
        run = chosen.record(has_aux)
        values = [*chosen.values, *run.captured]
        blocks = _blocks(run, values, len(chosen.values), forward=forward)
        tree = unflatten(composed(run.structure, chosen.shown), blocks)
        return (tree, run.aux(computed(run.function, values))) if has_aux else tree

    return jacobian


def _blocks(run: Recording, values: list[Any], count: int, *, forward: bool) -> list[Any]:
    """Return the Jacobian of each result with respect to each of the first `count` values."""
    sources, outputs = tuple(range(count)), tuple(range(run.results))
    if first_carrier(values) is not None:
        whole = run.derived(jacobians, sources, outputs, forward=forward)
        return computed(whole, values)
    sweeps = [((i,), outputs) for i in sources] if forward else [(sources, (o,)) for o in outputs]
    xp = array_module(values, "a Jacobian")
    blocks: dict[tuple[int, int], Any] = {}
    for ins, outs in sweeps:
        one = run.derived(swept, ins, outs, forward=forward)
        stacks = _on_unit_seeds(one, values)
        pairs = [(o, i) for o in outs for i in ins]
        for (o, i), stack in zip(pairs, stacks, strict=True):
            out, shape = run.function.output_shapes[o], run.function.input_shapes[i]
            if forward and shape:
                stack = xp.moveaxis(stack, 0, -1)
            blocks[o, i] = xp.ascontiguousarray(stack).reshape(out + shape)[()]
    return [blocks[o, i] for o in outputs for i in sources]


def _on_unit_seeds(one: Function, values: list[Any]) -> list[Any]:
    """Evaluate a sweep for every unit seed, in stacks of limited size."""
    if len(one.inputs) == len(values):
        return computed(one, values)
    shape, xp = one.input_shapes[-1], array_module(values, "a Jacobian")
    size = math.prod(shape)
    largest = max(map(math.prod, one.graph.shape_table))
    step = max(1, STACKED_ELEMENTS // max(largest, 1))
    pieces = []
    for start in range(0, max(size, 1), step):
        count = min(step, size - start)
        seeds = xp.asarray(np.eye(count, size, start).reshape(count, *shape))
        pieces.append(computed(one, [*values, seeds], stack=count))
    if len(pieces) == 1:
        return pieces[0]
    return [xp.concatenate(parts) for parts in zip(*pieces, strict=True)]


@overload
def hessian(fun: Function, argnums: Argnums | None = None, has_aux: bool = False) -> Function: ...
@overload
def hessian(
    fun: AnyCallable, argnums: Argnums | None = None, has_aux: bool = False
) -> AnyCallable: ...
def hessian(fun: AnyCallable, argnums: Argnums | None = None, has_aux: bool = False) -> AnyCallable:
    """Return the matrix of second derivatives, forward over reverse.

    Of a callable this is ``jacfwd(jacrev(fun))``, shaped as in JAX. Of a Function it is the
    matrix ``H = ∂(∇f)/∂x`` of all inputs flattened, unless `argnums` is given.

    Parameters
    ----------
    fun : callable or Function
        A Function has one scalar output.
    argnums : int or sequence of int, optional
        Which arguments to differentiate by: 0 for a callable, all for a Function.
    has_aux : bool
        Whether a callable returns a pair of its result and auxiliary data.

    Returns
    -------
    callable or Function
        Of a Function without `argnums`: its output has the shape batch + (n, n).

    Raises
    ------
    InputError
        The function has several outputs; or as `jacfwd`.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> dl.hessian(lambda x: x[0] ** 2 * x[1])(np.array([3.0, 5.0])).tolist()
    [[10.0, 6.0], [6.0, 0.0]]
    >>> dl.hessian(dl.parse("x^2*y"))(3.0, 5.0).tolist()
    [[10.0, 6.0], [6.0, 0.0]]
    """
    require_flag(has_aux, "has_aux", "hessian")
    if isinstance(fun, Function) and argnums is None and not has_aux:
        return transforms.hessian(fun)
    chosen = 0 if argnums is None else argnums
    if isinstance(fun, Function):
        return jacfwd(jacrev(fun, chosen, has_aux), chosen)
    return jacfwd(jacrev(fun, chosen, has_aux), chosen, has_aux)
