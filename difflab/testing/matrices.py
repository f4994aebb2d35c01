"""Checks of Jacobians, dense and sparse, and of second and higher derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from difflab.errors import DifflabError, InputError
from difflab.graph.pytree import flatten
from difflab.testing.checker.arguments import Outputs, Point, derivative_leaf, real_numbers
from difflab.testing.checker.check import GradientCheck
from difflab.testing.checker.directions import at_random
from difflab.testing.checker.given import is_tree, parameter_name, point_of, prepared, real_array
from difflab.testing.checker.leaves import Array, Callee
from difflab.testing.checker.message import GradientMismatch
from difflab.testing.checker.own import gradient_of, like, pulled, pushed
from difflab.testing.checker.probe import Probe, evaluations_shown
from difflab.testing.checker.truth import DEFAULT
from difflab.testing.gradient import check_gradient
from difflab.testing.products import check_duality, check_jvp

__tracebackhide__ = True  # pytest shows the message and the test, no frame of this module


FAULT = "the Jacobian is not an array of real numbers"
_ELEMENTS = 1 << 14
"""Elements of a sparse Jacobian up to which it is checked as a dense one."""


def check_jacobian(f: Callee, jacobian: Callee | Any | None = None, x: Any = None) -> None:
    r"""Raise `GradientMismatch` unless `jacobian` is the Jacobian of `f` at `x`.

    A dense Jacobian is checked as by `check_gradient`. A large one, dense or sparse, is compared
    along random directions with :math:`\bar y^T J` for a random :math:`\bar y`, so an element
    outside of the sparsity is found too; bisection finds its column, and the values its row.

    Parameters
    ----------
    f : callable
        Function of `x` that returns an array.
    jacobian : callable, array, tree or SciPy sparse array, optional
        The Jacobian, or a function of `x` that returns it: the shape of the result followed by
        that of `x`, or ``(m, n)`` of flattened results and arguments, as a sparse one must be.
        Without it, that of the framework is checked.
    x : array_like or tree
        The point, as for `check_gradient`.

    Raises
    ------
    GradientMismatch
        An element is wrong, or the shape does not match.

    Examples
    --------
    >>> from scipy.sparse import diags_array
    >>> x = np.linspace(0.1, 1.0, 10)
    >>> check_jacobian(np.sin, lambda x: diags_array(np.cos(x)), x)
    >>> check_jacobian(np.sin, lambda x: diags_array(np.cos(x) + (x == x[3])), x)
    Traceback (most recent call last):
        ...
    difflab.testing.gradient.GradientMismatch: the gradient is wrong in 1 of 100 components
    ...
    """
    derivative: Any = jacobian
    if callable(jacobian):
        derivative = jacobian(np.array(x) if isinstance(x, list) else x)
    if not _is_sparse(derivative):
        check_gradient(f, jacobian, x)
        return

    def matrix(point: Any) -> Any:
        return jacobian(point) if callable(jacobian) else jacobian

    if np.prod(derivative.shape) <= _ELEMENTS:
        check_gradient(f, lambda point: matrix(point).toarray(), x)
        return
    f, point = prepared(f, x)
    with evaluations_shown(f, point.n, "check_jacobian") as f:
        check = _SparseCheck(f, matrix, point, Probe(f, point))
        if derivative.shape != (check.probe.outputs.m, point.n):
            raise GradientMismatch(
                f"the Jacobian has the shape {derivative.shape}; it must be"
                f" {(check.probe.outputs.m, point.n)}"
            )
        check.by_directions(DEFAULT)


def _is_sparse(value: Any) -> bool:
    return hasattr(value, "tocsc") and hasattr(value, "toarray")


class _SparseCheck(GradientCheck):
    """The check of a sparse Jacobian along directions."""

    def weighted(self, point: Point) -> Array:
        cotangent = np.ones(1) if self.cotangent is None else self.cotangent
        return real_array(self.gradient(point.copy()).T @ cotangent, FAULT, GradientMismatch)

    def column(self, index: int) -> Array:
        column = self.gradient(self.point.copy()).tocsc()[:, [index]].toarray()
        return real_array(column, FAULT, GradientMismatch)[:, 0]


_ROUNDINGS = 64.0
"""Units of rounding, relative to the largest element, by which a Hessian may be asymmetric."""


def check_hessian(
    f: Callee, hessian: Callee | Any | None = None, x: Any = None, *, gradient: Callee | None = None
) -> None:
    r"""Raise `GradientMismatch` unless `hessian` is the Hessian of a scalar `f` at `x`.

    It must be symmetric, and the Jacobian of the gradient, as by `check_jacobian`.

    Parameters
    ----------
    f : callable
        Function of an array that returns a scalar.
    hessian : callable, array or SciPy sparse array, optional
        The Hessian, or a function of `x` that returns it: ``(n, n)``, or the shape of `x` twice.
        Without it, that of the framework is checked.
    x : array_like
        The point.
    gradient : callable, optional
        The gradient of `f`, which is checked first. Without it, the framework's is used, or
        second differences of the values of code that cannot be differentiated.

    Raises
    ------
    GradientMismatch
        The Hessian is asymmetric, or an element is wrong.

    Examples
    --------
    >>> x = np.array([1.0, 2.0])
    >>> f = lambda x: x[0] ** 2 * x[1]
    >>> check_hessian(f, lambda x: np.array([[2 * x[1], 2 * x[0]], [2 * x[0], 0.0]]), x)
    >>> check_hessian(f, lambda x: np.array([[2 * x[1], 2 * x[0]], [0.0, 0.0]]), x)
    Traceback (most recent call last):
        ...
    difflab.testing.gradient.GradientMismatch: the Hessian is not symmetric: ...
    """
    _require_point(x)
    point = Point(x if is_tree(x) else point_of(x), parameter_name(f))
    if hessian is None:
        slope = gradient_of(f, point) if gradient is None else gradient
        check_gradient(f, gradient, x)
        check_jacobian(slope, None, x)
        return
    matrix = hessian(point.copy()) if callable(hessian) else hessian
    _check_symmetric(matrix, point)
    if gradient is not None:
        check_gradient(f, gradient, x)
        check_jacobian(gradient, hessian, x)
        return
    try:
        check_gradient(f, None, x)
        own = gradient_of(f, point)
    except GradientMismatch:
        raise
    except DifflabError:  # the code cannot be differentiated
        _check_by_values(f, _elements(matrix, point), point)
        return
    check_jacobian(own, hessian, x)


def _check_symmetric(hessian: Any, point: Point) -> None:
    """Raise unless a Hessian is symmetric up to rounding."""
    if hasattr(hessian, "tocoo"):
        if hessian.shape != (point.n, point.n):
            raise GradientMismatch(
                f"the Hessian has the shape {hessian.shape}; it must be {(point.n, point.n)}"
            )
        entries = abs(hessian - hessian.T).tocoo()
        gap, size = entries.data, abs(hessian).max()
        where = (entries.row, entries.col)
        matrix = hessian.tocsr()
    else:
        matrix = _elements(hessian, point)
        if matrix.size != point.n**2:
            raise GradientMismatch(
                f"the Hessian has {matrix.size} elements; it must have {point.n}²"
            )
        matrix = matrix.reshape(point.n, point.n)
        gap, size = np.abs(matrix - matrix.T).ravel(), np.abs(matrix).max()
        where = np.divmod(np.arange(gap.size), point.n)
    if gap.size and not gap.max() <= _ROUNDINGS * point.eps * size:
        worst = int(gap.argmax())
        i, j = int(where[0][worst]), int(where[1][worst])
        raise GradientMismatch(
            f"the Hessian is not symmetric: element ({i}, {j}) is {float(matrix[i, j])!r},"
            f" and ({j}, {i}) is {float(matrix[j, i])!r}"
        )


def _elements(derivative: Any, point: Point) -> Array:
    """Return the elements of a Hessian, real unless the point is complex."""
    if any(leaf.complex for leaf in point.leaves):
        return Outputs(derivative).numbers()
    what = "the Hessian"
    parts = [real_numbers(derivative_leaf(part, what), what) for part in flatten(derivative)[0]]
    return np.concatenate(parts) if parts else np.zeros(0)


def _check_by_values(f: Callee, derivative: Array, point: Point) -> None:
    """Compare with second differences of the values."""
    from difflab.methods.differentiate import differentiate

    x = point.numbers()
    hessian = differentiate(lambda z: Outputs(f(point.at(z))).numbers()[0], x, order=2)
    numeric, bar = np.asarray(hessian.value), np.asarray(hessian.error)
    yours = derivative.reshape(numeric.shape)
    wrong = ~(np.abs(yours - numeric) <= bar + 1e-6 * np.abs(numeric))
    if wrong.any():
        i, j = (int(k) for k in np.argwhere(wrong)[0])
        raise GradientMismatch(
            f"the Hessian is wrong in {int(wrong.sum())} of {wrong.size} elements; element"
            f" ({i}, {j}) is {float(yours[i, j])!r}, the numeric one is"
            f" {float(numeric[i, j])!r} ± {float(bar[i, j]):.1g}\n"
            f"numeric values: second differences, {hessian.evaluations} evaluations of f"
        )


def check_hvp(
    f: Callee,
    hvp: Callable[[Any, Any], Any] | None = None,
    x: Any = None,
    *,
    gradient: Callee | None = None,
) -> None:
    r"""Raise `GradientMismatch` unless `hvp` is the product :math:`H v` of a scalar `f` at `x`.

    It is compared with the derivatives of the gradient along random directions, as by
    `check_jvp`, and must be symmetric: :math:`\langle w, H v\rangle = \langle v, H w\rangle`.

    Parameters
    ----------
    f : callable
        Function of `x` that returns a scalar.
    hvp : callable, optional
        ``hvp(x, v)``, which returns a tree of the structure of `x`. Without it, that of the
        framework is checked.
    x : array or tree
        The point, as for `check_gradient`.
    gradient : callable, optional
        The gradient of `f`; otherwise the framework's.

    Raises
    ------
    GradientMismatch
        A number of the product is wrong, or the products are not symmetric.

    Examples
    --------
    >>> x = np.array([1.0, 2.0])
    >>> check_hvp(lambda x: np.sum(x**3), lambda x, v: 6 * x * v, x)
    """
    _require_point(x)
    point = prepared(f, x)[1]
    slope = gradient_of(f, point) if gradient is None else gradient
    if hvp is None:
        hvp = _product(slope, point)
    v, w = (at_random(point, seed, floor=True) for seed in (21, 22))
    one = Outputs(1.0)
    forth, back = (point.rows(hvp(point.copy(), like(point, along)), one)[0] for along in (v, w))
    try:
        check_jvp(slope, hvp, x)
        check_duality(forth, back, w, v, point.eps)
    except GradientMismatch as error:
        text = str(error).replace("the jvp is", "the product Hv is", 1)
        text = text.replace("jvp and vjp contradict each other", "the products are not symmetric")
        raise type(error)(text, error.components, error.unjudged) from None


def _product(slope: Callee, point: Point) -> Callable[[Any, Any], Any]:
    """Return the product of the Jacobian of a gradient with a tangent, by the framework."""
    outputs = Outputs(slope(point.copy()))

    def product(tree: Any, v: Any) -> Any:
        at, along = Point(tree, point.root), Point(v, "v").numbers()
        return like(outputs, pushed(slope, at, outputs, along))

    return product


def _require_point(x: Any) -> None:
    if x is None:
        raise InputError("the point is missing", hint="pass it as the third argument, x")


def check_derivatives(f: Callee, x: Any, *, order: int = 2) -> None:
    r"""Raise `GradientMismatch` unless the framework's derivatives of `f` are right, to an order.

    For each order, the gradient of a random sum of the results is compared with differences of
    their values, :math:`J \dot x` likewise, and the two with each other,
    :math:`\langle \bar y, J \dot x\rangle = \langle J^T \bar y, \dot x\rangle`. A random sum of
    the gradient is then the function of the next order.

    Parameters
    ----------
    f : callable
        Function of `x` by NumPy, JAX or PyTorch, of real arguments.
    x : array or tree
        The point, as for `check_gradient`.
    order : int
        The highest order of the derivatives.

    Raises
    ------
    GradientMismatch
        A derivative is wrong; the message begins with its order.

    Examples
    --------
    >>> check_derivatives(lambda x: np.sum(np.sin(x) * x), np.array([1.0, 2.0]), order=3)
    """
    if order < 1:
        raise InputError(f"the order must be at least 1, not {order}")
    f, point = prepared(f, x)
    tree = point.copy()
    for k in range(1, order + 1):
        try:
            check_gradient(f, None, tree)
            _check_modes(f, point)
        except GradientMismatch as error:
            raise type(error)(f"order {k}: {error}", error.components, error.unjudged) from None
        if k < order:
            f = _sum_of_gradient(f, point, seed=k)


def _check_modes(f: Callee, point: Point) -> None:
    """Compare forward and reverse mode of the framework."""
    outputs = Outputs(f(point.copy()))
    along = at_random(point, 31, floor=True)
    cotangent = np.random.default_rng(7).choice((-1.0, -0.5, 0.5, 1.0), outputs.m)
    forth = pushed(f, point, outputs, along)
    back = pulled(f, point, outputs, cotangent)
    check_duality(forth, back, cotangent, along, max(point.eps, outputs.eps))


def _sum_of_gradient(f: Callee, point: Point, seed: int) -> Callee:
    """Return a random sum of the gradient, of a random sum of the results, as a function."""
    outputs = Outputs(f(point.copy()))
    draw = np.random.default_rng(seed)
    bars = outputs.split(draw.uniform(0.5, 1.0, outputs.m))
    weights = point.split(draw.uniform(0.5, 1.0, point.n))

    def total(tree: Any) -> Any:
        return sum(_summed(b * y) for b, y in zip(bars, outputs.chosen(f(tree)), strict=True))

    slope = gradient_of(total, point)

    def weighted(tree: Any) -> Any:
        gradients = flatten(slope(tree))[0]
        return sum(_summed(w * g) for w, g in zip(weights, gradients, strict=True))

    return weighted


def _summed(value: Any) -> Any:
    return value.sum() if hasattr(value, "sum") else value
