"""The eager reverse sweep: from a tensor's step back to the leaves, in reverse creation order.

The rules are those of the table of primitives. For plain gradients they are applied to arrays,
with `create_graph` to tensors, which records the sweep itself. The sweep does not recurse: a
heap of step numbers gives the order.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, NamedTuple

from difflab.autodiff.engine.masked import Masked, both
from difflab.core.primitive import ByArgument, Elementwise, LinearMap, Select
from difflab.eager.recording.plan import recipe
from difflab.eager.recording.rows import sent
from difflab.eager.recording.tape import Accumulation, TapeStep
from difflab.eager.sweep.values import Calculator, Scattered
from difflab.graph.ir import Shape
from difflab.primitives import index

Contributions = list[tuple[Any, Any, Any]]
"""Edge, cotangent, and the mask under which it counts."""
Narrow = dict[Any, Shape]
"""The shapes of the steps and leaves whose cotangents still have to be un-broadcast."""
Show = Callable[[TapeStep, Any], Any]


class Route(NamedTuple):
    """The part of a tape that a sweep for some steps and leaves goes through.

    Attributes
    ----------
    wanted : set
        The steps whose cotangents are returned beside those of leaves.
    ends : set
        Those of them behind which nothing is wanted.
    skipped : set
        The steps and leaves that are not visited.
    """

    wanted: set[Any]
    ends: set[Any]
    skipped: set[Any]


EVERYWHERE = Route(set(), set(), set())


def pull_back(
    root: TapeStep,
    seed: Any,
    *,
    keep: bool,
    calculator: Calculator,
    show: Show,
    route: Route = EVERYWHERE,
) -> list[tuple[Accumulation | TapeStep, Any]]:
    """Return the leaves that `root` depends on, each with its cotangent.

    Parameters
    ----------
    root : TapeStep
        The step at which the sweep starts.
    seed : array or tensor
        The cotangent of the result of `root`.
    keep : bool
        Whether the steps keep their values, for another sweep.
    calculator : Calculator
        Computes on arrays or on tensors.
    show : callable
        Called with every step that has hooks or a retained tensor and with its cotangent;
        returns the cotangent to continue with.
    route : Route
        Where the sweep goes; everywhere if omitted.
    """
    wanted, ends, skipped = route
    waiting: dict[int, tuple[TapeStep, Any, Any]] = {root.number: (root, seed, None)}
    order = [-root.number]
    more: dict[int, list[Masked]] = {}
    narrow: dict[TapeStep | Accumulation, Shape] = {}
    leaves: dict[Accumulation, list[Masked]] = {}
    passed: list[tuple[Accumulation | TapeStep, Any]] = []
    while order:
        number = -heappop(order)
        step, value, mask = waiting.pop(number)
        calculator.follow(value)
        if step.edges is None and step not in ends:
            step.check()
        if type(value) is Scattered or number in more or step in narrow:
            parts = more.pop(number, None) or [Masked(value, mask)]
            total = calculator.total(parts, narrow.pop(step, None), final=False)
            value, mask = total.value, total.mask
        if step.hooks or step.retained is not None:
            value, mask = show(step, calculator.masked(value, mask)), None
        if step in wanted:
            value, mask = calculator.masked(value, mask), None
            passed.append((step, value))
        plan, spread = step.plan, _nothing if step in ends else SPREAD[step.plan.kind]
        for edge, bar, live in spread(step, value, mask, calculator, narrow):
            if edge in skipped:
                continue
            dtype = (edge.plan or edge).dtype
            if dtype is not plan.dtype and dtype is not None:
                bar = calculator.cast(bar, dtype)
            if type(edge) is not TapeStep:
                calculator.join(leaves.setdefault(edge, []), bar, live)
            elif edge.number in waiting:
                _, first, first_mask = waiting[edge.number]
                parts = more.setdefault(edge.number, [Masked(first, first_mask)])
                calculator.join(parts, bar, live)
            else:
                waiting[edge.number] = (edge, bar, live)
                heappush(order, -edge.number)
        if not keep:
            step.free()
    return passed + [
        (leaf, calculator.total(parts, narrow.get(leaf), final=True).value)
        for leaf, parts in leaves.items()
    ]


def _nothing(*_: Any) -> Contributions:
    """Return no contributions: nothing behind the step is wanted."""
    return []


def _elementwise(
    step: TapeStep, value: Any, mask: Any, calculator: Calculator, narrow: Narrow
) -> Contributions:
    """Return what the cotangent of an elementwise step contributes along each edge."""
    plan, edges, numbers = step.plan, step.edges or (), step.numbers
    selects = plan.kind is Select
    slots: list[Any] = []
    if plan.computes:
        slots = calculator.slots(step)
        slots[0] = value
    contributions: Contributions = []
    for entry, position in enumerate(plan.positions):
        edge, shape, found = edges[position], plan.shapes[position], plan.recipes[entry]
        if numbers and found is not None:
            found = recipe(plan.maps[entry], len(edges), numbers)
        if found is None:
            contributions.append((edge, calculator.zeros(shape, plan.dtype), None))
            continue
        bar, live = value, mask
        if plan.computes and not found.passes:
            bar = found.run(slots, calculator.kernels)
        if selects:
            bar, live = value, both(calculator, mask, calculator.spread(bar, value.shape))
        if bar.shape != shape:
            narrow[edge] = shape  # summed at the edge, together with other cotangents of its shape
        elif live is not None and type(edge) is not TapeStep:
            bar, live = calculator.masked(bar, live), None
        contributions.append((edge, bar, live))
    return contributions


def _moved(
    step: TapeStep, value: Any, mask: Any, calculator: Calculator, narrow: Narrow
) -> Contributions:
    """Send a cotangent through the transpose of a linear row."""
    plan = step.plan
    params, shapes = plan.params, plan.shapes
    rule: Any = plan.row.rule
    calculator.several |= plan.row is sent
    contributions: Contributions = []
    for position in plan.positions:
        edge = (step.edges or ())[position]
        final = type(edge) is not TapeStep
        if plan.row is index and (mask is None or final):
            bar = Scattered(calculator.masked(value, mask), params["key"], shapes[0])
            contributions.append((edge, bar, None))
            continue

        def move(t: Any, position: int = position) -> Any:
            return rule.transpose(t, position, shapes, **params)

        bar, live = calculator.moved(value, mask, move, final=final)
        if position in rule.selects and not final:
            live = both(calculator, live, move(calculator.xp.ones(value.shape)) != 0)
        contributions.append((edge, bar, live))
    return contributions


def _mixed(
    step: TapeStep, value: Any, mask: Any, calculator: Calculator, narrow: Narrow
) -> Contributions:
    """Return what the cotangent of a row that mixes elements contributes along each edge.

    Every element of an argument may depend on every element of the result, so that a mask
    excludes all of it or nothing. At a leaf, zeros of a product stay zero without a mask.
    """
    plan, edges = step.plan, step.edges or ()
    slots = calculator.slots(step)
    slots[0] = calculator.masked(value, mask)
    contributions: Contributions = []
    for position, recipes in zip(plan.positions, plan.maps, strict=True):
        if recipes is None:  # an argument without a derivative, such as the factors of a matrix
            continue
        edge, shape = edges[position], plan.shapes[position]
        ends = plan.product and type(edge) is not TapeStep
        live = None if mask is None or ends else calculator.reached(mask, shape)
        bar, *masks = [each.run(slots, calculator.kernels) for each in recipes]
        if masks:
            live = both(calculator, live, masks[0])
        if type(edge) is not TapeStep and live is not None:
            bar, live = calculator.masked(bar, live), None
        contributions.append((edge, bar, live))
    return contributions


SPREAD: dict[type, Callable[[TapeStep, Any, Any, Calculator, Narrow], Contributions]] = {
    ByArgument: _mixed,
    Elementwise: _elementwise,
    LinearMap: _moved,
    Select: _elementwise,
}
"""The function that spreads a step's cotangent along its edges, by the kind of its plan.

A contribution may lead to a step recorded during the sweep: its number exceeds all others, so
the sweep visits it before any earlier step.
"""
