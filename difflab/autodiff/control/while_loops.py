"""`while_loop`: a step that is repeated while a condition holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from difflab.autodiff.control.rows import is_traced, require_equal_shapes, shapes_of
from difflab.autodiff.control.while_loop import append_while_loop
from difflab.autodiff.recording import Recording, record
from difflab.core.ownership import private
from difflab.errors import ShapeError
from difflab.graph.checks import require_callable
from difflab.graph.composition import composed, inlined
from difflab.graph.control import WhileLoop
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.graph.pytree import PLAIN, flatten, unflatten

__all__ = ["while_loop"]


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any
) -> Any:
    """Return what ``while cond_fun(value): value = body_fun(value)`` leaves in `value`.

    In a trace this is one node. It can be differentiated in both modes, to any order: reverse
    mode keeps the values of all steps, whose number is known when the loop has run.

    Parameters
    ----------
    cond_fun : callable
        ``cond_fun(value)`` returns a truth value.
    body_fun : callable
        ``body_fun(value)`` returns the next value, of the same structure and shapes.
    init_val : tree
        The first value.

    Raises
    ------
    ShapeError
        The condition is not a scalar, or the value changes its structure or a shape.

    Examples
    --------
    Newton's iteration for the square root, and its derivative 1/(2·√2):

    >>> import difflab as dl
    >>> def root(a):
    ...     go = lambda x: abs(x * x - a) > 1e-12
    ...     return dl.while_loop(go, lambda x: 0.5 * (x + a / x), a)
    >>> round(float(root(2.0)), 12), round(float(dl.grad(root)(2.0)), 12)
    (1.414213562373, 0.353553390593)
    """
    require_callable(cond_fun, "while_loop")
    require_callable(body_fun, "while_loop")
    leaves, structure = flatten(init_val)
    shapes = shapes_of(leaves)

    def body(value: Any) -> list[Any]:
        return leaves_of(body_fun(value))

    def leaves_of(tree: Any) -> list[Any]:
        after, found = flatten(tree)
        if found != structure:
            raise ShapeError(
                f"the value of while_loop changes its structure from {structure} to {found}"
            )
        return after

    tree = unflatten(structure, private(leaves))
    traced, known, sized = is_traced(leaves), _plain_types(tree), any(shapes)
    while not traced:
        going = cond_fun(tree)
        if isinstance(going, Node):
            break
        if not going:
            return unflatten(structure, leaves_of(tree))
        tree = body_fun(tree)
        if type(tree) is tuple and [*map(type, tree)] == known:
            # Most steps: only shapes of arrays can have changed.
            if sized:
                require_equal_shapes(shapes, shapes_of(tree), "value of while_loop")
            continue
        value = leaves_of(tree)
        traced, known = is_traced(value), _plain_types(tree)
        if not traced:
            require_equal_shapes(shapes, shapes_of(value), "value of while_loop")
    test = record(lambda nodes: cond_fun(unflatten(structure, nodes)), shapes, has_aux=False)
    if test.function.output_shapes != ((),):
        raise ShapeError("the condition of while_loop is not a scalar")
    step = record(lambda nodes: body(unflatten(structure, nodes)), shapes, has_aux=False)
    require_equal_shapes(shapes, step.function.output_shapes, "value of while_loop")
    count = len(leaves)
    captured = {_key(value): value for value in [*test.captured, *step.captured]}
    places = {key: count + place for place, key in enumerate(captured)}
    wide = [*shapes, *shapes_of(list(captured.values()))]

    def widened(recording: Recording) -> Function:
        own = [places[_key(value)] for value in recording.captured]
        return composed(
            lambda nodes: inlined(
                recording.function, [*nodes[:count], *(nodes[place] for place in own)]
            ),
            wide,
        )

    loop = WhileLoop(widened(test), widened(step))
    return unflatten(structure, append_while_loop(loop, [*leaves, *captured.values()]))


def _plain_types(tree: Any) -> list[type] | None:
    """Return the types in a tuple of numbers and arrays that are not traced; None for other trees.

    A tuple of the same types has the same structure, and is not traced either.
    """
    types = [*map(type, tree)] if type(tree) is tuple else []
    return types if types and PLAIN.issuperset(types) else None


def _key(value: Any) -> Any:
    """Return what equal nodes have in common, which both functions may read."""
    return (id(value.builder), value.id) if isinstance(value, Node) else id(value)
