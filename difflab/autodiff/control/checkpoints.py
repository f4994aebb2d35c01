"""Checkpoints in a trace: a function as one node, which the reverse sweep evaluates again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from difflab.autodiff.control.rows import RULES, Rules, appended
from difflab.autodiff.engine.argnums import tangents_of
from difflab.autodiff.engine.batching import Arg, batched
from difflab.autodiff.policies.policy import Policy, backward_from, nothing, with_values
from difflab.autodiff.recording import record
from difflab.errors import InputError
from difflab.graph.algebra import signs
from difflab.graph.control import Checkpoint
from difflab.graph.counts import peak_bytes
from difflab.graph.custom.rows import unpacked
from difflab.graph.function import Function
from difflab.graph.ir import Shape, packed_slices
from difflab.graph.node import Node
from difflab.graph.pytree import Structure, flatten, unflatten
from difflab.graph.rewritten import inlined
from difflab.primitives import scatter, where
from difflab.primitives.structure import decoded

MOST_INLINED = 10_000
"""Nodes up to which a checkpoint is inlined for what knows no functions: text, SymPy, C."""

MOST_NESTED = 100
"""Checkpoints inside each other in a trace: seven calls of Python differentiate each of them."""

_around: ContextVar[int] = ContextVar("checkpoints that are being traced", default=0)


def traced_checkpoint(
    function: Callable[[Any], Any],
    leaves: Sequence[Any],
    structure: Structure,
    policy: Policy = nothing,
) -> Any:
    """Return ``function(tree)``, as one node of the trace.

    Parameters
    ----------
    function : callable
        Its results are a tree; what is traced in it depends on the node.
    leaves, structure : list, Structure
        The tree, flattened.
    policy : Policy
        Chooses the values inside that are kept.

    Raises
    ------
    InputError
        More than `MOST_NESTED` checkpoints, or loops in them, are inside each other.
    """
    indices = [index for index, leaf in enumerate(leaves) if isinstance(leaf, Node)]
    call, returned = called_on(function, leaves, structure, indices)
    nodes = [leaves[index] for index in indices]
    with _nested():
        run = record(call, [node.shape for node in nodes], has_aux=False, values=nodes)
        _check_depth(_around.get() + _depth(run.function))
    results, tree = returned[0]
    if not run.results:
        return unflatten(tree, results)
    kept = run.derived(_kept, policy)
    whole = Checkpoint(with_values(run.function, kept) if kept else run.function, len(kept))
    outputs = iter(appended(whole, [*nodes, *run.captured]))
    values = [_like(next(outputs), r) if isinstance(r, Node) else r for r in results]
    return unflatten(tree, values)


def called_on(
    function: Callable[[Any], Any],
    leaves: Sequence[Any],
    structure: Structure,
    indices: Sequence[int],
) -> tuple[Callable[[list[Node]], list[Node]], list[tuple[list[Any], Structure]]]:
    """Return a function of the leaves at some indices, and a list for the whole results.

    It returns the traced leaves among its results.
    """
    returned: list[tuple[list[Any], Structure]] = []

    def call(nodes: list[Node]) -> list[Node]:
        filled = list(leaves)
        for index, node in zip(indices, nodes, strict=True):
            filled[index] = node
        returned.append(flatten(function(unflatten(structure, filled))))
        return [leaf for leaf in returned[0][0] if isinstance(leaf, Node)]

    return call, returned


def _kept(function: Function, policy: Policy) -> list[int]:
    return policy.kept(function)


@contextmanager
def _nested() -> Iterator[None]:
    """Count the checkpoints around the one that is traced."""
    depth = _around.get() + 1
    _check_depth(depth)
    token = _around.set(depth)
    try:
        yield
    finally:
        _around.reset(token)


def _check_depth(depth: int) -> None:
    if depth > MOST_NESTED:
        raise InputError(
            f"checkpoints and loops are more than {MOST_NESTED} inside each other, too many for a"
            " trace",
            hint="call them one after the other, as checkpoint_chain does, or use difflab.tensor",
        )


def _depth(function: Function) -> int:
    """Return how many rows that hold functions are inside each other in a function."""
    cache = function.derived_cache
    if "held depth" not in cache:
        held = [row.holds for row in function.graph.primitives if row.holds is not None]
        inner = [each for control in held for each in control.functions]
        cache["held depth"] = 1 + max(map(_depth, inner)) if inner else 0
    depth: int = cache["held depth"]
    return depth


def _like(output: Node, result: Node) -> Any:
    """Return an output of the node, as truth values if the function's result is."""
    return output != 0 if result.dtype == np.bool_ else output


def _jvp(checkpoint: Checkpoint, dots: Sequence[Node], y: Node, *args: Node) -> list[Node]:
    """Return the tangents of the outputs: a checkpoint of the tangent map."""
    moving = [index for index, dot in enumerate(dots) if dot.builder.number(dot.id) != 0]
    push = tangents_of(checkpoint.function, moving)
    return appended(Checkpoint(push), [*args, *(dots[index] for index in moving)])


def _vjp(
    checkpoint: Checkpoint, y_bar: Node, y: Node, *args: Node, wanted: Sequence[bool]
) -> list[Node | None]:
    """Return the cotangents of the arguments, from values that are computed again."""
    shapes, single = checkpoint.output_shapes, checkpoint.single
    results = len(shapes) - checkpoint.kept
    sources = [index for index, flows in enumerate(wanted) if flows]
    # In first derivatives nothing flows to the kept values: zeros would be multiplied by slopes.
    reached = _reached(y_bar, shapes) if checkpoint.kept else range(len(shapes))
    back = backward_from(checkpoint.function, results, sources, reached)
    bars = unpacked(y_bar, shapes, single)
    kept = unpacked(y, shapes, single)[results:]
    cotangents = inlined(back, [*args, *kept, *(bars[k] for k in reached)])
    bar_of = dict(zip(sources, cotangents, strict=True))
    return [bar_of.get(index) for index in range(len(args))]


def _reached(y_bar: Node, shapes: Sequence[Shape]) -> list[int]:
    """Return the outputs whose cotangents are in the packed one; the others are zeros."""
    builder = y_bar.builder
    touched = np.zeros(sum(map(math.prod, shapes)), dtype=bool)
    waiting = [y_bar.id]
    while waiting:
        node = waiting.pop()
        row, args = builder.primitive(node), builder.arguments(node)
        if row is scatter and len(builder.shape(node)) == 1:
            for key in builder.params(node)["keys"]:
                touched[decoded(key)] = True
        elif signs(builder, node) == (1, 1):
            waiting += args
        elif row is where and builder.number(args[2]) == 0:
            waiting.append(args[1])
        elif builder.number(node) != 0:
            touched[:] = True
    return [k for k, part in enumerate(packed_slices(shapes)) if touched[part].any()]


def _batched(checkpoint: Checkpoint, size: int, args: list[Arg]) -> list[Node]:
    """Return the outputs of a stack of examples: a checkpoint of the function on stacks."""
    whole = batched(checkpoint.function, [is_mapped for _, is_mapped in args], size)
    return appended(Checkpoint(whole, checkpoint.kept), [node for node, _ in args])


def _workspace(checkpoint: Checkpoint) -> int:
    """Return the bytes of an evaluation, with the outputs packed at its end."""
    function = checkpoint.function
    cache = function.derived_cache
    if "workspace" not in cache:
        results = 0 if checkpoint.single else 16 * function.m
        cache["workspace"] = max(peak_bytes(function), results)
    workspace: int = cache["workspace"]
    return workspace


def _is_small(checkpoint: Checkpoint) -> bool:
    return len(checkpoint.function.graph) <= MOST_INLINED


RULES[Checkpoint] = Rules(
    _jvp, _vjp, _batched, unrolls=_is_small, selective=True, workspace=_workspace
)
