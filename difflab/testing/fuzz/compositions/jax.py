"""JAX's transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from difflab.testing.fuzz.compositions.framework import Fn, Framework, named


def _last(rows: Any) -> Any:
    """Return an array with its first axis moved to the end."""
    import jax.numpy as jnp

    return jnp.moveaxis(rows, 0, -1)


def _eye(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.eye(x.shape[0], dtype=x.dtype)


def _units(y: Any) -> Any:
    """Return the unit cotangents of a result, along a new first axis."""
    import jax.numpy as jnp

    return jnp.reshape(jnp.eye(y.size, dtype=y.dtype), (y.size, *y.shape))


def _jvp(f: Fn, n: int, x: Any) -> Any:
    import jax

    return jax.numpy.stack([jax.jvp(f, (x,), (v,))[1] for v in _eye(x)], -1)


def _vmap_of_jvp(f: Fn, n: int, x: Any) -> Any:
    import jax

    return _last(jax.vmap(lambda v: jax.jvp(f, (x,), (v,))[1])(_eye(x)))


def _jvp_of_vmap(f: Fn, n: int, x: Any) -> Any:
    import jax

    tiled = jax.numpy.tile(x, (n, 1))
    return _last(jax.jvp(jax.vmap(f), (tiled,), (_eye(x),))[1])


def _vmap_of_vjp(f: Fn, n: int, x: Any) -> Any:
    import jax

    y, back = jax.vjp(f, x)
    return jax.numpy.reshape(jax.vmap(back)(_units(y))[0], (*y.shape, n))


def _vjp_of_vmap(f: Fn, n: int, x: Any) -> Any:
    import jax

    shape = jax.eval_shape(f, x).shape
    size = n ** len(shape)
    y, back = jax.vjp(jax.vmap(f), jax.numpy.tile(x, (size, 1)))
    seeds = jax.numpy.reshape(jax.numpy.eye(size, dtype=y.dtype), y.shape)
    return jax.numpy.reshape(back(seeds)[0], (*shape, n))


def _linearize(f: Fn, n: int, x: Any) -> Any:
    import jax

    return _last(jax.vmap(jax.linearize(f, x)[1])(_eye(x)))


def _linear_transpose(f: Fn, n: int, x: Any) -> Any:
    import jax

    y, tangent = jax.linearize(f, x)
    back = jax.linear_transpose(tangent, x)
    rows = [back(seed)[0] for seed in _units(y)]
    return jax.numpy.reshape(jax.numpy.stack(rows), (*y.shape, n))


def _vmap(f: Fn, n: int, x: Any) -> Any:
    import jax

    return jax.vmap(f)(jax.numpy.stack([x, jax.lax.stop_gradient(x) + 1]))[0]


def _scan(f: Fn, n: int, x: Any) -> Any:
    import jax

    return jax.lax.scan(lambda carry, row: (carry, f(row)), 0, x[None])[1][0]


def _carried(f: Fn, n: int, x: Any) -> Any:
    import jax

    start = jax.numpy.zeros(jax.eval_shape(f, x).shape, x.dtype)
    return jax.lax.fori_loop(0, 2, lambda k, y: f(x).astype(x.dtype), start)


def _cond(f: Fn, n: int, x: Any) -> Any:
    import jax

    def other(x: Any) -> Any:
        return f(x) * 0

    return jax.lax.cond(x[0] == x[0], f, other, x)


def _in_place(f: Fn, n: int, x: Any) -> Any:
    import jax.numpy as jnp

    return f(jnp.zeros_like(x).at[::-1].set(x[::-1]))


def _custom_jvp(f: Fn, n: int, x: Any) -> Any:
    import jax

    own = jax.custom_jvp(f)
    own.defjvp(lambda primals, tangents: jax.jvp(f, primals, tangents))
    return own(x)


def _custom_vjp(f: Fn, n: int, x: Any) -> Any:
    import jax

    own = jax.custom_vjp(f)
    own.defvjp(lambda x: (f(x), x), lambda x, seed: jax.vjp(f, x)[1](seed))
    return own(x)


def _call(transformed: Fn, x: NDArray[Any], names: Sequence[str]) -> Any:
    """Compute in 64 bits, or in JAX's default of 32; one compilation is faster than many."""
    import jax

    transformed = jax.jit(transformed)

    from difflab.methods.peers.jax import double

    if x.dtype == "float32":
        return jax.device_get(transformed(jax.numpy.asarray(x)))
    with double():
        return jax.device_get(transformed(jax.numpy.asarray(x)))


FRAMEWORK = Framework(
    "jax",
    {
        "jacrev": named("jax:jacrev"),
        "jacfwd": named("jax:jacfwd"),
        "jvp": _jvp,
        "vmap_of_jvp": _vmap_of_jvp,
        "jvp_of_vmap": _jvp_of_vmap,
        "vmap_of_vjp": _vmap_of_vjp,
        "vjp_of_vmap": _vjp_of_vmap,
        "linearize": _linearize,
        "linear_transpose": _linear_transpose,
    },
    {
        "jit": named("jax:jit"),
        "checkpoint": named("jax:checkpoint"),
        "vmap": _vmap,
        "scan": _scan,
        "fori_loop": _carried,
        "cond": _cond,
        "in_place": _in_place,
        "custom_jvp": _custom_jvp,
        "custom_vjp": _custom_vjp,
    },
    call=_call,
)
