"""Functions written with JAX, by the jaxprs that JAX makes of them.

Gather and scatter take and put entries of arrays at indices.
Where the indices are known, JAX itself says which entries it moves: it does the same with their
positions. So every form of these primitives is read, without its rules.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab import primitives as rows
from difflab.arrays.reductions import taken_at
from difflab.core.optional import require
from difflab.errors import InputError, TraceError, UnsupportedError
from difflab.graph.function import Function
from difflab.graph.names import FreshNames
from difflab.graph.node import Node
from difflab.graph.trace import example_shape, is_leaf, trace
from difflab.interop.formats.jaxpr.operations import RULES, RULES_BY_KIND
from difflab.interop.formats.jaxpr.rules import CONTROL, CUSTOM, custom_call
from difflab.interop.formats.readers import ReaderSource, cleaned_name, verified


def _gather(primitive: Any, x: Any, indices: Any, **params: Any) -> Any:
    """Take entries; those outside of the array are nan where JAX fills them."""
    if isinstance(indices, Node):
        return _at_computed(x, indices, **params)
    given = params | {"fill_value": -1}
    positions = np.asarray(primitive.bind(_positions(x.shape), indices, **given))
    entries = _entries(np.reshape(x, -1), np.maximum(positions, 0))
    if positions.min(initial=0) < 0:
        fill = params["fill_value"]
        entries = np.where(positions < 0, np.nan if fill is None else float(fill), entries)
    return entries


def _scatter(primitive: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    """Replace entries."""
    _require_known(indices)
    old, new = _positions(x.shape), _positions(updates.shape, x.size)
    positions = np.asarray(primitive.bind(old, indices, new, **params))
    return _entries(np.concatenate([np.reshape(x, -1), np.reshape(updates, -1)]), positions)


def _scatter_add(primitive: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    """Add to entries, also several times to one."""
    _require_known(indices)
    jax = require("jax")
    size = int(np.prod(x.shape))
    # The cotangent of an update is that of the entry to which it is added, and 0 if to none.
    zeros = np.zeros(x.shape), np.zeros(updates.shape)
    _, pull = jax.vjp(lambda part: primitive.bind(zeros[0], indices, part, **params), zeros[1])
    (pulled,) = pull(1.0 + np.arange(float(size)).reshape(x.shape))
    positions = np.asarray(pulled, np.int64).reshape(-1)
    extended = rows.put(
        np.reshape(updates, -1), places=positions.tobytes(), axis=-1, rank=1, size=size + 1
    )
    return x + np.reshape(extended[1:], x.shape)


def _positions(shape: tuple[int, ...], start: int = 0) -> NDArray[np.int64]:
    count = int(np.prod(shape))
    return np.arange(start, start + count, dtype=np.int64).reshape(shape)


def _entries(flat: Any, positions: Any) -> Any:
    return np.reshape(np.take(flat, positions.reshape(-1)), positions.shape)


def _require_known(indices: Any) -> None:
    if isinstance(indices, Node):
        raise UnsupportedError("the indices at which entries change are computed")


def _at_computed(x: Any, indices: Node, **params: Any) -> Any:
    """Take entries along one axis at computed indices."""
    layout, sizes, mode = params["dimension_numbers"], params["slice_sizes"], str(params["mode"])
    axes = layout.start_index_map
    whole = [size for axis, size in enumerate(x.shape) if axis not in axes]
    rest = [size for axis, size in enumerate(sizes) if axis not in axes]
    if len(axes) != 1 or sizes[axes[0]] != 1 or whole != rest or "FILL" in mode:
        raise UnsupportedError("computed indices are read where they take entries along one axis")
    (axis,) = axes
    clipped: Any = np.clip(indices[..., 0], 0, x.shape[axis] - 1)
    entries = taken_at(np.moveaxis(x, axis, 0), clipped, 0)
    lead = len(clipped.shape)
    if axis not in layout.collapsed_slice_dims:
        entries = np.expand_dims(entries, lead + axis)
    batch, kept = iter(range(lead)), iter(range(lead, len(entries.shape)))
    order = [
        next(kept if dimension in layout.offset_dims else batch)
        for dimension in range(len(entries.shape))
    ]
    return np.transpose(entries, order)


MOVEMENTS: Mapping[str, Callable[..., Any]] = {
    "gather": _gather,
    "scatter": _scatter,
    "scatter-add": _scatter_add,
}
"""Rules that are called with the primitive, its operands and its parameters."""


_INNER = ("jaxpr", "call_jaxpr", "fun_jaxpr")
_CALLS = frozenset(
    {
        *("checkpoint", "closed_call", "core_call", "jit", "pjit", "remat2"),
        *CUSTOM,
    }
)
"""Primitives that stand for the jaxpr that they hold."""


def evaluated(closed: Any, args: Sequence[Any]) -> list[Any]:
    """Return the outputs of a closed jaxpr.

    Parameters
    ----------
    closed : jax.extend.core.ClosedJaxpr
        The program.
    args : sequence of array or Node
        A value for each input.

    Raises
    ------
    InputError
        A primitive has no counterpart, or its values are complex.
    """
    # Calls nest as deep as those that JAX traced, which took Python calls of its own.
    return _run(closed.jaxpr, closed.consts, args)


def _run(jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, map(_value, consts), strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))

    def read(atom: Any) -> Any:
        return _value(atom.val) if hasattr(atom, "val") else values[atom]

    for step in jaxpr.eqns:
        results = _applied(step, [read(atom) for atom in step.invars])
        values.update(zip(step.outvars, map(_value, results), strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _value(value: Any) -> Any:
    """Convert to a NumPy array; traced values and random keys are unchanged."""
    plain = isinstance(getattr(value, "dtype", np.dtype(float)), np.dtype)
    return np.asarray(value) if plain and not isinstance(value, Node) else value


def _widened(value: Any) -> Any:
    """Convert floats of two bytes, which no graph holds, to float64."""
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.itemsize != 2:
        return value
    return value.astype(np.float64) if value.dtype.kind in "fV" else value


def _applied(step: Any, operands: list[Any]) -> Sequence[Any]:
    """Return the results of one primitive."""
    name, params = step.primitive.name, step.params
    traced = any(isinstance(operand, Node) for operand in operands)
    if traced:  # the graph computes in float64
        operands = [_widened(operand) for operand in operands]
    if name in CUSTOM and traced:
        return custom_call(evaluated, step, operands)
    if name in _CALLS:
        return _called(params, operands)
    if name == "custom_linear_solve" and not traced:  # its code hides the matrix from derivatives
        return _solved(params, operands)
    try:
        if name in RULES:
            results = RULES[name](*operands, **params)
        elif name in RULES_BY_KIND:
            kind = np.dtype(step.invars[0].aval.dtype).kind
            results = RULES_BY_KIND[name](*operands, kind=kind, **params)
        elif not traced:
            results = step.primitive.bind(*operands, **params)
        elif name in CONTROL:
            results = CONTROL[name](evaluated, operands, **params)
        elif name in MOVEMENTS:
            results = MOVEMENTS[name](step.primitive, *operands, **params)
        else:
            raise UnsupportedError("it has no counterpart")
    except UnsupportedError as error:
        raise _unread(step, error) from error
    return results if step.primitive.multiple_results else [results]


def _called(params: Mapping[str, Any], operands: list[Any]) -> list[Any]:
    inner = next(params[key] for key in _INNER if key in params)
    return _run(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), operands)


def _solved(params: Mapping[str, Any], operands: list[Any]) -> list[Any]:
    """Run the code that solves, on its constants and the right-hand sides."""
    counts, solve = params["const_lengths"], params["jaxprs"].solve
    start = counts.matvec + counts.vecmat
    return evaluated(solve, operands[start : start + counts.solve] + operands[sum(counts) :])


def _unread(step: Any, error: UnsupportedError) -> InputError:
    results = ", ".join(str(var.aval.str_short()) for var in step.outvars)
    return InputError(
        f"difflab does not read JAX's primitive {step.primitive.name!r} "
        f"with the result {results}: {error}",
        hint="docs/reference/formats.md lists those that it reads",
    )


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
    debug_info = getattr(closed.jaxpr, "debug_info", None)
    names = FreshNames()
    arg_names = getattr(debug_info, "arg_names", None) or [
        f"x{k + 1}" for k in range(len(closed.in_avals))
    ]
    labels = [names.fresh(cleaned_name(name).rstrip("_")) for name in arg_names]
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


def _source(jax: Any, closed: Any) -> ReaderSource:
    """Return the evaluation by JAX."""
    compiled = jax.jit(jax.extend.core.jaxpr_as_fun(closed))

    def call(values: Sequence[Any]) -> list[Any]:
        with jax.enable_x64(True):
            return [np.asarray(value) for value in compiled(*values)]

    return ReaderSource(
        "JAX", call, [aval.dtype for aval in closed.in_avals], _rounding(jax, closed)
    )


def _rounding(jax: Any, closed: Any) -> float:
    """Return the rounding of the coarsest floats of a jaxpr and of those that it holds."""
    coarsest = 0.0
    waiting, seen = [closed.jaxpr], set()
    while waiting:
        jaxpr = waiting.pop()
        if id(jaxpr) in seen:
            continue
        seen.add(id(jaxpr))
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
