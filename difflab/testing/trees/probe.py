"""A function's values around a point of a tree, counted, and compared with a gradient."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.differences.window import Changes
from difflab.testing.trees.arguments import Point
from difflab.testing.trees.purity import pure_values

Array = NDArray[float64]
Callee = Callable[[Any], Any]


class Probe:
    """The values of `f` at displaced arguments.

    Attributes
    ----------
    outputs : Outputs
        The result at the point.
    center : ndarray (m,)
        Its numbers.
    rounding : ndarray (m,)
        The error of one value: the spacing of its dtype, or the difference of two calls.
    eps : float
        The spacing at 1 of the coarsest dtype of arguments and results.
    count : int
        Evaluations of `f`.
    """

    def __init__(self, f: Callee, point: Point) -> None:
        self.f = f
        self.point = point
        self.count = 2
        found, spread = pure_values(f, point)
        self.outputs = found
        self.center = found.numbers()
        self.eps = max(point.eps, found.eps)
        self.rounding = np.maximum(self.eps * np.abs(self.center), spread)

    def __call__(self, tree: Any) -> Array:
        """Return the values ``(m,)``; nan if the code raises an exception."""
        self.count += 1
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found = self.point.outputs(self.f(tree))
        except Exception:  # user code may raise anything away from the given point
            return np.full(self.center.size, np.nan)
        same = found.structure == self.outputs.structure and found.n == self.center.size
        return found.numbers() if same else np.full(self.center.size, np.nan)

    def residual(
        self,
        along: Array,
        weights: Array,
        cotangent: Array | None = None,
        start: int = 0,
        stop: int | None = None,
    ) -> Changes:
        r"""Return the function of t :math:`f(x + d) - f(x) - W d`, with d = t `along`, rounded.

        Its derivative at 0 is zero if the rows of W are the derivatives of f.

        Parameters
        ----------
        along : ndarray (n,)
            The direction.
        weights : ndarray (m, n), or (1, n) with a cotangent
            The derivatives under test.
        cotangent : ndarray (m,), optional
            Weights whose sum of the values is compared.
        start, stop : int
            The part of the arguments that moves.
        """

        def change(t: float) -> Array:
            tree, linear = self.point.displaced(along, t, weights, start, stop)
            found = self(tree) - self.center
            if cotangent is not None:
                found = np.array([cotangent @ found])
            difference: Array = found - linear
            return difference

        return lambda moves: np.array([change(float(t)) for t in moves])

    def rounding_of(self, cotangent: Array | None) -> Array:
        """Return the error of the weighted sum of the values, ``(1,)``."""
        weights = np.ones(1) if cotangent is None else cotangent
        return np.array([float(np.linalg.norm(weights * self.rounding))])
