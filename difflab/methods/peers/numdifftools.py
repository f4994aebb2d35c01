"""numdifftools: adaptive finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import float64

from difflab.methods.peers.array_peer import ArrayPeer
from difflab.methods.peers.peer import Array, CallAdapter, PeerCall
from difflab.methods.peers.spelling import LibrarySpelling
from difflab.methods.protocol import Estimate, Family

if TYPE_CHECKING:
    from difflab.graph.function import Function

__all__ = ["NUMDIFFTOOLS"]


class Numdifftools(ArrayPeer):
    """numdifftools' Richardson-extrapolated differences, with their error estimates."""

    name = "numdifftools"
    title = "numdifftools"
    summary = "numdifftools: differences with adaptive steps, extrapolated"
    family = Family.NUMERIC
    vectorised = False

    def estimated_seconds(self, function: Function, order: int) -> float:
        """Return the seconds of one call: about thirty evaluations per input, or pair of inputs."""
        return 6e-6 * len(function.graph) * float(function.n) ** order

    def derivative(self, function: Function, order: int) -> PeerCall:
        """Return numdifftools' Jacobian or Hessian, with its error estimate."""
        import numdifftools

        counted = _CallCounter(self.packed(function))
        if order == 2:
            found = numdifftools.Hessian(lambda x: counted(x)[0], full_output=True)
        else:
            found = numdifftools.Jacobian(counted, full_output=True)

        def call(x: Array) -> Any:
            counted.evaluations = 0
            result = found(x)
            # Until version 0.9 the result is a pair of the value and the error information.
            value, info = result if len(result) == 2 else (result.estimate, result)
            return value, info.error_estimate, counted.evaluations

        return call

    def estimated(self, result: Any, shape: tuple[int, int]) -> Estimate:
        """Return the derivative with numdifftools' own error estimate."""
        value, error, evaluations = result
        value, error = (np.asarray(part, dtype=float64).reshape(shape) for part in (value, error))
        return Estimate(value, np.abs(error), evaluations)

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return the value and ``Gradient``, point by point."""
        import numdifftools

        flat = self.packed(function)

        def value(x: Array) -> Any:
            return flat(x)[0]

        gradient = numdifftools.Gradient(value)

        def unpack(result: Any) -> tuple[Array, Array]:
            values, slopes = zip(*result, strict=True)
            shape = (function.n,) if points is None else (points, function.n)
            return np.array(values).reshape(shape[:-1]), np.array(slopes).reshape(shape)

        return CallAdapter(
            lambda rows: [(value(x), gradient(x)) for x in rows],
            lambda x: [list(x.reshape(-1, function.n))],
            unpack,
        )

    def spelling(self) -> LibrarySpelling:
        """Return NumPy's operations."""
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


NUMDIFFTOOLS = Numdifftools()
