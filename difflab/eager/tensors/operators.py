"""Operators, indexing and NumPy's functions on tensors, and changes in place.

NEP 13 and NEP 18 bring NumPy's functions here; each is a row of the table or a composition of
rows.
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
from difflab.core.devices import module_of
from difflab.core.place import at_users_line, user_location
from difflab.core.primitive import Primitive
from difflab.eager.recording.mode import MODE
from difflab.eager.recording.record import Operation, Recorded, apply_one, apply_two, record
from difflab.eager.recording.rows import cast
from difflab.eager.recording.tape import Accumulation, Step, Storage, storage_of
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

OF_MATRICES = Operation(matmul, {"ranks": (2, 2)})


def _binary(row: Primitive) -> Callable[[Any, Any], Any]:
    operation = Operation(row)
    return lambda self, other: apply_two(operation, self, other)


def _reflected(row: Primitive) -> Callable[[Any, Any], Any]:
    operation = Operation(row)
    return lambda self, other: apply_two(operation, other, self)


def _unary(row: Primitive) -> Callable[[Any], Any]:
    operation = Operation(row)
    return lambda self: apply_one(operation, self)


def _in_place(row: Primitive) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        _overwrite(self, record(row, (self, other)), f"in-place {row.name}")
        return self

    return operator


class Operators(Idioms, Recorded):
    """What Python's and NumPy's spellings do on a tensor."""

    __slots__ = ()
    __hash__ = object.__hash__  # `==` compares the numbers; a tensor is one object all the same

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
        """Whether these are truth values."""
        return bool(self._data.dtype == np.bool_)

    def filled(self, value: float) -> Any:
        """Return a tensor of this shape and type that holds one number everywhere."""
        data = self._data
        return type(self)(module_of(data).full(data.shape, value, dtype=data.dtype))

    def copy(self) -> Any:
        """Return the same values in memory of their own; derivatives flow through."""
        if self._step is not None:
            return self * 1.0
        return type(self)(module_of(self._data).array(self._data))

    def __getitem__(self, key: Any) -> Any:
        for entry in key if type(key) is tuple else (key,):
            if type(entry) not in _SIMPLE:
                return picked(self, key._data if isinstance(key, Recorded) else key)
        shape = self._data.shape
        return record(index, (self,), {"key": static_key(key, shape), "rank": len(shape)})

    def __setitem__(self, key: Any, value: Any) -> None:
        if MODE.enabled and (self._step is not None or getattr(value, "_step", None) is not None):
            _overwrite(self, _assigned(self, key, value), "item assignment")
            return
        changed = module_of(self._data).array(self._data)
        _written(changed, key, value._data if isinstance(value, Recorded) else value)
        _overwrite(self, type(self)(changed), "item assignment")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs:
            compute = _UFUNCS.get(ufunc) or _ufunc(ufunc)
            if compute is not None:
                return compute(*inputs)
        if kwargs.get("out") is not None:
            raise InputError(
                f"numpy.{ufunc.__name__} cannot write a tensor into a NumPy array",
                hint="write a = a + tensor, or take the numbers by tensor.detach().numpy()",
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
"""Entries of a key by which nothing is to be decided."""

_UFUNCS: dict[np.ufunc, Callable[..., Any]] = {}
"""What NumPy's functions are on tensors, as they are met."""


def _ufunc(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """Return what a function of NumPy's is on tensors, if it is anything."""
    compute = _product if ufunc is np.matmul else of_ufunc(ufunc)
    if isinstance(compute, Primitive) and ufunc.nin == 2:
        _UFUNCS[ufunc] = _binary(compute)
    elif compute is not None:
        _UFUNCS[ufunc] = compute
    return _UFUNCS.get(ufunc)


def _product(a: Any, b: Any) -> Any:
    """Return ``a @ b``; two matrices that fit need no further look at their shapes."""
    left: tuple[int, ...] = getattr(a._data if isinstance(a, Recorded) else a, "shape", ())
    right: tuple[int, ...] = getattr(b._data if isinstance(b, Recorded) else b, "shape", ())
    if len(left) == 2 == len(right) and left[1] == right[0]:
        return apply_two(OF_MATRICES, a, b)
    return arrays.matmul(a, b)


def _plain(value: Any, name: str) -> Any:
    """Return an operand as NumPy's, for functions that nothing flows through."""
    if isinstance(value, list | tuple):
        return type(value)(_plain(part, name) for part in value)
    if not isinstance(value, Recorded):
        return value
    if value._step is not None and MODE.enabled:
        raise at_users_line(
            InputError,
            f"difflab has no derivative for numpy.{name} used this way",
            f"{alternative_to(name)}; or give it tensor.detach()",
        )
    return value._data


def _assigned(target: Operators, key: Any, value: Any) -> Any:
    """Return `target` with ``[key]`` replaced, on the tape.

    Each number of the result is the target's or one of the value's: where a key names a place
    several times, the last that goes there, as in NumPy.
    """
    shape = target._data.shape
    chosen = module_of(target._data).zeros(shape, dtype=bool)
    part = _written(chosen, key, True)
    source = as_array(value)
    given = shape_of(source)
    while len(given) > len(part) and given[0] == 1:
        given = given[1:]
    if math.prod(given) == 1:
        spread = source if not given else arrays.reshape(source, ())
    else:
        wide = arrays.broadcast_to(arrays.reshape(source, given), part)
        spread = _placed(wide, key, shape)
    return record(where, (chosen, spread, target))


def _written(array: Any, key: Any, numbers: Any) -> tuple[int, ...]:
    """Write numbers into an array, and return the shape of the part that they went to."""
    key = key._data if isinstance(key, Recorded) else key
    try:
        array[key] = numbers
        part: tuple[int, ...] = array[key].shape
    except IndexError as error:
        raise at_users_line(IndexingError, f"assignment to a part that is not: {error}") from None
    except (TypeError, ValueError) as error:
        raise at_users_line(ShapeError, f"item assignment: {error}") from None
    return part


def _placed(part: Any, key: Any, shape: tuple[int, ...]) -> Any:
    """Return an array of a shape in which the part that a key names is as given."""
    key = key._data if isinstance(key, Recorded) else key
    if all(type(entry) in _SIMPLE for entry in (key if type(key) is tuple else (key,))):
        return record(scatter, (part,), {"keys": (static_key(key, shape),), "shape": shape})
    size = math.prod(part.shape)
    order = np.zeros(shape, dtype=np.int64)
    order[key] = np.arange(size).reshape(part.shape)
    return arrays.reshape(arrays.take(arrays.reshape(part, -1), order.ravel()), shape)


def _overwrite(target: Operators, new: Recorded, what: str) -> None:
    """Put the numbers and the step of `new` into `target`, and remember that it was changed."""
    if new._step is not None and type(target._step) is Accumulation:
        raise TapeError(
            f"{what} would change a leaf that requires grad, whose gradient is still to come",
            hint="update it inside `with dl.no_grad():`, or write a new value: t = t + 1",
        )
    data = target._data
    if new._data.shape != data.shape:
        raise ShapeError(f"{what} cannot give shape {new._data.shape} to a tensor of {data.shape}")
    if new._data.dtype != data.dtype:
        new = record(cast, (new,), {"dtype": data.dtype})
    storage = storage_of(target)
    holders = storage.holders(target)
    if not isinstance(data, np.generic) and data.base is not None:
        storage = Storage()  # a view: what it is a view of stays as it is
        storage.join(*holders)
    for holder in holders:  # a new array: whatever else has the old one keeps its numbers
        holder._data, holder._storage = new._data, storage
    storage.changes += 1
    place = user_location()
    storage.last = what if not place.where else f"{what} ({place.where}: {place.text})"
    if new._step is not None:
        _rebased(target, new._step)


def _rebased(target: Recorded, made: Any) -> None:
    """Give a tensor the step of its new numbers; it keeps the gradient of those, if it did."""
    before = target._step
    target._step = made
    if isinstance(before, Step) and before.retained is not None and before.retained() is target:
        made.retained, before.retained = before.retained, None
