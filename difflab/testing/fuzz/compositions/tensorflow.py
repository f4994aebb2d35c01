"""TensorFlow's transforms: tapes, accumulators, graphs, loops."""

from __future__ import annotations

from functools import partial
from typing import Any

from difflab.testing.fuzz.compositions.framework import Fn, Framework, named


def _jacobian(f: Fn, n: int, x: Any, *, pfor: bool) -> Any:
    import tensorflow as tf

    with tf.GradientTape(persistent=not pfor) as tape:
        tape.watch(x)
        y = f(x)
    return tape.jacobian(y, x, unconnected_gradients="zero", experimental_use_pfor=pfor)


def _rows(f: Fn, n: int, x: Any) -> Any:
    import tensorflow as tf

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
        entries = tf.unstack(tf.reshape(y, (-1,)), n ** len(y.shape))
    rows = [tape.gradient(entry, x, unconnected_gradients="zero") for entry in entries]
    return tf.reshape(tf.stack(rows), (*y.shape, n))


def _forward(f: Fn, n: int, x: Any) -> Any:
    import tensorflow as tf

    def column(x: Any, v: Any) -> Any:
        with tf.autodiff.ForwardAccumulator(x, v) as accumulator:
            y = f(x)
        return accumulator.jvp(y, unconnected_gradients="zero")

    units = tf.unstack(tf.eye(n, dtype=x.dtype))
    return tf.stack([column(x, v) for v in units], -1)


def _batch_jacobian(f: Fn, n: int, x: Any) -> Any:
    import tensorflow as tf

    tiled = tf.stack([x, x])
    with tf.GradientTape() as tape:
        tape.watch(tiled)
        y = tf.vectorized_map(f, tiled)
        flat = tf.reshape(y, (2, -1))
    jacobian = tape.batch_jacobian(flat, tiled, unconnected_gradients="zero")[0]
    return tf.reshape(jacobian, (*y.shape[1:], n))


def _vectorized(f: Fn, n: int, x: Any) -> Any:
    import tensorflow as tf

    return tf.vectorized_map(f, tf.stack([x, tf.stop_gradient(x) + 1]))[0]


def _map(f: Fn, n: int, x: Any) -> Any:
    import tensorflow as tf

    return tf.map_fn(f, tf.stack([x, tf.stop_gradient(x) + 1]))[0]


def _cond(f: Fn, n: int, x: Any) -> Any:
    import tensorflow as tf

    return tf.cond(x[0] <= x[0], lambda: f(x), lambda: f(x) * 0)


def _scatter(f: Fn, n: int, x: Any) -> Any:
    """Fill an array of zeros."""
    import tensorflow as tf

    indices = [[k] for k in range(n)]
    return f(tf.tensor_scatter_nd_update(tf.zeros_like(x), indices, x))


FRAMEWORK = Framework(
    "tensorflow",
    {
        "tape": _rows,
        "jacobian": partial(_jacobian, pfor=True),
        "jacobian_while": partial(_jacobian, pfor=False),
        "ForwardAccumulator": _forward,
        "batch_jacobian": _batch_jacobian,
    },
    {
        "function": named("tensorflow:function", autograph=False),
        "recompute_grad": named("tensorflow:recompute_grad"),
        "vectorized_map": _vectorized,
        "map_fn": _map,
        "cond": _cond,
        "scatter_update": _scatter,
        "xla": named("tensorflow:function", autograph=False, jit_compile=True),
    },
    single=False,
)
