"""What a row's backward step reads, and how it computes, for one choice of active arguments.

Both follow from the row's rule alone: its maps are recorded once (as for graphs), and a slot
that no map reads is not kept. So `+` keeps nothing, `exp` its output and `sin` its input.
May import `autodiff.template`, `graph`, `core`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np

from difflab.autodiff.argumentwise import cotangent
from difflab.autodiff.reverse import pull_back_masked
from difflab.autodiff.template import template
from difflab.core.primitive import ByArgument, Elementwise, Linear, Primitive, Select, Transpose
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW
from difflab.graph.node import Node

__all__ = ["NUMBERS", "PLANS", "Plan", "plan_for", "plan_of_arrays", "recipe"]

Map = Callable[..., Any]
Params = tuple[tuple[str, Any], ...]
Shape = tuple[int, ...]
Shapes = tuple[Shape, ...]
Step = tuple[Primitive, tuple[int, ...], Params]
NUMBERS = (int, float)
REMEMBERED = 4096
"""Recipes that are kept; more would be shapes and numbers that nobody meets again."""


class Recipe:
    """The steps of one map over slots: t, y and the arguments, constants, results.

    Attributes
    ----------
    reads : frozenset of int
        The slots, t aside, that the result depends on.
    """

    __slots__ = ("constants", "on_arrays", "on_tensors", "reads", "result", "single")

    def __init__(self, inputs: int, constants: list[float], steps: list[Step], result: int) -> None:
        self.constants = constants
        self.result = result
        self.on_arrays: list[tuple[Map, tuple[int, ...]]] = []
        self.on_tensors: list[tuple[Map, tuple[int, ...]]] = []
        for row, operands, params in steps:
            given, kernel = dict(params), row.computer(np)
            self.on_arrays.append((partial(kernel, **given) if given else kernel, operands))
            self.on_tensors.append((partial(row, **given), operands))
        first = inputs + len(constants)
        needed = {result}
        for number in range(len(steps) - 1, -1, -1):
            if first + number in needed:
                needed.update(steps[number][1])
        self.reads = frozenset(slot for slot in needed if 0 < slot < inputs)
        self.single = len(steps) == 1 and not constants

    def __call__(self, slots: list[Any], tensors: bool) -> Any:
        """Return the map's value; `slots` hold t, y and the arguments that it reads."""
        steps = self.on_tensors if tensors else self.on_arrays
        if not steps:
            # x * 0: what is left is the constant 0, of the cotangent's shape.
            return slots[self.result] if self.result < len(slots) else np.zeros(slots[0].shape)
        if self.single:
            function, operands = steps[0]
            if len(operands) == 2:
                first, second = operands
                return function(slots[first], slots[second])
            return function(*[slots[operand] for operand in operands])
        work = slots + self.constants
        for function, operands in steps:
            work.append(function(*[work[operand] for operand in operands]))
        return work[self.result]


@lru_cache(REMEMBERED)
def recipe(rule_map: Map, arity: int, numbers: tuple[tuple[int, float], ...] = ()) -> Recipe:
    """Return the recipe of a map ``(t, y, *args)``, of which some arguments are plain numbers.

    The identities that graphs are simplified by then apply: x ** 2 has the derivative 2 * x,
    and no power is taken.
    """
    if not numbers:
        found = template(rule_map, arity)
        steps: list[Step] = [(row, operands, ()) for row, operands in found.steps]
        return Recipe(arity + 2, list(found.constants), steps, found.result)
    known = dict(numbers)
    builder = Builder(simplify=True)
    inputs = [builder.input(name) for name in _names(arity)]
    slots = [
        Node(builder, builder.constant(known[slot]) if slot in known else node)
        for slot, node in enumerate(inputs)
    ]
    result = rule_map(*slots)
    return _from_function(Function.build(builder, inputs, [result.id], ["bar"]), 0)


def _names(arity: int) -> list[str]:
    return ["t", "y", *(f"a{position}" for position in range(arity))]


def _from_function(function: Function, output: int) -> Recipe:
    """Return one output of a recorded function as a recipe over its inputs."""
    graph, result = function.graph, function.outputs[output]
    alive = {result}
    for node in range(len(graph) - 1, -1, -1):
        if node in alive:
            alive.update(graph.arguments(node))
    slot_of = {node: slot for slot, node in enumerate(function.input_nodes)}
    constants = [node for node in graph.constants if node in alive]
    for node in constants:
        slot_of[node] = len(slot_of)
    steps: list[Step] = []
    for node, (opcode, args) in enumerate(graph.rows()):
        if opcode >= FIRST_ROW and node in alive:
            operands = tuple([slot_of[arg] for arg in args])
            slot_of[node] = len(slot_of)
            params = graph.param_table[graph.param_ids[node]]
            steps.append((graph.primitives[opcode - FIRST_ROW], operands, params))
    numbers = [graph.constant(node) for node in constants]
    return Recipe(len(function.input_nodes), numbers, steps, slot_of[result])


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


class Plan:
    """How one row goes backward when the arguments at some positions require grad.

    Attributes
    ----------
    kind : type
        The kind of its rule.
    positions : tuple of int
        The active arguments.
    maps : tuple
        For each of them the rule's map or condition, or recipes of the cotangent and its mask;
        None where no derivative flows.
    recipes : tuple of Recipe or None
        Of the maps, where no argument is a plain number.
    whole : bool
        Whether its rule needs the shapes of all arguments.
    computes : bool
        Whether any recipe does more than pass the cotangent on.
    keep : tuple of (int, int)
        Slot, and where its value is in ``(*args, y)``.
    """

    __slots__ = ("blank", "computes", "keep", "kind", "maps", "positions", "recipes", "whole")

    def __init__(
        self, kind: type, positions: tuple[int, ...], maps: tuple[Any, ...], arity: int
    ) -> None:
        self.kind = kind
        self.positions = positions
        self.maps = maps
        self.whole = kind in (Linear, ByArgument)
        self.recipes = tuple(recipe(m, arity) if callable(m) else None for m in maps)
        read: set[int] = set()
        for found in maps:
            for each in found if isinstance(found, tuple) else (found,):
                if each is not None:
                    read |= (each if isinstance(each, Recipe) else recipe(each, arity)).reads
        self.computes = any(
            found is not None and (found.on_arrays or found.result) for found in self.recipes
        )
        self.keep = tuple((slot, arity if slot == 1 else slot - 2) for slot in sorted(read))
        self.blank: list[Any] = [None] * (arity + 2)


PLANS: dict[tuple[Primitive, int, int], Plan] = {}


def plan_for(row: Primitive, needs: int, arity: int) -> Plan:
    """Return the plan, made once; bit p of `needs` is set where argument p requires grad."""
    key = (row, needs, arity)
    plan = PLANS.get(key)
    if plan is None:
        rule = row.rule
        positions = tuple(p for p in range(arity) if needs >> p & 1)
        maps: tuple[Map | None, ...] = (None,) * len(positions)
        if isinstance(rule, Elementwise):
            maps = tuple(rule.maps[p] for p in positions)
        elif isinstance(rule, Select):
            conditions = [rule.conditions[p] for p in positions]
            maps = tuple(None if c is None else _condition_map(c) for c in conditions)
        plan = PLANS[key] = Plan(type(rule), positions, maps, arity)
    return plan


@lru_cache(REMEMBERED)
def plan_of_arrays(
    row: Primitive, needs: int, params: Params, shapes: Shapes, shape: Shape
) -> Plan:
    """Return the plan of a row that mixes the numbers of arrays, for given shapes."""
    rule: Any = row.rule
    positions = tuple(p for p in range(len(shapes)) if needs >> p & 1)
    maps: list[tuple[Recipe, ...] | None] = []
    for position in positions:
        entry = rule.entries[position]
        if entry is None:
            maps.append(None)
            continue
        if isinstance(entry, Transpose):
            function = _transpose(entry, params, shapes, shape)
        else:
            function = cotangent(entry, position, params, shapes, shape, pull_back_masked)
        outputs = range(len(function.outputs))
        maps.append(tuple(_from_function(function, output) for output in outputs))
    return Plan(ByArgument, positions, tuple(maps), len(shapes))
