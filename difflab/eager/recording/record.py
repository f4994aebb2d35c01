"""Compute an operation and record it on the tape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import lru_cache
from types import MappingProxyType
from typing import Any
from weakref import ref

import numpy as np

from difflab.arrays.complex_array import ComplexArray, is_complex
from difflab.core.apply import HOST, OtherCarrierError, array_module, device_mismatch, module_of
from difflab.core.conversions import as_numbers, as_reals, require_range
from difflab.core.ownership import Storage, View, is_constant
from difflab.core.primitive import Primitive
from difflab.eager.recording.plan import NUMBERS, REMEMBERED, BackwardPlan
from difflab.eager.recording.tape import (
    MODE,
    WATCHED,
    Accumulation,
    TapeStep,
    enable_grad,
    is_inference,
    mark_inference,
    require_recordable,
)
from difflab.errors import InputError, ShapeError
from difflab.primitives import index, reshape, stop_gradient

NOTHING: Mapping[str, Any] = MappingProxyType({})
FLOAT64 = np.dtype(np.float64)
FLOATING = frozenset({np.dtype(np.float16), np.dtype(np.float32), FLOAT64})
"""The dtypes of arrays that tensors hold and combine with, as NumPy does."""
PLAIN = frozenset({int, float, np.float64})
"""The types of operands that need no conversion."""
OPERAND = "an operand of a tensor operation"
_new = object.__new__


class TapedArray:
    """An array and its step on the tape: an `Accumulation` for a leaf, None without gradient.

    `_own` is the class of tensors that own their elements, and `_viewing` that of views.
    """

    __slots__ = ("__weakref__", "_data", "_grad", "_step", "_storage")

    _own: type[Any]
    _viewing: type[Any]
    _view: View | None

    _data: Any
    _step: TapeStep | Accumulation | None
    _storage: Storage | None
    _grad: Any

    def __init__(self, data: Any, step: Any = None, storage: Storage | None = None) -> None:
        self._data = data
        self._step = step
        self._storage = storage
        self._grad = None
        if type(step) is Accumulation and step.owner is None:
            step.owner = ref(self)

    def __difflab_apply__(
        self, primitive: Primitive, args: tuple[Any, ...], params: Mapping[str, Any]
    ) -> Any:
        try:
            return record(primitive, args, params)
        except OtherCarrierError as other:
            return other.carrier.__difflab_apply__(primitive, args, params)

    def __difflab_value__(self) -> Any:
        return self._data

    def __difflab_held__(self) -> Any:
        return self._data

    def __difflab_version__(self) -> tuple[Storage, int]:
        """Return a key that is equal until the values are changed in place."""
        storage = self._storage
        if storage is None:
            storage = self._storage = Storage()
        return storage, storage.changes

    def __difflab_noted__(self, note: Callable[[], None]) -> Callable[[], None]:
        """Call `note` when the values are read next; return a function that ends this.

        The tensor has another class until then, so that reads cost nothing elsewhere.
        """
        self._data  # noqa: B018  # a run that notes it already has read it
        kind: Any = type(self)
        _NOTED[id(self)] = note
        self.__class__ = _noting(kind)

        def end() -> None:
            if _NOTED.get(id(self)) is note:
                self.__class__ = kind
                _NOTED.pop(id(self), None)

        return end

    def __difflab_captured__(self) -> Any:
        # A trace that reads the tensor goes on after the trial of a checkpoint inside it.
        with enable_grad() if MODE.trial else nullcontext():
            return self.__difflab_unchanged__()

    def __difflab_shared__(self) -> Any:
        shape = self._data.shape
        return record(reshape, (self,), {"shape": shape, "rank": len(shape)})

    def __difflab_alone__(self) -> Any:
        if type(self._step) is Accumulation:  # a leaf is not changed while it is recorded
            return self.__difflab_unchanged__()
        return self._own(self._data, self._step, self._storage if is_inference(self) else None)

    def __difflab_unchanged__(self) -> Any:
        return self.__difflab_shared__().__difflab_alone__()


_NOTED: dict[int, Callable[[], None]] = {}
"""What to call when a tensor is read next, by its id."""


@lru_cache
def _noting(kind: type[Any]) -> type[Any]:
    """Return the class of the tensors of a class while their next read is noted."""
    slot = kind._data

    def read(tensor: Any) -> Any:
        tensor.__class__ = kind
        note = _NOTED.pop(id(tensor), None)
        if note is not None:  # else another thread was faster
            note()
        return slot.__get__(tensor)

    return type(kind.__name__, (kind,), {"__slots__": (), "_data": property(read, slot.__set__)})


class TapeOperation:
    """A row with its parameters, and caches of its kernels and backward plans."""

    def __init__(self, row: Primitive, params: Mapping[str, Any] = NOTHING) -> None:
        self.row = row
        self.params = params
        self.param_items = tuple(params.items())
        self.kernels: dict[Any, Any] = {}
        self.plans: dict[Any, BackwardPlan] = {}
        self.plans_by_dtype: dict[Any, dict[Any, BackwardPlan]] = {}
        self.nondifferentiable = row.boolean or row is stop_gradient
        self.moves = row.view

    def kernel(self, xp: Any) -> Any:
        """Return the kernel for an array module, and cache it."""
        kernel = self.kernels[xp] = self.row.unbatched_computer(xp, self.param_items)
        return kernel

    def module(self, args: Sequence[Any], values: Sequence[Any]) -> Any:
        """Return the array module of the values.

        A scalar on the host that requires grad does not mix with device arrays either: its
        gradient would be a device array.
        """
        xp = array_module(values, self.row.name)
        for arg, value in zip(args, values, strict=True):
            if isinstance(arg, TapedArray) and arg._step is not None and module_of(value) is not xp:
                raise device_mismatch(values, self.row.name)
        return xp

    def plans_of(self, dtype: np.dtype[Any]) -> dict[Any, BackwardPlan]:
        """Return the plans for results of a dtype."""
        return self.plans if dtype is FLOAT64 else self.plans_by_dtype.setdefault(dtype, {})

    def plan(self, plans: dict[Any, BackwardPlan], key: Any, y: Any) -> BackwardPlan:
        """Create and cache the plan for a key: the bits of the active arguments, and the shapes.

        The result `y` gives the shape and dtype.
        """
        rank = self.params.get("rank")
        if rank is not None and len(key[1]) != rank:
            raise ShapeError(
                f"{self.row.name} was built for {rank} axes, but the tensor has shape {key[1]}",
                hint="operations on tensors have no batch axes: use NumPy's function, or dl.vmap",
            )
        if len(plans) >= REMEMBERED:
            plans.clear()
        plan = plans[key] = BackwardPlan(self.row, key[0], self.params, key[1:], y.shape, y.dtype)
        return plan


TAPE_OPERATIONS: dict[Any, TapeOperation] = {}
"""By row, or by row and parameters if there are any."""


def record(row: Primitive, args: tuple[Any, ...], params: Mapping[str, Any] = NOTHING) -> Any:
    """Compute ``row(*args, **params)``, and record it if an argument requires grad."""
    key: Any = (row, *params.items()) if params else row
    operation = TAPE_OPERATIONS.get(key)
    if operation is None:
        if len(TAPE_OPERATIONS) >= REMEMBERED:
            TAPE_OPERATIONS.clear()
        operation = TAPE_OPERATIONS[key] = TapeOperation(row, params)
    if len(args) == 2:
        return apply_two(operation, *args)
    if len(args) == 1 and isinstance(args[0], TapedArray):
        return apply_one(operation, *args)
    return apply_many(operation, args)


def apply_one(operation: TapeOperation, a: Any) -> Any:
    """Compute and record an operation on one tensor, as `apply_many` does, but faster."""
    x, edge = a._data, a._step
    xp = np if type(x) in HOST else operation.module((a,), (x,))
    plans = operation.plans
    try:
        y = (operation.kernels.get(xp) or operation.kernel(xp))(x)
        if y.dtype is not FLOAT64:
            y = _as_in_graphs(operation, (x,), y)
            plans = operation.plans_of(y.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        y = _retried(operation, (x,), error)
        plans = operation.plans_of(y.dtype)
    if operation.moves:
        made = _moved(operation, a, x, y)
    else:
        made = _new(a._own)
        made._data = y
        made._grad = made._step = made._storage = None
    if edge is None or operation.nondifferentiable or not MODE.enabled:
        return _unrecorded(made, edge is not None)
    key = (1, x.shape)
    plan = plans.get(key) or operation.plan(plans, key, y)
    made._step = step = TapeStep(plan, (edge,))
    if plan.keep:
        _keep(step, plan, (a, made), (x,))
    if WATCHED and MODE.watch is not None:
        MODE.watch.note(operation.row, (a,), operation.params, step)
    return made


def _moved(operation: TapeOperation, a: TapedArray, x: Any, y: Any) -> Any:
    """Return the result `y` of a row that moves the elements `x` of a tensor: a view, or a copy."""
    row, base = operation.row, y.base
    if row is index and not y.shape:
        y = y[()]  # a number, which is no view
    elif base is not None and (base is x or base is x.base):
        return view_of(a, row, operation.params, y)
    made = a._own(y)
    if is_inference(a):
        made._storage = a._storage
    return made


def view_of(source: Any, row: Primitive, params: Mapping[str, Any], data: Any) -> Any:
    """Return the view of a tensor that a row gives; the caller sets its step on the tape."""
    viewing = source._viewing
    owner, steps = source, None
    if isinstance(source, viewing):
        owner, steps = source._owner, source._steps
    made = _new(viewing)
    made._owner, made._steps, made._values = owner, (steps, row, params), data
    storage = owner._storage
    if storage is None:
        storage = owner._storage = Storage()
    made._storage, made._seen, made._recorded = storage, storage.changes, MODE.enabled
    made._edge = made._grad = None
    return made


def apply_two(operation: TapeOperation, a: Any, b: Any) -> Any:
    """Compute and record an operation on two arguments, as `apply_many` does, but faster."""
    needs = 0
    kind: type[Any] = TapedArray
    if isinstance(a, TapedArray):
        kind = a._own
        x, edge = a._data, a._step
        if edge is not None:
            needs = 1
    else:
        plain = type(a) in PLAIN or (type(a) is np.ndarray and a.dtype is FLOAT64)
        x, edge = a if plain else _operand(a), None
    if isinstance(b, TapedArray):
        kind = b._own
        y, other = b._data, b._step
        if other is not None:
            needs += 2
    else:
        plain = type(b) in PLAIN or (type(b) is np.ndarray and b.dtype is FLOAT64)
        y, other = b if plain else _operand(b), None
    on_host = type(x) in HOST and type(y) in HOST
    xp = np if on_host else operation.module((a, b), (x, y))
    plans = operation.plans
    try:
        z = (operation.kernels.get(xp) or operation.kernel(xp))(x, y)
        if z.dtype is not FLOAT64:
            z = _as_in_graphs(operation, (x, y), z)
            plans = operation.plans_of(z.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        z = _retried(operation, (x, y), error)
        plans = operation.plans_of(z.dtype)
    made = _new(kind)
    made._data = z
    made._grad = made._step = made._storage = None
    if not needs or operation.nondifferentiable or not MODE.enabled:
        return _unrecorded(made, needs > 0)
    key = (needs, getattr(x, "shape", ()), getattr(y, "shape", ()))
    plan = plans.get(key) or operation.plan(plans, key, z)
    made._step = step = TapeStep(plan, (edge, other))
    if plan.keep:
        _keep(step, plan, (a, b, made), (x, y))
    if WATCHED and MODE.watch is not None:
        MODE.watch.note(operation.row, (a, b), operation.params, step)
    return made


def apply_many(operation: TapeOperation, args: tuple[Any, ...]) -> Any:
    """Compute an operation, and record it if an argument requires grad."""
    values: list[Any] = []
    edges: list[Any] = []
    needs, bit = 0, 1
    kind: type[Any] = TapedArray
    for arg in args:
        if isinstance(arg, TapedArray):
            kind = arg._own
            values.append(arg._data)
            step = arg._step
            edges.append(step)
            if step is not None:
                needs |= bit
        else:
            values.append(arg if type(arg) in PLAIN else _operand(arg))
            edges.append(None)
        bit += bit
    xp = operation.module(args, values)
    plans = operation.plans
    try:
        y = (operation.kernels.get(xp) or operation.kernel(xp))(*values)
        if y.dtype is not FLOAT64:
            y = _as_in_graphs(operation, values, y)
            plans = operation.plans_of(y.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        y = _retried(operation, values, error)
        plans = operation.plans_of(y.dtype)
    made = _new(kind)
    made._data = y
    made._grad = made._step = made._storage = None
    if not needs or operation.nondifferentiable or not MODE.enabled:
        return _unrecorded(made, needs > 0)
    key = (needs, *[getattr(value, "shape", ()) for value in values])
    plan = plans.get(key) or operation.plan(plans, key, y)
    made._step = step = TapeStep(plan, tuple(edges))
    if plan.keep:
        _keep(step, plan, (*args, made), values)
    if WATCHED and MODE.watch is not None:
        MODE.watch.note(operation.row, args, operation.params, step)
    return made


def _unrecorded(made: TapedArray, uses_grad: bool) -> TapedArray:
    """Return the result of an operation that is not recorded."""
    MODE.saw_grad |= uses_grad
    if MODE.inference:
        mark_inference(made)
    return made


def _keep(step: TapeStep, plan: BackwardPlan, args: tuple[Any, ...], values: Sequence[Any]) -> None:
    """Store in a step the values that its rule reads.

    `args` are the arguments and the result. A change in place gives a tensor another array, so
    the step keeps the values that were used.
    """
    step.slots = slots = plan.blank.copy()
    for slot, source in plan.keep:
        kept = args[source]
        if isinstance(kept, TapedArray):
            slots[slot] = kept._data
            if kept._storage is not None:
                require_recordable(kept, step.name)
        elif type(kept) in NUMBERS:
            slots[slot] = kept
            step.numbers += ((slot, kept, kept or str(kept)),)  # -0.0 equals 0.0
        else:
            slots[slot] = _private(values[source])


def _private(value: Any) -> Any:
    """Return a copy, unless the array is constant: its owner may change it before backward."""
    if isinstance(value, np.generic) or is_constant(value):
        return value
    return value.copy()


def _operand(value: Any) -> Any:
    """Return an operand that is not a tensor as a number or an array."""
    if type(value) in NUMBERS or is_floating(value):
        return value
    if hasattr(value, "__difflab_apply__"):
        raise OtherCarrierError(value)
    operand = as_numbers(value, OPERAND)
    if is_complex(operand):
        raise OtherCarrierError(ComplexArray(operand.real, operand.imag))
    operand = as_reals(operand, OPERAND)
    return np.asarray(operand) if isinstance(operand, int | float) else operand


def _as_in_graphs(operation: TapeOperation, values: Sequence[Any], y: Any = None) -> Any:
    """Compute with truth values as 0 and 1, as a graph does; NumPy applies logical operations.

    Rows that only move values keep them, so that parts of a mask are masks. Without truth values
    the result `y`, if known, is returned.
    """
    row = operation.row
    if y is not None and (row.boolean or row.structural):
        return y
    numbers = [
        value * 1.0
        if position not in row.truths and getattr(value, "dtype", None) == np.bool_
        else _operand(value)
        for position, value in enumerate(values)
    ]
    if all(number is value for number, value in zip(numbers, values, strict=True)):
        return y
    xp = array_module(numbers, row.name)
    return row.computer(xp)(*numbers, **operation.params)


def _retried(operation: TapeOperation, values: Sequence[Any], error: Exception) -> Any:
    """Compute again if NumPy refused truth values; otherwise raise an error on the shapes."""
    for value in values:
        if isinstance(value, int):
            require_range(value, OPERAND)
    y = _as_in_graphs(operation, values)
    if y is not None:
        return y
    shapes = " and ".join(str(getattr(value, "shape", ())) for value in values)
    raise ShapeError(
        f"{operation.row.name} cannot combine the shapes {shapes}",
        hint="NumPy's broadcasting needs equal sizes, or 1, counted from the last axis",
    ) from error


def is_floating(value: Any) -> bool:
    """Whether a value is an array or a scalar of NumPy that tensors hold as it is.

    Examples
    --------
    >>> is_floating(np.ones(2, np.float16)), is_floating(np.arange(2)), is_floating(1.0)
    (True, False, False)
    """
    plain = type(value) is np.ndarray or isinstance(value, np.floating)
    return plain and value.dtype in FLOATING


def require_floating(array: Any) -> None:
    """Raise `InputError` unless the dtype has derivatives."""
    if array.dtype.kind != "f":
        raise InputError(
            f"a tensor of dtype {array.dtype} cannot require grad", hint="pass dtype=float"
        )
