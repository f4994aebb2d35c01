"""advect: NumPy code, traced at every call or staged once; it needs Python 3.12."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.errors import UnsupportedError
from difflab.methods.peers.array_peer import ArrayPeer
from difflab.methods.peers.peer import Array, CallAdapter, PeerCall
from difflab.methods.peers.spelling import (
    LibrarySpelling,
    RenamedModule,
    diagonal_matrix,
    norm_over,
    take_by_index,
)

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.methods.protocol import Problem


class Advect(ArrayPeer):
    """advect's ``jacobian`` and ``hessian`` of NumPy code."""

    name = "advect"
    title = "advect"
    python = (3, 12)
    modules = ("advect.scipy.special",)
    summary = "advect: reverse mode over NumPy's own functions"
    columns = (name, "numpy")

    def names(self) -> Mapping[str, Any]:
        """Return NumPy, whose functions advect's values override, and its special functions.

        Only ``array`` cannot be overridden, of which advect has its own.
        """
        import advect
        import advect.scipy.special as special

        return {"np": RenamedModule("NumPy", np, {"array": advect.array}), "special": special}

    def of_code(self, problem: Problem) -> PeerCall:
        """Return the Jacobian or Hessian of Python code."""
        return self.differentiated(self.packed_code(problem), problem.n, problem.m, problem.order)

    def differentiated(self, flat: Callable[[Any], Any], n: int, m: int, order: int) -> PeerCall:
        """Return advect's Jacobian or Hessian."""
        import advect

        if order == 0:
            return flat
        derivative = advect.hessian(lambda x: flat(x)[0]) if order == 2 else advect.jacobian(flat)
        return lambda x: self._refused(derivative, x)

    def _refused(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of a call; advect's own exceptions are refusals."""
        import advect

        try:
            with np.errstate(all="ignore"):  # a rule may divide by 0 where the result is infinite
                return call(*arguments)
        except advect.AdvectError as error:
            raise UnsupportedError(f"advect does not support this function: {error}") from error

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return the value and its pullback, in one trace."""
        import advect

        code = self.written(function)
        ones: Any = np.float64(1.0) if points is None else np.ones(points)
        traced = advect.vjp(lambda *xs: code(*xs)[0], tuple(range(len(function.inputs))))

        def call(*arguments: Array) -> Any:
            value, pullback = self._refused(traced, *arguments)
            return value, pullback(ones)

        return self.adapted(function, points, call)

    @cached_property
    def spelling(self) -> LibrarySpelling:
        """NumPy's operations."""
        import advect.scipy.special as special

        rows: dict[str, Callable[..., Any]] = {
            "diag": diagonal_matrix,
            "norm": norm_over(np),
            "take": take_by_index,
        }
        return LibrarySpelling(RenamedModule("advect", np, {"special": special}), rows)


ADVECT = Advect()
