"""The eager reverse sweep: from a tensor's step back to the leaves, in reverse creation order.

The rules are the table's. For plain gradients they are applied to arrays, with `create_graph`
to tensors, which records the derivative in its turn. Nothing here recurses: a heap of step
numbers stands for the order. May import `plan`, `tape`, `values`, `autodiff.masked`,
`primitives`, `core`, `errors`.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import numpy as np

from difflab.autodiff.masked import Masked, both
from difflab.core.primitive import ByArgument, Elementwise, Linear, Select
from difflab.eager.plan import recipe
from difflab.eager.tape import Accumulation, Step
from difflab.eager.values import Calculator, Scattered
from difflab.primitives import index

__all__ = ["SPREAD", "Contributions", "Narrow", "pull_back"]

Contributions = list[tuple[Any, Any, Any]]
"""Edge, cotangent, and the mask under which it counts."""
Shape = tuple[int, ...]
Narrow = dict[Any, Shape]
"""The shapes of those steps and leaves that receive cotangents still to be un-broadcast."""
Watch = Callable[[Step, Any], Any]


def pull_back(
    root: Step, seed: Any, *, keep: bool, calculator: Calculator, watch: Watch
) -> list[tuple[Accumulation, Any]]:
    """Return the leaves that `root` depends on, each with its cotangent.

    Parameters
    ----------
    root : Step
        Where to start.
    seed : array or tensor
        The cotangent of what `root` made.
    keep : bool
        Whether the steps keep what they need, for another time.
    calculator : Calculator
        Computes on arrays or on tensors.
    watch : callable
        Is shown the cotangent of every step with hooks or a retained tensor, and returns it.
    """
    waiting: dict[int, tuple[Step, Any, Any]] = {root.number: (root, seed, None)}
    order = [-root.number]
    more: dict[int, list[Masked]] = {}
    narrow: dict[Step | Accumulation, Shape] = {}
    leaves: dict[Accumulation, list[Masked]] = {}
    while order:
        number = -heappop(order)
        step, value, mask = waiting.pop(number)
        if step.edges is None or step.guards:
            step.check()
        if type(value) is Scattered or number in more or step in narrow:
            parts = more.pop(number, None) or [Masked(value, mask)]
            value, mask, _ = calculator.total(parts, narrow.pop(step, None), final=False)
        if step.hooks or step.retained is not None:
            value, mask = watch(step, calculator.settled(value, mask)), None
        for edge, bar, live in SPREAD[step.plan.kind](step, value, mask, calculator, narrow):
            if type(edge) is not Step:
                calculator.join(leaves.setdefault(edge, []), bar, live)
            elif edge.number in waiting:
                _, first, first_mask = waiting[edge.number]
                parts = more.setdefault(edge.number, [Masked(first, first_mask)])
                calculator.join(parts, bar, live)
            else:
                waiting[edge.number] = (edge, bar, live)
                heappush(order, -edge.number)
        if not keep:
            step.edges, step.slots, step.guards = None, [], ()
    return [
        (leaf, calculator.total(parts, narrow.get(leaf), final=True).value)
        for leaf, parts in leaves.items()
    ]


def _elementwise(
    step: Step, value: Any, mask: Any, calculator: Calculator, narrow: Narrow
) -> Contributions:
    """Return what the cotangent of an elementwise step contributes along each edge."""
    plan, edges, numbers = step.plan, step.edges or (), step.numbers
    tensors, selects = calculator.revive is not None, plan.kind is Select
    slots: list[Any] = []
    if plan.computes:
        slots = _slots(step, calculator)
        slots[0] = value
    contributions: Contributions = []
    for place, position in enumerate(plan.positions):
        edge, shape, found = edges[position], step.shapes[place], plan.recipes[place]
        if found is None:
            contributions.append((edge, np.zeros(shape), None))
            continue
        if numbers:
            found = recipe(plan.maps[place], len(edges), numbers)
        bar, live = found(slots, tensors) if plan.computes else value, mask
        if selects:
            bar, live = value, both(calculator, mask, bar)
        if bar.shape != shape:
            narrow[edge] = shape  # summed where it arrives, together with others of its shape
        elif live is not None and type(edge) is not Step:
            bar, live = calculator.settled(bar, live), None
        contributions.append((edge, bar, live))
    return contributions


def _slots(step: Step, calculator: Calculator) -> list[Any]:
    """Return the values that the step's maps read; as tensors if they are to be recorded."""
    slots = step.slots.copy()
    if calculator.revive is not None:
        edges = step.edges or ()
        for slot, source in step.plan.keep:
            edge = step if source == len(edges) else edges[source]
            if edge is not None:
                slots[slot] = calculator.revive(slots[slot], edge)
    return slots


def _moved(
    step: Step, value: Any, mask: Any, calculator: Calculator, narrow: Narrow
) -> Contributions:
    """Send a cotangent through the transpose of a linear row."""
    params, shapes, rule = step.params, step.shapes, step.row.rule
    contributions: Contributions = []
    for position in step.plan.positions:
        edge = (step.edges or ())[position]
        final = type(edge) is not Step
        if step.row is index and (mask is None or final):
            bar = Scattered(calculator.settled(value, mask), params["key"], shapes[0])
            contributions.append((edge, bar, None))
            continue

        def move(t: Any, position: int = position) -> Any:
            return rule.transpose(t, position, shapes, **params)  # type: ignore[union-attr]

        contributions.append((edge, *calculator.moved(value, mask, move, final=final)))
    return contributions


def _mixed(
    step: Step, value: Any, mask: Any, calculator: Calculator, narrow: Narrow
) -> Contributions:
    """Return what the cotangent of a row that mixes numbers contributes along each edge.

    Every number of an argument may receive from every number of the result, so that a mask
    excludes all of it or nothing.
    """
    plan, edges = step.plan, step.edges or ()
    tensors = calculator.revive is not None
    slots = _slots(step, calculator)
    slots[0] = calculator.settled(value, mask)
    dead = mask is not None and not calculator.holds_anywhere(mask)
    contributions: Contributions = []
    for position, recipes in zip(plan.positions, plan.maps, strict=True):
        edge, shape = edges[position], step.shapes[position]
        if recipes is None or dead:
            contributions.append((edge, np.zeros(shape), np.zeros(shape, bool) if dead else None))
            continue
        bar, *masks = [each(slots, tensors) for each in recipes]
        live = masks[0] if masks else None
        if type(edge) is not Step and live is not None:
            bar, live = calculator.settled(bar, live), None
        contributions.append((edge, bar, live))
    return contributions


SPREAD: dict[type, Callable[[Step, Any, Any, Calculator, Narrow], Contributions]] = {
    ByArgument: _mixed,
    Elementwise: _elementwise,
    Linear: _moved,
    Select: _elementwise,
}
"""What a step's cotangent contributes along each edge, by the kind of its plan.

A contribution may lead to a step made just now: its number is above all others, so its turn
comes before that of any step that was there.
"""
