"""PyTorch: eager tensors and ``backward``."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.core.pytorch import NUMPYS_NAMES, zeta
from difflab.errors import UnsupportedError
from difflab.methods.peers.array_peer import ArrayPeer
from difflab.methods.peers.peer import Array, CallAdapter, PeerCall
from difflab.methods.peers.spelling import (
    LibrarySpelling,
    RenamedModule,
    of_whole_order,
    take_by_index,
)

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.methods.protocol import Problem


class Torch(ArrayPeer):
    """PyTorch's eager mode, in float64."""

    name = "torch"
    extra = "peers"
    title = "PyTorch"
    dtypes: tuple[str, ...] = ("float32", "float16", "bfloat16")
    summary = "PyTorch: eager tensors, one backward pass per output, in float64"

    def names(self) -> Mapping[str, Any]:
        """Return PyTorch."""
        import torch

        return {"torch": torch}

    def of_code(self, problem: Problem) -> PeerCall:
        """Return the derivative of Python code; it must not convert tensors to scalars."""
        call = self.differentiated(self.packed_code(problem), problem.n, problem.m, problem.order)

        def strict(x: Array) -> Any:
            import torch

            before = torch.is_warn_always_enabled()
            torch.set_warn_always(True)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", UserWarning)
                    return call(x)
            except UserWarning as error:
                raise UnsupportedError(f"PyTorch cannot follow this code: {error}") from error
            finally:
                torch.set_warn_always(before)

        return strict

    def differentiated(self, flat: Callable[[Any], Any], n: int, m: int, order: int) -> PeerCall:
        """Return the Jacobian, one backward pass per row, or PyTorch's own Hessian."""
        import torch

        kind = getattr(torch, self.dtype)
        if order == 0:
            return lambda x: self.array(flat(torch.tensor(x, dtype=kind)))
        if order == 2:
            hessian = torch.autograd.functional.hessian
            tensor = partial(torch.tensor, dtype=kind)
            return lambda x: hessian(lambda at: flat(at)[0], tensor(x)).double()

        def jacobian(x: Array) -> Array:
            at = torch.tensor(x, dtype=kind, requires_grad=True)
            outputs = flat(at).unbind()
            rows = []
            for output in outputs:
                slope = None
                if output.requires_grad:
                    kept = len(outputs) > 1
                    (slope,) = torch.autograd.grad(output, at, retain_graph=kept, allow_unused=True)
                rows.append(np.zeros(len(x)) if slope is None else slope.double().numpy())
            return np.array(rows)

        return jacobian

    def adapter(self, function: Function, points: int | None) -> CallAdapter:
        """Return the function on tensors, and ``torch.autograd.grad`` of its sum."""
        import torch

        code, gradient = self.code(function, points), torch.autograd.grad
        ones = torch.ones(() if points is None else (points,), dtype=torch.float64)

        def call(*tensors: Any) -> Any:
            value = code(*tensors)
            return value, gradient(value, tensors, ones, allow_unused=True)

        adapter = self.adapted(function, points, call)
        return replace(
            adapter, arguments=lambda x: [leaf.requires_grad_() for leaf in adapter.arguments(x)]
        )

    def code(self, function: Function, points: int | None) -> Callable[..., Any]:
        """Return the only output of the function as code on tensors, for the adapter."""
        run = self.written(function)
        return lambda *tensors: run(*tensors)[0]

    def converted(self, values: Sequence[Any]) -> list[Any]:
        """Return tensors."""
        import torch

        return [torch.from_numpy(np.array(value)) for value in values]

    def array(self, value: Any) -> Array:
        """Return a tensor as an array, without its history."""
        array: Array = value.detach().double().numpy()
        return array

    @cached_property
    def spelling(self) -> LibrarySpelling:
        """PyTorch's operations; its sign of nan is 0, which printed code mends."""
        import torch

        spelling = torch_spelling(torch, self.dtype)
        return LibrarySpelling(spelling.xp, {**spelling.rows, "sign": torch.sign}, spelling.lifted)


def torch_spelling(torch: Any, dtype: str = "float64") -> LibrarySpelling:
    """Return the functions of PyTorch that differ from NumPy, over the module `torch`."""

    def lifted(value: float) -> Any:
        return torch.tensor(value, dtype=getattr(torch, dtype))

    names = RenamedModule("PyTorch", torch, _names(torch, lifted))
    return LibrarySpelling(names, _rows(torch, lifted), lifted)


def _names(torch: Any, lifted: Callable[[float], Any]) -> dict[str, Any]:
    """Return PyTorch's functions for NumPy's names."""

    def chosen(condition: Any, a: Any, b: Any) -> Any:
        """Select in float64; of two Python scalars, `torch.where` selects in its default dtype."""
        alone = not (torch.is_tensor(a) or torch.is_tensor(b))
        return torch.where(condition, lifted(a) if alone else a, b)

    return {
        **{name: getattr(torch, own) for name, own in NUMPYS_NAMES.items()},
        "argmax": lambda x, axis: torch.argmax(x, axis).double(),
        "argsort": lambda x, axis: torch.argsort(x, dim=axis, stable=True).double(),
        "argmin": lambda x, axis: torch.argmin(x, axis).double(),
        "asarray": lambda value: torch.tensor(np.array(value)),
        "broadcast_to": lambda x, shape: torch.broadcast_to(x, tuple(shape)),
        "concatenate": lambda parts, axis: torch.cat(tuple(parts), axis),
        "diagonal": lambda x, axis1, axis2: torch.diagonal(x, 0, axis1, axis2),
        "max": lambda x, axis, keepdims=False: torch.amax(x, axis, keepdims),
        "maximum": lambda a, b: torch.maximum(a, b if torch.is_tensor(b) else lifted(b)),
        "min": lambda x, axis, keepdims=False: torch.amin(x, axis, keepdims),
        "minimum": lambda a, b: torch.minimum(a, b if torch.is_tensor(b) else lifted(b)),
        # With the number -0.5 it is the reciprocal of a root: nan at -inf, -inf at -0.
        "power": lambda x, p: torch.pow(x, lifted(p) if isinstance(p, float) else p),
        "prod": _product,
        "result_type": lambda *kinds: kinds[0],
        "sign": partial(_sign, torch),
        "stack": lambda parts, axis=0: torch.stack(tuple(parts), axis),
        "sum": lambda x, axis, keepdims=False: torch.sum(x, axis, keepdims),
        "where": chosen,
    }


def _rows(torch: Any, lifted: Callable[[float], Any]) -> dict[str, Callable[..., Any]]:
    """Return the primitives that are one function in PyTorch."""
    special = torch.special

    def underived(name: str) -> Callable[..., Any]:
        """Refuse a function that PyTorch cuts from its graph, so that its derivative reads as 0."""

        def refused(*_: Any) -> Any:
            raise UnsupportedError(f"PyTorch has {name} without a derivative")

        return refused

    return {
        "airyai": underived("airy_ai"),
        "besseli": of_whole_order("PyTorch", "Bessel functions I", {0: special.i0, 1: special.i1}),
        "besselj": underived("Bessel functions J"),
        "besselk": underived("Bessel functions K"),
        "bessely": underived("Bessel functions Y"),
        "float32": lambda x: x.float().double(),
        "heaviside": lambda x: 0.5 * _sign(torch, x) + 0.5,
        "log_softmax": lambda x, *, axes, rank: (
            torch.log_softmax(x, *axes) if len(axes) == 1 else x - torch.logsumexp(x, axes, True)
        ),
        "log_ndtr": special.log_ndtr,
        "logsumexp": lambda x, *, axes, rank: torch.logsumexp(x, axes),
        "ndtr": special.ndtr,
        "norm": lambda x, *, axes, rank: torch.linalg.vector_norm(x, dim=axes),
        "polygamma": lambda order, x: torch.special.polygamma(int(order), x),
        "relu": torch.relu,
        "sigmoid": torch.sigmoid,
        "softmax": lambda x, *, axes, rank: (
            torch.softmax(x, *axes)
            if len(axes) == 1
            else torch.exp(x - torch.logsumexp(x, axes, True))
        ),
        # PyTorch's own softplus returns x above 20, with an error of 2e-9.
        "softplus": lambda x: torch.logaddexp(x, lifted(0.0)),
        "take": take_by_index,
        "transpose": _transposed,
        "zeta": lambda s, q: torch.where(q > 0.0, zeta(torch, s, q), math.nan),
    }


def _sign(torch: Any, x: Any) -> Any:
    """Return the sign, and nan for nan, whose sign is 0 in PyTorch."""
    return torch.where(torch.isnan(x), x, torch.sign(x))


def _product(x: Any, axis: tuple[int, ...]) -> Any:
    """Return the product along axes, which PyTorch accepts one at a time."""
    kept = [size for k, size in enumerate(x.shape) if k - x.ndim not in axis]
    for single in sorted(axis):
        x = x.prod(single, keepdim=True)
    return x.reshape(kept)


def _transposed(x: Any, *, axes: tuple[int, ...]) -> Any:
    return x.permute((*range(x.ndim - len(axes)), *(axis + x.ndim for axis in axes)))


TORCH = Torch()
