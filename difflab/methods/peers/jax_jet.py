"""``jax.experimental.jet``: series along lines, of which JAX has one per direction."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.errors import UnsupportedError
from difflab.methods.peers.jax import Jax, jax_spelling
from difflab.methods.peers.peer import Array, CallAdapter, PeerCall
from difflab.methods.peers.spelling import LibrarySpelling, norm_over

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.methods.protocol import Problem


class AlongLines(Jax):
    """Derivatives from those along lines, which `along` gives, under ``vmap`` and ``jit``.

    The second derivative along a line is q(v) = vᵀHv, so that H follows by polarisation,
    2 Hᵢⱼ = q(eᵢ + eⱼ) − q(eᵢ) − q(eⱼ), from n(n+1)/2 lines.
    """

    package = "jax"
    columns = ("jax",)
    dtypes: tuple[str, ...] = ()

    @cached_property
    def spelling(self) -> LibrarySpelling:
        """JAX's operations; the norm is a plain one, since powers of two have no rule here."""
        import jax

        spelling = jax_spelling(jax, jax.numpy)
        return LibrarySpelling(spelling.xp, {**spelling.rows, "norm": norm_over(jax.numpy)})

    def along(self, f: Callable[[Any], Any], x: Any, v: Any) -> tuple[Any, Any, Any]:
        """Return value, first and second derivative of ``f(x + t*v)`` at t = 0."""
        raise NotImplementedError

    def first(self, f: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
        """Return the value ``(m,)`` and the Jacobian ``(m, n)``."""
        import jax

        values, slopes, _ = jax.vmap(lambda v: self.ruled(f, x, v))(jax.numpy.eye(len(x)))
        return values[0], slopes.T

    def ruled(self, f: Callable[[Any], Any], x: Any, v: Any) -> tuple[Any, Any, Any]:
        """Return the result of `along`; an operation without a rule raises `UnsupportedError`."""
        try:
            return self.along(f, x, v)
        except (AssertionError, KeyError) as error:
            raise UnsupportedError(f"{self.title} has no rule for it: {error}") from error

    def of_code(self, problem: Problem) -> PeerCall:
        """Return the Jacobian or Hessian of Python code, not compiled."""
        flat = self.packed_code(problem)
        if problem.order == 2:
            return self.waiting(lambda x: self._hessian(flat, x))
        return self.waiting(lambda x: self.first(flat, x)[1])

    def differentiated(self, flat: Callable[[Any], Any], n: int, m: int, order: int) -> PeerCall:
        """Return the compiled value, Jacobian or Hessian."""
        if order == 0:
            return super().differentiated(flat, n, m, order)
        if order == 2:
            call = self.waiting(self.compiled(lambda x: self._hessian(flat, x)))
        else:
            call = self.waiting(self.compiled(lambda x: self.first(flat, x)[1]))
        call(np.ones(n))  # compiles
        return call

    def _hessian(self, flat: Callable[[Any], Any], x: Any) -> Any:
        import jax

        n = len(x)
        rows, columns = np.triu_indices(n)
        unit = np.eye(n)
        lines = np.maximum(unit[rows], unit[columns])
        curvatures = jax.vmap(lambda v: self.ruled(flat, x, v)[2][0])(jax.numpy.asarray(lines))
        curved = jax.numpy.zeros((n, n)).at[rows, columns].set(curvatures)
        own = jax.numpy.diagonal(curved)
        upper = jax.numpy.triu((curved - own[:, None] - own[None, :]) / 2, 1)
        return upper + upper.T + jax.numpy.diag(own)

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return value and gradient by the lines along the axes, under ``vmap`` for a batch."""
        import jax

        flat = self.packed(function)

        def both(x: Any) -> Any:
            value, slopes = self.first(flat, x)
            return value[0], slopes[0]

        call = self.waiting(self.compiled(both if points is None else jax.vmap(both)))

        def result(arrays: Any) -> tuple[Array, Array]:
            return self.array(arrays[0]), self.array(arrays[1])

        return CallAdapter(call, lambda x: self.converted([x]), result)


class JaxJet(AlongLines):
    """``jax.experimental.jet`` along each axis and each diagonal, in float64."""

    name = "jax-jet"
    title = "JAX's jet"
    extra = "peers"
    modules = ("jax.experimental.jet",)
    summary = "JAX: jax.experimental.jet along lines, orders by polarisation, in float64"

    def along(self, f: Callable[[Any], Any], x: Any, v: Any) -> tuple[Any, Any, Any]:
        """Return the first terms of the series of ``f(x + t*v)``."""
        from jax.experimental.jet import jet

        value, (first, second) = jet(f, (x,), ((v, 0 * v),))
        return value, first, second


JAX_JET = JaxJet()
