"""HIPS autograd: NumPy, traced at every call."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

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


class Autograd(ArrayPeer):
    """HIPS autograd's reverse mode over NumPy."""

    name = "autograd"
    extra = "peers"
    title = "autograd"
    dtypes = ("float32", "float16")
    modules = ("autograd.numpy", "autograd.scipy.special", "autograd.scipy.stats")
    summary = "HIPS autograd: reverse mode over NumPy"
    columns = (name, "numpy")

    def names(self) -> Mapping[str, Any]:
        """Return autograd's NumPy and its special functions."""
        import autograd.numpy as anp
        import autograd.scipy.special as special

        return {"np": anp, "special": special}

    def of_code(self, problem: Problem) -> PeerCall:
        """Return the Jacobian or Hessian of Python code."""
        return self.differentiated(self.packed_code(problem), problem.n, problem.m, problem.order)

    def differentiated(self, flat: Callable[[Any], Any], n: int, m: int, order: int) -> PeerCall:
        """Return autograd's Jacobian or Hessian."""
        import autograd

        if order == 0:
            return flat
        derivative = (
            autograd.hessian(lambda x: flat(x)[0]) if order == 2 else autograd.jacobian(flat)
        )

        def call(x: Array) -> Any:
            with warnings.catch_warnings():
                # A zero derivative is a valid result.
                warnings.filterwarnings("ignore", message="Output seems independent of input")
                return derivative(x.astype(self.dtype))

        return call

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return the value and its vjp, in one trace."""
        import autograd

        code = self.written(function)
        traced = autograd.make_vjp(lambda *xs: code(*xs)[0], tuple(range(len(function.inputs))))
        ones: Any = np.float64(1.0) if points is None else np.ones(points)

        def call(*arguments: Any) -> Any:
            back, value = traced(*arguments)
            return value, back(ones)

        return self.adapted(function, points, call)

    @cached_property
    def spelling(self) -> LibrarySpelling:
        """Autograd's operations."""
        import autograd.numpy as anp
        import autograd.scipy.special as special
        import autograd.scipy.stats as stats
        from autograd.tracer import isbox

        def clip(x: Any, low: Any, high: Any) -> Any:
            """Its clip has no derivative in the bounds."""
            if isbox(low) or isbox(high):
                return anp.minimum(anp.maximum(x, low), high)
            return anp.clip(x, low, high)

        rows: dict[str, Callable[..., Any]] = {
            # Its broadcast_to has no derivative where axes are added.
            "broadcast": lambda x, *, shape, rank: x * np.ones(shape),
            "besseli": special.iv,
            "besselj": special.jn,  # SciPy's name for jv: any order
            "bessely": special.yn,
            "clip": clip,
            "diag": diagonal_matrix,
            "float32": lambda x: x.astype(np.float32).astype(np.float64),
            "log_ndtr": stats.norm.logcdf,
            "logsumexp": lambda x, *, axes, rank: special.logsumexp(x, axis=axes),
            "ndtr": stats.norm.cdf,
            "norm": norm_over(anp),
            "sigmoid": special.expit,
            "take": take_by_index,
        }
        return LibrarySpelling(RenamedModule("autograd", anp, {"special": special}), rows)


AUTOGRAD = Autograd()
