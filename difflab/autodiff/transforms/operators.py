"""Differential operators: `laplacian`, `biharmonic`, `divergence`, `curl`, `directional`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, overload

import numpy as np

from difflab.autodiff.functions import operators
from difflab.autodiff.functions.series import along, require_order
from difflab.autodiff.lifting import AnyCallable, Argnums, Call, F, call_at, vectors
from difflab.autodiff.transforms.ways import BIHARMONIC, CURL, DIVERGENCE, LAPLACIAN, computed
from difflab.errors import InputError
from difflab.graph.function import Function
from difflab.graph.pytree import flatten


def laplacian(
    fun: F,
    argnums: Argnums | None = None,
    method: str = "auto",
    *,
    key: Any = None,
    samples: int | None = None,
) -> F:
    r"""Return the function whose value is the Laplacian of `fun`.

    .. math:: \Delta f = \sum_i \partial^2 f / \partial x_i^2

    over all elements of the arguments that `argnums` chooses, for each element of the result. It
    can be differentiated again, by parameters of the function too.

    Parameters
    ----------
    fun : callable or Function
        Of real scalars, arrays or trees, with results of any shapes.
    argnums : int or sequence of int, optional
        Which arguments the coordinates are: the first of a callable and all of a Function by
        default.
    method : str
        ``"collapsed"``: all coordinates in one pass, which carries the sum of their second
        derivatives only (Dangel et al., 2025; Li et al., 2024). ``"jets"``: second-order Taylor
        mode along each. ``"forward-reverse"``: tangents of the gradient. ``"reverse"``: the
        gradient of the gradient. ``"symbolic"``: a formula for each ∂²f/∂xᵢ². ``"hutchinson"``: an
        estimate. ``"auto"`` uses the exact way of the fewest scalar operations.
    key : array, optional
        For the estimate, a key of `difflab.random`.
    samples : int, optional
        For the estimate, the number of random directions, at least 2.

    Returns
    -------
    callable or Function
        Returns a value of the structure and shapes of the result. By ``"hutchinson"`` the pair of
        an unbiased estimate, the mean of :math:`v^T H v` over random signs v (Hutchinson, 1989),
        and its standard error. Its ``explain(*args)``, of a Function without arguments, returns the
        `Ways`: the operations of each one and the choice.

    Raises
    ------
    InputError
        The method is unknown, an estimate has no key or fewer than two samples, or as `grad`.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> float(dl.laplacian(lambda x: np.sum(x**3))(np.array([1.0, 2.0])))
    18.0
    >>> dl.laplacian(dl.parse("x^2*y^3"))(2.0, 3.0)
    np.float64(126.0)
    >>> lap = dl.laplacian(lambda x, w: np.sum(np.tanh(w @ x)))
    >>> lap.explain(np.zeros(9), np.ones((8, 9))).chosen
    'collapsed'
    >>> estimate, error = dl.laplacian(
    ...     lambda x: np.sum(x) ** 2, method="hutchinson", key=dl.random.key(0), samples=400
    ... )(np.zeros(3))
    >>> bool(abs(estimate - 6.0) < 4 * error)
    True
    """
    return computed(LAPLACIAN, fun, argnums, method, key, samples)


def biharmonic(
    fun: F,
    argnums: Argnums | None = None,
    method: str = "auto",
    *,
    key: Any = None,
    samples: int | None = None,
) -> F:
    r"""Return the function whose value is the biharmonic operator of `fun`.

    .. math:: \Delta^2 f = \sum_{ij} \partial^4 f / \partial x_i^2 \partial x_j^2

    Parameters
    ----------
    fun : callable or Function
        As for `laplacian`.
    argnums : int or sequence of int, optional
        As for `laplacian`.
    method : str
        ``"nested"``: the Laplacian of the Laplacian, each collapsed. ``"collapsed"`` and
        ``"jets"``: fourth derivatives along n² directions, :math:`e_i` and :math:`e_i \pm e_j`
        (Griewank, Utke & Walther, 2000), whose weighted sum cancels more digits as n grows.
        ``"reverse"``: four nested reverse sweeps. ``"symbolic"``, ``"hutchinson"`` and ``"auto"``
        as for `laplacian`.
    key : array, optional
        For the estimate, a key of `difflab.random`.
    samples : int, optional
        For the estimate, the number of random directions, at least 2.

    Returns
    -------
    callable or Function
        As `laplacian`. The estimate is the mean of a third of the fourth derivatives along
        normally distributed directions.

    Raises
    ------
    InputError
        As `laplacian`.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> float(dl.biharmonic(lambda x: np.sum(x**2) ** 2)(np.array([1.0, 2.0, 3.0])))
    120.0
    >>> dl.biharmonic(dl.parse("x^4 + x^2*y^2"))(2.0, 3.0)
    np.float64(32.0)
    """
    return computed(BIHARMONIC, fun, argnums, method, key, samples)


def divergence(
    fun: F,
    argnums: Argnums | None = None,
    method: str = "auto",
    *,
    key: Any = None,
    samples: int | None = None,
) -> F:
    r"""Return the function whose value is the divergence of a vector field.

    .. math:: \nabla \cdot f = \sum_i \partial f_i / \partial x_i

    Parameters
    ----------
    fun : callable or Function
        Its results have as many elements as the arguments, which they are paired with in order.
    argnums : int or sequence of int, optional
        As for `laplacian`.
    method : str
        ``"forward"``: by a tangent for each coordinate. ``"reverse"``: by a cotangent for each.
        ``"hutchinson"``: an estimate by random signs v, of vᵀ J v. ``"auto"`` as for `laplacian`.
    key : array, optional
        For the estimate, a key of `difflab.random`.
    samples : int, optional
        For the estimate, the number of random directions, at least 2.

    Returns
    -------
    callable or Function
        Returns a number, or the estimate and its standard error.

    Raises
    ------
    InputError
        The result has another number of elements than the arguments; or as `laplacian`.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> float(dl.divergence(lambda x: x**2)(np.array([1.0, 2.0, 3.0])))
    12.0
    >>> dl.divergence(dl.parse("[x*y, x + y^2]"))(2.0, 3.0)
    np.float64(9.0)
    """
    return computed(DIVERGENCE, fun, argnums, method, key, samples)


def curl(fun: F, argnums: Argnums | None = None, method: str = "auto") -> F:
    r"""Return the function whose value is the curl of a vector field in two or three dimensions.

    :math:`(\partial_2 f_3 - \partial_3 f_2, \partial_3 f_1 - \partial_1 f_3, \partial_1 f_2 -
    \partial_2 f_1)`, and in two dimensions the number :math:`\partial_1 f_2 - \partial_2 f_1`.

    Parameters
    ----------
    fun : callable or Function
        Its arguments and its result have three elements each, or two.
    argnums : int or sequence of int, optional
        As for `laplacian`.
    method : {"auto", "forward", "reverse"}
        The sweeps of the Jacobian.

    Returns
    -------
    callable or Function
        Returns an array of shape (3,), or a number.

    Raises
    ------
    InputError
        The element counts are not both three, or both two; or as `laplacian`.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> omega = np.array([1.0, 2.0, 3.0])
    >>> dl.curl(lambda x: np.cross(omega, x))(np.zeros(3)).tolist()
    [2.0, 4.0, 6.0]
    >>> dl.curl(dl.parse("[-y, x]"))(0.5, 0.5)
    np.float64(2.0)
    """
    return computed(CURL, fun, argnums, method)


@overload
def directional(fun: Function, *, order: int = 1) -> Function: ...
@overload
def directional(fun: AnyCallable, x: Any, directions: Any, order: int = 1) -> Any: ...
def directional(fun: AnyCallable, x: Any = None, directions: Any = None, order: int = 1) -> Any:
    r"""Return the derivative of one order along each of some directions, by Taylor mode.

    .. math:: \frac{d^k}{dt^k} f(x + t v) \Big|_{t=0}

    Parameters
    ----------
    fun : callable or Function
        Of one argument, a number, an array or a tree of them.
    x : number, array or tree
        The argument. Omitted for a Function given alone.
    directions : number, array or tree
        A direction v, of the structure and shapes of x, or a stack of r directions, in which every
        leaf has one more axis, the first, of size r.
    order : int
        The order k.

    Returns
    -------
    array or tree
        For a result of shape s an array of shape s, or (r,) + s for a stack.
    Function
        For a Function given alone. Inputs: its own, then a direction ``x_dot`` for each ``x``.

    Raises
    ------
    InputError
        The order is not an integer from 1 to 170, or the directions do not match x.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> f = lambda x: x[0] ** 2 * x[1]
    >>> dl.directional(f, np.array([1.0, 2.0]), np.eye(2), order=2).tolist()
    [4.0, 0.0]
    >>> dl.directional(dl.parse("x^2*y"), order=3)(1.0, 2.0, 1.0, 1.0)
    np.float64(6.0)
    """
    require_order(order, "directional")
    if x is None and directions is None and isinstance(fun, Function):
        every = tuple(range(len(fun.inputs))), tuple(range(len(fun.outputs)))
        return replace(along(fun, *every, order), structure=fun.structure)
    if x is None or directions is None:
        raise InputError(
            "directional of code needs x and directions", hint="directional(fun, x, directions)"
        )
    call = call_at(fun, (x,), "directional")
    shapes, size = call.shapes(), _stack_of(directions, call)
    lead = () if size is None else (size,)
    seeds = vectors((directions,), call.arguments, [lead + s for s in shapes], "the directions")
    term = call.derived(along, call.outputs, order)
    if size is not None:
        term = operators.per_direction(term, len(call.run.function.inputs), size)
    return call.returned(term, call.run.result, call.run.precisions, seeds)


def _stack_of(directions: Any, call: Call) -> int | None:
    """Return how many directions are given as a stack; None for a single one."""
    leaves, shapes = flatten(directions)[0], call.shapes()
    shape: tuple[int, ...] = np.shape(leaves[0]) if leaves else ()
    return shape[0] if shapes and len(shape) == len(shapes[0]) + 1 else None
