"""A step that is repeated while a condition holds: its row, and the derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from difflab.autodiff.control.rows import (
    RULES,
    Rules,
    appended,
    chosen_stacks,
    row_of,
    zeros,
)
from difflab.autodiff.engine.argnums import cotangents_of, tangents_of
from difflab.autodiff.engine.batching import Arg, batched
from difflab.autodiff.recording import Contents, contents_of
from difflab.graph.control import WhileLoop, WhileLoopVjp
from difflab.graph.custom.rows import unpacked
from difflab.graph.function import Function
from difflab.graph.node import Node
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
    found = appended(_with_tangents(loop), _merged(loop, args, dots))
    return found[len(loop.output_shapes) :]


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
    found = appended(_sweep(wide), [*values, *nothing, *args[split:]])
    return [*_values_of(loop, found), *pushed]


def _batched(loop: WhileLoop, size: int, args: list[Arg]) -> list[Node]:
    """Return the last values of a stack of examples: one loop, until no example goes on."""
    count = len(loop.output_shapes)
    mapped = [place < count or is_mapped for place, (_, is_mapped) in enumerate(args)]
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
        found = inlined(pull, [*values, *bars])
        totals = [one + other for one, other in zip(sums, found[count:], strict=True)]
        return [*found[:count], *totals]

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
