"""`jvp`, `vjp`, `linearize`, `hvp`: products of derivatives with vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, overload

from difflab.autodiff.engine.argnums import curvature, pulled, pushed, split, tangents_of
from difflab.autodiff.functions import flat
from difflab.autodiff.lifting import AnyCallable, Call, call_at, vectors
from difflab.autodiff.recording import computed
from difflab.autodiff.transforms.grad import require_number
from difflab.errors import InputError
from difflab.graph.function import Function
from difflab.graph.pytree import unflatten
from difflab.graph.repetition import rolled
from difflab.graph.values import in_precision

__all__ = ["hvp", "jvp", "linearize", "vjp"]

Vectors = Sequence[Any]


@overload
def jvp(fun: Function) -> Function: ...
@overload
def jvp(fun: AnyCallable, primals: Vectors, tangents: Vectors, has_aux: bool = False) -> Any: ...
def jvp(
    fun: AnyCallable,
    primals: Vectors | None = None,
    tangents: Vectors | None = None,
    has_aux: bool = False,
) -> Any:
    """Return ``fun(*primals)`` and its tangent ẏ = J ẋ along `tangents`, by forward mode.

    Parameters
    ----------
    fun : callable or Function
        With arguments and results that are real scalars, arrays or trees of them.
    primals, tangents : tuple or list
        The arguments, and directions of the same structure and shapes. Omitted for a
        Function given alone.
    has_aux : bool
        Whether `fun` returns a pair of its result and auxiliary data.

    Returns
    -------
    tuple
        ``(result, tangent)``, with `has_aux` ``(result, tangent, aux)``.
    Function
        For a Function given alone. Inputs: its own, then for each ``x`` a tangent ``x_dot``.
        Outputs: its own, then their tangents.

    Raises
    ------
    InputError
        The tangents do not match the primals, or the primals hold integers.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> value, slope = dl.jvp(np.sin, (0.0,), (2.0,))
    >>> float(value), float(slope)
    (0.0, 2.0)
    >>> dl.jvp(dl.parse("x*y")).inputs
    ('x', 'y', 'x_dot', 'y_dot')
    """
    if primals is None or tangents is None:
        return _by_everything(_alone(fun, "jvp"), pushed)
    call = call_at(fun, primals, "jvp", has_aux)
    run, count = call.run, len(call.run.function.outputs)

    def form(parts: Sequence[Any]) -> Any:
        pair = run.result(parts), run.result(parts[count:])
        return (*pair, run.aux(parts)) if has_aux else pair

    directions = vectors(tangents, call.arguments, call.shapes(), "the tangents of jvp")
    kinds = [*run.precisions, *run.precisions[: run.results]]
    return call.returned(call.derived(pushed, call.outputs), form, kinds, directions)


@overload
def vjp(fun: Function) -> Function: ...
@overload
def vjp(fun: AnyCallable, *primals: Any, has_aux: bool = False) -> Any: ...
def vjp(fun: AnyCallable, *primals: Any, has_aux: bool = False) -> Any:
    """Return ``fun(*primals)`` and the function ȳ ↦ Jᵀ ȳ, by reverse mode.

    The returned function keeps the residuals of the reverse sweep, so that calling it does not
    repeat the forward computation.

    Parameters
    ----------
    fun : callable or Function
        With arguments and results that are real scalars, arrays or trees of them.
    *primals
        The arguments; omitted for a Function given alone.
    has_aux : bool
        Whether `fun` returns a pair of its result and auxiliary data.

    Returns
    -------
    tuple
        ``(result, vjp_fn)``, with `has_aux` ``(result, vjp_fn, aux)``. ``vjp_fn`` takes a
        cotangent of the structure of the result and returns a tuple with one for each primal.
    Function
        For a Function given alone. Inputs: its own, then for each output ``y`` a cotangent
        ``y_bar``. Outputs: its own, then a cotangent of every input.

    Raises
    ------
    InputError
        The cotangent does not match the result, or the primals hold integers.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> value, pull = dl.vjp(lambda x, y: x * np.sin(y), 2.0, 0.0)
    >>> [float(bar) for bar in pull(10.0)]
    [0.0, 20.0]
    """
    if isinstance(fun, Function) and not primals and fun.inputs:
        return _by_everything(fun, pulled)
    call = call_at(fun, primals, "vjp", has_aux)
    outputs, apply = _prepared(call, pulled)
    run, shapes = call.run, call.run.function.output_shapes[: call.run.results]

    def vjp_fn(cotangent: Any) -> Any:
        """Return the cotangents of the primals."""
        bars = apply(vectors(cotangent, run.structure, shapes, "the cotangent of vjp"))
        return unflatten(call.arguments, list(map(in_precision, bars, call.precisions)))

    result = run.result(outputs)
    return (result, vjp_fn, run.aux(outputs)) if has_aux else (result, vjp_fn)


@overload
def linearize(fun: Function) -> Function: ...
@overload
def linearize(fun: AnyCallable, *primals: Any, has_aux: bool = False) -> Any: ...
def linearize(fun: AnyCallable, *primals: Any, has_aux: bool = False) -> Any:
    """Return ``fun(*primals)`` and the function ẋ ↦ J ẋ at that point, by forward mode.

    Unlike `jvp`, it computes values that do not depend on the tangents once for all of them.

    Parameters
    ----------
    fun : callable or Function
        With arguments and results that are real scalars, arrays or trees of them.
    *primals
        The arguments; omitted for a Function given alone.
    has_aux : bool
        Whether `fun` returns a pair of its result and auxiliary data.

    Returns
    -------
    tuple
        ``(result, jvp_fn)``, with `has_aux` ``(result, jvp_fn, aux)``. ``jvp_fn`` takes a
        tangent for each primal and returns the tangent of the result.
    Function
        For a Function given alone. Inputs: its own, then for each ``x`` a tangent ``x_dot``.
        Outputs: the tangents of its own.

    Raises
    ------
    InputError
        The tangents do not match the primals, or the primals hold integers.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> value, push = dl.linearize(lambda x: x**3, 2.0)
    >>> float(value), float(push(1.0)), float(push(10.0))
    (8.0, 12.0, 120.0)
    """
    if isinstance(fun, Function) and not primals and fun.inputs:
        return replace(tangents_of(rolled(fun)), structure=fun.structure)
    call = call_at(fun, primals, "linearize", has_aux)
    outputs, apply = _prepared(call, pushed)
    run, shapes = call.run, call.shapes()

    def jvp_fn(*tangents: Any) -> Any:
        """Return the tangent of the result."""
        dots = vectors(tangents, call.arguments, shapes, "the tangents of linearize")
        return run.result(run.typed(apply(dots)))

    result = run.result(outputs)
    return (result, jvp_fn, run.aux(outputs)) if has_aux else (result, jvp_fn)


@overload
def hvp(fun: Function) -> Function: ...
@overload
def hvp(fun: AnyCallable, primals: Vectors, tangents: Vectors) -> Any: ...
def hvp(fun: AnyCallable, primals: Vectors | None = None, tangents: Vectors | None = None) -> Any:
    """Return the product H ẋ of the Hessian with a direction, without the Hessian.

    Forward over reverse: the tangent of the gradient (Pearlmutter, 1994). Where a custom function
    has no forward rule it is reverse over reverse, ``Hᵀ ẋ``.

    Parameters
    ----------
    fun : callable or Function
        With a real scalar result.
    primals, tangents : tuple or list
        The arguments, and directions of the same structure and shapes. Omitted for a
        Function given alone.

    Returns
    -------
    array or tree
        Shaped like the primal; a tuple where there are several primals.
    Function
        For a Function given alone. Inputs: its own, then for each ``x`` a direction ``x_dot``.
        The output has the shape batch + (n,).

    Raises
    ------
    InputError
        The result is not a scalar, or the tangents do not match the primals.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> x, x_dot = np.array([3.0, 5.0]), np.array([1.0, 0.0])
    >>> dl.hvp(lambda x: x[0] ** 2 * x[1], (x,), (x_dot,)).tolist()
    [10.0, 6.0]
    """
    if primals is None or tangents is None:
        return flat.hvp(_alone(fun, "hvp"))
    call = call_at(fun, primals, "hvp")
    require_number(call)
    directions = vectors(tangents, call.arguments, call.shapes(), "the tangents of hvp")

    def form(parts: Sequence[Any]) -> Any:
        slopes = unflatten(call.arguments, parts)
        return slopes[0] if len(slopes) == 1 else slopes

    return call.returned(call.derived(curvature), form, call.precisions, directions)


def _alone(fun: AnyCallable, what: str) -> Function:
    """Return `fun` if it is a Function, which needs no arguments."""
    if not isinstance(fun, Function):
        raise InputError(f"{what} of a Python function needs primals and tangents")
    return fun


def _by_everything(function: Function, transform: Callable[..., Function]) -> Function:
    """Return a product by all inputs and outputs, on vectors of repeated terms."""
    every = tuple(range(len(function.inputs))), tuple(range(len(function.outputs)))
    return transform(rolled(function), *every)


def _prepared(
    call: Call, transform: Callable[..., Function]
) -> tuple[list[Any], Callable[[list[Any]], list[Any]]]:
    """Compute the residuals of a sweep; return the outputs and the sweep as a linear function."""
    values, count = call.values or [], len(call.run.function.outputs)
    prepare, linear = call.run.derived(
        _divided, transform, call.sources, call.outputs, len(values), count
    )
    parts = computed(prepare, values)
    outputs, residuals = call.run.typed(parts[:count]), parts[count:]
    return outputs, lambda vectors: computed(linear, [*residuals, *vectors])


def _divided(
    function: Function,
    transform: Callable[..., Function],
    sources: tuple[int, ...],
    outputs: tuple[int, ...],
    known: int,
    early: int,
) -> tuple[Function, Function]:
    """Partition a sweep into the part that the point determines, and the linear rest."""
    return split(transform(function, sources, outputs), known, early)
