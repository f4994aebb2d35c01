"""TensorFlow: ``GradientTape`` in a ``tf.function``, over its implementation of NumPy's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from difflab.methods.peers.array_peer import ArrayPeer, by_rows
from difflab.methods.peers.peer import CallAdapter, PeerCall
from difflab.methods.peers.spelling import REAL, LibrarySpelling, RenamedModule, of_whole_order
from difflab.primitives.movement import indices

if TYPE_CHECKING:
    from difflab.graph.function import Function


class Tensorflow(ArrayPeer):
    """TensorFlow's tape in a graph function, in float64."""

    name = "tensorflow"
    title = "TensorFlow"
    modules = ("tensorflow.experimental.numpy",)
    packages = ("tensorflow", "tensorflow-cpu")
    summary = "TensorFlow: GradientTape in a tf.function, in float64"

    def names(self) -> Mapping[str, Any]:
        """Return TensorFlow, and its implementation of NumPy's names."""
        import tensorflow as tf
        import tensorflow.experimental.numpy as tnp

        return {"tf": tf, "tnp": tnp}

    def differentiated(self, flat: Callable[[Any], Any], n: int, m: int, order: int) -> PeerCall:
        """Return the pullback of the function or of its gradient as a graph, called per row."""
        import tensorflow as tf

        if order == 0:
            value = tf.function(flat, autograph=False)
            return lambda x: self.array(value(*self.converted([x])))

        def traced(x: Any) -> Any:
            if order == 1:
                return flat(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                value = flat(x)[0]
            return tape.gradient(value, x, unconnected_gradients="zero")

        def pullback(x: Any, v: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = traced(x)
            return tape.gradient(y, x, v, unconnected_gradients="zero")

        rows = m if order == 1 else n
        kinds = [tf.TensorSpec((size,), tf.float64) for size in (n, rows)]
        run = tf.function(pullback, autograph=False).get_concrete_function(*kinds)
        return by_rows(lambda x, v: run(*self.converted([x, v])).numpy(), rows)

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return value and gradient as a graph; a batch is an axis of the inputs."""
        import tensorflow as tf

        code = self.written(function)

        def call(*tensors: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(tensors)
                value = code(*tensors)[0]
            return value, tape.gradient(value, tensors)

        return self.adapted(function, points, self.compiled(call))

    def compiled(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return `call` as a graph."""
        import tensorflow as tf

        graph: Callable[..., Any] = tf.function(call, autograph=False)
        return graph

    def converted(self, values: Sequence[Any]) -> list[Any]:
        """Return tensors."""
        import tensorflow as tf

        return [tf.constant(value, tf.float64) for value in values]

    @cached_property
    def spelling(self) -> LibrarySpelling:
        """TensorFlow's operations."""
        import tensorflow as tf
        import tensorflow.experimental.numpy as tnp

        def lifted(value: float) -> Any:
            return tf.constant(value, tf.float64)

        special = RenamedModule(
            "TensorFlow",
            tf.math,
            {
                "betaln": lambda a, b: tf.math.lbeta(tf.stack(tnp.broadcast_arrays(a, b), -1)),
                "dawsn": tf.math.special.dawsn,
                "expi": tf.math.special.expint,
                "gammainc": tf.math.igamma,
                "gammaincc": tf.math.igammac,
                "gammaln": tf.math.lgamma,
            },
        )
        names = {**REAL, "linalg": tf.linalg, "rint": tf.round, "special": special}
        whole, bessel = partial(of_whole_order, "TensorFlow"), tf.math.special
        rows: dict[str, Callable[..., Any]] = {
            "argsort": lambda x, *, axes, rank: tf.cast(
                tf.argsort(x, axes[0], stable=True), tf.float64
            ),
            "besseli": whole("Bessel functions I", {0: tf.math.bessel_i0, 1: tf.math.bessel_i1}),
            "besselj": whole("Bessel functions J", {0: bessel.bessel_j0, 1: bessel.bessel_j1}),
            "besselk": whole("Bessel functions K", {0: bessel.bessel_k0, 1: bessel.bessel_k1}),
            "bessely": whole("Bessel functions Y", {0: bessel.bessel_y0, 1: bessel.bessel_y1}),
            "dawsn": bessel.dawsn,
            "float32": lambda x: tf.cast(tf.cast(x, tf.float32), tf.float64),
            "log_softmax": lambda x, *, axes, rank: tf.nn.log_softmax(x, *axes),
            "loggamma": tf.math.lgamma,
            "logsumexp": lambda x, *, axes, rank: tf.reduce_logsumexp(x, axes),
            "norm": lambda x, *, axes, rank: tf.sqrt(tf.reduce_sum(x * x, axes)),
            "relu": tf.nn.relu,
            "sigmoid": tf.sigmoid,
            "softmax": lambda x, *, axes, rank: tf.nn.softmax(x, *axes),
            "softplus": tf.nn.softplus,
            "take": _taken,
            "take_along": lambda x, places, *, axis, rank: tnp.take_along_axis(
                x, tf.cast(places, tf.int64), axis
            ),
        }
        return LibrarySpelling(RenamedModule("TensorFlow", tnp, names), rows, lifted)


def _taken(x: Any, *, places: Any, axis: int, rank: int) -> Any:
    """Return elements along an axis by ``gather``: tensors accept no arrays as indices."""
    import numpy as np
    import tensorflow as tf

    return tf.gather(x, np.arange(x.shape[axis])[indices(places)], axis=axis)


TENSORFLOW = Tensorflow()
