"""Enzyme: derivatives of compiled code, through its operation for JAX.

JAX traces and compiles the values; Enzyme differentiates the code. It has no second order and no
batching rule, so that a Jacobian is a pullback per row. Version 0.0.16 gives wrong derivatives of
`acosh`, `atanh` and `polygamma`, and nan for `digamma` and for a product of two elements of an
array, one of them 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.methods.peers.array_peer import by_rows
from difflab.methods.peers.jax import Jax
from difflab.methods.peers.peer import CallAdapter, PeerCall

if TYPE_CHECKING:
    from difflab.graph.function import Function


class EnzymeAd(Jax):
    """Enzyme's reverse mode on code that JAX compiles, in float64."""

    name = "enzyme-ad"
    extra = "enzyme-ad"
    title = "Enzyme"
    package = "enzyme_ad"
    packages = ("enzyme-ad", "jax", "jaxlib")
    modules = ("jax", "enzyme_ad.jax")
    summary = "Enzyme: reverse mode on compiled code, through JAX, in float64"
    columns = ("jax",)
    orders = (1,)
    dtypes: tuple[str, ...] = ()

    def differentiated(self, flat: Callable[[Any], Any], n: int, m: int, order: int) -> PeerCall:
        """Return Enzyme's pullback under ``jit``, called per row."""
        import jax
        from enzyme_ad.jax import enzyme_jax_ir

        traced = enzyme_jax_ir()(flat)
        if order == 0:
            return self.waiting(jax.jit(traced))
        pullback = self.waiting(jax.jit(lambda x, v: jax.vjp(traced, x)[1](v)[0]))
        pullback(np.ones(n), np.ones(m))  # compiles
        return by_rows(pullback, m)

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return ``jit`` of the value and its pullback; a batch is an axis of the inputs."""
        import jax
        from enzyme_ad.jax import enzyme_jax_ir

        code = self.written(function)
        values = enzyme_jax_ir()(lambda *xs: code(*xs)[0])
        ones = np.ones(() if points is None else (points,))

        def both(*xs: Any) -> Any:
            value, pullback = jax.vjp(values, *xs)
            return value, pullback(ones)

        return self.adapted(function, points, self.waiting(jax.jit(both)))


ENZYME_AD = EnzymeAd()
