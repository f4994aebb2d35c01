"""Operators, indexing and NumPy's functions on tensors, in-place changes, and views.

NumPy's functions arrive through NEP 13 and NEP 18; each is a row of the table of primitives or a
composition of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import EllipsisType
from typing import Any

import numpy as np

from difflab import arrays
from difflab import primitives as rows
from difflab.arrays.given import as_array, shape_of
from difflab.arrays.idioms import Idioms
from difflab.arrays.in_place import FUNCTIONS, changed_at, is_part, overwrite, with_out
from difflab.arrays.numpy_names import alternative_to, full_name, of_function, of_ufunc
from difflab.arrays.scipy_calls import not_through_scipy
from difflab.arrays.shapes import without_leading_ones
from difflab.arrays.updates import Updates, as_elements
from difflab.core.apply import OtherCarrierError, module_of
from difflab.core.ownership import Step, Storage, View
from difflab.core.place import at_users_line, user_position
from difflab.core.primitive import Primitive
from difflab.eager.recording.plan import copied
from difflab.eager.recording.record import (
    TapedArray,
    TapeOperation,
    apply_one,
    apply_two,
    record,
    view_of,
)
from difflab.eager.recording.tape import (
    MODE,
    Accumulation,
    TapeStep,
    require_recordable,
    storage_of,
)
from difflab.errors import IndexingError, InputError, ShapeError, TapeError
from difflab.graph.keys import picked, static_key
from difflab.primitives.structure import decoded

# --- changes in place, and views -----------------------------------------------------------------


class Changes(TapedArray):
    """The protocol of `difflab.arrays.in_place` for a tensor.

    Its array is never written to: a change gives it another one, so that tapes keep old values.
    """

    __slots__ = ()

    def is_number(self) -> bool:
        """Whether it is a NumPy number, which Python rebinds where it changes an array."""
        own = self._view is None and type(self._step) is not Accumulation
        return own and isinstance(self._data, np.generic)

    def __difflab_in_rows__(self) -> bool:
        """Whether its elements are in row-major order in memory."""
        return bool(self._data.flags.c_contiguous)

    def __difflab_renamed__(self, new: Any) -> Any:
        """Return the value of a name after an augmented assignment to a scalar."""
        step = self._step
        if isinstance(step, TapeStep) and step.retained is not None and step.retained() is self:
            new.retain_grad()
        return new

    def __difflab_as_own__(self, value: Any) -> Any:
        """Return new elements as a tensor."""
        if isinstance(value, TapedArray):
            return value
        if hasattr(value, "__difflab_apply__"):
            raise OtherCarrierError(value)
        return self._own(module_of(self._data).asarray(value))

    def __difflab_writable__(self, what: str) -> None:
        """Raise `TapeError` for a leaf that requires grad, while operations are recorded."""
        if MODE.enabled and type(self._step) is Accumulation:
            raise at_users_line(
                TapeError,
                f"{what} would change a leaf that requires grad while operations are recorded",
                "update it inside `with dl.no_grad():`, or compute a new value: t = t + 1",
            )

    def __difflab_store__(self, new: Any, what: str) -> None:
        """Take the values and the step of another tensor, and count the change."""
        step = new._step  # read before the change, of which a view of this tensor would take part
        if step is not None:
            require_recordable(self, what)
        storage, data = storage_of(self), self._data
        values = _laid_out_as(data, new._data)
        for holder in storage.holders(self):  # other references to the old array keep it
            holder._data, holder._storage = values, storage
        storage.changes += 1
        storage.last = what, user_position()
        if MODE.enabled:
            _set_step(self, step)


class ViewedArray(Changes):
    """A tensor that shares elements with another, of which it is a view.

    `_seen` is the number of changes of the owner, whose storage it has, that were made when the
    values were read, and `_recorded` whether derivatives flow from it to the owner: it was made
    while operations were recorded.
    """

    __slots__ = ("_edge", "_owner", "_recorded", "_seen", "_steps", "_values")

    _owner: TapedArray
    _steps: Step
    _storage: Storage
    _seen: int
    _recorded: bool
    _values: Any
    _edge: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes, which no change in place alters."""
        return self._values.shape  # type: ignore[no-any-return]

    @property
    def _view(self) -> View:  # type: ignore[override]  # is never set
        """How it is read from its owner: most views are never written to."""
        return View(self._owner, self._steps)

    @property
    def _data(self) -> Any:
        if self._seen != self._storage.changes:
            self._read()
        return self._values

    @_data.setter
    def _data(self, value: Any) -> None:
        self._values = value

    @property
    def _step(self) -> Any:
        if self._seen != self._storage.changes:
            self._read()
        return self._edge

    @_step.setter
    def _step(self, step: Any) -> None:
        self._edge = step

    def _read(self) -> None:
        """Read the values and the step from the owner, which has changed."""
        before, owner = MODE.enabled, self._owner
        self._seen = self._storage.changes
        step = self._edge
        MODE.enabled = self._recorded and not MODE.inference
        try:
            view = self._view.applied(self._own(owner._data, owner._step, owner._storage))
        finally:
            MODE.enabled = before
        data = view._data
        self._values = np.asarray(data) if isinstance(data, np.generic) else data
        if type(step) is not Accumulation:
            _set_step(self, view._step)

    def __difflab_seen__(self, new: Any) -> None:
        """Do nothing: the values are read again, in the memory order of a view of the owner."""


def _laid_out_as(before: Any, new: Any) -> Any:
    """Return a new array in the memory order of the one that it replaces."""
    if not isinstance(before, np.ndarray):
        return new
    if isinstance(new, np.ndarray) and new.strides == before.strides:
        return new
    made = np.empty_like(before)
    made[...] = new
    return made


def _set_step(target: Any, made: Any) -> None:
    """Set the step of a tensor's new values, and move a retained gradient to that step."""
    before = target._step
    target._step = made
    retained = isinstance(before, TapeStep) and before.retained is not None
    if retained and made is not None and before.retained() is target:
        made.retained, before.retained = before.retained, None


# --- operators -----------------------------------------------------------------------------------

OF_MATRICES = TapeOperation(rows.matmul, {"ranks": (2, 2)})


def _binary(row: Primitive) -> Callable[[Any, Any], Any]:
    operation = TapeOperation(row)

    def operator(self: Any, other: Any) -> Any:
        try:
            return apply_two(operation, self, other)
        except OtherCarrierError as error:
            return error.carrier.__difflab_apply__(row, (self, other), {})

    return operator


def _reflected(row: Primitive) -> Callable[[Any, Any], Any]:
    operator = _binary(row)
    return lambda self, other: operator(other, self)


def _unary(row: Primitive) -> Callable[[Any], Any]:
    operation = TapeOperation(row)
    return lambda self: apply_one(operation, self)


class Operators(Changes, Idioms, TapedArray):
    """Python's operators and NumPy's functions on a tensor."""

    __slots__ = ()
    __hash__ = object.__hash__  # `==` compares elements; the hash is by identity

    __add__, __radd__ = _binary(rows.add), _reflected(rows.add)
    __sub__, __rsub__ = _binary(rows.subtract), _reflected(rows.subtract)
    __mul__, __rmul__ = _binary(rows.multiply), _reflected(rows.multiply)
    __truediv__, __rtruediv__ = _binary(rows.divide), _reflected(rows.divide)
    __pow__, __rpow__ = _binary(rows.power), _reflected(rows.power)
    __mod__, __rmod__ = _binary(rows.mod), _reflected(rows.mod)
    __neg__, __abs__ = _unary(rows.negative), _unary(rows.absolute)
    __lt__, __le__ = _binary(rows.less), _binary(rows.less_equal)
    __gt__, __ge__ = _binary(rows.greater), _binary(rows.greater_equal)
    __eq__, __ne__ = _binary(rows.equal), _binary(rows.not_equal)

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
        return self._own(module_of(data).full_like(data, value))

    def copy(self) -> Any:
        """Return a copy; derivatives flow through."""
        return record(copied, (self,))

    def __getitem__(self, key: Any) -> Any:
        for entry in key if type(key) is tuple else (key,):
            if type(entry) not in _SIMPLE:
                return picked(self, _plain_key(key))
        shape = self._data.shape
        params = {"key": static_key(key, shape), "rank": len(shape)}
        made = record(rows.index, (self,), params)
        if not made._data.shape and (key is ... or (type(key) is tuple and ... in key)):
            return _without_axes(self.copy() if self.is_number() else self, made, params)
        return made

    @property
    def at(self) -> Updates:
        """The parts that ``x.at[key].set(new)`` and its kin replace, in a new tensor."""
        return Updates(self, _plain_key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if getattr(value, "_view", None) is not None and is_part(self, key, value):
            return  # y[key] += x has changed y when Python assigns the part to itself
        value = as_elements(value)
        if MODE.enabled and (self._step is not None or getattr(value, "_step", None) is not None):
            new = _assigned(self, key, value)
        else:
            changed = module_of(self._data).array(self._data)
            _assign_part(changed, key, value._data if isinstance(value, TapedArray) else value)
            new = self._own(changed)
        overwrite(self, new, "item assignment", casting="unsafe")

    # Series of pandas leave operators to this class, as the arrays of NumPy do.
    __pandas_priority__ = 10_000

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs:
            compute = _UFUNCS.get(ufunc) or _ufunc(ufunc)
            if compute is not None:
                return compute(*inputs)
        name = ufunc.__name__
        if method == "at" and isinstance(inputs[0], TapedArray):
            return changed_at(name, *inputs)
        if kwargs.get("out") is not None:
            compute = with_out(getattr(ufunc, method), kwargs, name)
            return compute(*inputs, **kwargs)
        plain = [_plain(value, ufunc) for value in inputs]
        known = {key: _plain(kwargs[key], ufunc) for key in kwargs}
        return getattr(ufunc, method)(*plain, **known)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        name = function.__name__
        if kwargs.get("out") is not None:
            return with_out(function, kwargs, name)(*args, **kwargs)
        compute = of_function(function, args, kwargs)
        if compute is not None and (name not in FUNCTIONS or isinstance(args[0], TapedArray)):
            if name == "atleast_1d":
                _require_no_solver(args[0])
            return compute(*args, **kwargs)
        plain = [_plain(value, function) for value in args]
        return function(*plain, **{key: _plain(kwargs[key], function) for key in kwargs})


_SIMPLE = frozenset({int, slice, EllipsisType})
"""The types of key entries that need no conversion."""

_UFUNCS: dict[np.ufunc, Callable[..., Any]] = {}
"""Cache: NumPy's universal functions on tensors."""


def _ufunc(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """Return NumPy's universal function on tensors, or None if difflab has none."""
    compute = _product if ufunc is np.matmul else _is_nan if ufunc is np.isnan else of_ufunc(ufunc)
    if isinstance(compute, Primitive) and ufunc.nin == 2:
        _UFUNCS[ufunc] = _binary(compute)
    elif compute is not None:
        _UFUNCS[ufunc] = compute
    return _UFUNCS.get(ufunc)


def _is_nan(x: Any) -> Any:
    """Return `np.isnan`, which SciPy's bracketing solvers ask about every value."""
    _require_no_solver(x)
    return x != x


def _require_no_solver(x: Any) -> None:
    """Raise if SciPy asks about a value whose derivative it would lose.

    Its solvers written in C convert the value next, and drop the error of that conversion.
    """
    error = None if getattr(x, "_step", None) is None else not_through_scipy(TapeError)
    if error is not None:
        raise error


def _product(a: Any, b: Any) -> Any:
    """Return ``a @ b``; two matrices of matching shapes skip the general checks."""
    left: tuple[int, ...] = getattr(a._data if isinstance(a, TapedArray) else a, "shape", ())
    right: tuple[int, ...] = getattr(b._data if isinstance(b, TapedArray) else b, "shape", ())
    if len(left) == 2 == len(right) and left[1] == right[0]:
        try:
            return apply_two(OF_MATRICES, a, b)
        except OtherCarrierError as error:
            return error.carrier.__difflab_apply__(rows.matmul, (a, b), OF_MATRICES.params)
    return arrays.matmul(a, b)


def _plain(value: Any, function: Callable[..., Any]) -> Any:
    """Return an operand as a NumPy value, for functions without a derivative."""
    if isinstance(value, list | tuple):
        return type(value)(_plain(part, function) for part in value)
    if not isinstance(value, TapedArray):
        return value
    if value._step is not None and MODE.enabled:
        raise not_through_scipy(TapeError) or at_users_line(
            InputError,
            f"difflab has no derivative for {full_name(function)} used this way",
            f"{alternative_to(function.__name__)}; or pass tensor.detach()",
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
    source = without_leading_ones(as_array(value), len(part))
    if math.prod(shape_of(source)) == 1:
        spread = arrays.reshape(source, ()) if shape_of(source) else source
    else:
        spread = _scattered(arrays.broadcast_to(source, part), key, shape)
    return record(rows.where, (chosen, spread, target))


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
    """Return a key with its tensors converted to arrays, of integers if all elements are."""
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


def _without_axes(source: TapedArray, number: TapedArray, params: Mapping[str, Any]) -> Any:
    """Return an element as an array without axes: the view ``x[0, ...]``."""
    data = source._data[(..., *decoded(params["key"]))]
    made = view_of(source, rows.index, params, data)
    made._step = number._step
    return made


def _scattered(part: Any, key: Any, shape: tuple[int, ...]) -> Any:
    """Return an array of `shape` whose part ``[key]`` is `part`; the rest is arbitrary."""
    key = _plain_key(key)
    if all(type(entry) in _SIMPLE for entry in (key if type(key) is tuple else (key,))):
        return record(rows.scatter, (part,), {"keys": (static_key(key, shape),), "shape": shape})
    size = math.prod(part.shape)
    if not size:
        return 0.0
    order = np.zeros(shape, dtype=np.int64)
    order[key] = np.arange(size).reshape(part.shape)
    return arrays.reshape(arrays.take(arrays.reshape(part, -1), order.ravel()), shape)
