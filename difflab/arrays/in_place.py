"""In-place changes with NumPy's semantics, for tensors and traced values.

A change computes a new value of the array that owns the elements, and the owner takes that value.
All its views are read from it again (see `difflab.core.ownership`). A graph and a tape record the
computation of the new value, so changes are differentiated like any other operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from difflab.arrays.given import as_array, mismatch, shape_of
from difflab.arrays.shapes import broadcast_to, fits, reshape, without_leading_ones
from difflab.arrays.updates import as_elements, replaced
from difflab.core.ownership import View
from difflab.core.place import at_users_line
from difflab.errors import InputError, TraceError
from difflab.primitives import index, replace, transpose
from difflab.primitives import reshape as reshape_row
from difflab.primitives import where as selected
from difflab.primitives.movement import read_only

__all__ = [
    "FUNCTIONS",
    "INSTEAD",
    "InPlace",
    "assigned",
    "changed_at",
    "into_out",
    "is_part",
    "overwrite",
    "with_out",
]

INSTEAD = (
    "make the array by np.zeros_like(x), which follows the type of x, and assign to its parts;"
    " or join values: np.stack([a, b]), as in np.stack([np.sin(x[i]) for i in range(3)]);"
    " np.concatenate joins them, and np.where(mask, new, z) replaces some"
)
"""Hint for code that writes traced values or tensors into a NumPy array."""


def overwrite(target: Any, new: Any, what: str, *, casting: Any = "same_kind") -> None:
    """Replace all elements of a carrier; its owner and all views of the owner see the change.

    Parameters
    ----------
    target : carrier
        A traced value or a tensor.
    new : carrier or array_like
        The elements, of a shape that broadcasts to that of `target`.
    what : str
        The change, for messages.
    casting : str
        NumPy's rule for the dtype: the elements are converted to that of `target`.

    Raises
    ------
    InputError
        `target` is read-only, or its dtype cannot hold the elements.
    ShapeError
        The shapes do not fit.
    """
    view: View | None = target._view
    owner = target if view is None else view.owner
    fixed = "" if view is None else read_only(view.steps)
    if fixed:
        raise at_users_line(
            InputError,
            f"{what} would change {fixed}, which is read-only, as in NumPy",
            "change the array itself, or a copy()",
        )
    owner.__difflab_writable__(what)
    new = _fitted(target, as_array(new), what, casting)
    if view is None:
        owner.__difflab_store__(new, what)
        return
    owner.__difflab_store__(_in_type_of(owner, _written(owner, view, new)), what)
    target.__difflab_seen__(new)


def _fitted(target: Any, new: Any, what: str, casting: Any) -> Any:
    """Return new elements with the shape and the dtype of the old ones."""
    shape, dtype = shape_of(new), getattr(new, "dtype", None)
    if dtype is None:
        dtype = np.dtype(type(new))
    elif dtype == target.dtype and shape == target.shape:
        return target.__difflab_as_own__(new)
    if not fits(shape, target.shape):
        raise mismatch(f"{what} cannot write the shape {shape} to the shape {target.shape}")
    kinds = dtype if hasattr(new, "dtype") else type(new)(0)  # Python scalars are weak
    if not _can_cast(kinds, target.dtype, casting):
        raise at_users_line(
            InputError,
            f"{what} cannot convert {dtype} to {target.dtype}, the dtype of the array",
            "write the result to a new name, as in z = x * y, or convert it by .astype",
        )
    new = _in_type_of(target, target.__difflab_as_own__(new))
    return new if shape_of(new) == target.shape else broadcast_to(new, target.shape)


def _can_cast(kind: Any, dtype: np.dtype[Any], casting: Any) -> bool:
    if not isinstance(kind, np.dtype):
        return bool(np.result_type(kind, dtype) == dtype) or casting == "unsafe"
    return bool(np.can_cast(kind, dtype, casting)) and (kind.kind != "c" or dtype.kind == "c")


def _in_type_of(target: Any, new: Any) -> Any:
    return new if new.dtype == target.dtype else new.astype(target.dtype)


def _written(owner: Any, view: View, part: Any) -> Any:
    """Return the value of an owner in which the elements of a view are those of `part`."""
    before, row, params = view.steps
    shape = owner.shape
    if before is None and row in (reshape_row, transpose):  # their inverse is their transpose
        rule: Any = row.rule
        return rule.transpose(part, 0, (shape,), **params)
    if before is None and row is index:
        return replace(owner, part, key=params["key"], ranks=(len(shape), len(part.shape)))
    return replaced(owner, view.places(shape), part)


def assigned(target: Any, key: Any, value: Any) -> None:
    """Assign to a part of a carrier, as ``target[key] = value`` does."""
    if getattr(value, "_view", None) is not None and is_part(target, key, value):
        return  # y[key] += x has changed y when Python assigns the part to itself
    new = target.at[key].set(value)
    overwrite(target, new, "item assignment", casting="unsafe")


def is_part(target: Any, key: Any, value: Any) -> bool:
    """Whether a value is the view ``target[key]``."""
    view, own = value._view, target._view
    owner, steps = (target, None) if own is None else (own.owner, own.steps)
    if view.owner is not owner or view.steps[0] is not steps:
        return False
    part = target[key]._view
    return part is not None and part.owner is owner and bool(part.steps[1:] == view.steps[1:])


# --- NumPy's functions --------------------------------------------------------------------------


def into_out(
    compute: Callable[..., Any], name: str, out: Any, mask: Any = True
) -> Callable[..., Any]:
    """Return a function whose results are written to `out`, where a mask holds."""

    def written(*args: Any, **kwargs: Any) -> Any:
        computed = compute(*args, **kwargs)
        targets = out if isinstance(out, tuple) else (out,)
        results = computed if isinstance(computed, tuple) else (computed,)
        if len(targets) != len(results):
            raise mismatch(f"numpy.{name} has {len(results)} results, and out= {len(targets)}")
        given = []
        for target, result in zip(targets, results, strict=True):
            if target is None:
                given.append(result)
                continue
            if not hasattr(target, "__difflab_store__"):
                raise _of_numpys(name)
            new = result if mask is True else selected(_mask(mask), result, target)
            overwrite(target, new, f"numpy.{name} with out=")
            given.append(target)
        return tuple(given) if isinstance(computed, tuple) else given[0]

    return written


def with_out(compute: Callable[..., Any], kwargs: dict[str, Any], name: str) -> Callable[..., Any]:
    """Return a function that obeys ``out=`` and ``where=``, which are removed from `kwargs`."""
    out = kwargs.pop("out", None)
    if out is None or (isinstance(out, tuple) and all(part is None for part in out)):
        return compute
    return into_out(compute, name, out, kwargs.pop("where", True))


def changed_at(name: str, target: Any, key: Any, value: Any = None) -> None:
    """Apply a universal function to a part in place, as ``numpy.add.at`` does.

    Raises
    ------
    InputError
        The function has no such form here.
    """
    part = _target(f"{name}.at", target).at[key]
    changes: Mapping[str, Callable[[], Any]] = {
        "add": lambda: part.add(value),
        "subtract": lambda: part.add(-as_array(as_elements(value))),
        "multiply": lambda: part.multiply(value),
        "divide": lambda: part.divide(value),
        "power": lambda: part.power(value),
        "minimum": lambda: part.min(value),
        "maximum": lambda: part.max(value),
        "negative": lambda: part.multiply(-1.0),
    }
    if name not in changes:
        raise at_users_line(
            InputError,
            f"difflab has no numpy.{name}.at",
            f"there are {', '.join(changes)}; or assign x[key] = new",
        )
    overwrite(target, changes[name](), f"numpy.{name}.at")


def _target(name: str, value: Any) -> Any:
    if not hasattr(value, "__difflab_store__"):
        raise _of_numpys(name)
    return value


def _of_numpys(name: str) -> TraceError:
    return at_users_line(
        TraceError,
        f"numpy.{name} cannot write a tensor or a traced value into a NumPy array",
        INSTEAD,
    )


def _mask(mask: Any) -> Any:
    """Return a mask as an array, or as the carrier that it is."""
    return mask if hasattr(mask, "__difflab_apply__") else np.asarray(mask, dtype=bool)


def copied_to(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Write elements to an array, where a mask holds."""
    target, src = _target("copyto", dst), without_leading_ones(as_elements(src), len(shape_of(dst)))
    if where is not True:
        src = selected(_mask(where), src, target)
    overwrite(target, src, "numpy.copyto", casting=casting)


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write elements at indices of the flattened array."""
    target, size = _target("put", a), a.size
    places = np.asarray(ind)
    if mode == "raise" and np.any((places < -size) | (places >= size)):
        raise mismatch(f"put: an index is outside an array of {size} elements")
    places = np.clip(places, 0, size - 1) if mode == "clip" else places % size
    values = reshape(as_array(as_elements(v)), -1)
    if not places.size or not shape_of(values)[0]:
        return
    order = np.arange(places.size) % shape_of(values)[0]
    new = replaced(target, places.ravel(), values[order])
    overwrite(target, new, "numpy.put", casting="unsafe")


def put_mask(a: Any, mask: Any, values: Any) -> None:
    """Write elements where a mask holds, the values repeated to the size of the array."""
    target, values = _target("putmask", a), reshape(as_array(as_elements(values)), -1)
    if shape_of(values)[0]:
        order = np.arange(target.size) % shape_of(values)[0]
        new = reshape(values[order], target.shape)
        overwrite(target, selected(_mask(mask), new, target), "numpy.putmask", casting="unsafe")


def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write the elements of `vals`, in order, where a mask holds."""
    put(_target("place", arr), np.flatnonzero(mask), vals)


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Write elements to the main diagonal of an array."""
    target = _target("fill_diagonal", a)
    marks = np.zeros(target.shape, dtype=bool)
    try:
        np.fill_diagonal(marks, True, wrap=wrap)
    except ValueError as error:
        raise mismatch(f"fill_diagonal of the shape {target.shape}: {error}") from None
    put(target, np.flatnonzero(marks), val)


def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """Write elements at indices along an axis."""
    target = _target("put_along_axis", arr)
    order = np.arange(target.size)
    marked = (order if axis is None else order.reshape(target.shape)).copy()
    places = np.take_along_axis(marked, np.asarray(indices), axis)
    values = broadcast_to(as_array(as_elements(values)), places.shape)
    put(target, places.ravel(), values)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "copyto": copied_to,
    "fill_diagonal": fill_diagonal,
    "place": place,
    "put": put,
    "put_along_axis": put_along_axis,
    "putmask": put_mask,
}
"""NumPy's functions that change their first argument."""

# --- the methods --------------------------------------------------------------------------------


def _augmented(operator: str, name: str) -> Callable[[Any, Any], Any]:
    """Return the method of an augmented assignment."""

    def augmented(self: Any, other: Any) -> Any:
        result = getattr(self, operator)(other)
        if result is NotImplemented:
            return result
        if self.is_number():
            return self.__difflab_renamed__(result)
        overwrite(self, result, f"in-place {name}")
        return self

    return augmented


class FlatElements:
    """The elements in row-major order: ``x.flat[k]`` reads, ``x.flat[k] = new`` writes."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __len__(self) -> int:
        size: int = self._value.size
        return size

    def __getitem__(self, key: Any) -> Any:
        return self._value.flatten()[key]

    def __setitem__(self, key: Any, new: Any) -> None:
        value = self._value
        elements = value.flatten()
        elements[key] = new
        overwrite(value, reshape(elements, value.shape), "assignment to .flat")


class InPlace:
    """The methods of NumPy's arrays that change them."""

    __slots__ = ()

    _view: View | None = None

    def __setitem__(self, key: Any, value: Any) -> None:
        assigned(self, key, value)

    __iadd__, __isub__ = _augmented("__add__", "add"), _augmented("__sub__", "subtract")
    __imul__, __itruediv__ = _augmented("__mul__", "multiply"), _augmented("__truediv__", "divide")
    __ipow__, __imod__ = _augmented("__pow__", "power"), _augmented("__mod__", "mod")
    __ifloordiv__ = _augmented("__floordiv__", "floor_divide")
    __imatmul__ = _augmented("__matmul__", "matmul")
    __iand__, __ior__ = _augmented("__and__", "and"), _augmented("__or__", "or")
    __ixor__ = _augmented("__xor__", "xor")

    @property
    def flat(self) -> FlatElements:
        """The elements in row-major order, to be read and written."""
        return FlatElements(self)

    @flat.setter
    def flat(self, new: Any) -> None:
        FlatElements(self)[:] = new

    def fill(self, value: Any) -> None:
        """Write one number to all elements."""
        overwrite(self, value, "fill", casting="unsafe")

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """Write elements at indices of the flattened array."""
        put(self, indices, values, mode)
