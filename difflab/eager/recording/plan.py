"""Backward plans: reads and operations of a primitive's pull-back, per set of active arguments.

Both follow from the row's rule alone: its maps are recorded once (as for graphs), and a slot
that no map reads is not kept. So `+` keeps nothing, `exp` its output and `sin` its input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

import numpy as np

from difflab.autodiff.engine.argumentwise import cotangent
from difflab.autodiff.engine.recipe import Recipe, recipe_of, recorded_rule
from difflab.autodiff.engine.reverse import pull_back
from difflab.core.apply import sent_to
from difflab.core.primitive import (
    ByArgument,
    Elementwise,
    LinearMap,
    Primitive,
    Select,
    Transpose,
    elementwise,
    linear,
)
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.passes.exact import fold
from difflab.primitives import power

# --- rows of the tape only: casts, copies, zeros, and masks --------------------------------------

cast: Primitive = Primitive(
    name="cast",
    arity=1,
    kernel=lambda xp, x, *, dtype: x.astype(dtype, copy=False),
    rule=linear(lambda t, position, shapes, *, dtype: t),  # the sweep casts to the edge's dtype
    structural=True,
    shape=lambda shapes, *, dtype: shapes[0],
)

copied: Primitive = Primitive(
    name="copied",
    arity=1,
    kernel=lambda xp, x: np.array(x, order="C")[()] if xp is np else xp.array(x),
    rule=linear(lambda t, position, shapes: t),
    structural=True,
    shape=lambda shapes: shapes[0],
)

# A copy on another device: `home` and `origin` are the array modules of the two.
sent: Primitive = Primitive(
    name="sent",
    arity=1,
    kernel=lambda xp, x, *, home, origin: sent_to(home, x),
    rule=linear(lambda t, position, shapes, *, home, origin: sent(t, home=origin, origin=home)),
    structural=True,
    shape=lambda shapes, *, home, origin: shapes[0],
)


def _zeros(xp: Any, *, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    return xp.zeros(shape, dtype)


zeros: Primitive = Primitive(
    name="zeros",
    arity=0,
    kernel=_zeros,
    rule=elementwise(),
    structural=True,
    shape=lambda shapes, *, shape, dtype: shape,
)

# `broadcast` for masks, which keeps truth values.
widened: Primitive = Primitive(
    name="widened",
    arity=1,
    kernel=lambda xp, mask, *, shape: xp.broadcast_to(mask, shape),
    rule=elementwise(None),
    boolean=True,
    truths=(0,),
    structural=True,
    shape=lambda shapes, *, shape: shape,
)
# The mask of elements that depend on all elements of a masked array: true everywhere or nowhere.
reached: Primitive = Primitive(
    name="reached",
    arity=1,
    kernel=lambda xp, mask, *, shape: xp.broadcast_to(mask.any(), shape),
    rule=elementwise(None),
    boolean=True,
    truths=(0,),
    structural=True,
    shape=lambda shapes, *, shape: shape,
)


# --- plans ---------------------------------------------------------------------------------------


POWER_OF_NUMBER = power.rule.maps[0]  # type: ignore[union-attr]
Map = Callable[..., Any]
Shapes = tuple[Shape, ...]
Numbers = tuple[tuple[int, float, float | str], ...]
"""Slots that hold plain numbers, the numbers, and again the numbers, or the text of a zero."""
NUMBERS = (int, float)
REMEMBERED = 4096
"""Size of each cache; the keys hold shapes and numbers, which need not recur."""


@lru_cache(REMEMBERED)
def recipe(rule_map: Map, arity: int, numbers: Numbers = ()) -> Recipe | None:
    """Return the recipe of a map ``(t, y, *args)``, some of whose arguments are Python scalars.

    The exact identities that simplify graphs then apply: x ** 2 has the derivative 2 * x, without
    a power. Products with the coefficient 0 are kept, because 0 * inf is nan; but x ** 0
    is 1 everywhere and has no derivative: None.
    """
    known = {slot: number for slot, number, _ in numbers}
    if rule_map is POWER_OF_NUMBER and known.get(3) == 0:
        return None
    return recipe_of(_for_floats(recorded_rule(rule_map, ((),) * (arity + 2), known)))


def _for_floats(function: Function) -> Function:
    """Return a recorded map as it is computed in floating point."""
    return fold(function.in_floats)


def _without_result(transpose: Map, params: Mapping[str, Any]) -> Map:
    """Return the cotangent ``(t, *args)`` of a bilinear row as a map ``(t, y, *args)``."""
    return lambda t, y, *args: transpose(t, *args, **params)


@cache
def _condition_map(condition: Map) -> Map:
    """Return a condition ``(*args)`` as a map ``(t, y, *args)``."""
    return lambda t, y, *args: condition(*args)


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
        for entry in (*self.maps, *self.recipes):
            for each in entry if isinstance(entry, tuple) else (entry,):
                read |= each.reads if isinstance(each, Recipe) else frozenset()
        self.computes = any(entry is not None and not entry.passes for entry in self.recipes)
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
            bar = _without_result(entry.map, dict(params))
            function = recorded_rule(bar, (shape, shape, *shapes), simplify=True)
        else:
            function = cotangent(entry, position, params, shapes, shape, pull_back)
        outputs = range(len(function.outputs))
        converted = _for_floats(function)
        maps.append(tuple(recipe_of(converted, output) for output in outputs))
    return tuple(maps)
