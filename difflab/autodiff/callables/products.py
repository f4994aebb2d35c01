"""`jvp`, `vjp`, `linearize`, `hvp`: products of derivatives with vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from difflab.autodiff.arguments import ActiveArguments, all_arguments, vectors
from difflab.autodiff.callables.grad import grad
from difflab.autodiff.engine.argnums import pulled, pushed, split
from difflab.autodiff.engine.custom import goes_forward
from difflab.autodiff.functions import transforms
from difflab.autodiff.recording import Recording, computed
from difflab.errors import InputError
from difflab.graph.checks import require_callable
from difflab.graph.function import Function
from difflab.graph.pytree import unflatten
from difflab.graph.rewritten import selected

__all__ = ["hvp", "jvp", "linearize", "vjp"]

AnyCallable = Callable[..., Any]
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
        return transforms.jvp(_alone(fun, "jvp"))
    chosen = all_arguments(fun, primals, "jvp")
    return _jvp(chosen, chosen.record(has_aux), tangents, has_aux)


def _jvp(chosen: ActiveArguments, run: Recording, tangents: Vectors, has_aux: bool) -> Any:
    """Return the result and its tangent."""
    directions = vectors(tangents, chosen.structure, chosen.values, "the tangents of jvp")
    push = run.derived(pushed, *_selection(chosen, run))
    parts = computed(push, [*chosen.values, *run.captured, *directions])
    outputs = run.typed(parts[: len(run.function.outputs)])
    result = unflatten(run.structure, outputs[: run.results])
    tangent = unflatten(run.structure, run.typed(parts[len(outputs) :]))
    return (result, tangent, run.aux(outputs)) if has_aux else (result, tangent)


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
        return transforms.vjp(fun)
    chosen = all_arguments(fun, primals, "vjp")
    run = chosen.record(has_aux)
    outputs, apply = _prepared(run, chosen, pulled)
    structure = run.structure
    shapes = run.function.output_shapes[: run.results]

    def vjp_fn(cotangent: Any) -> Any:
        """Return the cotangents of the primals."""
        bars = vectors(cotangent, structure, shapes, "the cotangent of vjp")
        return chosen.tree(apply(bars))

    result = unflatten(structure, outputs[: run.results])
    return (result, vjp_fn, run.aux(outputs)) if has_aux else (result, vjp_fn)


@overload
def linearize(fun: Function) -> Function: ...
@overload
def linearize(fun: AnyCallable, *primals: Any, has_aux: bool = False) -> Any: ...
def linearize(fun: AnyCallable, *primals: Any, has_aux: bool = False) -> Any:
    """Return ``fun(*primals)`` and the function ẋ ↦ J ẋ at that point, by forward mode.

    Unlike `jvp`, it computes what does not depend on the tangents once for all of them.

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
        whole = transforms.jvp(fun)
        count = len(fun.outputs)
        return selected(whole, whole.outputs[count:], whole.output_names[count:], fun.structure)
    chosen = all_arguments(fun, primals, "linearize")
    run = chosen.record(has_aux)
    results, apply = _prepared(run, chosen, pushed)
    structure = run.structure

    def jvp_fn(*tangents: Any) -> Any:
        """Return the tangent of the result."""
        dots = vectors(tangents, chosen.structure, chosen.values, "the tangents of linearize")
        return unflatten(structure, run.typed(apply(dots)))

    result = unflatten(structure, results[: run.results])
    return (result, jvp_fn, run.aux(results)) if has_aux else (result, jvp_fn)


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
        return transforms.hvp(_alone(fun, "hvp"))
    if not isinstance(primals, tuple | list):
        raise InputError("the primals of hvp must be a tuple or list of arguments")
    require_callable(fun, "hvp")
    argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    slope: AnyCallable = grad(lambda *args: fun(*args), argnums)
    chosen = all_arguments(slope, primals, "jvp")
    run = chosen.record(False)
    if goes_forward(run.function):
        return _jvp(chosen, run, tangents, False)[1]
    vectors(tangents, chosen.structure, chosen.values, "the tangents of hvp")
    _, pull = vjp(slope, *primals)
    found = pull(tangents[0] if len(primals) == 1 else tuple(tangents))
    return found[0] if len(primals) == 1 else found


def _alone(fun: AnyCallable, what: str) -> Function:
    """Return `fun` if it is a Function, which needs no arguments."""
    if not isinstance(fun, Function):
        raise InputError(f"{what} of a Python function needs primals and tangents")
    return fun


def _selection(chosen: ActiveArguments, run: Recording) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the positions of the differentiated inputs and outputs of a recording."""
    return tuple(range(len(chosen.values))), tuple(range(run.results))


def _prepared(
    run: Recording, chosen: ActiveArguments, transform: Callable[..., Function]
) -> tuple[list[Any], Callable[[list[Any]], list[Any]]]:
    """Compute the residuals of a sweep; return the outputs and the sweep as a linear function."""
    values = [*chosen.values, *run.captured]
    prepare, linear = run.derived(
        _divided, transform, *_selection(chosen, run), len(values), len(run.function.outputs)
    )
    parts = computed(prepare, values)
    count = len(run.function.outputs)
    outputs, residuals = run.typed(parts[:count]), parts[count:]
    return outputs, lambda vectors: computed(linear, [*residuals, *vectors])


def _divided(
    function: Function,
    transform: Callable[..., Function],
    sources: tuple[int, ...],
    outputs: tuple[int, ...],
    known: int,
    early: int,
) -> tuple[Function, Function]:
    """Return the two parts of a sweep: what the point determines, and the linear rest."""
    return split(transform(function, sources, outputs), known, early)
