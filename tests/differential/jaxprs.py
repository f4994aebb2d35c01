"""JAX's derivatives, computed by NumPy: XLA would compile each operation for every new shape.

JAX runs the program and applies its own rules, which leaves a jaxpr; that is then evaluated one
operation after the other. What is not in the table is left to JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

__all__ = ["computed", "loop_slopes"]

jax.config.update("jax_enable_x64", True)


def computed(fun: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return ``fun(*args)`` for a function written with ``jax.numpy``."""
    closed, shapes = jax.make_jaxpr(fun, return_shape=True)(*args)
    leaves = jax.tree_util.tree_leaves(args)
    outputs = _evaluated(closed.jaxpr, closed.consts, leaves)
    return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(shapes), outputs)


def _evaluated(jaxpr: Any, consts: Any, args: Any) -> list[Any]:
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))

    def read(atom: Any) -> Any:
        return np.asarray(atom.val if isinstance(atom, Literal) else values[atom])

    for step in jaxpr.eqns:
        operands = [read(atom) for atom in step.invars]
        results = _applied(step.primitive, operands, step.params)
        values.update(zip(step.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _applied(primitive: Any, operands: list[Any], params: dict[str, Any]) -> list[Any]:
    inner = params.get("jaxpr") or params.get("call_jaxpr")
    if inner is not None and primitive.name in ("jit", "pjit", "custom_jvp_call", "closed_call"):
        return _evaluated(inner.jaxpr, inner.consts, operands)
    if primitive.name == "custom_linear_solve":
        counts, solve = params["const_lengths"], params["jaxprs"].solve
        start = counts.matvec + counts.vecmat
        rest = operands[start : start + counts.solve] + operands[sum(counts) :]
        return _evaluated(solve.jaxpr, solve.consts, rest)
    compute = TABLE.get(primitive.name)
    if compute is None:
        found = primitive.bind(*map(jnp.asarray, operands), **params)
        return list(found) if primitive.multiple_results else [found]
    result = compute(*operands, **params)
    return list(result) if primitive.multiple_results else [result]


def _spread(x: Any, shape: Any, broadcast_dimensions: Any, **_: Any) -> Any:
    sizes = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, x.shape, strict=True):
        sizes[axis] = size
    return np.broadcast_to(x.reshape(sizes), shape)


def _cut(x: Any, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    steps = strides or (1,) * x.ndim
    return x[tuple(map(slice, start_indices, limit_indices, steps))]


def _padded(x: Any, value: Any, padding_config: Any) -> Any:
    """Pad by (before, after, between), any of which may be negative."""
    whole = [
        lo + hi + (n - 1) * gap + n if n else lo + hi
        for n, (lo, hi, gap) in zip(x.shape, padding_config, strict=True)
    ]
    made = np.full(
        [
            n + 2 * abs(min(lo, 0)) + 2 * abs(min(hi, 0))
            for n, (lo, hi, _) in zip(whole, padding_config, strict=True)
        ],
        value,
    )
    inner = tuple(
        slice(max(lo, 0), max(lo, 0) + n + (n - 1) * gap if n else max(lo, 0), gap + 1)
        for n, (lo, _, gap) in zip(x.shape, padding_config, strict=True)
    )
    made[inner] = x
    kept = tuple(
        slice(max(-lo, 0), max(-lo, 0) + n)
        for n, (lo, _, _) in zip(whole, padding_config, strict=True)
    )
    return made[kept]


def _product(a: Any, b: Any, dimension_numbers: Any, **_: Any) -> Any:
    (left, right), (left_batch, right_batch) = dimension_numbers
    names = iter(range(50))
    a_names, b_names = [-1] * a.ndim, [-1] * b.ndim
    batch = []
    for i, j in zip(left_batch, right_batch, strict=True):
        a_names[i] = b_names[j] = next(names)
        batch.append(a_names[i])
    for i, j in zip(left, right, strict=True):
        a_names[i] = b_names[j] = next(names)
    free = []
    for own in (a_names, b_names):
        for place, name in enumerate(own):
            if name < 0:
                own[place] = next(names)
                free.append(own[place])
    return np.einsum(a, a_names, b, b_names, [*batch, *free])


def _reshaped(x: Any, new_sizes: Any, dimensions: Any = None, **_: Any) -> Any:
    return np.reshape(x if dimensions is None else np.transpose(x, dimensions), new_sizes)


def _chosen(which: Any, *cases: Any) -> Any:
    return np.where(which.astype(bool), cases[1], cases[0])


def _counted(*sizes: Any, dtype: Any, shape: Any, dimension: int, **_: Any) -> Any:
    along = [1] * len(shape)
    along[dimension] = -1
    return np.broadcast_to(np.arange(shape[dimension], dtype=dtype).reshape(along), shape)


def _running(x: Any, axis: int, reverse: bool) -> Any:
    return np.flip(np.cumsum(np.flip(x, axis), axis), axis) if reverse else np.cumsum(x, axis)


def _plain(compute: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **_: compute(*args)


def _over(compute: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, axes, **_: compute(x, axis=tuple(axes))


TABLE: dict[str, Callable[..., Any]] = {
    "broadcast_in_dim": _spread,
    "slice": _cut,
    "pad": _padded,
    "dot_general": _product,
    "select_n": _chosen,
    "iota": _counted,
    "cumsum": _running,
    "squeeze": lambda x, dimensions: np.squeeze(x, tuple(dimensions)),
    "reshape": _reshaped,
    "convert_element_type": lambda x, new_dtype, **_: x.astype(new_dtype),
    "integer_pow": lambda x, y: x ** float(y),
    "split": lambda x, sizes, axis: np.split(x, np.cumsum(sizes)[:-1], axis),
    "stack": lambda *xs, axis: np.stack(xs, axis),
    "unstack": lambda x, axis: list(np.moveaxis(x, axis, 0)),
    "concatenate": lambda *xs, dimension: np.concatenate(xs, dimension),
    "transpose": lambda x, permutation: np.transpose(x, permutation),
    "rev": lambda x, dimensions: np.flip(x, tuple(dimensions)),
    "reduce_sum": _over(np.sum),
    "reduce_max": _over(np.max),
    "reduce_min": _over(np.min),
    "reduce_prod": _over(np.prod),
    **{name: _plain(getattr(np, name)) for name in ("sin", "cos", "tanh", "exp", "log", "sqrt")},
    **{name: _plain(getattr(np, name)) for name in ("log1p", "floor", "sign", "square", "abs")},
    "add": _plain(np.add),
    "add_any": _plain(np.add),
    "sub": _plain(np.subtract),
    "mul": _plain(np.multiply),
    "div": _plain(np.divide),
    "neg": _plain(np.negative),
    "pow": _plain(np.power),
    "max": _plain(np.maximum),
    "min": _plain(np.minimum),
    "atan": _plain(np.arctan),
    "atan2": _plain(np.arctan2),
    "eq": _plain(np.equal),
    "ne": _plain(np.not_equal),
    "ge": _plain(np.greater_equal),
    "gt": _plain(np.greater),
    "le": _plain(np.less_equal),
    "lt": _plain(np.less),
    "or": _plain(np.bitwise_or),
    "and": _plain(np.bitwise_and),
    "not": _plain(np.logical_not),
    "is_finite": _plain(np.isfinite),
    "stop_gradient": _plain(np.asarray),
}
"""What JAX's operations are in NumPy."""


class InJax:
    """JAX's loops and choices."""

    numpy = jnp
    fori_loop = staticmethod(jax.lax.fori_loop)
    while_loop = staticmethod(jax.lax.while_loop)
    cond = staticmethod(jax.lax.cond)
    checkpoint = staticmethod(jax.checkpoint)
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
