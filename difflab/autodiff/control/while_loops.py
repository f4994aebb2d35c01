"""`while_loop`: a step that is repeated while a condition holds.

The row of the loop and its derivatives, and the loop on plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from difflab.autodiff.control.rows import (
    RULES,
    Rules,
    appended,
    chosen_stacks,
    is_traced,
    require_equal_shapes,
    row_of,
    shapes_of,
    zeros,
)
from difflab.autodiff.engine.argnums import cotangents_of, tangents_of
from difflab.autodiff.engine.batching import Arg, batched
from difflab.autodiff.recording import Contents, Recording, contents_of, record
from difflab.core.ownership import private
from difflab.errors import ShapeError
from difflab.graph.checks import require_callable
from difflab.graph.control import WhileLoop, WhileLoopVjp
from difflab.graph.custom.rows import unpacked
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.graph.pytree import PLAIN, Structure, flatten, unflatten
from difflab.graph.rewritten import composed, inlined
from difflab.primitives import where
from difflab.primitives.structure import stacks


def append_while_loop(loop: WhileLoop, values: Sequence[Any]) -> list[Node]:
    """Append the loop to the graph of its arguments; return its outputs."""
    return appended(loop, values)


def while_loop_value(loop: WhileLoop, values: Sequence[Any]) -> Node:
    """Append the loop to the graph of its arguments; return its outputs as one vector."""
    value: Node = row_of(loop)(*values)
    return value


def while_loop_vjp(loop: WhileLoop, values: Sequence[Any]) -> Node:
    """Append the reverse sweep to the graph of its arguments; return its outputs as one vector.

    The arguments are those of the loop, then the cotangents of its outputs.
    """
    value: Node = row_of(_sweep(loop))(*values)
    return value


def _sweep(loop: WhileLoop) -> WhileLoopVjp:
    return _known_sweep(contents_of(loop.test), contents_of(loop.body))


@lru_cache(maxsize=512)
def _known_sweep(test: Contents, body: Contents) -> WhileLoopVjp:
    loop = WhileLoop(test.function, body.function)
    return WhileLoopVjp(loop.test, loop.body, _back(loop))


def _jvp(loop: WhileLoop, dots: Sequence[Node], y: Node, *args: Node) -> list[Node]:
    """Return the tangents of the value: a loop that carries the tangents as well."""
    outputs = appended(_with_tangents(loop), _merged(loop, args, dots))
    return outputs[len(loop.output_shapes) :]


def _vjp(loop: WhileLoop, y_bar: Node, y: Node, *args: Node) -> list[Node]:
    """Return the cotangents of all arguments, by a row that runs the loop and goes back."""
    return appended(_sweep(loop), [*args, *unpacked(y_bar, loop.output_shapes)])


def _vjp_jvp(sweep: WhileLoopVjp, dots: Sequence[Node], y: Node, *args: Node) -> list[Node]:
    r"""Return the tangent of the reverse sweep x̄ = Jᵀȳ.

    The reverse sweep of the loop with tangents, (x, ẋ) ↦ (F, Jẋ), for the cotangents
    (ȳ̇, ȳ) gives as the cotangent of x: Jᵀȳ̇ + ∂(Jẋ)ᵀȳ/∂x, which is the tangent.
    """
    loop, split = sweep.loop, len(sweep.output_shapes)
    values = _merged(loop, args[:split], dots[:split])
    wide = _sweep(_with_tangents(loop))
    return _values_of(loop, appended(wide, [*values, *dots[split:], *args[split:]]))


def _vjp_vjp(sweep: WhileLoopVjp, y_bar: Node, y: Node, *args: Node) -> list[Node]:
    """Return the cotangents of the reverse sweep's arguments: those of ⟨w, Jᵀȳ⟩ = ⟨ȳ, Jw⟩."""
    loop, split = sweep.loop, len(sweep.output_shapes)
    wide = _with_tangents(loop)
    values = _merged(loop, args[:split], unpacked(y_bar, sweep.output_shapes))
    pushed = appended(wide, values)[len(loop.output_shapes) :]
    nothing = zeros(y_bar.builder, loop.output_shapes)
    outputs = appended(_sweep(wide), [*values, *nothing, *args[split:]])
    return [*_values_of(loop, outputs), *pushed]


def _batched(loop: WhileLoop, size: int, args: list[Arg]) -> list[Node]:
    """Return the last values of a stack of examples: one loop, until no example goes on."""
    count = len(loop.output_shapes)
    mapped = [index < count or is_mapped for index, (_, is_mapped) in enumerate(args)]
    values = [*stacks(size, args[:count]), *[node for node, _ in args[count:]]]
    return appended(_of_stacks(loop, mapped, size), values)


def _vjp_batched(sweep: WhileLoopVjp, size: int, args: list[Arg]) -> list[Node]:
    """Return the cotangents of a stack of examples: constants have one for each as well."""
    whole = _of_stacks(sweep.loop, [True] * len(sweep.loop.input_shapes), size)
    return appended(_sweep(whole), stacks(size, args))


def _of_stacks(loop: WhileLoop, mapped: Sequence[bool], size: int) -> WhileLoop:
    """Return the loop on stacks, in which examples that have ended keep their values."""
    test, body = (batched(function, mapped, size) for function in loop.functions)
    count = len(loop.output_shapes)

    def going(nodes: list[Node]) -> list[Node]:
        (truths,) = inlined(test, nodes)
        return [np.sum(where(truths, 1.0, 0.0)) > 0]

    def step(nodes: list[Node]) -> list[Node]:
        (truths,) = inlined(test, nodes)
        return chosen_stacks(truths, inlined(body, nodes), nodes[:count])

    return WhileLoop(composed(going, body.input_shapes), composed(step, body.input_shapes))


def _back(loop: WhileLoop) -> Function:
    """Return one step back, as `WhileLoopVjp` needs it."""
    count, constants = len(loop.output_shapes), len(loop.constants)
    pull = cotangents_of(loop.body)

    def step(nodes: list[Node]) -> list[Node]:
        bars, sums = nodes[:count], nodes[count : count + constants]
        values = nodes[count + constants :]
        outputs = inlined(pull, [*values, *bars])
        totals = [one + other for one, other in zip(sums, outputs[count:], strict=True)]
        return [*outputs[:count], *totals]

    return composed(step, [*loop.input_shapes, *loop.input_shapes])


def _with_tangents(loop: WhileLoop) -> WhileLoop:
    """Return the loop whose value is the value and its tangent, and likewise its constants."""
    count = len(loop.output_shapes)
    shapes = [*loop.output_shapes * 2, *loop.constants * 2]
    push = tangents_of(loop.body)

    def parts(nodes: list[Node]) -> tuple[list[Node], list[Node]]:
        constants, half = nodes[2 * count :], len(loop.constants)
        values = [*nodes[:count], *constants[:half]]
        return values, [*nodes[count : 2 * count], *constants[half:]]

    def step(nodes: list[Node]) -> list[Node]:
        values, tangents = parts(nodes)
        return [*inlined(loop.body, values), *inlined(push, [*values, *tangents])]

    test = composed(lambda nodes: inlined(loop.test, parts(nodes)[0]), shapes)
    return WhileLoop(test, composed(step, shapes))


def _merged(loop: WhileLoop, values: Sequence[Node], tangents: Sequence[Node]) -> list[Node]:
    """Return the arguments of the loop with tangents."""
    count = len(loop.output_shapes)
    return [*values[:count], *tangents[:count], *values[count:], *tangents[count:]]


def _values_of(loop: WhileLoop, merged: Sequence[Node]) -> list[Node]:
    """Return the arguments of this loop, of those of the loop with tangents."""
    count = len(loop.output_shapes)
    behind = 2 * count
    return [*merged[:count], *merged[behind : behind + len(loop.constants)]]


def _never(control: WhileLoop | WhileLoopVjp) -> bool:
    """No number of steps is known to unroll."""
    return False


RULES[WhileLoop] = Rules(_jvp, _vjp, _batched, unrolls=_never)
RULES[WhileLoopVjp] = Rules(_vjp_jvp, _vjp_vjp, _vjp_batched, unrolls=_never)


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
        leaves, actual = flatten(tree)
        if actual != self.structure:
            raise ShapeError(
                f"the value of while_loop changes its structure from {self.structure} to {actual}"
            )
        return leaves

    def stepped(self, tree: Any, most: int) -> tuple[Any, State]:
        """Run some steps on concrete values; return the value and the state of the loop."""
        cond_fun, body_fun = self.cond_fun, self.body_fun
        kind, kinds = _plain_types(tree)
        shapes, sized = self.shapes, any(self.shapes)
        for _ in range(most):
            going = cond_fun(tree)
            if isinstance(going, Node):
                return tree, "traced"
            if not going:
                return tree, "over"
            tree = body_fun(tree)
            if type(tree) is kind and (kind is not tuple or [*map(type, tree)] == kinds):
                # Most steps: only shapes of arrays can have changed.
                if sized:
                    leaves = [*tree] if kind is tuple else [tree]
                    require_equal_shapes(shapes, shapes_of(leaves), "value of while_loop")
                continue
            leaves = self.leaves_of(tree)
            if is_traced(leaves):
                return tree, "traced"
            kind, kinds = _plain_types(tree)
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
        Called after `SOON` steps on plain values. Returns None, or a callable that is called with
        the value at intervals, and returns the last value, or None if it cannot (yet).
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
    positions = {key: count + index for index, key in enumerate(captured)}
    wide = [*shapes, *shapes_of(list(captured.values()))]

    def widened(recording: Recording) -> Function:
        own = [positions[_key(value)] for value in recording.captured]
        return composed(
            lambda nodes: inlined(
                recording.function, [*nodes[:count], *(nodes[index] for index in own)]
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
