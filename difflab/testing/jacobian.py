"""`check_jacobian`: dense and sparse Jacobians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.testing.components.evaluations import evaluations_shown
from difflab.testing.components.message import GradientMismatch
from difflab.testing.components.verdict import DEFAULT
from difflab.testing.gradient import check_gradient
from difflab.testing.lines.trees import GradientCheck
from difflab.testing.trees.arguments import Point, prepared, real_array
from difflab.testing.trees.probe import Probe

Array = NDArray[float64]
Callee = Callable[[Any], Any]

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
    __tracebackhide__ = True
    given: Any = jacobian
    if callable(jacobian):
        given = jacobian(np.array(x) if isinstance(x, list) else x)
    if not _is_sparse(given):
        check_gradient(f, jacobian, x)
        return

    def matrix(point: Any) -> Any:
        return jacobian(point) if callable(jacobian) else jacobian

    if np.prod(given.shape) <= _ELEMENTS:
        check_gradient(f, lambda point: matrix(point).toarray(), x)
        return
    f, point = prepared(f, x)
    with evaluations_shown(f, point.n, "check_jacobian") as f:
        check = _SparseCheck(f, matrix, point, Probe(f, point))
        if given.shape != (check.probe.outputs.m, point.n):
            raise GradientMismatch(
                f"the Jacobian has the shape {given.shape}; it must be"
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
        found = self.gradient(self.point.copy()).tocsc()[:, [index]].toarray()
        return real_array(found, FAULT, GradientMismatch)[:, 0]
