"""tinygrad: lazy tensors, compiled kernel by kernel for its default device.

Its inverse trigonometric functions and `erf` are approximations to seven digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.errors import UnsupportedError, described
from difflab.methods.peers.array_peer import ArrayPeer, by_rows
from difflab.methods.peers.peer import Array, CallAdapter, PeerCall
from difflab.methods.peers.spelling import (
    REAL,
    LibrarySpelling,
    RenamedModule,
    diagonal_matrix,
    take_by_index,
)

if TYPE_CHECKING:
    from difflab.graph.function import Function


class Tinygrad(ArrayPeer):
    """tinygrad's ``gradient`` on its default device, in float64."""

    name = "tinygrad"
    title = "tinygrad"
    summary = "tinygrad: lazy tensors, kernels compiled for its default device, in float64"

    def start(self) -> None:
        """Import the package and open its device, which compiles for some seconds."""
        super().start()
        if self.missing() is None:
            with suppress(UnsupportedError):  # raised again for each function
                _check_device()

    def names(self) -> Mapping[str, Any]:
        """Return tinygrad's tensors."""
        from tinygrad import Tensor

        return {"Tensor": Tensor}

    def differentiated(self, flat: Callable[[Any], Any], n: int, m: int, order: int) -> PeerCall:
        """Return a pullback of the function or of its gradient, computed per row."""
        _check_device()
        if order == 0:
            return lambda x: self.array(flat(*self.converted([x])))

        def row(x: Array, v: Array) -> Array:
            at, cotangent = self.converted([x, v])
            y = flat(at)
            if order == 2:
                y = y[0].gradient(at)[0]
            return self.array(y.gradient(at, gradient=cotangent)[0])

        call = by_rows(row, m if order == 1 else n)
        call(np.ones(n))  # compiles
        return call

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return value and gradient under ``TinyJit``; a batch is an axis of the inputs."""
        from tinygrad import Device, TinyJit

        _check_device()
        code = self.written(function)

        def both(*tensors: Any) -> Any:
            value = code(*tensors)[0]
            slopes = value.sum().gradient(*tensors)
            return value.realize(*slopes), slopes

        jitted = TinyJit(both)

        def call(*tensors: Any) -> Any:
            result = jitted(*tensors)
            Device[Device.DEFAULT].synchronize()
            return result

        return self.adapted(function, points, call)

    def converted(self, values: Sequence[Any]) -> list[Any]:
        """Return tensors, in memory of the device."""
        return [_tensor(value).clone().realize() for value in values]

    def array(self, value: Any) -> Array:
        """Return a tensor as an array of its own."""
        return np.array(value.numpy())

    @cached_property
    def spelling(self) -> LibrarySpelling:
        """Tinygrad's operations."""
        from tinygrad import Tensor

        def stacked(parts: Sequence[Any], axis: int = 0) -> Any:
            return Tensor.stack(*parts, dim=axis)

        names = {
            **REAL,
            "asarray": _tensor,
            "broadcast_to": Tensor.expand,
            "concatenate": lambda parts, axis: Tensor.cat(*parts, dim=axis),
            "divide": Tensor.div,
            "logical_and": Tensor.bitwise_and,
            "logical_or": Tensor.bitwise_or,
            "max": lambda x, axis, keepdims=False: x.max(axis, keepdims),
            "min": lambda x, axis, keepdims=False: x.min(axis, keepdims),
            "multiply": Tensor.mul,
            "negative": Tensor.neg,
            "power": Tensor.pow,
            "prod": lambda x, axis, keepdims=False: x.prod(axis, keepdims),
            "rint": Tensor.round,
            "special": Tensor,
            "stack": stacked,
            "subtract": Tensor.sub,
            "sum": lambda x, axis, keepdims=False: x.sum(axis, keepdims),
            "swapaxes": Tensor.transpose,
            "where": Tensor.where,
        }
        rows: dict[str, Callable[..., Any]] = {
            "argsort": lambda x, *, axes, rank: x.argsort(axes[0]).cast("float64"),
            "diag": diagonal_matrix,
            "heaviside": lambda x: 0.5 * x.sign() + 0.5,
            "logaddexp": lambda a, b: a.logaddexp(b),
            "logsumexp": _logsumexp,
            "log_softmax": lambda x, *, axes, rank: x.log_softmax(*axes),
            "relu": Tensor.relu,
            "sigmoid": Tensor.sigmoid,
            "softmax": lambda x, *, axes, rank: x.softmax(*axes),
            "softplus": Tensor.softplus,
            "take": take_by_index,
            "take_along": lambda x, places, *, axis, rank: x.gather(axis, places.cast("int32")),
        }
        return LibrarySpelling(RenamedModule("tinygrad", Tensor, names), rows, _tensor)


def _logsumexp(x: Any, *, axes: tuple[int, ...], rank: int) -> Any:
    """Return log Σeˣ along axes, which tinygrad accepts one at a time; they count from the end."""
    for axis in sorted(axes):
        x = x.logsumexp(axis)
    return x


def _check_device() -> None:
    """Raise if tinygrad has nothing to compute on, and say why.

    tinygrad opens one device after the other and drops their errors, so that an error of a moment
    (a compiler that is stopped, a cache that another process locks) reads as "no usable devices".
    The processor is therefore tried once more, and its own error is the reason.
    """
    from tinygrad import Device

    try:
        Device.DEFAULT  # noqa: B018 - a property that looks for a device
    except RuntimeError as error:
        try:
            Device["CPU"]
            Device.DEFAULT  # noqa: B018
        except Exception as reason:  # of tinygrad, its compiler or the system
            needs = "; it needs clang" if isinstance(reason, FileNotFoundError) else ""
            raise UnsupportedError(
                f"tinygrad finds no device: {error}; on the processor: {described(reason)}{needs}"
            ) from error


def _tensor(value: Any) -> Any:
    from tinygrad import Tensor, dtypes

    return Tensor(np.asarray(value, float), dtype=dtypes.float64)


TINYGRAD = Tinygrad()
