"""JAX: a compiled function as an operation of JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from difflab.core.apply import JAX, module_of
from difflab.core.conversions import as_numbers, host_numbers
from difflab.core.optional import require
from difflab.errors import PointError
from difflab.execute.compiled import Compiled
from difflab.graph.function import Function
from difflab.interop.derivatives import CompiledOperation, batch_first, wrapped

ARGUMENT = "an argument of the operation"
"""Its name in messages."""
EXTRA = "peers"
"""The extra of difflab that installs JAX."""

Array = Any


def wrap(f: Function | Compiled) -> Callable[..., Any]:
    r"""Return a function of JAX arrays that difflab computes and JAX differentiates.

    It is a primitive of JAX, whose derivatives are Functions of difflab, compiled as `f` is: the
    tangent :math:`J\dot x`, its transpose :math:`J^T\bar y`, and theirs again. So ``jax.jit``,
    ``vmap``, ``jvp``, ``grad``, ``jacfwd``, ``jacrev`` and ``hessian`` take it, nested in any
    order.

    Parameters
    ----------
    f : Function or compiled Function
        What to compute. A Function is compiled with the target "auto".

    Returns
    -------
    callable
        With the inputs of `f`, by position or by name, and its results. Arguments are arrays of
        the inputs' shapes, or batches of them along leading axes. Results have the dtype of the
        arguments; values are computed in that of `f`.

    Raises
    ------
    InputError
        `f` is not a Function, or takes packed points.
    MissingDependencyError
        JAX is not installed.

    Notes
    -----
    Outside ``jit``, on the CPU, no array is copied if its dtype is that of `f`, float64 unless
    compiled otherwise: JAX's memory is read through DLPack's protocol, and results are handed over
    where JAX can use their alignment. Within ``jit`` a host callback runs, for which JAX copies
    what it returns. Arrays on a GPU are copied to the host.

    Examples
    --------
    >>> import jax, jax.numpy as jnp  # doctest: +SKIP
    >>> f = wrap(dl.compile(dl.parse("x*sin(y)")))  # doctest: +SKIP
    >>> jax.grad(f, argnums=1)(2.0, 0.0)  # doctest: +SKIP
    Array(2., dtype=float32, weak_type=True)
    """
    primitive = _primitive()
    return wrapped(
        f,
        "difflab.interop.jax.wrap",
        _of_one_dtype,
        lambda operation, values: primitive.bind(*values, op=operation),
    )


def _of_one_dtype(values: Sequence[Any]) -> list[Array]:
    """Return arguments as JAX arrays of the floating dtype that they promote to.

    Raises
    ------
    PointError
        They are complex.
    """
    xp = require("jax.numpy", EXTRA)
    arrays = [xp.asarray(_entered(value)) for value in values]
    dtype = xp.result_type(*arrays) if arrays else xp.result_type(float)
    if xp.issubdtype(dtype, xp.complexfloating):
        raise PointError("compiled functions accept real numbers, not complex ones")
    if not xp.issubdtype(dtype, xp.floating):
        dtype = xp.result_type(float)
    return [array.astype(dtype) for array in arrays]


def _entered(value: Any) -> Any:
    """Return an argument of JAX, or an array of NumPy in the order of bytes of the machine."""
    if type(value) is float or module_of(value).__name__ == JAX:
        return value  # numbers of Python have no dtype of their own
    if isinstance(value, int | complex):
        return as_numbers(value, ARGUMENT, PointError)
    array = host_numbers(value, ARGUMENT, PointError)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


@cache
def _primitive() -> Any:
    """Return the primitive, whose parameter `op` is a `CompiledOperation`."""
    jax = require("jax", EXTRA)
    mlir = require("jax.interpreters.mlir", EXTRA)
    primitive = require("jax.extend.core", EXTRA).Primitive("difflab")
    primitive.multiple_results = True

    def results_like(*args: Array, op: CompiledOperation) -> list[Any]:
        batch = op.batch([arg.shape for arg in args])
        return [jax.core.ShapedArray(batch + shape, args[0].dtype) for shape in op.output_shapes]

    def called_back(*args: Array, op: CompiledOperation) -> Any:
        kinds = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in results_like(*args, op=op)]
        dtype = np.dtype(args[0].dtype)
        return jax.pure_callback(lambda *values: _on_host(op, values, dtype), kinds, *args)

    primitive.def_abstract_eval(results_like)
    primitive.def_impl(lambda *args, op: _at_once(op, args))
    mlir.register_lowering(primitive, mlir.lower_fun(called_back, multiple_results=True))
    _register_derivatives(primitive)
    _register_batching(primitive)
    return primitive


def _on_host(op: CompiledOperation, values: Sequence[Any], dtype: np.dtype[Any]) -> list[Array]:
    """Return the results as NumPy arrays."""
    results = op([np.asarray(value) for value in values])
    return [np.asarray(result, dtype, order="C") for result in results]


def _at_once(op: CompiledOperation, args: Sequence[Array]) -> list[Array]:
    """Return the results as JAX arrays, outside of ``jit``."""
    jax = require("jax", EXTRA)
    return [jax.numpy.asarray(result) for result in _on_host(op, args, np.dtype(args[0].dtype))]


def _register_derivatives(primitive: Any) -> None:
    """Give JAX the tangents, of each argument by a product, and the transposes of products."""
    ad = require("jax.interpreters.ad", EXTRA)

    def tangents(primals: Sequence[Array], dots: Sequence[Any], *, op: CompiledOperation) -> Any:
        results = primitive.bind(*primals, op=op)
        parts: list[Sequence[Any]] = []
        moving = tuple(k for k, dot in enumerate(dots) if type(dot) is not ad.Zero)
        if any(k in op.linear for k in moving):  # their tangent is the product with the tangents
            linear = [ad.instantiate_zeros(dots[k]) for k in op.linear]
            parts.append(primitive.bind(*primals[: op.linear.start], *linear, op=op))
        sources = tuple(k for k in moving if k not in op.linear)
        if sources:
            along = [dots[k] for k in sources]
            parts.append(primitive.bind(*primals, *along, op=op.tangent(sources)))
        if not parts:
            return results, [ad.Zero.from_primal_value(result) for result in results]
        return results, [
            ad.add_jaxvals(*pair) if len(pair) == 2 else pair[0]
            for pair in zip(*parts, strict=True)
        ]

    def transposed(bars: Sequence[Any], *args: Any, op: CompiledOperation) -> list[Any]:
        fixed = args[: op.linear.start]
        instantiated = [ad.instantiate_zeros(bar) for bar in bars]
        cotangents = primitive.bind(*fixed, *instantiated, op=op.transpose())
        unknown = args[op.linear.start :]
        return [None] * len(fixed) + [
            _summed_to(bar, arg.aval.shape) if ad.is_undefined_primal(arg) else None
            for bar, arg in zip(cotangents, unknown, strict=True)
        ]

    ad.primitive_jvps[primitive] = tangents
    ad.primitive_transposes[primitive] = transposed


def _summed_to(bar: Array, shape: tuple[int, ...]) -> Array:
    """Return a cotangent summed over the batch axes along which its argument was broadcast."""
    lead = bar.ndim - len(shape)
    bar = bar.sum(axis=tuple(range(lead)))
    stretched = tuple(k for k, size in enumerate(shape) if size == 1 != bar.shape[k])
    return bar.sum(axis=stretched, keepdims=True)


def _register_batching(primitive: Any) -> None:
    """Let `vmap` add a batch axis, which every operation has anyway."""
    batching, xp = require("jax.interpreters.batching", EXTRA), require("jax.numpy", EXTRA)

    def batched(args: Sequence[Array], axes: Sequence[Any], *, op: CompiledOperation) -> Any:
        values = batch_first(args, axes, op.input_shapes, xp.moveaxis)
        results = primitive.bind(*values, op=op)
        return results, [0] * len(results)

    batching.primitive_batchers[primitive] = batched
