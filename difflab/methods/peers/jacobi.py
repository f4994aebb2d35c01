"""jacobi: finite differences, extrapolated by a polynomial fit whose covariance is the error."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from difflab.methods.peers.array_peer import DifferencePeer
from difflab.methods.peers.peer import Array

if TYPE_CHECKING:
    from difflab.graph.function import Function


class Jacobi(DifferencePeer):
    """jacobi's first differences, with their error estimates; it has no second order."""

    name = "jacobi"
    title = "jacobi"
    summary = "jacobi: first differences with adaptive steps, extrapolated"
    orders = (1,)

    def estimated_seconds(self, function: Function, order: int) -> float:
        """Return the seconds of one call: at most twenty evaluations and nine fits per input."""
        return (2e-3 + 4e-6 * len(function.graph)) * function.n

    def differences(
        self, f: Callable[[Array], Any], order: int
    ) -> Callable[[Array], tuple[Any, Any]]:
        """Return jacobi's Jacobian, with its error estimate."""
        import jacobi

        return lambda x: jacobi.jacobi(f, x)


JACOBI = Jacobi()
