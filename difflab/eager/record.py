"""Computing an operation and putting it on the tape. May import the floors below `tensors`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from difflab.core.primitive import ByArgument, Primitive
from difflab.eager.mode import MODE
from difflab.eager.plan import NUMBERS, PLANS, Plan, plan_for, plan_of_arrays
from difflab.eager.tape import Accumulation, Memory, Step, memory_of, next_number
from difflab.errors import InputError, ShapeError

__all__ = ["Recorded", "record"]

Shape = tuple[int, ...]

NOTHING: Mapping[str, Any] = MappingProxyType({})
FLOAT64 = np.dtype(np.float64)
PLAIN = frozenset({int, float, np.float64})
"""Operands that are taken as they are."""
_new = object.__new__


class Recorded:
    """An array, and what made it: a step, for a leaf an accumulation, None without gradient."""

    __slots__ = ("__weakref__", "_data", "_grad", "_memory", "_step")

    _data: Any
    _step: Step | Accumulation | None
    _memory: Memory | None
    _grad: Any

    def __init__(self, data: Any, step: Any = None, memory: Memory | None = None) -> None:
        self._data = data
        self._step = step
        self._memory = memory
        self._grad = None

    def __difflab_apply__(
        self, primitive: Primitive, args: tuple[Any, ...], params: Mapping[str, Any]
    ) -> Any:
        return record(primitive, args, params)


def record(row: Primitive, args: tuple[Any, ...], params: Mapping[str, Any] = NOTHING) -> Any:
    """Compute ``row(*args, **params)``, and record it if an argument requires grad."""
    values: list[Any] = []
    edges: list[Any] = []
    shapes: list[Shape] = []
    needs, bit = 0, 1
    kind: type[Recorded] = Recorded
    for arg in args:
        if isinstance(arg, Recorded):
            kind = type(arg)
            data, step = arg._data, arg._step
            if step is not None:
                needs |= bit
                shapes.append(data.shape)
            edges.append(step)
        else:
            data = arg if type(arg) in PLAIN else _operand(arg)
            edges.append(None)
        values.append(data)
        bit += bit
    try:
        y = row.computer(np)(*values, **params) if params else row.computer(np)(*values)
    except (TypeError, ValueError) as error:
        y = _retried(row, values, params, None, error)
    if y.dtype is not FLOAT64 and not row.boolean:
        y = _retried(row, values, params, y, None)
    made = _new(kind)
    made._data = y
    made._grad = made._step = None
    made._memory = _shared_memory(args, y) if row.structural else None
    if not needs or row.boolean or not MODE.enabled:
        if needs:
            MODE.met = True
        return made
    plan = PLANS.get((row, needs, len(values))) or plan_for(row, needs, len(values))
    if plan.whole:
        shapes = [getattr(value, "shape", ()) for value in values]
        if plan.kind is ByArgument:
            known = tuple(params.items())
            plan = plan_of_arrays(row, needs, tuple(sorted(known)), tuple(shapes), y.shape)
    made._step = step = _new(Step)
    step.number = next_number()
    step.row = row
    step.params = params
    step.plan = plan
    step.edges = tuple(edges)
    step.shapes = shapes
    step.hooks = step.retained = None
    step.numbers = step.guards = ()
    step.slots = plan.blank
    if plan.keep:
        _keep(step, plan, args, values, made)
    return made


def _keep(step: Step, plan: Plan, args: tuple[Any, ...], values: list[Any], made: Recorded) -> None:
    """Put into a step what its rule reads, and how to see whether it has been changed."""
    step.slots = slots = plan.blank.copy()
    for slot, source in plan.keep:
        kept = made if source == len(args) else args[source]
        if isinstance(kept, Recorded):
            slots[slot] = kept._data
            memory = kept._memory or memory_of(kept)
            step.guards += ((memory, memory.changes),)
        elif type(kept) in NUMBERS:
            slots[slot] = kept
            step.numbers += ((slot, kept),)
        else:
            slots[slot] = _private(values[source])


def _private(value: Any) -> Any:
    """Return a NumPy array as it is now: its owner may change it before backward."""
    if isinstance(value, np.ndarray) and value.flags.writeable:
        return value.copy()
    return value


def _shared_memory(args: tuple[Any, ...], y: Any) -> Memory | None:
    """Return the memory of the tensor that `y` is a view of."""
    if getattr(y, "base", None) is None:
        return None
    return next((memory_of(arg) for arg in args if isinstance(arg, Recorded)), None)


def _operand(value: Any) -> Any:
    """Return an operand that is no tensor as numbers."""
    array = value if isinstance(value, np.ndarray | np.generic) else np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise InputError(f"an operation on tensors takes numbers, not {type(value).__name__}")
    return array


def _retried(
    row: Primitive,
    values: list[Any],
    params: Mapping[str, Any],
    y: Any,
    error: Exception | None,
) -> Any:
    """Compute with truth values as 0 and 1, as in a graph; NumPy gives them a logic."""
    numbers = [
        value * 1.0
        if position not in row.truths and getattr(value, "dtype", None) == np.bool_
        else value
        for position, value in enumerate(values)
    ]
    changed = any(number is not value for number, value in zip(numbers, values, strict=True))
    if changed:
        return row.computer(np)(*numbers, **params)
    if error is None:
        return y
    shapes = " and ".join(str(np.shape(value)) for value in values)
    raise ShapeError(
        f"{row.name} cannot combine the shapes {shapes}",
        hint="NumPy's broadcasting needs equal sizes, or 1, counted from the last axis",
    ) from error
