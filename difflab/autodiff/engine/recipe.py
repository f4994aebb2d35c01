"""A derivative rule recorded once: run on values, or appended for every node that applies the row.

Calling a rule's map for each of a million nodes would take most of the time. A map is called
once, on placeholder inputs, and its operations are stored as steps over numbered slots: t, y,
the arguments, then the map's constants and results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from types import ModuleType
from typing import Any

import numpy as np

from difflab.core.apply import in_library_of
from difflab.core.primitive import Primitive
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW, Graph, Number, Params, Shape
from difflab.graph.node import Node
from difflab.graph.source import SourceMap
from difflab.primitives import broadcast

_UNWRITTEN = SourceMap()
"""The source of recorded rules, whose locations are those of the nodes that they differentiate."""

RecipeStep = tuple[Primitive, tuple[int, ...], Params]
REMEMBERED = 4096
"""The recipes that are kept: exponents need not recur."""
Bound = tuple[Callable[..., Any], int, int]


class Recipe:
    """A sequence of row calls over slots: t, y and the arguments, constants, then their results.

    Attributes
    ----------
    constants : list
        Values and names.
    numbers : list of float
        The constants as values are computed with.
    steps : list
        Rows, the slots of their operands, and their parameters.
    passes : bool
        Whether the result is the cotangent t, unchanged.
    reads : frozenset of int
        The slots, t and constants aside, that the result depends on.
    magnitude : Recipe or None
        The recipe itself, or that of its negative where it ends with a negation, if t is a factor.
    """

    def __init__(
        self,
        inputs: int,
        constants: list[tuple[Number, str | None]],
        steps: list[RecipeStep],
        result: int,
    ) -> None:
        self.inputs = inputs
        self.constants = constants
        # NumPy is faster with a float than with an integer, and gives the same result.
        self.numbers = [float(value) for value, _ in constants]
        self.steps = steps
        self.result = result
        self.passes = result == 0
        first = inputs + len(constants)
        needed = {result}
        for number in range(len(steps) - 1, -1, -1):
            if first + number in needed:
                needed.update(steps[number][1])
        self.reads = frozenset(slot for slot in needed if 0 < slot < inputs)
        self.bound: dict[ModuleType | None, list[Any]] = {}
        self.magnitude = self._magnitude()

    def _magnitude(self) -> Recipe | None:
        """Return the recipe without a negation at the end; None unless t is a factor."""
        multiple, first = 0, self.inputs + len(self.constants)
        for slot, (row, operands, _) in enumerate(self.steps, first):
            if multiple in operands:
                if operands[0] != multiple or not (row.degrees or row.signs == (-1,)):
                    return None
                multiple = slot
        if multiple < first or self.steps[multiple - first][0].signs != (-1,):
            return self if self.result == multiple else None
        *others, (_, (operand,), _) = self.steps
        return Recipe(self.inputs, self.constants, others, operand)

    def on(self, xp: ModuleType | None) -> list[Bound]:
        """Return the steps with the kernels of an array module; for None, with the rows."""
        steps = self.bound.get(xp)
        if steps is None:
            steps = self.bound[xp] = [_bound(xp, *step) for step in self.steps]
        return steps

    def run(self, slots: list[Any], xp: ModuleType | None) -> Any:
        """Return the result; `slots` are the inputs."""
        work = slots + self.numbers
        append = work.append
        for function, first, second in self.bound.get(xp) or self.on(xp):
            if second >= 0:
                append(function(work[first], work[second]))
            else:
                append(function(work[first]) if first >= 0 else function(work))
        return work[self.result]

    def stamp(self, builder: Builder, t: int, y: int, args: list[int]) -> int:
        """Append the steps for the cotangent or tangent `t` of node `y`; return the result."""
        slots = [t, y, *args]
        for value, name in self.constants:
            slots.append(builder.constant(value, name))
        for row, operands, params in self.steps:
            if len(operands) == 2:  # most steps
                first, second = operands
                slots.append(builder.emit(row, (slots[first], slots[second]), params))
            elif len(operands) == 1:
                slots.append(builder.emit(row, (slots[operands[0]],), params))
            else:
                slots.append(builder.emit(row, [slots[operand] for operand in operands], params))
        return slots[self.result]


def _bound(
    xp: ModuleType | None, row: Primitive, operands: tuple[int, ...], params: Params
) -> Bound:
    """Return a function and its operand slots: two, one and -1, or -1 twice for all."""
    function = partial(row, **dict(params)) if xp is None else row.unbatched_computer(xp, params)
    if len(operands) == 2:
        return function, operands[0], operands[1]
    if len(operands) == 1:
        return function, operands[0], -1
    if not operands and xp is None:  # a constant array
        return lambda work: in_library_of(work[0], function()), -1, -1
    return lambda work: function(*[work[operand] for operand in operands]), -1, -1


@lru_cache(REMEMBERED, typed=True)
def template(rule_map: Callable[..., Any], arity: int, exponent: Number | None = None) -> Recipe:
    """Return the recipe of a map ``(t, y, *args) -> t · ∂y/∂arg``, to be appended to graphs.

    It is simplified, also for an `exponent`, the number that the last argument is.
    """
    constants = {} if exponent is None else {arity + 1: exponent}
    return recipe_of(recorded_rule(rule_map, ((),) * (arity + 2), constants, simplify=True))


def recorded_rule(
    rule_map: Callable[..., Node],
    shapes: Sequence[Shape],
    known: Mapping[int, float] | None = None,
    *,
    simplify: bool = False,
) -> Function:
    """Record a map ``(t, y, *args)`` on values of these shapes as a function.

    With `known`, constants for some slots, it is simplified, but a factor 0 stays: 0 * inf is nan.
    """
    known = known or {}
    builder = Builder(_UNWRITTEN, simplify=simplify or bool(known))
    builder.annihilates = not known
    names = ["t", "y", *(f"a{position}" for position in range(len(shapes) - 2))]
    inputs = [builder.input(name, shape) for name, shape in zip(names, shapes, strict=True)]
    slots = [
        Node(builder, builder.constant(known[slot]) if slot in known else node)
        for slot, node in enumerate(inputs)
    ]
    return Function.build(builder, inputs, [rule_map(*slots).id], ["bar"])


def recipe_of(function: Function, output: int = 0) -> Recipe:
    """Return an output of a recorded function as a recipe over the function's inputs."""
    graph = function.graph
    result = function.outputs[output]
    nodes = [(opcode, tuple(args)) for opcode, args in graph.rows()]
    if broadcast in graph.primitives:
        nodes = [(opcode, _narrowest(graph, node)) for node, (opcode, _) in enumerate(nodes)]
    alive = {result}
    for node in range(result, -1, -1):
        if node in alive:
            alive.update(nodes[node][1])
    slot_of = {node: slot for slot, node in enumerate(function.input_nodes)}
    constants = [node for node in graph.constants if node in alive]
    for node in constants:
        slot_of[node] = len(slot_of)
    steps: list[RecipeStep] = []
    for node, (opcode, args) in enumerate(nodes):
        if opcode >= FIRST_ROW and node in alive:
            operands = tuple([slot_of[arg] for arg in args])
            slot_of[node] = len(slot_of)
            params = graph.param_table[graph.param_ids[node]]
            steps.append((graph.primitives[opcode - FIRST_ROW], operands, params))
    pairs = [graph.constants[node] for node in constants]
    return Recipe(len(function.input_nodes), pairs, steps, slot_of[result])


def _narrowest(graph: Graph, node: int) -> tuple[int, ...]:
    """Return the arguments of a node; if its kernel broadcasts, their values before `broadcast`."""
    arguments = list(graph.arguments(node))
    row = graph.primitive(node)
    if row is None or row.shape is not None:
        return tuple(arguments)
    for index, arg in enumerate(arguments):
        if graph.primitive(arg) is broadcast:
            arguments[index] = graph.arguments(arg)[0]
            if np.broadcast_shapes(*map(graph.shape, arguments)) != graph.shape(node):
                arguments[index] = arg
    return tuple(arguments)
