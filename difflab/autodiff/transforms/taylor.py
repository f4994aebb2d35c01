"""`jet` and `taylor`: derivatives of every order along a curve, in one sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from difflab.autodiff.functions.series import (
    coefficients,
    derivatives_along,
    require_order,
)
from difflab.autodiff.lifting import AnyCallable, Call, call_at, vectors
from difflab.errors import InputError
from difflab.graph.function import Function
from difflab.graph.pytree import flatten


def jet(
    fun: AnyCallable, primals: Sequence[Any], series: Sequence[Sequence[Any]]
) -> tuple[Any, Any]:
    r"""Return the derivatives of ``fun`` along a curve, by Taylor mode.

    For the curve :math:`x(t) = x + x^{(1)} t + x^{(2)} t^2/2! + \dots` the derivatives of
    :math:`f(x(t))` at t = 0 up to order d take O(d²) operations for each operation of f, where
    d nested forward modes take O(2ᵈ) (Griewank & Walther, *Evaluating Derivatives*, 2nd ed.,
    ch. 13). The signature is that of ``jax.experimental.jet.jet``.

    Parameters
    ----------
    fun : callable
        With arguments and results that are real scalars, arrays or trees of them.
    primals : tuple or list
        The arguments x.
    series : tuple or list
        For each argument the list of its derivatives :math:`x^{(1)}, \dots, x^{(d)}`, each of
        the argument's structure and shapes.

    Returns
    -------
    tuple
        The result, and a list of its derivatives of the orders 1 to d; of a result that is a
        tree, a tree of such lists.

    Raises
    ------
    InputError
        The lists differ in length, or do not match the primals.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> value, (first, second) = dl.jet(np.sin, (0.0,), ([1.0, 0.0],))
    >>> float(value), float(first), float(second)
    (0.0, 1.0, 0.0)
    >>> [float(y) for y in dl.jet(lambda x: x**3, (2.0,), ([1.0, 0.0, 0.0],))[1]]
    [12.0, 12.0, 6.0]
    """
    call = call_at(fun, primals, "jet")
    curves, order = _curves(call, primals, series)
    run, count = call.run, len(call.run.function.outputs)

    def form(parts: Sequence[Any]) -> Any:
        lists = [list(parts[k : k + order]) for k in range(count, len(parts), order)]
        return run.result(parts), run.result(lists)

    repeated = [kind for kind in run.precisions[: run.results] for _ in range(order)]
    along = call.derived(derivatives_along, call.outputs, order)
    pair: tuple[Any, Any] = call.returned(along, form, [*run.precisions, *repeated], curves)
    return pair


@overload
def taylor(fun: Function, *, order: int) -> Function: ...
@overload
def taylor(fun: AnyCallable, x: Any, order: int, direction: Any = None) -> Any: ...
def taylor(fun: AnyCallable, x: Any = None, order: int = 1, direction: Any = None) -> Any:
    r"""Return the Taylor coefficients of ``fun`` at x, up to `order`.

    The coefficients :math:`y_k` of :math:`f(x + t \dot x) = \sum_k y_k t^k`; the derivative of
    order k along the direction is :math:`k!\, y_k`. They take O(d²) operations for each
    operation of f, with d the order (Griewank & Walther, *Evaluating Derivatives*, 2nd ed.,
    §13.2).

    Parameters
    ----------
    fun : callable or Function
        Of one argument, a number, an array or a tree of them.
    x : number, array or tree
        The argument. Omitted for a Function given alone.
    order : int
        The highest order d.
    direction : number, array or tree, optional
        The direction ẋ, of the structure and shapes of x. By default 1 if x is a number.

    Returns
    -------
    array or tree
        For a result of shape s an array (d + 1,) + s.
    Function
        For a Function given alone. Inputs: its own, then a direction ``x_dot`` for each ``x``;
        none if the only input is a number. Outputs: the coefficients of its own.

    Raises
    ------
    InputError
        The order is not an integer from 1 to 170, x is no number and has no direction, or the
        direction does not match it.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> dl.taylor(np.exp, 0.0, 3)
    array([1.        , 1.        , 0.5       , 0.16666667])
    >>> dl.taylor(dl.parse("1/(1 - x)"), order=3)(0.5).tolist()
    [2.0, 4.0, 8.0, 16.0]
    """
    require_order(order, "taylor")
    if x is None and isinstance(fun, Function):
        every = range(len(fun.inputs)), range(len(fun.outputs))
        return coefficients(fun, *every, order, unit=fun.input_shapes == ((),))
    leaves = flatten(x)[0]
    if not leaves:
        raise InputError("taylor of code needs x", hint="taylor(fun, x, order, direction)")
    if direction is None and [np.shape(leaf) for leaf in leaves] != [()]:
        raise InputError(
            "taylor needs a direction where x is no number",
            hint="taylor(fun, x, order, direction) with a direction of the shape of x",
        )
    call = call_at(fun, (x,), "taylor")
    along: list[Any] = []
    if direction is not None:
        along = vectors((direction,), call.arguments, call.shapes(), "the direction of taylor")
    terms = call.derived(coefficients, call.outputs, order, unit=not along)
    return call.returned(terms, call.run.result, call.run.precisions, along)


def _curves(call: Call, primals: Sequence[Any], series: Any) -> tuple[list[Any], int]:
    """Return the derivatives of each leaf of the primals, leaf by leaf, and their highest order."""
    if not isinstance(series, tuple | list) or len(series) != len(primals):
        raise InputError(
            f"the series of jet must be a tuple of {len(primals)} lists, one per argument",
            hint="write ([1.0, 0.0],) for a single argument and order 2",
        )
    orders = {len(each) if isinstance(each, tuple | list) else 0 for each in series}
    if len(orders) > 1 or not min(orders):
        raise InputError(
            "the series of jet must be lists of one length, at least 1",
            hint="write 0.0 for derivatives that are zero",
        )
    (order,) = orders
    require_order(order, "jet")
    by_order = [
        vectors(tuple(each), call.arguments, call.shapes(), "the series of jet")
        for each in zip(*series, strict=True)
    ]
    return [term for terms in zip(*by_order, strict=True) for term in terms], order
