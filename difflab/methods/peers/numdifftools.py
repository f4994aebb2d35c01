"""numdifftools: adaptive finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from difflab.methods.peers.array_peer import DifferencePeer
from difflab.methods.peers.peer import Array

if TYPE_CHECKING:
    from difflab.graph.function import Function


class Numdifftools(DifferencePeer):
    """numdifftools' Richardson-extrapolated differences, with their error estimates."""

    name = "numdifftools"
    extra = "peers"
    title = "numdifftools"
    summary = "numdifftools: differences with adaptive steps, extrapolated"

    def estimated_seconds(self, function: Function, order: int) -> float:
        """Return the seconds of one call: about thirty evaluations per input, or pair of inputs."""
        return 6e-6 * len(function.graph) * float(function.n) ** order

    def differences(
        self, f: Callable[[Array], Any], order: int
    ) -> Callable[[Array], tuple[Any, Any]]:
        """Return numdifftools' Jacobian or Hessian, with its error estimate."""
        import numdifftools

        kind = numdifftools.Hessian if order == 2 else numdifftools.Jacobian
        derivative = kind(f, full_output=True)

        def call(x: Array) -> tuple[Any, Any]:
            result = derivative(x)
            # Until version 0.9 the result is a pair of the value and the error information.
            value, info = result if len(result) == 2 else (result.estimate, result)
            return value, info.error_estimate

        return call

    def gradient(self, f: Callable[[Array], Any]) -> Callable[[Array], Any]:
        """Return ``Gradient``."""
        import numdifftools

        gradient: Callable[[Array], Any] = numdifftools.Gradient(f)
        return gradient


NUMDIFFTOOLS = Numdifftools()
