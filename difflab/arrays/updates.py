"""`x.at[key].set(new)`: an array with a part replaced, in JAX's spelling, for values that keep.

Traced values cannot be changed in place; this returns a new one, and tensors have it too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from difflab import primitives as rows
from difflab.arrays.given import Array, as_array, mismatch, shape_of, static_key
from difflab.arrays.shapes import broadcast_to, reshape, stack, take, without_leading_ones
from difflab.core.apply import apply
from difflab.core.place import at_users_line
from difflab.core.primitive import Shape
from difflab.errors import IndexingError, InputError
from difflab.primitives.movement import as_places

_BASIC = frozenset({int, slice, type(Ellipsis)})


def chosen_places(key: Any, shape: Shape) -> np.ndarray[Any, Any]:
    """Return the indices, in the flattened array, that a key of NumPy's of any kind selects.

    Raises
    ------
    IndexingError
        The key does not fit the shape.

    Examples
    --------
    >>> chosen_places(([1, 0], slice(None, 2)), (2, 3)).tolist()
    [[3, 4], [0, 1]]
    """
    places = np.arange(math.prod(shape)).reshape(shape)
    try:
        return np.asarray(places[key])
    except (IndexError, TypeError, ValueError) as error:
        raise at_users_line(IndexingError, f"no part of the shape {shape}: {error}") from None


def as_elements(value: Any) -> Any:
    """Return a list that contains carriers as one array; other values as they are."""
    if isinstance(value, list | tuple) and _has_carrier(value):
        return stack([as_elements(part) for part in value])
    return value


def _has_carrier(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_carrier, value))
    return hasattr(value, "__difflab_apply__")


class Updates:
    """The parts of an array that can be replaced, by their keys.

    Examples
    --------
    >>> import difflab as dl
    >>> x = dl.tensor([1.0, 2.0, 3.0])
    >>> x.at[[0, 2]].set(0.0), x.at[1:].add(10.0), x.at[x > 2].multiply(2.0)
    (tensor([0., 2., 0.]), tensor([ 1., 12., 13.]), tensor([1., 2., 6.]))
    """

    __slots__ = ("_plain", "_value")

    def __init__(self, value: Array, plain: Callable[[Any], Any] = lambda key: key) -> None:
        self._value = value
        self._plain = plain

    def __getitem__(self, key: Any) -> Update:
        return Update(self._value, self._plain(key))


class Update:
    """One part of an array with its updates; every method returns a new array."""

    __slots__ = ("_key", "_value")

    def __init__(self, value: Array, key: Any) -> None:
        self._value = value
        self._key = key

    def get(self) -> Array:
        """Return the part."""
        return self._value[self._key]

    def set(self, new: Any) -> Array:
        """Replace the part; where an element is named several times, by the last of its values."""
        return self._changed(lambda old, new: new, new, repeated=True)

    def add(self, new: Any) -> Array:
        """Add to the part; to an element as often as it is named."""
        value, key, new = self._value, self._key, as_elements(new)
        if _is_computed(key):
            return self._changed(rows.add, new)
        places = chosen_places(key, value.shape)
        part = reshape(_fitted(new, places.shape), (-1,))
        size = math.prod(value.shape)
        spread = apply(rows.put, part, places=as_places(places), axis=-1, rank=1, size=size)
        return value + reshape(spread, value.shape)

    def multiply(self, new: Any) -> Array:
        """Multiply the part."""
        return self._changed(rows.multiply, new)

    def divide(self, new: Any) -> Array:
        """Divide the part."""
        return self._changed(rows.divide, new)

    def power(self, new: Any) -> Array:
        """Raise the part to a power."""
        return self._changed(rows.power, new)

    def min(self, new: Any) -> Array:
        """Return the smaller values in the part."""
        return self._changed(rows.minimum, new)

    def max(self, new: Any) -> Array:
        """Return the larger values in the part."""
        return self._changed(rows.maximum, new)

    def _changed(
        self, change: Callable[[Any, Any], Any], new: Any, *, repeated: bool = False
    ) -> Array:
        value, key, new = self._value, self._key, as_elements(new)
        if _is_computed(key):
            marks, wide = _marked(value.shape, key, new)
            return rows.where(marks, change(value, wide), value)
        if _is_basic(key):
            return self._replaced(change, new, repeated)
        places = chosen_places(key, value.shape)
        if not repeated and len(np.unique(places)) < places.size:
            raise at_users_line(
                InputError,
                "a key names an element several times, for which only set and add are defined",
            )
        if repeated:
            one = new if type(new) in (float, np.float64) else as_array(new)
            wide = shape_of(one)
            if math.prod(wide) == 1:  # `set` needs no part
                return rows.where(_chosen(places, value.shape), _number(one, wide), value)
        old = None if repeated else value[key]
        return replaced(value, places, change(old, _fitted(new, places.shape)))

    def _replaced(self, change: Callable[[Any, Any], Any], new: Any, repeated: bool) -> Array:
        """Replace the elements that integers and slices select."""
        value, shape = self._value, self._value.shape
        stored = static_key(self._key, shape)
        params = {"key": stored, "rank": len(shape)}
        sizes: Shape = rows.index.shape((shape,), **params)  # type: ignore[misc]
        part = new if type(new) in (float, np.float64) else as_array(new)
        wide = shape_of(part)
        if 0 in sizes:
            _fitted(part, sizes)
            return value.copy()
        if repeated and math.prod(wide) == 1:  # `set` needs no part
            part, sizes = _number(part, wide), ()
        else:
            part = change(None if repeated else value[self._key], _fitted(part, sizes))
        return apply(rows.replace, value, part, key=stored, ranks=(len(shape), len(sizes)))


def _number(one: Array, wide: Shape) -> Array:
    """Return the only element of an array as a number."""
    return reshape(one, ()) if wide else one


def _is_basic(key: Any) -> bool:
    """Whether a key consists of integers, slices and an Ellipsis."""
    entries = key if type(key) is tuple else (key,)
    return all(type(entry) in _BASIC for entry in entries)


def _is_computed(key: Any) -> bool:
    return hasattr(key, "__difflab_apply__")


def _fitted(new: Any, part: Shape) -> Array:
    """Broadcast new values to a part; leading axes of size 1 are dropped, as NumPy does."""
    return broadcast_to(without_leading_ones(as_array(new), len(part)), part)


def replaced(value: Array, places: np.ndarray[Any, Any], part: Array) -> Array:
    """Return `value` with the elements of `part` at indices of the flattened array."""
    shape = value.shape
    if not places.size:
        return value.copy()
    order = np.zeros(math.prod(shape), dtype=np.int64)
    order[places.ravel()] = np.arange(places.size)
    spread = reshape(take(reshape(part, (-1,)), order), shape)
    return rows.where(_chosen(places, shape), spread, value)


def _chosen(places: np.ndarray[Any, Any], shape: Shape) -> np.ndarray[Any, Any]:
    """Return an array of truth values that hold at indices of the flattened array."""
    chosen = np.zeros(math.prod(shape), dtype=bool)
    chosen[places.ravel()] = True
    return chosen.reshape(shape)


def _marked(shape: Shape, key: Any, new: Any) -> tuple[Array, Array]:
    """Return where a computed mask or index selects, and new values that broadcast there."""
    new, wanted = as_array(new), key.shape
    if key.dtype == np.bool_:
        if wanted != shape[: len(wanted)] or math.prod(shape_of(new)) != 1:
            raise mismatch(
                f"a computed mask of the shape {wanted} selects from the shape {shape}, and sets"
                f" one number, not the shape {shape_of(new)}",
                "np.where(mask, new, x) takes arrays of one shape",
            )
        return reshape(key, (*wanted, *(1,) * (len(shape) - len(wanted)))), reshape(new, ())
    if wanted or not shape:
        raise mismatch(
            f"a part at computed indices of the shape {wanted} cannot be replaced",
            "one computed index x.at[i], lists of integers and masks can",
        )
    wrapped = key + shape[0] * rows.as_number(rows.less(key, 0))
    column = np.arange(float(shape[0])).reshape((-1, *(1,) * (len(shape) - 1)))
    return rows.equal(column, wrapped), _fitted(new, shape[1:])
