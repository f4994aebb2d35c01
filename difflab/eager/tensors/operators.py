"""Operators, indexing and NumPy's functions on tensors, and changes in place.

NumPy's functions arrive through NEP 13 and NEP 18; each is a row of the table of primitives or a
composition of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import EllipsisType
from typing import Any

import numpy as np

from difflab import arrays
from difflab.arrays.given import as_array, shape_of
from difflab.arrays.idioms import Idioms
from difflab.arrays.numpy_names import alternative_to, of_function, of_ufunc
from difflab.arrays.updates import Updates
from difflab.core.apply import OtherCarrierError
from difflab.core.devices import module_of
from difflab.core.place import at_users_line, user_location
from difflab.core.primitive import Primitive
from difflab.eager.recording.mode import MODE
from difflab.eager.recording.record import (
    TapedArray,
    TapeOperation,
    apply_one,
    apply_two,
    record,
)
from difflab.eager.recording.rows import cast
from difflab.eager.recording.tape import Accumulation, Storage, TapeStep, guard_of, storage_of
from difflab.errors import IndexingError, InputError, ShapeError, TapeError
from difflab.graph.keys import picked, static_key
from difflab.primitives import (
    absolute,
    add,
    divide,
    equal,
    greater,
    greater_equal,
    index,
    less,
    less_equal,
    matmul,
    mod,
    multiply,
    negative,
    not_equal,
    power,
    scatter,
    subtract,
    where,
)

__all__ = ["Operators"]

OF_MATRICES = TapeOperation(matmul, {"ranks": (2, 2)})


def _binary(row: Primitive) -> Callable[[Any, Any], Any]:
    operation = TapeOperation(row)

    def operator(self: Any, other: Any) -> Any:
        try:
            return apply_two(operation, self, other)
        except OtherCarrierError as found:
            return found.carrier.__difflab_apply__(row, (self, other), {})

    return operator


def _reflected(row: Primitive) -> Callable[[Any, Any], Any]:
    operator = _binary(row)
    return lambda self, other: operator(other, self)


def _unary(row: Primitive) -> Callable[[Any], Any]:
    operation = TapeOperation(row)
    return lambda self: apply_one(operation, self)


def _in_place(row: Primitive) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        _overwrite(self, record(row, (self, other)), f"in-place {row.name}")
        return self

    return operator


class Operators(Idioms, TapedArray):
    """Python's operators and NumPy's functions on a tensor."""

    __slots__ = ()
    __hash__ = object.__hash__  # `==` compares elements; the hash is by identity

    __add__, __radd__, __iadd__ = _binary(add), _reflected(add), _in_place(add)
    __sub__, __rsub__, __isub__ = _binary(subtract), _reflected(subtract), _in_place(subtract)
    __mul__, __rmul__, __imul__ = _binary(multiply), _reflected(multiply), _in_place(multiply)
    __truediv__, __rtruediv__ = _binary(divide), _reflected(divide)
    __itruediv__ = _in_place(divide)
    __pow__, __rpow__, __ipow__ = _binary(power), _reflected(power), _in_place(power)
    __mod__, __rmod__, __imod__ = _binary(mod), _reflected(mod), _in_place(mod)
    __neg__, __abs__ = _unary(negative), _unary(absolute)
    __lt__, __le__ = _binary(less), _binary(less_equal)
    __gt__, __ge__ = _binary(greater), _binary(greater_equal)
    __eq__, __ne__ = _binary(equal), _binary(not_equal)

    def __matmul__(self, other: Any) -> Any:
        return _product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _product(other, self)

    def holds_truths(self) -> bool:
        """Whether the elements are truth values."""
        return bool(self._data.dtype == np.bool_)

    def filled(self, value: float) -> Any:
        """Return a tensor of this shape and dtype, filled with one number."""
        data = self._data
        return type(self)(module_of(data).full(data.shape, value, dtype=data.dtype))

    def copy(self) -> Any:
        """Return a copy; derivatives flow through."""
        if self._step is not None:
            return self * 1.0
        return type(self)(module_of(self._data).array(self._data))

    def __getitem__(self, key: Any) -> Any:
        for entry in key if type(key) is tuple else (key,):
            if type(entry) not in _SIMPLE:
                return picked(self, _plain_key(key))
        shape = self._data.shape
        return record(index, (self,), {"key": static_key(key, shape), "rank": len(shape)})

    @property
    def at(self) -> Updates:
        """The parts that ``x.at[key].set(new)`` and its kin replace, in a new tensor."""
        return Updates(self, _plain_key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if MODE.enabled and (self._step is not None or getattr(value, "_step", None) is not None):
            _overwrite(self, _assigned(self, key, value), "item assignment")
            return
        changed = module_of(self._data).array(self._data)
        _assign_part(changed, key, value._data if isinstance(value, TapedArray) else value)
        _overwrite(self, type(self)(changed), "item assignment")

    # Series of pandas leave operators to this class, as the arrays of NumPy do.
    __pandas_priority__ = 10_000

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs:
            compute = _UFUNCS.get(ufunc) or _ufunc(ufunc)
            if compute is not None:
                return compute(*inputs)
        if kwargs.get("out") is not None:
            raise InputError(
                f"numpy.{ufunc.__name__} cannot write a tensor into a NumPy array",
                hint="write a = a + tensor, or convert the tensor with tensor.detach().numpy()",
            )
        name = ufunc.__name__
        plain = [_plain(value, name) for value in inputs]
        known = {key: _plain(kwargs[key], name) for key in kwargs}
        return getattr(ufunc, method)(*plain, **known)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        compute = of_function(function, args, kwargs)
        if compute is not None:
            return compute(*args, **kwargs)
        name = function.__name__
        plain = [_plain(value, name) for value in args]
        return function(*plain, **{key: _plain(kwargs[key], name) for key in kwargs})


_SIMPLE = frozenset({int, slice, EllipsisType})
"""The types of key entries that need no conversion."""

_UFUNCS: dict[np.ufunc, Callable[..., Any]] = {}
"""Cache: NumPy's universal functions on tensors."""


def _ufunc(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """Return NumPy's universal function on tensors, or None if difflab has none."""
    compute = _product if ufunc is np.matmul else of_ufunc(ufunc)
    if isinstance(compute, Primitive) and ufunc.nin == 2:
        _UFUNCS[ufunc] = _binary(compute)
    elif compute is not None:
        _UFUNCS[ufunc] = compute
    return _UFUNCS.get(ufunc)


def _product(a: Any, b: Any) -> Any:
    """Return ``a @ b``; two matrices of matching shapes skip the general checks."""
    left: tuple[int, ...] = getattr(a._data if isinstance(a, TapedArray) else a, "shape", ())
    right: tuple[int, ...] = getattr(b._data if isinstance(b, TapedArray) else b, "shape", ())
    if len(left) == 2 == len(right) and left[1] == right[0]:
        try:
            return apply_two(OF_MATRICES, a, b)
        except OtherCarrierError as found:
            return found.carrier.__difflab_apply__(matmul, (a, b), OF_MATRICES.params)
    return arrays.matmul(a, b)


def _plain(value: Any, name: str) -> Any:
    """Return an operand as a NumPy value, for functions without a derivative."""
    if isinstance(value, list | tuple):
        return type(value)(_plain(part, name) for part in value)
    if not isinstance(value, TapedArray):
        return value
    if value._step is not None and MODE.enabled:
        raise at_users_line(
            InputError,
            f"difflab has no derivative for numpy.{name} used this way",
            f"{alternative_to(name)}; or pass tensor.detach()",
        )
    return value._data


def _assigned(target: Operators, key: Any, value: Any) -> Any:
    """Return `target` with ``[key]`` replaced, recorded.

    Each element of the result is one of the target's or of the value's: where a key selects an
    element several times, the last one assigned, as in NumPy.
    """
    shape = target._data.shape
    chosen = module_of(target._data).zeros(shape, dtype=bool)
    part = _assign_part(chosen, key, True)
    source = as_array(value)
    source_shape = shape_of(source)
    while len(source_shape) > len(part) and source_shape[0] == 1:
        source_shape = source_shape[1:]
    if math.prod(source_shape) == 1:
        spread = source if not source_shape else arrays.reshape(source, ())
    else:
        wide = arrays.broadcast_to(arrays.reshape(source, source_shape), part)
        spread = _scattered(wide, key, shape)
    return record(where, (chosen, spread, target))


def _assign_part(array: Any, key: Any, values: Any) -> tuple[int, ...]:
    """Assign to a part of an array, and return the shape of that part."""
    key = _plain_key(key)
    try:
        array[key] = values
        part: tuple[int, ...] = array[key].shape
    except IndexError as error:
        raise at_users_line(IndexingError, f"item assignment: {error}") from None
    except (TypeError, ValueError) as error:
        raise at_users_line(ShapeError, f"item assignment: {error}") from None
    return part


def _plain_key(key: Any) -> Any:
    """Return a key whose tensors are arrays, those of whole numbers arrays of integers."""
    if isinstance(key, tuple):
        return tuple([_plain_key(entry) for entry in key])
    if not isinstance(key, TapedArray):
        return key
    data = key._data
    whole = (
        isinstance(data, np.ndarray | np.generic)
        and data.dtype.kind == "f"
        and np.all(data == np.rint(data))
    )
    return data.astype(np.int64) if whole else data


def _scattered(part: Any, key: Any, shape: tuple[int, ...]) -> Any:
    """Return an array of `shape` whose part ``[key]`` is `part`; the rest is arbitrary."""
    key = _plain_key(key)
    if all(type(entry) in _SIMPLE for entry in (key if type(key) is tuple else (key,))):
        return record(scatter, (part,), {"keys": (static_key(key, shape),), "shape": shape})
    size = math.prod(part.shape)
    if not size:
        return 0.0
    order = np.zeros(shape, dtype=np.int64)
    order[key] = np.arange(size).reshape(part.shape)
    return arrays.reshape(arrays.take(arrays.reshape(part, -1), order.ravel()), shape)


def _overwrite(target: Operators, new: TapedArray, what: str) -> None:
    """Replace the values and the step of `target` by those of `new`, and count the change."""
    if new._step is not None and type(target._step) is Accumulation:
        raise TapeError(
            f"{what} would change a leaf that requires grad while operations are recorded",
            hint="update it inside `with dl.no_grad():`, or compute a new value: t = t + 1",
        )
    if new._step is not None:
        guard_of(target, what)
    data = target._data
    if new._data.shape != data.shape:
        raise ShapeError(
            f"{what} cannot write shape {new._data.shape} to a tensor of shape {data.shape}"
        )
    if new._data.dtype != data.dtype:
        new = record(cast, (new,), {"dtype": data.dtype})
    storage = storage_of(target)
    holders = storage.holders(target)
    if not isinstance(data, np.generic) and data.base is not None:
        storage = Storage()  # a view: its base array stays unchanged
        storage.join(*holders)
    for holder in holders:  # a new array: other references to the old one keep its values
        holder._data, holder._storage = new._data, storage
    storage.changes += 1
    place = user_location()
    storage.last = what if not place.where else f"{what} ({place.where}: {place.text})"
    if new._step is not None:
        _set_step(target, new._step)


def _set_step(target: TapedArray, made: Any) -> None:
    """Set the step of a tensor's new values, and move a retained gradient to that step."""
    before = target._step
    target._step = made
    if isinstance(before, TapeStep) and before.retained is not None and before.retained() is target:
        made.retained, before.retained = before.retained, None
