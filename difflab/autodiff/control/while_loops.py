"""`while_loop`: a step that is repeated while a condition holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from difflab.autodiff.control.rows import is_traced, require_equal_shapes, shapes_of
from difflab.autodiff.control.while_loop import append_while_loop
from difflab.autodiff.recording import Recording, record
from difflab.core.ownership import private
from difflab.errors import ShapeError
from difflab.graph.checks import require_callable
from difflab.graph.control import WhileLoop
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.graph.pytree import PLAIN, Structure, flatten, unflatten
from difflab.graph.rewritten import composed, inlined

SOON = 256
"""Steps of a loop on plain values after which the rest may be computed otherwise."""
_LATER = 4_096
"""Steps after which that is asked once more."""


State = Literal["running", "over", "traced"]
"""What a loop is after some steps; traced: its condition or its value has become so."""


class PlainLoop:
    """A loop, and the structure and the shapes that its value keeps.

    Attributes
    ----------
    cond_fun, body_fun : callable
        The condition and the step, of a tree.
    structure : Structure
        Of the value.
    shapes : list of tuple
        Of its leaves.
    """

    def __init__(
        self,
        cond_fun: Callable[[Any], Any],
        body_fun: Callable[[Any], Any],
        structure: Structure,
        shapes: list[Shape],
    ) -> None:
        self.cond_fun, self.body_fun = cond_fun, body_fun
        self.structure, self.shapes = structure, shapes

    def leaves_of(self, tree: Any) -> list[Any]:
        """Return the leaves of a value.

        Raises
        ------
        ShapeError
            It has another structure.
        """
        leaves, found = flatten(tree)
        if found != self.structure:
            raise ShapeError(
                f"the value of while_loop changes its structure from {self.structure} to {found}"
            )
        return leaves

    def stepped(self, tree: Any, most: int) -> tuple[Any, State]:
        """Run some steps on concrete values; return the value and the state of the loop."""
        cond_fun, body_fun = self.cond_fun, self.body_fun
        kind, known = _plain_types(tree)
        shapes, sized = self.shapes, any(self.shapes)
        for _ in range(most):
            going = cond_fun(tree)
            if isinstance(going, Node):
                return tree, "traced"
            if not going:
                return tree, "over"
            tree = body_fun(tree)
            if type(tree) is kind and (kind is not tuple or [*map(type, tree)] == known):
                # Most steps: only shapes of arrays can have changed.
                if sized:
                    leaves = [*tree] if kind is tuple else [tree]
                    require_equal_shapes(shapes, shapes_of(leaves), "value of while_loop")
                continue
            leaves = self.leaves_of(tree)
            if is_traced(leaves):
                return tree, "traced"
            kind, known = _plain_types(tree)
            require_equal_shapes(shapes, shapes_of(leaves), "value of while_loop")
        return tree, "running"


def repeated(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Any,
    ahead: Callable[[PlainLoop], Callable[[Any], Any] | None],
) -> Any:
    """Return the last value of a loop: of plain values by Python's steps, else as a node.

    Parameters
    ----------
    cond_fun, body_fun, init_val
        As in `difflab.while_loop`.
    ahead : callable
        Asked after `SOON` steps on plain values: returns None, or what is called with the value
        now and then, and returns the last value, or None where it cannot (yet).
    """
    require_callable(cond_fun, "while_loop")
    require_callable(body_fun, "while_loop")
    leaves, structure = flatten(init_val)
    loop = PlainLoop(cond_fun, body_fun, structure, shapes_of(leaves))
    state: State = "traced"
    if not is_traced(leaves):
        tree, state = loop.stepped(unflatten(structure, private(leaves)), SOON)
        rest = ahead(loop) if state == "running" else None
        while state == "running":
            last = None if rest is None else rest(tree)
            if last is not None:
                return last
            tree, state = loop.stepped(tree, _LATER)
        if state == "over":
            return unflatten(structure, loop.leaves_of(tree))
    whole, captured = recorded_loop(loop)
    return unflatten(structure, append_while_loop(whole, [*leaves, *captured]))


def recorded_loop(loop: PlainLoop) -> tuple[WhileLoop, list[Any]]:
    """Return a loop as functions, and the values that these capture.

    Raises
    ------
    TraceError
        The code cannot be recorded.
    ShapeError
        The condition is not a scalar, or the value changes its structure or a shape.
    """
    structure, shapes = loop.structure, loop.shapes
    test = record(lambda nodes: loop.cond_fun(unflatten(structure, nodes)), shapes, has_aux=False)
    if test.function.output_shapes != ((),):
        raise ShapeError("the condition of while_loop is not a scalar")

    def body(nodes: list[Node]) -> list[Any]:
        return loop.leaves_of(loop.body_fun(unflatten(structure, nodes)))

    step = record(body, shapes, has_aux=False)
    require_equal_shapes(shapes, step.function.output_shapes, "value of while_loop")
    count = len(shapes)
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

    return WhileLoop(widened(test), widened(step)), list(captured.values())


def _plain_types(tree: Any) -> tuple[Any, list[type]]:
    """Return the type of a number or an array that is not traced, or of a tuple of such and theirs.

    None stands for any other tree. A value of the same types has the same structure.
    """
    kind = type(tree)
    if kind in PLAIN:
        return kind, []
    types = [*map(type, tree)] if kind is tuple else []
    return (tuple, types) if types and PLAIN.issuperset(types) else (None, [])


def _key(value: Any) -> Any:
    """Return a key that is the same for all objects of one node, which both functions may read."""
    return (id(value.builder), value.id) if isinstance(value, Node) else id(value)
