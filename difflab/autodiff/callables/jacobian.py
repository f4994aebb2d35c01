"""`jacfwd`, `jacrev`, `jacobian` and `hessian` of Python functions, as in JAX.

Applied to a `Function`, each returns a `Function`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any, overload

import numpy as np

from difflab.autodiff.arguments import ActiveArguments, Argnums, composed
from difflab.autodiff.engine.argnums import jacobians, swept
from difflab.autodiff.engine.custom import goes_forward
from difflab.autodiff.engine.jacobian_entries import SweepMode, check_mode
from difflab.autodiff.functions import transforms
from difflab.autodiff.functions.chosen import Names
from difflab.autodiff.functions.grad import function_jacobian
from difflab.autodiff.recording import Recording, computed
from difflab.core.attributes import like
from difflab.core.devices import array_module
from difflab.errors import InputError
from difflab.graph.checks import require_callable, require_flag, require_function
from difflab.graph.function import Function
from difflab.graph.precision import in_precision
from difflab.graph.pytree import unflatten
from difflab.graph.values import first_carrier

__all__ = ["hessian", "jacfwd", "jacobian", "jacrev"]

STACKED_ELEMENTS = 1 << 21
"""Approximate maximum number of elements of a value when one sweep handles many seeds."""

AnyCallable = Callable[..., Any]


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
    return _jacobian_of(fun, argnums, has_aux, "jacfwd", forward=True)


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
    return _jacobian_of(fun, argnums, has_aux, "jacrev", forward=False)


@overload
def jacobian(
    fun: Function,
    mode: SweepMode = "auto",
    argnums: Argnums | None = None,
    has_aux: bool = False,
    wrt: Names | None = None,
) -> Function: ...
@overload
def jacobian(
    fun: AnyCallable,
    mode: SweepMode = "auto",
    argnums: Argnums | None = None,
    has_aux: bool = False,
    wrt: Names | None = None,
) -> AnyCallable: ...
def jacobian(
    fun: AnyCallable,
    mode: SweepMode = "auto",
    argnums: Argnums | None = None,
    has_aux: bool = False,
    wrt: Names | None = None,
) -> AnyCallable:
    """Return J = ∂(outputs)/∂(inputs): of a Function the matrix, of a callable JAX's trees.

    Of a Function the outputs and the inputs are flattened, unless `argnums` is given. Mode "auto"
    then builds the Jacobian forward, in reverse and by vertex elimination, which multiplies the
    paths that several entries share once (Griewank & Reese, 1991), and uses the one with the
    fewest operations; where building them would take long it compares m with n. It also multiplies
    by powers of two last, which changes a result only by underflow or overflow.

    Parameters
    ----------
    fun : callable or Function
        With any outputs; m and n are the numbers of output and input elements.
    mode : {"auto", "forward", "reverse"}
        The direction of the sweeps. With `argnums`, or of a callable, "auto" is "forward" if
        n ≤ m.
    argnums : int or sequence of int, optional
        Which arguments to differentiate by: 0 for a callable, all for a Function.
    has_aux : bool
        Whether a callable returns a pair of its result and auxiliary data.
    wrt : str or sequence of str, optional
        Of a Function: the inputs to differentiate by, such as ``"x1"``, and elements of arrays,
        such as ``"w[0,2]"``, in the order of the names.

    Returns
    -------
    callable or Function
        Of a Function without `argnums`: its output has the shape batch + (m, n). Otherwise as
        `jacfwd`: the result's tree with the argument's tree of Jacobians for each leaf.

    Raises
    ------
    InputError
        `mode` is unknown; or as `jacfwd`.
    ResourceError
        The matrix requires more memory than is available.

    Examples
    --------
    >>> import difflab as dl
    >>> dl.jacobian(dl.parse("[x*y, x + y]"))(2.0, 3.0).tolist()
    [[3.0, 2.0], [1.0, 1.0]]
    >>> J = dl.jacobian(lambda p: {"area": p["a"] * p["b"]})({"a": 2.0, "b": 3.0})
    >>> {name: float(number) for name, number in J["area"].items()}
    {'a': 3.0, 'b': 2.0}
    """
    given: Any = fun
    if not callable(given):
        require_function(given, "jacobian")
    require_flag(has_aux, "has_aux", "jacobian")
    if wrt is not None:
        _check_names(fun, argnums, has_aux, "jacobian")
    if isinstance(fun, Function) and argnums is None and not has_aux:
        return transforms.jacobian(fun, mode, wrt)
    check_mode(mode)
    forward = None if mode == "auto" else mode == "forward"
    chosen = 0 if argnums is None else argnums
    return _jacobian_of(fun, chosen, has_aux, "jacobian", forward=forward)


def _check_names(fun: Any, argnums: Argnums | None, has_aux: bool, what: str) -> None:
    """Raise `InputError` where inputs cannot be named, or are chosen in two ways."""
    if not isinstance(fun, Function):
        raise InputError(
            f"wrt of {what} names inputs of a Function, not arguments of Python code",
            hint="choose these by argnums, such as argnums=(0, 1), or trace the code: "
            "dl.trace(f, *examples)",
        )
    if argnums is not None or has_aux:
        other = "has_aux" if argnums is None else "argnums"
        raise InputError(f"wrt and {other} of {what} exclude each other", hint="omit one of them")


def _jacobian_of(
    fun: AnyCallable, argnums: Argnums, has_aux: bool, what: str, *, forward: bool | None
) -> AnyCallable:
    """Return the Jacobians by one mode; None selects it by the sizes."""
    require_flag(has_aux, "has_aux", what)
    if isinstance(fun, Function):
        if has_aux:
            raise InputError(f"{what} of a Function differentiates every output: omit has_aux")
        ahead = _goes_forward(fun, fun.n, fun.m) if forward is None else forward
        return function_jacobian(fun, argnums, what, forward=ahead)
    require_callable(fun, what)

    @like(fun)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen = ActiveArguments(fun, argnums, args, kwargs, what)
        run = chosen.record(has_aux)
        values = [*chosen.values, *run.captured]
        ahead = forward
        if ahead is None:
            sizes = [math.prod(shape) for shape in run.function.output_shapes[: run.results]]
            n = sum(math.prod(value.shape) for value in chosen.values)
            ahead = _goes_forward(run.function, n, sum(sizes))
        blocks = _blocks(run, values, len(chosen.values), forward=ahead)
        pairs = product(run.precisions[: run.results], chosen.precisions)
        blocks = [
            in_precision(block, out if ahead else into)
            for block, (out, into) in zip(blocks, pairs, strict=True)
        ]
        tree = unflatten(composed(run.structure, chosen.shown), blocks)
        return (tree, run.aux(run.typed(computed(run.function, values)))) if has_aux else tree

    return jacobian


def _goes_forward(function: Function, n: int, m: int) -> bool:
    """Whether forward mode takes no more sweeps than reverse mode, and is possible."""
    return n <= m and goes_forward(function)


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


def _largest_stacked(one: Function) -> int:
    """Return the most elements of a value that depends on the seed, the last input."""
    known: int | None = one.derived_cache.get("largest stacked")
    if known is None:
        graph = one.graph
        sizes = np.array([math.prod(shape) for shape in graph.shape_table])[graph.shape_ids]
        depends = np.frombuffer(graph.reached_from([one.input_nodes[-1]]), dtype=np.bool_)
        known = int(sizes[depends].max())
        one.derived_cache["largest stacked"] = known
    return known


def _on_unit_seeds(one: Function, values: list[Any]) -> list[Any]:
    """Evaluate a sweep for every unit seed, in stacks of limited size."""
    if len(one.inputs) == len(values):
        return computed(one, values)
    shape, xp = one.input_shapes[-1], array_module(values, "a Jacobian")
    size = math.prod(shape)
    step = max(1, STACKED_ELEMENTS // max(_largest_stacked(one), 1))
    pieces = []
    for start in range(0, max(size, 1), step):
        count = min(step, size - start)
        seeds = xp.asarray(np.eye(count, size, start).reshape(count, *shape))
        pieces.append(computed(one, [*values, seeds], stack=count))
    if len(pieces) == 1:
        return pieces[0]
    return [xp.concatenate(parts) for parts in zip(*pieces, strict=True)]


@overload
def hessian(
    fun: Function,
    argnums: Argnums | None = None,
    has_aux: bool = False,
    wrt: Names | None = None,
) -> Function: ...
@overload
def hessian(
    fun: AnyCallable,
    argnums: Argnums | None = None,
    has_aux: bool = False,
    wrt: Names | None = None,
) -> AnyCallable: ...
def hessian(
    fun: AnyCallable,
    argnums: Argnums | None = None,
    has_aux: bool = False,
    wrt: Names | None = None,
) -> AnyCallable:
    """Return the matrix of second derivatives, forward over reverse.

    Of a callable it covers the first argument, as in JAX, unless `argnums` is given:
    ``jacfwd(jacrev(fun))``, or ``jacrev(jacrev(fun))`` where a custom function has no forward rule,
    of the shape result + argument + argument, so a number where both are scalars. Several
    `argnums` give a tuple of tuples of blocks. Of a Function it covers all inputs: the matrix
    ``H = ∂(∇f)/∂x`` of the inputs flattened, unless `argnums` or `wrt` is given.

    Parameters
    ----------
    fun : callable or Function
        A Function has one scalar output.
    argnums : int or sequence of int, optional
        Which arguments to differentiate by: 0 for a callable, all for a Function.
    has_aux : bool
        Whether a callable returns a pair of its result and auxiliary data.
    wrt : str or sequence of str, optional
        Of a Function: the inputs to differentiate by, such as ``"x1"``, and elements of arrays,
        such as ``"w[0,2]"``, in the order of the names.

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
    >>> float(dl.hessian(lambda x, y: x**2 * y)(3.0, 5.0))  # by the first argument
    10.0
    >>> blocks = dl.hessian(lambda x, y: x**2 * y, argnums=(0, 1))(3.0, 5.0)
    >>> np.array(blocks).tolist()
    [[10.0, 6.0], [6.0, 0.0]]
    """
    require_flag(has_aux, "has_aux", "hessian")
    if wrt is not None:
        _check_names(fun, argnums, has_aux, "hessian")
    if isinstance(fun, Function) and argnums is None and not has_aux:
        return transforms.hessian(fun, wrt)
    chosen = 0 if argnums is None else argnums
    slope, aux = jacrev(fun, chosen, has_aux), has_aux and not isinstance(fun, Function)
    return _jacobian_of(slope, chosen, aux, "jacfwd", forward=None)
