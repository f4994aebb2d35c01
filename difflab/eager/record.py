"""Computing an operation and putting it on the tape. May import the floors below `tensors`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive
from difflab.eager.mode import MODE, WATCHED
from difflab.eager.plan import NUMBERS, PLANS, Plan, plan_for
from difflab.eager.tape import Accumulation, Memory, Step, memory_of
from difflab.errors import InputError, ShapeError

__all__ = ["Recorded", "record", "record_two", "require_floating"]

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
    if not params and len(args) == 2:
        return record_two(row, *args)
    values: list[Any] = []
    edges: list[Any] = []
    needs, bit = 0, 1
    kind: type[Recorded] = Recorded
    for arg in args:
        if isinstance(arg, Recorded):
            kind = type(arg)
            values.append(arg._data)
            step = arg._step
            edges.append(step)
            if step is not None:
                needs |= bit
        else:
            values.append(arg if type(arg) in PLAIN else _operand(arg))
            edges.append(None)
        bit += bit
    given = tuple(params.items())
    kernel = row._computers.get((np, given)) or row.unbatched_computer(np, given)
    try:
        y = kernel(*values)
        if y.dtype is not FLOAT64 and not row.boolean:
            y = _as_in_graphs(row, values, params, y)
    except (TypeError, ValueError) as error:
        y = _retried(row, values, params, error)
    made = _new(kind)
    made._data = y
    made._grad = made._step = None
    made._memory = _shared_memory(args, y) if row.structural else None
    if not needs or row.boolean or not MODE.enabled:
        if needs:
            MODE.met = True
        return made
    shapes = [() if type(value) in PLAIN else value.shape for value in values]
    key = (row, needs, *shapes, given)
    plan = PLANS.get(key) or plan_for(key, row, needs, params, tuple(shapes), y.shape)
    made._step = step = Step(plan, tuple(edges))
    if plan.keep:
        _keep(step, plan, args, values, made)
    if WATCHED and MODE.watch is not None:
        MODE.watch.note(row, args, params, step)
    return made


def record_two(row: Primitive, a: Any, b: Any) -> Any:
    """Do what `record` does, for two arguments and no parameters: most operations."""
    needs = 0
    kind = Recorded
    if isinstance(a, Recorded):
        kind = type(a)
        x, edge = a._data, a._step
        if edge is not None:
            needs = 1
    else:
        x, edge = a if type(a) in PLAIN else _operand(a), None
    if isinstance(b, Recorded):
        kind = type(b)
        y, other = b._data, b._step
        if other is not None:
            needs += 2
    else:
        y, other = b if type(b) in PLAIN else _operand(b), None
    try:
        z = (row._computers.get(np) or row.computer(np))(x, y)
        if z.dtype is not FLOAT64 and not row.boolean:
            z = _as_in_graphs(row, [x, y], NOTHING, z)
    except (TypeError, ValueError) as error:
        z = _retried(row, [x, y], NOTHING, error)
    made = _new(kind)
    made._data = z
    made._grad = made._step = made._memory = None
    if not needs or row.boolean or not MODE.enabled:
        if needs:
            MODE.met = True
        return made
    key = (row, needs, getattr(x, "shape", ()), getattr(y, "shape", ()))
    plan = PLANS.get(key) or plan_for(key, row, needs, NOTHING, key[2:], z.shape)
    made._step = step = Step(plan, (edge, other))
    if plan.keep:
        _keep(step, plan, (a, b), (x, y), made)
    if WATCHED and MODE.watch is not None:
        MODE.watch.note(row, (a, b), NOTHING, step)
    return made


def _keep(
    step: Step, plan: Plan, args: tuple[Any, ...], values: Sequence[Any], made: Recorded
) -> None:
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


def _as_in_graphs(
    row: Primitive, values: Sequence[Any], params: Mapping[str, Any], y: Any = None
) -> Any:
    """Compute with truth values as 0 and 1, as in a graph; NumPy gives them a logic.

    What is known of the result, `y`, is returned where there are none.
    """
    numbers = [
        value * 1.0
        if position not in row.truths and getattr(value, "dtype", None) == np.bool_
        else value
        for position, value in enumerate(values)
    ]
    if all(number is value for number, value in zip(numbers, values, strict=True)):
        return y
    return row.computer(np)(*numbers, **params)


def _retried(
    row: Primitive, values: Sequence[Any], params: Mapping[str, Any], error: Exception
) -> Any:
    """Compute what NumPy refused to, if that was for truth values; else say what is wrong."""
    y = _as_in_graphs(row, values, params)
    if y is not None:
        return y
    shapes = " and ".join(str(np.shape(value)) for value in values)
    raise ShapeError(
        f"{row.name} cannot combine the shapes {shapes}",
        hint="NumPy's broadcasting needs equal sizes, or 1, counted from the last axis",
    ) from error


def require_floating(array: Any) -> None:
    """Raise `InputError` unless derivatives of such numbers exist."""
    if array.dtype.kind != "f":
        raise InputError(
            f"numbers of type {array.dtype} cannot require grad", hint="pass dtype=float"
        )
