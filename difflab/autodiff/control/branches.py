"""`cond`: one of two functions, of which only the one that is chosen is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from difflab.autodiff.control.rows import (
    RULES,
    Rules,
    appended,
    chosen_stacks,
    is_traced,
    shapes_of,
)
from difflab.autodiff.engine.argnums import cotangents_of, tangents_of
from difflab.autodiff.engine.batching import Arg, batched
from difflab.autodiff.recording import Recording, record
from difflab.core.ownership import private
from difflab.errors import ShapeError
from difflab.graph.checks import require_callable
from difflab.graph.control import Branches
from difflab.graph.custom.rows import unpacked
from difflab.graph.node import Node
from difflab.graph.pytree import flatten, unflatten
from difflab.graph.rewritten import composed, inlined


def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any
) -> Any:
    """Return ``true_fun(*operands)`` if `pred` holds, else ``false_fun(*operands)``.

    In a trace this is one node: at a point only the chosen function is computed, and so is its
    derivative. At a batch of points both are, and `where` chooses.

    Parameters
    ----------
    pred : scalar
        A truth value. Nothing is differentiated with respect to it.
    true_fun, false_fun : callable
        Both return trees of the same structure and shapes.
    *operands : tree
        Their arguments.

    Raises
    ------
    ShapeError
        `pred` is an array, or the functions return trees of different structure or shapes.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> root = lambda x: dl.cond(x > 0, np.sqrt, lambda x: 0 * x, x)
    >>> float(root(4.0)), float(dl.grad(root)(4.0)), float(dl.grad(root)(-1.0))
    (2.0, 0.25, 0.0)
    """
    require_callable(true_fun, "cond")
    require_callable(false_fun, "cond")
    (shape,) = shapes_of([pred])
    if shape:
        raise ShapeError(
            f"the predicate of cond is a scalar, not an array of shape {shape}",
            hint="np.where chooses for each element",
        )
    leaves, structure = flatten(operands)
    if not is_traced([pred]):
        return (true_fun if pred else false_fun)(*unflatten(structure, private(leaves)))

    def branch(fun: Callable[..., Any]) -> Recording:
        return record(
            lambda nodes: fun(*unflatten(structure, nodes)), shapes_of(leaves), has_aux=False
        )

    yes, no = branch(true_fun), branch(false_fun)
    if yes.structure != no.structure:
        raise ShapeError(
            f"the functions of cond return different trees: {yes.structure} and {no.structure}"
        )
    if yes.function.output_shapes != no.function.output_shapes:
        raise ShapeError(
            f"the functions of cond return different shapes: {list(yes.function.output_shapes)} "
            f"and {list(no.function.output_shapes)}"
        )
    count = len(leaves)
    read = [*shapes_of(yes.captured), *shapes_of(no.captured)]
    shapes = [*shapes_of(leaves), *read]
    middle = count + len(yes.captured)
    first = composed(lambda nodes: inlined(yes.function, nodes[:middle]), shapes)
    second = composed(lambda nodes: inlined(no.function, [*nodes[:count], *nodes[middle:]]), shapes)
    values = [*leaves, *yes.captured, *no.captured]
    return unflatten(yes.structure, appended(Branches(first, second), [pred, *values]))


def _jvp(branches: Branches, dots: Sequence[Node], y: Node, *args: Node) -> list[Node]:
    """Return the tangents of the outputs: a choice of tangent maps."""
    both = Branches(tangents_of(branches.true), tangents_of(branches.false))
    return appended(both, [*args, *dots[1:]])


def _vjp(branches: Branches, y_bar: Node, y: Node, *args: Node) -> list[Node | None]:
    """Return the cotangents of all arguments: a choice of transposed maps."""
    both = Branches(cotangents_of(branches.true), cotangents_of(branches.false))
    bars = unpacked(y_bar, branches.true.output_shapes)
    return [None, *appended(both, [*args, *bars])]


def _batched(branches: Branches, size: int, args: list[Arg]) -> list[Node]:
    """Return the outputs of a stack of examples, each of which may choose the other function."""
    (pred, differs), *operands = args
    mapped = [is_mapped for _, is_mapped in operands]
    both = Branches(*(batched(function, mapped, size) for function in branches.functions))
    values = [node for node, _ in operands]
    if not differs:
        return appended(both, [pred, *values])
    return chosen_stacks(pred, inlined(both.true, values), inlined(both.false, values))


RULES[Branches] = Rules(_jvp, _vjp, _batched)
