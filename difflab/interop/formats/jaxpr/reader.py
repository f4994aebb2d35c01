"""Functions written with JAX, by the jaxprs that JAX makes of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from difflab.core.optional import require
from difflab.errors import InputError, TraceError
from difflab.graph.function import Function
from difflab.graph.names import FreshNames
from difflab.graph.trace import example_shape, is_leaf, trace
from difflab.interop.formats.inputs import cleaned_name
from difflab.interop.formats.jaxpr.evaluation import evaluated
from difflab.interop.formats.verification import Source, verified

__all__ = ["from_jax"]

EXTRA = "peers"
"""The extra of difflab that installs JAX."""


def from_jax(fun: Any, *examples: Any, verify: bool = True) -> Function:
    """Return the function that code written with JAX computes.

    It computes in float64, also where JAX would compute in float32. Calls of ``jit`` and
    ``checkpoint`` are inlined. A function with a derivative rule of its own, ``custom_jvp`` or
    ``custom_vjp``, keeps it: it is the row of the table that it is, or a custom function. ``scan``,
    ``fori_loop``, ``while_loop`` and ``cond`` are one node each.

    Parameters
    ----------
    fun : callable or closed jaxpr
        A function over arrays of JAX and trees of them, also a derivative such as
        ``jax.grad(loss)``; or what ``jax.make_jaxpr(fun)(…)`` returns.
    *examples : tree
        One per argument, as for `trace`: only their shapes and their trees matter. A jaxpr knows
        its own.
    verify : bool
        Whether to compare values with JAX's, at a few points, beyond the rounding of the dtype in
        which it computes.

    Returns
    -------
    Function
        With an input for each leaf of the arguments, named as in the signature.

    Raises
    ------
    InputError
        A primitive of JAX has no counterpart, such as one of complex numbers; the message names it.
    TraceError
        The code branches on a value.
    GraphMismatchError
        What was read has another value than JAX computes.
    MissingDependencyError
        JAX is not installed.

    Examples
    --------
    >>> import jax.numpy as jnp, difflab as dl  # doctest: +SKIP
    >>> f = from_jax(lambda x, w: jnp.sum(jnp.tanh(w * x)), [1.0, 2.0], 3.0)  # doctest: +SKIP
    >>> print(f)  # doctest: +SKIP
    sum(tanh(w*x))
    >>> dl.gradient(f)([0.0, 0.0], 3.0).tolist()  # doctest: +SKIP
    [3.0, 3.0, 0.0]
    """
    jax = require("jax", EXTRA)
    if isinstance(fun, require("jax.extend.core", EXTRA).ClosedJaxpr):
        if examples:
            raise InputError("a jaxpr knows the shapes of its arguments", hint="omit the examples")
        return _of_jaxpr(jax, fun, verify)
    if not callable(fun):
        raise InputError(
            f"from_jax takes a function or a closed jaxpr, not {type(fun).__name__}",
            hint="jax.make_jaxpr(fun)(…) is a closed jaxpr",
        )
    return _of_callable(jax, fun, [_example(jax, example) for example in examples], verify)


def _of_jaxpr(jax: Any, closed: Any, verify: bool) -> Function:
    known = getattr(closed.jaxpr, "debug_info", None)
    names = FreshNames()
    given = getattr(known, "arg_names", None) or [f"x{k + 1}" for k in range(len(closed.in_avals))]
    labels = [names.fresh(cleaned_name(name).rstrip("_")) for name in given]
    shapes = [np.zeros(aval.shape) for aval in closed.in_avals]
    read = _traced(lambda *args: tuple(_evaluated(jax, closed, args)), labels, shapes)
    return verified(read, _source(jax, closed)) if verify and not closed.effects else read


def _of_callable(
    jax: Any, fun: Callable[..., Any], examples: Sequence[Any], verify: bool
) -> Function:
    try:
        names = list(inspect.signature(fun).parameters)
    except (TypeError, ValueError):
        names = []
    try:
        with jax.enable_x64(True):
            closed, shapes = jax.make_jaxpr(fun, return_shape=True)(*examples)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        message = str(error).partition("\n")[0]
        raise TraceError(f"JAX cannot trace the function: {message}") from error
    tree = jax.tree_util.tree_structure(shapes)

    def run(*args: Any) -> Any:
        outputs = _evaluated(jax, closed, jax.tree_util.tree_leaves(args))
        return jax.tree_util.tree_unflatten(tree, outputs)

    read = _traced(run, names, examples)
    return verified(read, _source(jax, closed)) if verify and not closed.effects else read


def _source(jax: Any, closed: Any) -> Source:
    """Return the evaluation by JAX."""
    compiled = jax.jit(jax.extend.core.jaxpr_as_fun(closed))

    def call(values: Sequence[Any]) -> list[Any]:
        with jax.enable_x64(True):
            return [np.asarray(value) for value in compiled(*values)]

    return Source("JAX", call, [aval.dtype for aval in closed.in_avals], _rounding(jax, closed))


def _rounding(jax: Any, closed: Any) -> float:
    """Return the rounding of the coarsest floats of a jaxpr and of those that it holds."""
    coarsest = 0.0
    waiting, known = [closed.jaxpr], set()
    while waiting:
        jaxpr = waiting.pop()
        if id(jaxpr) in known:
            continue
        known.add(id(jaxpr))
        for step in jaxpr.eqns:
            kinds = [getattr(var.aval, "dtype", None) for var in step.outvars]
            floats = [kind for kind in kinds if kind and jax.numpy.issubdtype(kind, np.floating)]
            coarsest = max([coarsest, *(float(jax.numpy.finfo(kind).eps) for kind in floats)])
            parts = jax.tree_util.tree_leaves(list(step.params.values()))
            inner = [getattr(part, "jaxpr", part) for part in parts]
            waiting += [part for part in inner if hasattr(part, "eqns")]
    return coarsest or 2.0**-52


def _traced(run: Callable[..., Any], names: Sequence[str], examples: Sequence[Any]) -> Function:
    """Return the trace of an evaluation, whose inputs have the names of the parameters."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in names]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return trace(run, *examples)


def _evaluated(jax: Any, closed: Any, args: Sequence[Any]) -> list[Any]:
    kinds = {np.dtype(aval.dtype).kind for aval in [*closed.in_avals, *closed.out_avals]}
    if "c" in kinds:
        raise InputError("difflab computes with real numbers, and the function has complex ones")
    with jax.enable_x64(True), np.errstate(all="ignore"):
        return evaluated(closed, args)


def _example(jax: Any, example: Any) -> Any:
    """Return an example whose leaves are arrays of float64."""

    def zeros(leaf: Any) -> Any:
        return np.zeros(example_shape(leaf))

    return zeros(example) if is_leaf(example) else jax.tree_util.tree_map(zeros, example)
