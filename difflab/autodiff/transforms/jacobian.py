"""Matrices of derivatives: `jacobian`, `jacfwd`, `jacrev` and `hessian`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from difflab.autodiff.engine.argnums import jacobian_blocks, jacobians, swept
from difflab.autodiff.engine.custom import goes_forward
from difflab.autodiff.engine.jacobian_entries import SweepMode, check_mode
from difflab.autodiff.functions import flat
from difflab.autodiff.functions.flat import Names, derivative_by
from difflab.autodiff.lifting import Argnums, Call, F, composed, lifted
from difflab.autodiff.recording import computed, stack_size
from difflab.core.apply import array_module
from difflab.errors import InputError
from difflab.graph.checks import require_flag, require_function
from difflab.graph.function import Function
from difflab.graph.pytree import unflatten
from difflab.graph.values import in_precision


def jacfwd(fun: F, argnums: Argnums = 0, has_aux: bool = False) -> F:
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
    return lifted(partial(_jacobian, forward=True), fun, argnums, has_aux, "jacfwd")


def jacrev(fun: F, argnums: Argnums = 0, has_aux: bool = False) -> F:
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
    return lifted(partial(_jacobian, forward=False), fun, argnums, has_aux, "jacrev")


def jacobian(
    fun: F,
    mode: SweepMode = "auto",
    argnums: Argnums | None = None,
    has_aux: bool = False,
    wrt: Names | None = None,
) -> F:
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
    function: Any = fun
    if not callable(function):
        require_function(function, "jacobian")
    if _is_flat(fun, argnums, has_aux, wrt, "jacobian"):
        return derivative_by(partial(flat.jacobian, mode=mode), function, wrt, "jacobian")
    check_mode(mode)
    forward = None if mode == "auto" else mode == "forward"
    chosen = 0 if argnums is None else argnums
    return lifted(partial(_jacobian, forward=forward), fun, chosen, has_aux, "jacobian")


def hessian(
    fun: F,
    argnums: Argnums | None = None,
    has_aux: bool = False,
    wrt: Names | None = None,
) -> F:
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
    function: Any = fun
    if _is_flat(fun, argnums, has_aux, wrt, "hessian"):
        return derivative_by(flat.hessian, function, wrt, "hessian", axes=2)
    return lifted(_hessian, fun, 0 if argnums is None else argnums, has_aux, "hessian")


def _is_flat(
    fun: Any, argnums: Argnums | None, has_aux: bool, wrt: Names | None, what: str
) -> bool:
    """Whether the derivative is that of a Function by its flattened inputs, perhaps by name.

    Raises
    ------
    InputError
        Inputs cannot be named, or are chosen in two ways.
    """
    require_flag(has_aux, "has_aux", what)
    if wrt is not None and not isinstance(fun, Function):
        raise InputError(
            f"wrt of {what} names inputs of a Function, not arguments of Python code",
            hint="choose these by argnums, such as argnums=(0, 1), or trace the code: "
            "dl.trace(f, *examples)",
        )
    if wrt is not None and (argnums is not None or has_aux):
        other = "has_aux" if argnums is None else "argnums"
        raise InputError(f"wrt and {other} of {what} exclude each other", hint="omit one of them")
    return isinstance(fun, Function) and argnums is None and not has_aux


def _jacobian(call: Call, *, forward: bool | None) -> Any:
    """Return the result's tree of the arguments' trees of Jacobians, by one mode or the better."""
    _require_no_aux(call)
    return call.with_aux(_blocks(call, forward))


def _hessian(call: Call) -> Any:
    """Return the Jacobians of the Jacobians, forward over reverse where that is possible."""
    _require_no_aux(call)
    run, slopes = call.run, call.derived(jacobians, call.outputs, forward=False)
    inner = replace(
        run,
        function=slopes,
        results=len(slopes.outputs),
        structure=composed(run.structure, call.arguments),
        precisions=call.precisions * run.results,
    )
    return call.with_aux(_blocks(replace(call, run=inner), None))


def _require_no_aux(call: Call) -> None:
    """Raise `InputError` where auxiliary data is asked for of a Function."""
    if call.values is None and call.has_aux:
        raise InputError(f"{call.what} of a Function differentiates every output: omit has_aux")


def _blocks(call: Call, forward: bool | None) -> Any:
    """Return the tree of Jacobians; of a callable's values in stacks of limited size."""
    run, outputs = call.run, call.outputs
    if forward is None:
        m = sum(math.prod(run.function.output_shapes[o]) for o in outputs)
        forward = sum(map(math.prod, call.shapes())) <= m and goes_forward(run.function)
    form = partial(unflatten, composed(run.structure, call.arguments))
    pairs = product(run.precisions[: run.results], call.precisions)
    kinds = [out if forward else into for out, into in pairs]
    if call.on_graphs:
        return call.returned(call.derived(jacobians, outputs, forward=forward), form, kinds)

    def stacks(ins: Sequence[int], outs: Sequence[int]) -> list[Any]:
        return _on_unit_seeds(run.derived(swept, ins, outs, forward=forward), call.values or [])

    blocks = jacobian_blocks(run.function, call.sources, outputs, stacks, forward=forward)
    return form([in_precision(block[()], kind) for block, kind in zip(blocks, kinds, strict=True)])


def _on_unit_seeds(one: Function, values: list[Any]) -> list[Any]:
    """Evaluate a sweep for every unit seed, in stacks of limited size."""
    if len(one.inputs) == len(values):
        return computed(one, values)
    shape, xp = one.input_shapes[-1], array_module(values, "a Jacobian")
    size = math.prod(shape)
    step = stack_size(one, one.input_nodes[-1:])
    pieces = []
    for start in range(0, max(size, 1), step):
        count = min(step, size - start)
        seeds = xp.asarray(np.eye(count, size, start).reshape(count, *shape))
        pieces.append(computed(one, [*values, seeds], stack=count))
    if len(pieces) == 1:
        return pieces[0]
    return [xp.concatenate(parts) for parts in zip(*pieces, strict=True)]
