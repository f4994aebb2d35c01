"""`vmap`: a function of one example, mapped over a batch of examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from difflab.autodiff.engine.argnums import split
from difflab.autodiff.engine.batching import batched, with_axis_at
from difflab.autodiff.recording import Recording, computed, record, stack_size
from difflab.core.apply import module_of
from difflab.core.attributes import like
from difflab.core.conversions import as_float64
from difflab.errors import InputError, ShapeError
from difflab.graph.checks import require_callable
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.graph.pytree import LEAF, Structure, flatten, token_keys, unflatten
from difflab.graph.values import first_carrier, precision_of


def vmap(fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """Return `fun` mapped over axes of its arguments, all examples computed at once.

    The function is traced once, on one example, and the recorded operations are evaluated on
    stacks of examples.

    Parameters
    ----------
    fun : callable or Function
        Function of one example, written with NumPy.
    in_axes : int, None or tuple
        The batch axis of each argument; None for an argument that all examples share,
        which is passed unchanged. A tuple has an entry for each positional argument, which
        may itself be a tree that is a prefix of the argument's structure. Keyword arguments
        are mapped over their first axis.
    out_axes : int, None or tree
        The batch axis of each result; None for a result that is the same in all examples.

    Returns
    -------
    callable
        Function of stacks of examples.

    Raises
    ------
    InputError
        No argument is mapped, or the axes do not match the arguments or results.
    ShapeError
        The arguments have different batch sizes.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> points = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> dl.vmap(lambda x, scale: scale * np.sum(x), in_axes=(0, None))(points, 10.0).tolist()
    [30.0, 70.0, 110.0]
    >>> dl.vmap(dl.grad(lambda x: x[0] * x[1]))(points).tolist()
    [[2.0, 1.0], [4.0, 3.0], [6.0, 5.0]]
    """
    require_callable(fun, "vmap")

    @like(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        positional = _axes(in_axes, flatten(args)[1], "in_axes")
        axes = positional + [0] * (len(leaves) - len(positional))
        mapped_leaves = [position for position, axis in enumerate(axes) if axis is not None]
        stacks = [
            _to_front(as_float64(leaves[k], "an argument that vmap maps over"), axes[k] or 0)
            for k in mapped_leaves
        ]
        size = _size(stacks)

        def call(nodes: list[Node]) -> Any:
            filled = list(leaves)
            for position, node in zip(mapped_leaves, nodes, strict=True):
                filled[position] = node
            example_args, example_kwargs = unflatten(structure, filled)
            return fun(*example_args, **example_kwargs)

        kinds = [precision_of(leaves[position]) for position in mapped_leaves]
        shapes = [stack.shape[1:] for stack in stacks]
        run = record(call, shapes, has_aux=False, precisions=kinds)
        result_axes = _axes(out_axes, run.structure, "out_axes")
        if None in result_axes:
            _require_shared(run, len(stacks), result_axes)
        results = run.typed(_computed(run, stacks, size))
        return unflatten(
            run.structure,
            [_from_front(result, axis) for result, axis in zip(results, result_axes, strict=True)],
        )

    return mapped


def _size(stacks: Sequence[Any]) -> int:
    """Return how many examples there are."""
    sizes = {stack.shape[0] for stack in stacks}
    if not sizes:
        raise InputError("vmap needs at least one argument to map over")
    if len(sizes) > 1:
        raise ShapeError(
            f"vmap was given arguments with {' and '.join(map(str, sorted(sizes)))} examples",
            hint="in_axes gives the batch axis of each argument; None shares an argument",
        )
    size: int = sizes.pop()
    return size


def _computed(run: Recording, stacks: Sequence[Any], size: int) -> list[Any]:
    """Return the results with the examples along the first axis."""
    values = [*stacks, *run.captured]
    if first_carrier(values) is None:
        step = stack_size(run.function, run.function.input_nodes[: len(stacks)])
        if size > step:
            return _in_pieces(run, stacks, size, step)
        return computed(run.function, values, stack=size)[: run.results]
    flags = (True,) * len(stacks) + (False,) * len(run.captured)
    return computed(run.derived(batched, flags, size), values)[: run.results]


def _in_pieces(run: Recording, stacks: Sequence[Any], size: int, step: int) -> list[Any]:
    """Return the results of `step` examples at a time; shared values are computed once."""
    rest, shared, pieces = run.function, list[Any](), []
    if run.captured:
        prepare, rest = run.derived(_divided, len(run.captured))
        shared = computed(prepare, run.captured)
    for start in range(0, size, step):
        parts = [stack[start : start + step] for stack in stacks]
        results = computed(rest, [*shared, *parts], stack=len(parts[0]))
        pieces.append(results[: run.results])
    xp = module_of(pieces[0][0])
    return [xp.concatenate(parts) for parts in zip(*pieces, strict=True)]


def _divided(function: Function, captured: int) -> tuple[Function, Function]:
    """Partition a function into the part that its last `captured` inputs determine and the rest."""
    first = len(function.inputs) - captured
    nodes = function.input_nodes
    return split(replace(function, input_nodes=(*nodes[first:], *nodes[:first])), captured, 0)


def _axes(axes: Any, structure: Structure, what: str) -> list[int | None]:
    """Return the axis for every leaf of `structure`; `axes` may stop above the leaves."""
    leaf_axes: list[int | None] = []
    pending = [axes]
    for token in structure.tokens:
        entry = pending.pop()
        if token == LEAF.tokens[0]:
            if entry is not None and not _is_axis(entry):
                raise InputError(f"{what} has {entry!r} where an axis is required")
            leaf_axes.append(entry)
        elif token[0] == "none":
            continue
        elif entry is None or _is_axis(entry):
            pending += [entry] * len(token_keys(token))
        else:
            pending += reversed(_entries(entry, token, what))
    return leaf_axes


def _entries(entry: Any, token: tuple[Any, ...], what: str) -> list[Any]:
    """Return the parts of a tree of axes that belong to the parts of a container."""
    if isinstance(token[0], type) and issubclass(token[0], dict):
        if isinstance(entry, dict) and entry.keys() == set(token[1]):
            return [entry[key] for key in token[1]]
    elif isinstance(entry, tuple | list):
        if len(entry) == token[1]:
            return list(entry)
    elif type(entry) is token[0]:  # a dataclass
        return [getattr(entry, name) for name in token[1]]
    raise InputError(
        f"{what} has {entry!r} where a tree of the same structure is required",
        hint="give an axis, None, or a tree of these",
    )


def _is_axis(entry: Any) -> bool:
    return isinstance(entry, int | np.integer) and not isinstance(entry, bool)


def _checked(axis: int, ndim: int, what: str) -> int:
    """Return an axis counted from the first."""
    if not -ndim <= axis < ndim:
        raise InputError(f"{what} has the axis {axis} for a value of {ndim} axes")
    return int(axis) % ndim


def _to_front(value: Any, axis: int) -> Any:
    """Return a stack with its examples along the first axis."""
    return with_axis_at(value, _checked(axis, value.ndim, "in_axes"), 0)


def _from_front(result: Any, axis: int | None) -> Any:
    """Return a stack of results with the examples along `axis`."""
    if axis is None:
        return result[0]
    return with_axis_at(result, 0, _checked(axis, result.ndim, "out_axes"))


def _require_shared(run: Recording, count: int, result_axes: Sequence[int | None]) -> None:
    """Raise `InputError` where a result with ``out_axes=None`` depends on the example."""
    function = run.function
    reach = function.graph.reached_from(function.input_nodes[:count])
    for output, axis in zip(function.outputs, result_axes, strict=True):
        if axis is None and reach[output]:
            raise InputError("out_axes is None for a result that differs between the examples")
