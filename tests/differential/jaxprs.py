"""JAX's derivatives, computed by NumPy: XLA would compile each operation for every new shape.

JAX runs the program and applies its own rules, which leaves a jaxpr; that is then evaluated on
arrays one operation after the other, as `difflab.from_jax` reads it on traced values. What is no
function of NumPy is left to JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from difflab.interop.formats.jaxpr.reader import evaluated

__all__ = ["computed", "loop_slopes"]

jax = pytest.importorskip("jax", reason="needs JAX: pip install 'difflab[peers]'")
jnp = jax.numpy
jax.config.update("jax_enable_x64", True)


def computed(fun: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return ``fun(*args)`` for a function written with ``jax.numpy``."""
    closed, shapes = jax.make_jaxpr(fun, return_shape=True)(*args)
    leaves = jax.tree_util.tree_leaves(args)
    outputs = evaluated(closed, list(map(np.asarray, leaves)))
    return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(shapes), outputs)


class InJax:
    """JAX's loops and choices."""

    numpy = jnp
    fori_loop = staticmethod(jax.lax.fori_loop)
    while_loop = staticmethod(jax.lax.while_loop)
    cond = staticmethod(jax.lax.cond)
    checkpoint = checkpoint_with = staticmethod(jax.checkpoint)
    scan = staticmethod(lambda f, init, xs, reverse: jax.lax.scan(f, init, xs, reverse=reverse))


def loop_slopes(function_of: Callable[[Any], Callable[..., Any]], point: list[Any]) -> Any:
    """Return the Jacobian by all arguments, from JAX's tangents, step by step."""
    fun = function_of(InJax)
    flat = jnp.concatenate([jnp.asarray(part) for part in point])

    def whole(flat: Any) -> Any:
        return fun(*jnp.split(flat, len(point)))

    with jax.disable_jit():
        columns = [jax.jvp(whole, (flat,), (unit,))[1] for unit in jnp.eye(flat.size)]
    return np.stack([np.asarray(column) for column in columns], axis=-1)
