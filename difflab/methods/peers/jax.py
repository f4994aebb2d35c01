"""JAX: traced, differentiated and compiled by XLA.

Everything runs in float64 by JAX's context manager for it; the user's own setting is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.errors import UnsupportedError
from difflab.methods.peers.array_peer import ArrayPeer
from difflab.methods.peers.peer import CallAdapter, PeerCall
from difflab.methods.peers.spelling import (
    LibrarySpelling,
    diagonal_matrix,
    known_order,
    of_whole_order,
    take_by_index,
)
from difflab.methods.timer import LoopCall

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.methods.protocol import Problem


class Jax(ArrayPeer):
    """JAX's transforms under ``jit``, in float64."""

    name = "jax"
    extra = "peers"
    title = "JAX"
    summary = "JAX: jit(jacrev), jacfwd where there are more outputs, in float64"
    packages: tuple[str, ...] = ("jax", "jaxlib")
    dtypes: tuple[str, ...] = ("float32", "float16", "bfloat16")
    form = "jit(f)(x) under enable_x64"
    """The call that is timed: in a loop under one setting of the precision."""

    def estimated_seconds(self, function: Function, order: int) -> float:
        """Return the seconds of XLA's compilation: 1.8 ms per node, measured with 18,000 nodes."""
        return 1.8e-3 * order * len(function.graph)

    def names(self) -> Mapping[str, Any]:
        """Return JAX's modules."""
        import jax
        import jax.scipy

        return {"jax": jax, "jnp": jax.numpy, "special": jax.scipy.special}

    def differentiated(self, flat: Callable[[Any], Any], n: int, m: int, order: int) -> PeerCall:
        """Return the compiled value, Jacobian or Hessian."""
        import jax

        if order == 2:
            transformed = jax.hessian(lambda x: flat(x)[0])
        else:
            transformed = ((jax.jacfwd if m > n else jax.jacrev)(flat)) if order else flat
        call = self.waiting(jax.jit(transformed))
        call(np.ones(n))  # compiles
        return call

    def of_code(self, problem: Problem) -> PeerCall:
        """Return the Jacobian or Hessian of Python code, not compiled: it may branch on values."""
        import jax

        flat = self.packed_code(problem)
        if problem.order == 2:
            return self.waiting(jax.jacfwd(jax.jacrev(lambda x: flat(x)[0])))
        return self.waiting(jax.jacrev(flat))

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return ``jit(value_and_grad)``, vectorised by ``vmap`` for a batch."""
        import jax

        code = self.written(function)
        inputs = tuple(range(len(function.inputs)))
        both = jax.value_and_grad(lambda *xs: code(*xs)[0].reshape(()), inputs)
        compiled = self.compiled(both if points is None else jax.vmap(both))
        wait = jax.block_until_ready
        # A call compiled ahead of time, ``jit(f).lower(x).compile()``, takes longer than this one.
        return self.adapted(
            function,
            points,
            lambda *arguments: wait(compiled(*arguments)),
            form=self.form,
            around=double,
        )

    def compiled(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return `call` under ``jit``."""
        import jax

        jitted: Callable[..., Any] = jax.jit(call)
        return jitted

    def waiting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return `call` in float64, which returns when its results are computed."""
        import jax

        wait = jax.block_until_ready

        def run(*arguments: Any) -> Any:
            with double():
                own = arguments if self.dtype == "float64" else self.converted(arguments)
                return wait(call(*own))

        def loop(*arguments: Any) -> LoopCall:
            arrays = self.converted(arguments)
            return LoopCall(self.form, lambda: wait(call(*arrays)), double)

        run.__dict__["loop"] = loop
        return run

    def converted(self, values: Sequence[Any]) -> list[Any]:
        """Return arrays of JAX in its dtype."""
        import jax

        with double():
            return [jax.numpy.asarray(value, dtype=self.dtype) for value in values]

    @cached_property
    def spelling(self) -> LibrarySpelling:
        """JAX's operations; some of NumPy's are elsewhere in JAX."""
        import jax

        spelling = jax_spelling(jax, jax.numpy)
        if self.dtype == "float64":
            return spelling
        lifted = lambda value: jax.numpy.asarray(value, dtype=self.dtype)  # noqa: E731
        return LibrarySpelling(spelling.xp, spelling.rows, lifted)


def jax_spelling(jax: Any, jnp: Any) -> LibrarySpelling:
    """Return JAX's functions that differ from NumPy's, over the modules `jax` and `jax.numpy`."""

    def recurrence(a: Any, b: Any, *, axes: tuple[int, ...], rank: int) -> Any:
        """In order: products of coefficients may overflow where those of the recurrence do not."""
        (axis,) = axes
        if b.shape[axis] < 2:
            return b
        first = axis == -b.ndim
        steps, terms = (a, b) if first else (jnp.moveaxis(a, axis, 0), jnp.moveaxis(b, axis, 0))
        step = lambda y, now: 2 * (now[0] * y + now[1],)  # noqa: E731 - its text is printed
        rest = jax.lax.scan(step, terms[0], (steps, terms[1:]))[1]
        solution = jnp.concatenate((terms[:1], rest))
        return solution if first else jnp.moveaxis(solution, 0, axis)

    special = jax.scipy.special

    def besselj(order: Any, x: Any) -> Any:
        """One call gives all orders up to one."""
        number = known_order(order)
        if number is None or number < 0 or number != int(number):
            raise UnsupportedError("JAX has Bessel functions J of whole orders from 0 only")
        return special.bessel_jn(x, v=max(int(number), 1))[int(number)]

    rows = {
        "besseli": of_whole_order("JAX", "Bessel functions I", {0: special.i0, 1: special.i1}),
        "besselj": besselj,
        "diag": diagonal_matrix,
        "linear_recurrence": recurrence,
        "log_softmax": lambda x, *, axes, rank: jax.nn.log_softmax(x, axis=axes),
        "log_ndtr": special.log_ndtr,
        "logsumexp": lambda x, *, axes, rank: special.logsumexp(x, axis=axes),
        "ndtr": special.ndtr,
        "polygamma": lambda order, x: special.polygamma(int(order), x),
        "relu": jax.nn.relu,
        "sigmoid": jax.nn.sigmoid,
        "softmax": lambda x, *, axes, rank: jax.nn.softmax(x, axis=axes),
        "softplus": jax.nn.softplus,
        "take": take_by_index,
    }
    return LibrarySpelling(jnp, rows)


def double() -> AbstractContextManager[None]:
    """Return JAX's context manager for float64, which is in another module in older versions."""
    import jax

    home = jax if hasattr(jax, "enable_x64") else import_module("jax.experimental")
    context: AbstractContextManager[None] = home.enable_x64(True)
    return context


JAX = Jax()
