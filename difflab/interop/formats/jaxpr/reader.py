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

__all__ = ["from_jax"]

EXTRA = "peers"
"""The extra of difflab that installs JAX."""


def from_jax(fun: Any, *examples: Any) -> Function:
    """Return the function that code written with JAX computes.

    It computes in float64, also where JAX would compute in float32. Calls are inlined: those of
    ``jit`` and ``checkpoint``, and functions with derivatives of their own, such as ``custom_jvp``,
    in place of which difflab's rules are used. ``scan``, ``fori_loop``, ``while_loop`` and ``cond``
    are one node each.

    Parameters
    ----------
    fun : callable or closed jaxpr
        A function over arrays of JAX and trees of them, also a derivative such as
        ``jax.grad(loss)``; or what ``jax.make_jaxpr(fun)(…)`` returns.
    *examples : tree
        One per argument, as for `trace`: only their shapes and their trees matter. A jaxpr knows
        its own.

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
        return _of_jaxpr(jax, fun)
    if not callable(fun):
        raise InputError(
            f"from_jax takes a function or a closed jaxpr, not {type(fun).__name__}",
            hint="jax.make_jaxpr(fun)(…) is a closed jaxpr",
        )
    return _of_callable(jax, fun, [_example(jax, example) for example in examples])


def _of_jaxpr(jax: Any, closed: Any) -> Function:
    known = getattr(closed.jaxpr, "debug_info", None)
    names = FreshNames()
    given = getattr(known, "arg_names", None) or [f"x{k + 1}" for k in range(len(closed.in_avals))]
    labels = [names.fresh(cleaned_name(name).rstrip("_")) for name in given]
    shapes = [np.zeros(aval.shape) for aval in closed.in_avals]
    return _traced(jax, lambda *args: tuple(_evaluated(jax, closed, args)), labels, shapes)


def _of_callable(jax: Any, fun: Callable[..., Any], examples: Sequence[Any]) -> Function:
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

    return _traced(jax, run, names, examples)


def _traced(
    jax: Any, run: Callable[..., Any], names: Sequence[str], examples: Sequence[Any]
) -> Function:
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
