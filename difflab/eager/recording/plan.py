"""Backward plans: what the pull-back of a row reads and computes, per set of active arguments.

Both follow from the row's rule alone: its maps are recorded once (as for graphs), and a slot
that no map reads is not kept. So `+` keeps nothing, `exp` its output and `sin` its input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from types import ModuleType
from typing import Any

import numpy as np

from difflab.autodiff.engine.argumentwise import cotangent
from difflab.autodiff.engine.reverse import pull_back_masked
from difflab.core.devices import in_library_of
from difflab.core.primitive import ByArgument, Elementwise, LinearMap, Primitive, Select, Transpose
from difflab.eager.recording.rows import sent
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW, Graph, Params, Shape
from difflab.graph.node import Node
from difflab.graph.passes.exact import fold
from difflab.primitives import broadcast, power

__all__ = ["NUMBERS", "REMEMBERED", "BackwardPlan", "Numbers", "Recipe", "recipe", "recipe_of"]

POWER_OF_NUMBER = power.rule.maps[0]  # type: ignore[union-attr]
Map = Callable[..., Any]
Shapes = tuple[Shape, ...]
RecipeStep = tuple[Primitive, tuple[int, ...], Params]
Bound = tuple[Map, int, int]
Numbers = tuple[tuple[int, float, float | str], ...]
"""Slots that hold plain numbers, the numbers, and again the numbers, or the text of a zero."""
NUMBERS = (int, float)
REMEMBERED = 4096
"""Size of each cache; the keys hold shapes and numbers, which need not recur."""


class Recipe:
    """A sequence of row calls over slots: t, y and the arguments, constants, then their results.

    Attributes
    ----------
    steps : list
        Rows, the slots of their operands, and their parameters.
    reads : frozenset of int
        The slots, t aside, that the result depends on.
    """

    __slots__ = ("bound", "constants", "inputs", "reads", "result", "steps")

    def __init__(
        self, inputs: int, constants: list[float], steps: list[RecipeStep], result: int
    ) -> None:
        self.inputs = inputs
        self.constants = constants
        self.steps = steps
        self.result = result
        first = inputs + len(constants)
        needed = {result}
        for number in range(len(steps) - 1, -1, -1):
            if first + number in needed:
                needed.update(steps[number][1])
        self.reads = frozenset(slot for slot in needed if 0 < slot < inputs)
        self.bound: dict[ModuleType | None, list[Any]] = {}

    @property
    def passes(self) -> bool:
        """Whether the result is the cotangent t, unchanged."""
        return self.result == 0

    def on(self, xp: ModuleType | None) -> list[Bound]:
        """Return the steps with the kernels of an array module; for None, with the rows."""
        found = self.bound.get(xp)
        if found is None:
            found = self.bound[xp] = [_bound(xp, *step) for step in self.steps]
        return found

    def run(self, slots: list[Any], xp: ModuleType | None) -> Any:
        """Return the result; `slots` are the inputs."""
        work = slots + self.constants
        append = work.append
        for function, first, second in self.bound.get(xp) or self.on(xp):
            if second >= 0:
                append(function(work[first], work[second]))
            else:
                append(function(work[first]) if first >= 0 else function(work))
        return work[self.result]


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


@lru_cache(REMEMBERED)
def recipe(rule_map: Map, arity: int, numbers: Numbers = ()) -> Recipe | None:
    """Return the recipe of a map ``(t, y, *args)``, some of whose arguments are plain numbers.

    The exact identities that simplify graphs then apply: x ** 2 has the derivative 2 * x, without
    a power. A coefficient 0 is multiplied by like any other, because 0 * inf is nan; but x ** 0
    is 1 everywhere and has no derivative: None.
    """
    known = {slot: number for slot, number, _ in numbers}
    if rule_map is POWER_OF_NUMBER and known.get(3) == 0:
        return None
    builder = Builder(simplify=bool(numbers))
    builder.annihilates = False
    inputs = [builder.input(name) for name in _names(arity)]
    slots = [
        Node(builder, builder.constant(known[slot]) if slot in known else node)
        for slot, node in enumerate(inputs)
    ]
    result = rule_map(*slots)
    return recipe_of(Function.build(builder, inputs, [result.id], ["bar"]))


def _names(arity: int) -> list[str]:
    return ["t", "y", *(f"a{position}" for position in range(arity))]


def recipe_of(function: Function, output: int = 0) -> Recipe:
    """Return an output of a recorded function as a recipe over the function's inputs."""
    function = fold(function.in_floats)
    graph = function.graph
    result = function.outputs[output]
    arguments = {node: _narrowest(graph, node) for node in range(len(graph))}
    alive = {result}
    for node in range(len(graph) - 1, -1, -1):
        if node in alive:
            alive.update(arguments[node])
    slot_of = {node: slot for slot, node in enumerate(function.input_nodes)}
    constants = [node for node in graph.constants if node in alive]
    for node in constants:
        slot_of[node] = len(slot_of)
    steps: list[RecipeStep] = []
    for node, (opcode, _) in enumerate(graph.rows()):
        if opcode >= FIRST_ROW and node in alive:
            operands = tuple([slot_of[arg] for arg in arguments[node]])
            slot_of[node] = len(slot_of)
            params = graph.param_table[graph.param_ids[node]]
            steps.append((graph.primitives[opcode - FIRST_ROW], operands, params))
    # NumPy is faster with a float than with an integer, and gives the same result.
    numbers = [float(graph.constant(node)) for node in constants]
    return Recipe(len(function.input_nodes), numbers, steps, slot_of[result])


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


@cache
def _condition_map(condition: Map) -> Map:
    """Return a condition ``(*args)`` as a map ``(t, y, *args)``."""
    return lambda t, y, *args: condition(*args)


def _transpose(entry: Transpose, params: Params, shapes: Shapes, shape: Shape) -> Function:
    """Record the cotangent of an argument in which a row is linear."""
    builder = Builder(simplify=True)
    sizes = (shape, shape, *shapes)
    names = _names(len(shapes))
    inputs = [builder.input(name, size) for name, size in zip(names, sizes, strict=True)]
    t, _, *args = (Node(builder, node) for node in inputs)
    bar = entry.map(t, *args, **dict(params))
    return Function.build(builder, inputs, [bar.id], ["bar"])


class BackwardPlan:
    """The pull-back of one row, for given parameters, shapes and active arguments.

    Attributes
    ----------
    row : Primitive
        The row that was applied.
    params : mapping
        Its static parameters.
    shapes : tuple of tuple of int
        The shapes of the arguments.
    dtype : dtype or None
        The dtype of the result and its cotangent; None if it has none.
    kind : type
        The type of its rule.
    product : bool
        Whether the row is linear in each argument.
    positions : tuple of int
        The active arguments.
    maps : tuple
        For each of them the rule's map or condition, or recipes of the cotangent and its mask;
        None if no derivative flows.
    regular : bool
        Whether the type of the rule is one of those in the table of primitives, and the
        cotangents are on the device of the result.
    recipes : tuple of Recipe or None
        The recipes of the maps if no argument is a plain number.
    computes : bool
        Whether any recipe does more than return the cotangent.
    keep : tuple of (int, int)
        Slot, and the index of its value in ``(*args, y)``.
    blank : list
        The slots of a step that keeps nothing.
    """

    def __init__(
        self,
        row: Primitive,
        needs: int,
        params: Mapping[str, Any],
        shapes: Shapes,
        shape: Shape,
        dtype: np.dtype[Any] | None = None,
    ) -> None:
        arity = len(shapes)
        self.row = row
        self.params = params
        self.shapes = shapes
        self.dtype = dtype
        self.kind = type(row.rule)
        kinds = (ByArgument, Elementwise, LinearMap, Select)
        self.regular = self.kind in kinds and row is not sent
        self.product = isinstance(row.rule, ByArgument) and row.rule.is_product
        self.positions = tuple(p for p in range(arity) if needs >> p & 1)
        self.maps = _maps(self, shape)
        self.recipes = tuple(recipe(m, arity) if callable(m) else None for m in self.maps)
        read: set[int] = set()
        for found in (*self.maps, *self.recipes):
            for each in found if isinstance(found, tuple) else (found,):
                read |= each.reads if isinstance(each, Recipe) else frozenset()
        self.computes = any(found is not None and not found.passes for found in self.recipes)
        self.keep = tuple((slot, arity if slot == 1 else slot - 2) for slot in sorted(read))
        self.blank: list[Any] = [None] * (arity + 2)


def _maps(plan: BackwardPlan, shape: Shape) -> tuple[Any, ...]:
    """Return the maps of the rule for the active arguments."""
    rule: Any = plan.row.rule
    if plan.kind is Elementwise:
        return tuple(rule.maps[p] for p in plan.positions)
    if plan.kind is Select:
        conditions = [rule.conditions[p] for p in plan.positions]
        return tuple(None if c is None else _condition_map(c) for c in conditions)
    if plan.kind is not ByArgument:
        return (None,) * len(plan.positions)
    params, shapes = tuple(sorted(plan.params.items())), plan.shapes
    maps: list[tuple[Recipe, ...] | None] = []
    for position in plan.positions:
        entry = rule.entries[position]
        if entry is None:
            maps.append(None)
            continue
        if isinstance(entry, Transpose):
            function = _transpose(entry, params, shapes, shape)
        else:
            function = cotangent(entry, position, params, shapes, shape, pull_back_masked)
        outputs = range(len(function.outputs))
        maps.append(tuple(recipe_of(function, output) for output in outputs))
    return tuple(maps)
