"""TensorFlow's transforms: tapes, accumulators, graphs, loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from difflab.testing.fuzz.compositions.framework import Framework, named

Fn = Callable[[Any], Any]


def _jacobian(pfor: bool) -> Callable[[Fn, int], Fn]:
    def transform(f: Fn, n: int) -> Fn:
        import tensorflow as tf

        def run(x: Any) -> Any:
            with tf.GradientTape(persistent=not pfor) as tape:
                tape.watch(x)
                y = f(x)
            return tape.jacobian(y, x, unconnected_gradients="zero", experimental_use_pfor=pfor)

        return run

    return transform


def _rows(f: Fn, n: int) -> Fn:
    import tensorflow as tf

    def run(x: Any) -> Any:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
            entries = tf.unstack(tf.reshape(y, (-1,)), n ** len(y.shape))
        rows = [tape.gradient(entry, x, unconnected_gradients="zero") for entry in entries]
        return tf.reshape(tf.stack(rows), (*y.shape, n))

    return run


def _forward(f: Fn, n: int) -> Fn:
    import tensorflow as tf

    def column(x: Any, v: Any) -> Any:
        with tf.autodiff.ForwardAccumulator(x, v) as accumulator:
            y = f(x)
        return accumulator.jvp(y, unconnected_gradients="zero")

    def run(x: Any) -> Any:
        units = tf.unstack(tf.eye(n, dtype=x.dtype))
        return tf.stack([column(x, v) for v in units], -1)

    return run


def _batch_jacobian(f: Fn, n: int) -> Fn:
    import tensorflow as tf

    def run(x: Any) -> Any:
        tiled = tf.stack([x, x])
        with tf.GradientTape() as tape:
            tape.watch(tiled)
            y = tf.vectorized_map(f, tiled)
            flat = tf.reshape(y, (2, -1))
        found = tape.batch_jacobian(flat, tiled, unconnected_gradients="zero")[0]
        return tf.reshape(found, (*y.shape[1:], n))

    return run


def _vectorized(f: Fn, n: int) -> Fn:
    import tensorflow as tf

    return lambda x: tf.vectorized_map(f, tf.stack([x, tf.stop_gradient(x) + 1]))[0]


def _map(f: Fn, n: int) -> Fn:
    import tensorflow as tf

    return lambda x: tf.map_fn(f, tf.stack([x, tf.stop_gradient(x) + 1]))[0]


def _cond(f: Fn, n: int) -> Fn:
    import tensorflow as tf

    return lambda x: tf.cond(x[0] <= x[0], lambda: f(x), lambda: f(x) * 0)


def _scatter(f: Fn, n: int) -> Fn:
    """Fill an array of zeros."""
    import tensorflow as tf

    places = [[k] for k in range(n)]
    return lambda x: f(tf.tensor_scatter_nd_update(tf.zeros_like(x), places, x))


FRAMEWORK = Framework(
    "tensorflow",
    {
        "tape": _rows,
        "jacobian": _jacobian(pfor=True),
        "jacobian_while": _jacobian(pfor=False),
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
