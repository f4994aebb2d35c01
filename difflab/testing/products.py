r"""Checks of products with the Jacobian: :math:`J \dot x` and :math:`J^T \bar y`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.differences.window import BestSlope, first_half, slope_along
from difflab.errors import InputError
from difflab.graph.pytree import flatten
from difflab.testing.checker.arguments import Outputs, Point, derivative_leaf, real_numbers
from difflab.testing.checker.check import check_tree
from difflab.testing.checker.directions import at_random, neighbours
from difflab.testing.checker.given import prepared
from difflab.testing.checker.leaves import Array, Callee
from difflab.testing.checker.message import (
    Component,
    GradientMismatch,
    GradientUnjudged,
    table_of,
)
from difflab.testing.checker.own import like, pulled, pushed
from difflab.testing.checker.probe import Probe, evaluations_shown
from difflab.testing.checker.truth import DEFAULT, TRUSTED

__tracebackhide__ = True  # pytest shows the message and the test, no frame of this module

__all__ = ["check_duality", "check_jvp", "check_vjp"]

Product = Callable[[Any, Any], Any]

_ROUNDINGS = 8.0
_DUALITY = 64.0
"""Units of rounding, relative to the norms of the terms, by which two products may differ."""
_DIRECTIONS = (5, 6)


def check_jvp(f: Callee, jvp: Product | None = None, x: Any = None) -> None:
    r"""Raise `GradientMismatch` unless `jvp` is the product :math:`J \dot x` of `f` at `x`.

    The derivatives of all results along two random directions are compared with those of the
    values, each with its own error bar, as in `check_gradient`.

    Parameters
    ----------
    f : callable
        Function of `x` that returns an array or a tree of them.
    jvp : callable, optional
        ``jvp(x, x_dot)``, which returns the tangent of the result, a tree of its structure.
        Without it, that of the framework is checked.
    x : array or tree
        The point, as for `check_gradient`.

    Raises
    ------
    GradientMismatch
        A number of the product is wrong; the message names it.
    GradientUnjudged
        No number is wrong, but none could be judged.

    Examples
    --------
    >>> x = np.array([1.0, 2.0])
    >>> check_jvp(np.sin, lambda x, x_dot: np.cos(x) * x_dot, x)
    >>> check_jvp(np.sin, lambda x, x_dot: np.cos(x), x)
    Traceback (most recent call last):
        ...
    difflab.testing.gradient.GradientMismatch: the jvp is wrong in 2 of 2 components
    ...
    """
    f, point = _point(f, x)
    with evaluations_shown(f, point.n, "check_jvp") as f:
        _check_jvp(f, jvp, point)


def _check_jvp(f: Callee, jvp: Product | None, point: Point) -> None:
    """Compare products along some directions."""
    probe = Probe(f, point)

    def product(at: Point, along: Array) -> Array:
        if jvp is None:
            return pushed(f, at, probe.outputs, along)
        return _numbers_like(probe.outputs, jvp(at.copy(), like(point, along)))

    for seed in _DIRECTIONS:
        along = at_random(point, seed, floor=True)
        _compare(probe, along, partial(product, along=along))


def _compare(probe: Probe, along: Array, product: Callable[[Point], Array]) -> None:
    """Compare the derivatives of all values along a direction with the product."""
    yours = product(probe.point)
    scale = np.abs(yours) + float(np.sqrt(np.mean(yours**2)))
    changes = probe.residual(along, np.zeros((1, along.size)))

    def residual(moves: Array) -> Array:
        residuals: Array = changes(moves) - moves[:, None] * yours
        return residuals

    half = first_half(probe.eps, alone=False)
    error = slope_along(residual, probe.rounding, half, 1e-6 * scale)
    # Beyond float64 the moves are rounded, by this share.
    tolerance = error.bar + error.half_jump + _ROUNDINGS * probe.eps * scale
    tolerance = tolerance + np.where(probe.eps > 1e-12, probe.eps / error.half, 0.0) * scale
    wrong = ~(np.abs(error.value) <= tolerance)
    if wrong.any():
        near = [np.abs(product(at) - yours) for at in neighbours(probe.point, 2)]
        wrong &= ~(np.abs(error.value) <= tolerance + 2.0 * np.max(near, axis=0))
    if wrong.any():
        raise _mismatch(probe, yours, error, np.flatnonzero(wrong))
    if not (error.bar <= TRUSTED * np.maximum(scale, error.rise)).any():
        raise GradientUnjudged(
            "could not judge the product: the rounding or noise of f is too large\n"
            f"numeric values: {probe.count} evaluations of f"
        )


def _mismatch(
    probe: Probe, yours: Array, error: BestSlope, wrong: NDArray[np.intp]
) -> GradientMismatch:
    components = tuple(
        Component.along(probe.outputs.name(i), float(yours[i]), error, i) for i in wrong.tolist()
    )
    lines = [
        f"the jvp is wrong in {wrong.size} of {yours.size} components",
        *table_of(components),
        f"numeric values: along a random direction, {probe.count} evaluations of f",
    ]
    return GradientMismatch("\n".join(lines), components)


def check_vjp(
    f: Callee, vjp: Product | None = None, x: Any = None, *, jvp: Product | None = None
) -> None:
    r"""Raise `GradientMismatch` unless `vjp` is the product :math:`J^T \bar y` of `f` at `x`.

    It is checked as the gradient of :math:`\langle \bar y, f\rangle` for a random
    :math:`\bar y`, as `check_gradient` does. With a `jvp`, the duality
    :math:`\langle \bar y, J \dot x\rangle = \langle J^T \bar y, \dot x\rangle` is checked too.

    Parameters
    ----------
    f : callable
        Function of `x` that returns an array or a tree of them.
    vjp : callable, optional
        ``vjp(x, y_bar)``, which returns the cotangent of `x`, a tree of its structure. Without
        it, that of the framework is checked.
    x : array or tree
        The point, as for `check_gradient`.
    jvp : callable, optional
        ``jvp(x, x_dot)``, as for `check_jvp`.

    Raises
    ------
    GradientMismatch
        A number of the product is wrong, or the two products contradict each other.

    Examples
    --------
    >>> x = np.array([1.0, 2.0])
    >>> check_vjp(np.sin, lambda x, y_bar: np.cos(x) * y_bar, x)
    """
    f, point = _point(f, x)
    outputs = Outputs(f(point.copy()))
    cotangent = np.random.default_rng(7).choice((-1.0, -0.5, 0.5, 1.0), outputs.m)

    def weighted(tree: Any) -> Any:
        return float(cotangent @ Outputs(f(tree)).numbers())

    def pull(tree: Any) -> Any:
        if vjp is None:
            return like(point, pulled(f, Point(tree, point.root), outputs, cotangent))
        return vjp(tree, like(outputs, cotangent))

    if jvp is not None:
        along = at_random(point, 9, floor=True)
        forth = _numbers_like(outputs, jvp(point.copy(), like(point, along)))
        back = point.rows(pull(point.copy()), Outputs(1.0))[0]
        check_duality(forth, back, cotangent, along, max(point.eps, outputs.eps))
    try:
        with evaluations_shown(weighted, point.n, "check_vjp") as counted:
            check_tree(counted, pull, point, DEFAULT)
    except GradientMismatch as error:
        text = str(error).replace("the gradient", "the vjp", 1)
        raise type(error)(text, error.components, error.unjudged) from None


def check_duality(forth: Array, back: Array, cotangent: Array, along: Array, eps: float) -> None:
    r"""Raise unless :math:`\langle \bar y, J \dot x\rangle = \langle J^T \bar y, \dot x\rangle`.

    Parameters
    ----------
    forth, back : ndarray (m,), (n,)
        The products :math:`J \dot x` and :math:`J^T \bar y`.
    cotangent, along : ndarray (m,), (n,)
        The cotangent and the direction.
    eps : float
        The spacing of the dtype at 1.

    Examples
    --------
    >>> J, v, w = np.array([[1.0, 2.0]]), np.array([3.0, 4.0]), np.array([5.0])
    >>> check_duality(J @ v, J.T @ w, w, v, 2.0**-52)
    """
    left, right = float(cotangent @ forth), float(back @ along)
    size = float(np.linalg.norm(cotangent * forth) + np.linalg.norm(back * along))
    if not abs(left - right) <= _DUALITY * eps * max(size, abs(left), abs(right)):
        raise GradientMismatch(
            f"jvp and vjp contradict each other: ⟨ȳ, Jẋ⟩ = {left!r} by the jvp,"
            f" and ⟨Jᵀȳ, ẋ⟩ = {right!r} by the vjp"
        )


def _numbers_like(outputs: Outputs, tree: Any) -> Array:
    """Return the elements of a tangent, which must have the structure and shapes of the result."""
    values, structure = flatten(tree)
    if structure != outputs.structure:
        raise GradientMismatch(
            f"the jvp has the structure {structure}; that of the result is {outputs.structure}"
        )
    parts = []
    for position, leaf in zip(outputs.positions, outputs.leaves, strict=True):
        what = f"the jvp of {outputs.path(position)}"
        tangent = derivative_leaf(values[position], what)
        if tangent.shape != leaf.shape:
            raise GradientMismatch(f"{what} has the shape {tangent.shape}; it must be {leaf.shape}")
        if not leaf.complex:
            parts.append(real_numbers(tangent, what))
        elif tangent.complex:
            parts.append(tangent.numbers())
        else:
            parts.append(tangent.numbers().astype(np.complex128).view(np.float64))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _point(f: Callee, x: Any) -> tuple[Callee, Point]:
    """Return the function and its arguments, which may not be missing."""
    if x is None:
        raise InputError("the point is missing", hint="pass it as the third argument, x")
    return prepared(f, x)
