"""The forward sweep: tangents from the inputs to the outputs.

For y = φ(a, b, …) the tangent is ẏ = ∂φ/∂a · ȧ + ∂φ/∂b · ḃ + …, from the same rules as the
reverse sweep. One sweep gives the derivative of every output along one direction
(Griewank & Walther, *Evaluating Derivatives*, 2nd ed., §3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from difflab.autodiff.engine.argumentwise import pushed
from difflab.autodiff.engine.custom import pushed_all
from difflab.autodiff.engine.masked import Masked, accumulate, both, either, resolved
from difflab.autodiff.engine.sweep import Sweep, filled, spread
from difflab.core.primitive import ByArgument, Custom, Elementwise, Primitive, Select
from difflab.graph.ir import FIRST_ROW
from difflab.graph.node import Node
from difflab.primitives import where


def push_forward(
    sweep: Sweep, seeds: Mapping[int, Node], targets: Iterable[int]
) -> dict[int, Node]:
    """Return the tangents of `targets` given those of other nodes.

    Parameters
    ----------
    sweep : Sweep
        The graph and the builder to append to.
    seeds : mapping of int to Node
        The tangents ẋ to start from, of inputs as a rule.
    targets : iterable of int
        The nodes whose tangents are wanted.

    Returns
    -------
    dict of int to Node
        The tangents; targets that depend on no seed are absent.
    """
    tangents = {
        number: start
        for number, seed in seeds.items()
        if (start := sweep.seeded(seed.id)) is not None
    }
    # The first node comes first; a heap, since one input of many may reach few nodes of the graph.
    order = [user for number in tangents for user in sweep.users(number)]
    heapify(order)
    while order:
        number = heappop(order)
        while order and order[0] == number:  # it comes once for each argument with a tangent
            heappop(order)
        if number in seeds:
            continue
        dots = [tangents.get(arg) for arg in sweep.args(number)]
        sweep.at(number)
        row = sweep.graph.primitives[sweep.opcode[number] - FIRST_ROW]
        y_dot = _tangent(sweep, number, row, dots)
        tangent = sweep.zeros.simplified(y_dot) if y_dot and y_dot.mask is not None else y_dot
        if tangent is not None:
            tangents[number] = tangent
            for user in sweep.users(number):
                heappush(order, user)
    return {
        number: sweep.node(resolved(sweep.builder, tangents[number]))
        for number in targets
        if number in tangents
    }


def tangents(sweep: Sweep, seeds: Mapping[int, Node], targets: Sequence[int]) -> list[Node]:
    """Return the tangents of `targets`, of their shapes; zeros where they depend on no seed."""
    return filled(sweep, push_forward(sweep, seeds, targets), targets)


def _tangent(sweep: Sweep, number: int, row: Primitive, dots: list[Masked | None]) -> Masked | None:
    """Return ẏ of one node; None where no derivative flows."""
    args = sweep.args(number)
    rule = row.rule
    if isinstance(rule, Elementwise):
        parts = [
            part
            for position, dot in enumerate(dots)
            if dot is not None
            if (part := sweep.stamped(number, args, rule, position, dot)) is not None
        ]
        if not parts:
            return None
        y_dot = accumulate(sweep.builder, parts)
        return Masked(resolved(sweep.builder, y_dot)) if y_dot.negated else y_dot
    if isinstance(rule, ByArgument):
        flowing = [
            pushed(sweep, number, rule, position, dot)
            for position, dot in enumerate(dots)
            if dot is not None
        ]
        parts = [part for part in flowing if part is not None]
        return accumulate(sweep.builder, parts) if parts else None
    if isinstance(rule, Select):
        return selected_tangent(sweep, rule, args, dots)
    if isinstance(rule, Custom):
        return pushed_all(sweep, number, rule, dots)
    return _moved(sweep, number, row, dots)


def selected_tangent(
    sweep: Sweep, rule: Select, args: Sequence[int], dots: Sequence[Masked | None]
) -> Masked | None:
    """Return the tangent of the argument that is passed on."""
    builder = sweep.builder
    nodes = [sweep.node(arg) for arg in args]
    passed = [
        (condition(*nodes).id, dot)
        for condition, dot in zip(rule.conditions, dots, strict=True)
        if condition is not None
    ]
    moving = [(condition, dot) for condition, dot in passed if dot is not None]
    if not moving:
        return None
    *others, (_, last) = moving
    value = last.value
    for condition, dot in reversed(others):
        value = builder.emit(where, (condition, dot.value, value))
    every = len(moving) == len(passed) > 1  # one of them is passed on in any case
    if every and all(dot.mask is None for _, dot in moving):
        return Masked(value)
    live: list[int | None] = [both(builder, dot.mask, condition) for condition, dot in moving]
    clean = every and all(dot.mask is None or dot.clean for _, dot in moving)
    return Masked(value, either(builder, live), clean)


def _moved(sweep: Sweep, number: int, row: Primitive, dots: list[Masked | None]) -> Masked:
    """Propagate tangents through a linear primitive, which may combine their elements.

    Masked elements are therefore set to zero before, as in the reverse sweep.
    """
    shapes = [sweep.graph.shape(arg) for arg in sweep.args(number)]
    params = sweep.graph.params(number)

    def through(values: list[Node]) -> Node:
        filled = [spread(value, shape) for value, shape in zip(values, shapes, strict=True)]
        result: Node = row(*filled, **params)
        return result

    zero = sweep.constant(0)
    y_dot = through(
        [zero if dot is None else sweep.node(resolved(sweep.builder, dot)) for dot in dots]
    )
    if all(dot is None or dot.mask is None for dot in dots):
        return Masked(y_dot.id)
    return Masked(y_dot.id, moved_mask(sweep, dots, through), clean=True)


def moved_mask(
    sweep: Sweep, dots: Sequence[Masked | None], through: Callable[[list[Node]], Node]
) -> int:
    """Return where the result of a linear primitive depends on the elements of the masks.

    `through` applies the primitive.
    """
    zero, one = sweep.constant(0), sweep.constant(1)
    counts = [
        zero if dot is None else one if dot.mask is None else sweep.node(dot.mask) * 1
        for dot in dots
    ]
    mask: Node = through(counts) != 0
    return mask.id
