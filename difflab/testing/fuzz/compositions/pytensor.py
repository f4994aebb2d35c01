"""PyTensor's transforms of graphs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from numpy.typing import NDArray

from difflab.testing.fuzz.compositions.framework import Fn, Framework, kept


def _rows(f: Fn, n: int, x: Any) -> Any:
    """Differentiate by ``grad``, row by row."""
    import pytensor.tensor as pt

    y = f(x)
    flat = y.reshape((n**y.ndim,))
    slopes = [_slope(flat[k], x) for k in range(n**y.ndim)]
    return pt.stack(slopes).reshape((*(n,) * y.ndim, n))


def _slope(y: Any, x: Any) -> Any:
    import pytensor

    gradient: Any = pytensor.grad
    return gradient(y, x, disconnected_inputs="ignore")


def _jacobian(f: Fn, n: int, x: Any, *, vectorize: bool) -> Any:
    import pytensor

    y = f(x)
    jacobian = pytensor.gradient.jacobian(
        y.reshape((n**y.ndim,)), x, disconnected_inputs="ignore", vectorize=vectorize
    )
    return jacobian.reshape((*(n,) * y.ndim, n))


def _pushed(f: Fn, n: int, x: Any, *, own: bool) -> Any:
    """Push forward by the operations' own rules, or by two pullbacks."""
    import numpy as np
    import pytensor.tensor as pt
    from pytensor.gradient import pushforward

    y = f(x)
    columns = [
        pushforward(y, x, pt.constant(v), use_op_pushforward=own, disconnected_outputs="ignore")
        for v in np.eye(n)
    ]
    return pt.stack(columns, -1)


def _from_graph(f: Fn, n: int, x: Any) -> Any:
    import pytensor
    import pytensor.tensor as pt

    inner = pt.tensor("inner", dtype="float64", shape=(n,))
    operation = pytensor.compile.builders.OpFromGraph([inner], [f(inner)])
    return operation(x)


def _vectorized(f: Fn, n: int, x: Any) -> Any:
    import pytensor.tensor as pt
    from pytensor.gradient import disconnected_grad
    from pytensor.graph.replace import vectorize_graph

    inner = pt.tensor("inner", dtype="float64", shape=(n,))
    batch = pt.stack([x, disconnected_grad(x) + 1.0])
    return vectorize_graph(f(inner), {inner: batch})[0]


def _scan(f: Fn, n: int, x: Any) -> Any:
    import pytensor

    return pytensor.scan(f, sequences=[x[None]], return_updates=False)[0]


def _set(f: Fn, n: int, x: Any) -> Any:
    """Fill an array of zeros."""
    import pytensor.tensor as pt

    return f(pt.zeros((n,))[::-1].set(x[::-1])[::-1][::-1])


def _call(transformed: Fn, x: NDArray[Any], names: Sequence[str]) -> Any:
    import pytensor
    import pytensor.tensor as pt

    at = pt.tensor("x", dtype="float64", shape=x.shape)
    mode = None if "default_mode" in names else "FAST_COMPILE"
    run = pytensor.function([at], transformed(at), mode=mode, on_unused_input="ignore")
    return run(x)


FRAMEWORK = Framework(
    "pytensor",
    {
        "grad": _rows,
        "jacobian": partial(_jacobian, vectorize=False),
        "jacobian_vectorized": partial(_jacobian, vectorize=True),
        "pushforward": partial(_pushed, own=True),
        "pushforward_of_pullbacks": partial(_pushed, own=False),
    },
    {
        "OpFromGraph": _from_graph,
        "vectorize_graph": _vectorized,
        "scan": _scan,
        "set_subtensor": _set,
        "default_mode": kept,
    },
    single=False,
    call=_call,
)
