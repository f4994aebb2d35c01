"""Base class of the peers that compute finite differences of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import float64

from difflab.methods.peers.array_peer import ArrayPeer
from difflab.methods.peers.peer import Array, CallAdapter, PeerCall
from difflab.methods.peers.spelling import LibrarySpelling
from difflab.methods.protocol import Estimate, Family, Problem

if TYPE_CHECKING:
    from difflab.graph.function import Function


class DifferencePeer(ArrayPeer):
    """A package that differentiates values of NumPy, one point at a time.

    A subclass defines `differences`, and `gradient` where the package has a function for it.
    """

    family = Family.NUMERIC
    vectorised = False
    columns = ("numpy",)

    def differences(
        self, f: Callable[[Array], Any], order: int
    ) -> Callable[[Array], tuple[Any, Any]]:
        """Return the derivative of `f` with its error estimate, as a function of ``(n,)``.

        `f` maps ``(n,)`` to ``(m,)`` for order 1, and to a number for order 2.
        """
        raise NotImplementedError

    def gradient(self, f: Callable[[Array], Any]) -> Callable[[Array], Any]:
        """Return the gradient of `f`, which maps ``(n,)`` to a number."""
        found = self.differences(f, 1)
        return lambda x: found(x)[0]

    def names(self) -> Mapping[str, Any]:
        """Return NumPy and SciPy's special functions."""
        from scipy import special

        return {"np": np, "special": special}

    def expressed(self, code: Callable[..., Any], n: int, order: int) -> PeerCall:
        """Return value or derivatives of `code`, without NumPy's warnings."""
        call = np.errstate(all="ignore")(super().expressed(code, n, order))
        return lambda x: call(x)[0] if order else call(x)

    def differentiated(self, flat: Callable[[Any], Any], n: int, m: int, order: int) -> PeerCall:
        """Return the package's Jacobian or Hessian, its error estimate, and the evaluations."""
        return self._counting(flat, order) if order else flat

    def of_code(self, problem: Problem) -> PeerCall:
        """Return the same of the values of Python code."""
        values = problem.values
        return self._counting(lambda x: values(np.asarray(x, float64)[None])[0], problem.order)

    def _counting(self, flat: Callable[[Array], Any], order: int) -> PeerCall:
        counted = _CallCounter(flat)
        found = self.differences(counted if order == 1 else lambda x: counted(x)[0], order)

        def call(x: Array) -> Any:
            counted.evaluations = 0
            value, error = found(x)
            return value, error, counted.evaluations

        return call

    def estimated(self, result: Any, shape: tuple[int, int]) -> Estimate:
        """Return the derivative with the package's own error estimate."""
        value, error, evaluations = result
        value, error = (np.asarray(part, dtype=float64).reshape(shape) for part in (value, error))
        return Estimate(value, np.abs(error), evaluations)

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return the value and the gradient, point by point."""
        flat = self.packed(function)

        def value(x: Array) -> Any:
            return flat(x)[0]

        gradient = self.gradient(value)
        return self.one_by_one(function, points, lambda x: (value(x), gradient(x)))

    @cached_property
    def spelling(self) -> LibrarySpelling:
        """NumPy's operations."""
        return LibrarySpelling(np)

    def packed(self, function: Function) -> Callable[[Array], Array]:
        """Return the function of the flattened inputs, without NumPy's warnings."""
        return np.errstate(all="ignore")(super().packed(function))


class _CallCounter:
    """A function that counts its calls."""

    def __init__(self, function: Callable[[Array], Array]) -> None:
        self.function = function
        self.evaluations = 0

    def __call__(self, x: Array) -> Array:
        self.evaluations += 1
        return self.function(x)
