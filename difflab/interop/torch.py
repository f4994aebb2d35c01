"""PyTorch: a compiled function as an operation of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from difflab.core.conversions import host_reals
from difflab.core.optional import require
from difflab.errors import DeviceError, PointError
from difflab.execute.compiled import Compiled
from difflab.graph.function import Function
from difflab.interop.derivatives import CompiledOperation, batch_first, wrapped

EXTRA = "peers"
"""The extra of difflab that installs PyTorch."""

Tensor = Any
ARGUMENT = "an argument of the operation"
"""Its name in messages."""


def wrap(f: Function | Compiled) -> Callable[..., Any]:
    r"""Return a function of tensors that difflab computes and PyTorch differentiates.

    It is a ``torch.autograd.Function``, whose derivatives :math:`J\dot x` and :math:`J^T\bar y`
    are Functions of difflab, compiled as `f` is, and again such operations. So ``backward``,
    ``torch.autograd.grad``, also with ``create_graph=True``, and ``torch.func``'s ``grad``,
    ``jvp``, ``vmap``, ``jacfwd``, ``jacrev`` and ``hessian`` take it.

    Parameters
    ----------
    f : Function or compiled Function
        What to compute. A Function is compiled with the target "auto".

    Returns
    -------
    callable
        With the inputs of `f`, by position or by name, and its results. Arguments are tensors of
        the inputs' shapes, or batches of them along leading axes, and numbers. Results have the
        dtype of the tensors; values are computed in that of `f`.

    Raises
    ------
    InputError
        `f` is not a Function, or takes packed points.
    MissingDependencyError
        PyTorch is not installed.

    Notes
    -----
    No tensor is copied if its dtype is that of `f`, float64 unless compiled otherwise: its memory
    is read in place, and results are tensors over the arrays that were computed.
    ``torch.compile`` runs the operation between the graphs that it compiles. Tensors on a GPU are
    refused.

    Examples
    --------
    >>> import torch, difflab as dl  # doctest: +SKIP
    >>> f = wrap(dl.compile(dl.parse("x*sin(y)")))  # doctest: +SKIP
    >>> y = torch.tensor(0.0, requires_grad=True)  # doctest: +SKIP
    >>> f(2.0, y).backward()  # doctest: +SKIP
    >>> y.grad  # doctest: +SKIP
    tensor(2.)
    """
    apply = _autograd_function().apply
    return wrapped(
        f,
        "difflab.interop.torch.wrap",
        _of_one_dtype,
        lambda operation, values: apply(operation, *values),
    )


def _of_one_dtype(values: Sequence[Any]) -> list[Tensor]:
    """Return arguments as tensors of the floating dtype that the tensors promote to.

    Raises
    ------
    DeviceError
        A tensor is on a GPU.
    PointError
        One is complex.
    """
    torch = require("torch", EXTRA)
    dtype = None
    for value in values:
        if torch.is_tensor(value):
            if value.device.type != "cpu":
                raise DeviceError(
                    f"difflab computes tensors of the CPU, and one is on {value.device}",
                    hint="call the Function itself, or move it: tensor.cpu()",
                )
            common = value.dtype if dtype is None else torch.promote_types(dtype, value.dtype)
            dtype = common
    if dtype is None or not dtype.is_floating_point:
        if dtype is not None and dtype.is_complex:
            raise PointError("compiled functions accept real numbers, not complex ones")
        dtype = torch.get_default_dtype()
    tensors = [
        value
        if torch.is_tensor(value)
        else torch.tensor(np.array(host_reals(value, ARGUMENT, PointError)))
        for value in values
    ]
    return [tensor.to(dtype) for tensor in tensors]


@cache
def _autograd_function() -> Any:
    """Return the class of the operation, whose first argument is a `CompiledOperation`."""
    torch = require("torch", EXTRA)
    base: Any = torch.autograd.Function

    class DifflabOperation(base):  # type: ignore[misc]
        """A compiled function, or a product with its Jacobian."""

        @staticmethod
        def forward(op: CompiledOperation, *args: Tensor) -> tuple[Tensor, ...]:
            """Return the results, as tensors over NumPy's memory."""
            dtype = args[0].dtype
            # NumPy has no bfloat16.
            numpy_dtype = torch.float32 if dtype == torch.bfloat16 else dtype
            results = op([arg.detach().to(numpy_dtype).resolve_neg().numpy() for arg in args])
            return tuple(torch.from_numpy(_writable(result)).to(dtype) for result in results)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            """Keep the arguments for either product."""
            ctx.op, *args = inputs
            ctx.save_for_backward(*args)
            ctx.save_for_forward(*args)

        @staticmethod
        def backward(ctx: Any, *bars: Tensor) -> tuple[Tensor | None, ...]:
            """Return Jᵀ ȳ, an operation again."""
            sources = tuple(k for k, needed in enumerate(ctx.needs_input_grad[1:]) if needed)
            args = ctx.saved_tensors
            cotangents = DifflabOperation.apply(ctx.op.cotangent(sources), *args, *bars)
            slopes: list[Tensor | None] = [None] * len(args)
            for k, slope in zip(sources, cotangents, strict=True):
                slopes[k] = slope.sum_to_size(args[k].shape)
            return None, *slopes

        @staticmethod
        def jvp(ctx: Any, _: None, *dots: Tensor | None) -> tuple[Tensor, ...]:
            """Return J ẋ, an operation again."""
            sources = tuple(k for k, dot in enumerate(dots) if dot is not None)
            along = [dots[k] for k in sources]
            op = ctx.op.tangent(sources)
            tangents: tuple[Tensor, ...] = DifflabOperation.apply(op, *ctx.saved_tensors, *along)
            return tangents

        @staticmethod
        def vmap(info: Any, in_dims: tuple[Any, ...], op: CompiledOperation, *args: Any) -> Any:
            """Add a batch axis, which every operation has anyway."""
            values = batch_first(args, in_dims[1:], op.input_shapes, torch.movedim)
            results = DifflabOperation.apply(op, *values)
            return results, (0,) * len(results)

    return DifflabOperation


def _writable(array: Any) -> Any:
    """Return an array of memory of its own, as a tensor's must be."""
    return np.require(array, requirements=["W"])
