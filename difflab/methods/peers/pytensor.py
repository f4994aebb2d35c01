"""PyTensor, the successor of Theano: a graph of variables, rewritten and compiled as a whole.

Functions are compiled in PyTensor's default mode, which is Numba's since version 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.graph.ir import Number
from difflab.methods.peers.array_peer import ArrayPeer, by_rows
from difflab.methods.peers.peer import CallAdapter, PeerCall
from difflab.methods.peers.spelling import (
    OPERATORS,
    REAL,
    LibrarySpelling,
    RenamedModule,
    diagonal_matrix,
    take_by_index,
)

if TYPE_CHECKING:
    from difflab.graph.function import Function


class Pytensor(ArrayPeer):
    """PyTensor's ``grad`` and ``pullback`` in a compiled function, in float64."""

    name = "pytensor"
    title = "PyTensor"
    modules = ("pytensor.tensor",)
    summary = "PyTensor: graphs compiled by its default mode, in float64"

    def names(self) -> Mapping[str, Any]:
        """Return PyTensor's tensors."""
        import pytensor.tensor as pt

        return {"pt": pt}

    def differentiated(self, flat: Callable[[Any], Any], n: int, m: int, order: int) -> PeerCall:
        """Return the compiled pullback of the function or of its gradient, called per row."""
        import pytensor
        import pytensor.tensor as pt

        x, v = pt.tensor("x", dtype="float64", shape=(n,)), pt.dvector("v")
        y = flat(x)
        if order == 0:
            value: PeerCall = pytensor.function([x], y)
            return value
        if order == 2:
            y = pytensor.grad(y[0], x, disconnected_inputs="ignore")
        row = pytensor.grad((y * v).sum(), x, disconnected_inputs="ignore")
        run = pytensor.function([x, v], row, on_unused_input="ignore")
        return by_rows(run, m if order == 1 else n)

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return value and gradient as one compiled function; a batch is an axis of its inputs."""
        import pytensor
        import pytensor.tensor as pt

        batch = () if points is None else (points,)
        inputs = [
            pt.tensor(f"x{k}", dtype="float64", shape=(*batch, *shape))
            for k, shape in enumerate(function.input_shapes)
        ]
        value = self.written(function)(*inputs)[0]
        slopes = pytensor.grad(value.sum(), inputs, disconnected_inputs="ignore")
        run = pytensor.function(inputs, [value, *slopes], on_unused_input="ignore")

        def call(*arguments: Any) -> Any:
            value, *slopes = run(*arguments)
            return value, slopes

        return self.adapted(function, points, call)

    @cached_property
    def spelling(self) -> LibrarySpelling:
        """PyTensor's operations."""
        import pytensor.tensor as pt

        own = pt.special  # with xlogy and xlog1py from PyTensor 3.0.7 on
        special = {name: getattr(own, name) for name in _SPECIAL if hasattr(own, name)}
        names = {
            **REAL,
            "asarray": pt.as_tensor_variable,
            "divide": pt.true_div,
            "equal": pt.eq,
            "logical_and": pt.and_,
            "logical_not": pt.invert,
            "logical_or": pt.or_,
            "multiply": pt.mul,
            "negative": pt.neg,
            "not_equal": pt.neq,
            "rint": pt.round_half_to_even,
            "special": RenamedModule("PyTensor", pt, special),
            "subtract": pt.sub,
        }
        rows: dict[str, Callable[..., Any]] = {
            "argsort": lambda x, *, axes, rank: pt.cast(
                pt.argsort(x, axes[0], stable=True), "float64"
            ),
            "besseli": pt.iv,
            "besselj": pt.jv,
            "besselk": pt.kv,
            "diag": diagonal_matrix,
            "heaviside": lambda x: 0.5 * pt.sign(x) + 0.5,
            "float32": lambda x: pt.cast(pt.cast(x, "float32"), "float64"),
            "log_softmax": lambda x, *, axes, rank: pt.special.log_softmax(x, axes),
            "loggamma": pt.gammaln,
            "logsumexp": lambda x, *, axes, rank: pt.logsumexp(x, axes),
            "polygamma": lambda order, x: pt.polygamma(int(order.data), x),
            "pack": _packed,
            "norm": lambda x, *, axes, rank: pt.sqrt(pt.sum(x * x, axes)),
            "relu": lambda x: pt.maximum(x, 0.0),
            "sigmoid": pt.sigmoid,
            "softmax": lambda x, *, axes, rank: pt.special.softmax(x, axes),
            "softplus": pt.softplus,
            "take": take_by_index,
            "take_along": lambda x, places, *, axis, rank: pt.take_along_axis(
                x, pt.cast(places, "int64"), axis
            ),
            "where": _where,
        }
        # `==` and `!=` of two variables are Python's: whether they are the same object.
        operators = {k: form for k, form in OPERATORS.items() if k not in ("equal", "not_equal")}
        return _Float64Spelling(RenamedModule("PyTensor", pt, names), rows, _lifted, operators)


_SPECIAL = ("beta", "betaln", "logit", "xlog1py", "xlogy")
"""Functions of ``pytensor.tensor.special`` under SciPy's names; the others are PyTensor's own."""


class _Float64Spelling(LibrarySpelling):
    """Operations whose constants are float64; PyTensor takes the logarithm of an int in float32."""

    def constant(self, value: Number, name: str | None) -> Any:
        """Return the nearest float64."""
        return np.float64(value)


def _lifted(value: float) -> Any:
    import pytensor.tensor as pt

    return pt.constant(np.float64(value))


def _packed(*parts: Any, ranks: tuple[int, ...]) -> Any:
    """Return the elements of all parts behind their batch axes; its shapes are symbolic."""
    import pytensor.tensor as pt

    if not any(ranks):
        return pt.stack(pt.broadcast_arrays(*parts), axis=-1)
    flat = [
        part.reshape((*[part.shape[k] for k in range(part.ndim - rank)], -1))
        for part, rank in zip(parts, ranks, strict=True)
    ]
    return pt.concatenate(flat, axis=-1)


def _where(condition: Any, a: Any, b: Any) -> Any:
    """Return the selection by a condition, which may be a number."""
    import pytensor.tensor as pt

    return pt.where(condition if condition.dtype == "bool" else pt.neq(condition, 0), a, b)


PYTENSOR = Pytensor()
