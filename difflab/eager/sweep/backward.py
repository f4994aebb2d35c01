"""The eager reverse sweep: from a tensor's step back to the leaves, in reverse creation order.

The rules are those of the table of primitives. For plain gradients they are applied to arrays,
with `create_graph` to tensors, which records the sweep itself. The sweep does not recurse: a
heap of step numbers gives the order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from difflab.autodiff.engine.masked import Masked, accumulate, both, moved
from difflab.core.apply import module_of
from difflab.core.primitive import ByArgument, Elementwise, LinearMap, Primitive, Select
from difflab.eager.recording.plan import cast, reached, recipe, sent, widened
from difflab.eager.recording.record import TapedArray, record
from difflab.eager.recording.tape import Accumulation, TapeStep
from difflab.errors import ShapeError
from difflab.graph.ir import Shape
from difflab.primitives import add, broadcast, scatter, where

# --- accumulated cotangents: hooks, retained gradients, gradients of leaves ----------------------

TensorType = Callable[..., Any]
"""The class `Tensor`, which the tape does not import."""


def hooked(hooks: Mapping[int, Callable[..., Any]], bar: Any, kind: TensorType) -> Any:
    """Call hooks with a cotangent; each may return a replacement.

    Each hook gets a tensor of its own, whose changes in place affect nothing else.
    """
    plain = not isinstance(bar, TapedArray)
    data = bar if plain else bar._data
    step = None if plain else bar._step
    for hook in tuple(hooks.values()):
        returned = hook(kind(data, step))
        if returned is None:
            continue
        replaced: Any = returned if isinstance(returned, TapedArray) else kind(np.array(returned))
        if replaced.shape != data.shape:
            raise ShapeError(
                f"a hook returned shape {replaced.shape} for a gradient of {data.shape}"
            )
        if replaced.dtype != data.dtype:
            replaced = record(cast, (replaced,), {"dtype": data.dtype})
        data, step = replaced._data, replaced._step
    return data if plain else kind(data, step)


def show(step: TapeStep, bar: Any, kind: TensorType) -> Any:
    """Pass the cotangent of a step to its hooks and to the tensor that retains it."""
    if step.hooks:
        bar = hooked(step.hooks, bar, kind)
    keeper = step.retained and step.retained()
    if keeper is not None:
        own = bar.copy()
        gradient = own if isinstance(own, TapedArray) else kind(own)
        keeper._grad = gradient if keeper._grad is None else keeper._grad + gradient
    return bar


def arrive(cotangents: list[tuple[Any, Any]], seed: Any, kind: TensorType) -> None:
    """Add cotangents to the gradients of leaves; gradients share no memory."""
    used = {id(seed)}
    for leaf, bar in cotangents:
        shared = id(bar) in used
        used.add(id(bar))
        if leaf.hooks:
            bar, shared = hooked(leaf.hooks, bar, kind), True
        if leaf.grad is not None:
            with np.errstate(all="ignore"):
                leaf.grad = (
                    leaf.grad + bar if isinstance(bar, TapedArray) else kind(leaf.grad._data + bar)
                )
            continue
        recorded = isinstance(bar, TapedArray)
        if shared or (bar._data if recorded else bar).base is not None:
            bar = bar.copy()
        leaf.grad = bar if recorded else kind(bar)


# --- calculators: the arithmetic of a sweep, on arrays or on tensors -----------------------------
# `autodiff.engine.masked` adds up derivatives under masks for any writer: a graph's `Builder`
# appends nodes, a `Calculator` computes.


class Scattered:
    """The cotangent of ``x[key]``, not yet written into zeros of the shape of x.

    All cotangents of one array are written together, so that the reverse sweep of a loop over
    the elements of x takes linear time.
    """

    __slots__ = ("key", "part", "shape")

    def __init__(self, part: Any, key: tuple[Any, ...], shape: Shape) -> None:
        self.part = part
        self.key = key
        self.shape = shape


class Calculator:
    """A writer (see `autodiff.engine.masked`) whose nodes are arrays; one for each sweep.

    Attributes
    ----------
    xp : module
        The array module.
    kernels : module or None
        The array module whose kernels compute; None if the values are carriers, to which rows
        are applied.
    several : bool
        Whether the sweep has gone from one device to another.
    """

    def __init__(self, xp: Any = np) -> None:
        self.xp = xp
        self.kernels = xp
        self.several = False
        self.last_masked: tuple[Any, Any, Any] = (None, None, None)

    def follow(self, value: Any) -> None:
        """Compute on the device of a cotangent from now on, if the sweep has several."""
        if not self.several:
            return
        held = value.part if type(value) is Scattered else value
        self.xp = module_of(getattr(held, "_data", held))
        if self.kernels is not None:
            self.kernels = self.xp

    def slots(self, step: TapeStep) -> list[Any]:
        """Return the values that the maps of a step read."""
        slots: list[Any] = step.slots.copy()
        return slots

    def emit(self, primitive: Primitive, args: Sequence[Any], params: Any = ()) -> Any:
        """Compute a row."""
        dense = [self.dense(arg) if type(arg) is Scattered else arg for arg in args]
        return primitive(*dense, **dict(params))

    def zeros(self, shape: Shape, dtype: Any) -> Any:
        """Return zeros, the contribution of a map without derivative."""
        return self.xp.zeros(shape, dtype)

    def cast(self, value: Any, dtype: np.dtype[Any]) -> Any:
        """Return a cotangent converted to the dtype of its primal."""
        if type(value) is Scattered:
            return Scattered(self.cast(value.part, dtype), value.key, value.shape)
        same = getattr(value, "dtype", None) == dtype
        return value if same else self.emit(cast, (value,), (("dtype", dtype),))

    def spread(self, mask: Any, shape: Shape) -> Any:
        """Return a mask broadcast to the shape of its values."""
        if mask.shape == shape:
            return mask
        return self.emit(widened, (mask,), (("shape", shape),))

    def constant(self, value: float) -> Any:
        """Return the number."""
        return value

    def primitive(self, node: Any) -> Primitive | None:
        """Return `scatter` for a cotangent not yet written into its array."""
        return scatter if type(node) is Scattered else None

    def arguments(self, node: Scattered) -> tuple[Any, ...]:
        """Return the part of a scattered cotangent."""
        return (node.part,)

    def params(self, node: Scattered) -> dict[str, Any]:
        """Return the key of a scattered cotangent."""
        return {"keys": (node.key,)}

    def shape(self, node: Scattered) -> Shape:
        """Return the array's shape."""
        return node.shape

    def dense(self, value: Scattered) -> Any:
        """Return a scattered cotangent written into zeros."""
        return scatter(value.part, keys=(value.key,), shape=value.shape)

    def join(self, parts: list[Masked], value: Any, mask: Any) -> None:
        """Append a cotangent to the parts of an edge; add it if that keeps a graph's order."""
        if parts and mask is None and type(value) is not Scattered:
            last = parts[-1].value
            whole = parts[-1].mask is None and type(last) is not Scattered
            if whole and last.shape == value.shape and len(parts) == 1:
                parts[-1] = Masked(self.emit(add, (last, value)))
                return
        parts.append(Masked(value, mask))

    def total(self, parts: list[Masked], shape: Shape | None, *, final: bool) -> Masked:
        """Add up the cotangents of an edge; those wider than `shape` are un-broadcast."""
        if shape is not None:
            parts = self._narrowed(parts, shape, final=final)
        part = parts[0] if len(parts) == 1 else accumulate(self, parts)
        if type(part.value) is Scattered:
            return Masked(self.dense(part.value), part.mask)
        return part

    def _narrowed(self, parts: list[Masked], shape: Shape, *, final: bool) -> list[Masked]:
        """Add parts of equal shape, then un-broadcast once: as at the broadcast node of a graph.

        That node precedes all its users, so the sweep visits it after the last of them.
        """
        groups: dict[Any, list[Masked]] = {}
        for number, part in enumerate(parts):
            wide = part.value.shape
            key = number if wide == shape else wide
            group = groups.pop(key, [])
            group.append(part)
            groups[key] = group
        narrow = []
        for key, group in groups.items():
            part = accumulate(self, group)
            if isinstance(key, tuple):
                part = Masked(*self.unbroadcast(part.value, part.mask, shape, final=final))
            narrow.append(part)
        return narrow

    def masked(self, value: Any, mask: Any) -> Any:
        """Return a derivative with zeros where its mask is false.

        The latest result is cached: it is needed again for each argument of a step.
        """
        if mask is None:
            return value
        last_value, last_mask, result = self.last_masked
        if value is not last_value or mask is not last_mask:
            result = self.emit(where, (mask, value, 0))
            self.last_masked = (value, mask, result)
        return result

    def reached(self, mask: Any, shape: Shape) -> Any:
        """Return the mask of elements of `shape` that depend on all of the masked array."""
        return self.emit(reached, (mask,), (("shape", shape),))

    def moved(
        self, value: Any, mask: Any, move: Callable[[Any], Any], *, final: bool
    ) -> tuple[Any, Any]:
        """Apply a linear map of arrays to a cotangent, and to its mask unless it is `final`."""
        part = Masked(self.masked(value, mask), mask, clean=True)
        image = moved(self, part, move, final=final)
        return image.value, image.mask

    def unbroadcast(self, value: Any, mask: Any, shape: Shape, *, final: bool) -> tuple[Any, Any]:
        """Sum a cotangent over the axes along which an operand of `shape` was repeated."""
        return self.moved(value, mask, partial(self.summed, shape), final=final)

    def summed(self, shape: Shape, value: Any) -> Any:
        """Sum a value over the axes along which `shape` was repeated."""
        rule: Any = broadcast.rule
        return rule.transpose(value, 0, (shape,), shape=value.shape, rank=len(shape))


class TensorCalculator(Calculator):
    """A writer whose nodes are tensors, which record the operations on them.

    Parameters
    ----------
    kind : callable
        The class `Tensor`, which the tape does not import.
    xp : module
        The array module of the tensors' values.
    """

    def __init__(self, kind: Callable[..., Any], xp: Any = np) -> None:
        super().__init__(xp)
        self.kernels = None
        self.kind = kind

    def slots(self, step: TapeStep) -> list[Any]:
        """Return the values that the maps of a step read, as tensors where derivatives flow."""
        slots, edges = super().slots(step), step.edges or ()
        for slot, source in step.plan.keep:
            edge = step if source == len(edges) else edges[source]
            if edge is not None:
                slots[slot] = self.kind(slots[slot], edge)
        return slots


# --- the sweep -----------------------------------------------------------------------------------

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
    """Return the contributions of an elementwise step's cotangent along each edge."""
    plan, edges, numbers = step.plan, step.edges or (), step.numbers
    selects = plan.kind is Select
    slots: list[Any] = []
    if plan.computes:
        slots = calculator.slots(step)
        slots[0] = value
    contributions: Contributions = []
    for entry, position in enumerate(plan.positions):
        edge, shape, slope = edges[position], plan.shapes[position], plan.recipes[entry]
        if numbers and slope is not None:
            slope = recipe(plan.maps[entry], len(edges), numbers)
        if slope is None:
            contributions.append((edge, calculator.zeros(shape, plan.dtype), None))
            continue
        bar, live = value, mask
        if plan.computes and not slope.passes:
            bar = slope.run(slots, calculator.kernels)
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
        if rule.element is not None and (mask is None or final):
            element = rule.element(shapes, **params)
            bar = Scattered(calculator.masked(value, mask), *element)
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
    """Return the contributions along each edge of the cotangent of a primitive that mixes elements.

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
