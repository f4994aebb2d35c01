"""Indexing by static keys with bounds checks, for tensors and traced values."""

from __future__ import annotations

from typing import Any

import numpy as np

from difflab import arrays
from difflab.arrays.given import static_key
from difflab.arrays.reductions import taken_at
from difflab.arrays.updates import chosen_places
from difflab.core.place import at_users_line
from difflab.errors import IndexingError
from difflab.graph.ir import Shape
from difflab.primitives import index

_BASIC = int | np.integer | slice | type(Ellipsis)

__all__ = ["known_key", "opened_shape", "picked", "static_key"]


def picked(value: Any, key: Any) -> Any:
    """Index a traced value or a tensor by a static key, as NumPy does.

    Parameters
    ----------
    value : carrier
        The value to index.
    key : int, slice, Ellipsis, None, list or array of integers or truth values, or tuple of them
        As between NumPy's brackets; or a carrier of computed indices along the first axis.

    Raises
    ------
    IndexingError
        The key does not fit the shape.

    Examples
    --------
    >>> import numpy as np, difflab as dl
    >>> x = dl.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> picked(x, [1, 0, 1]).shape, picked(x, (0, None)).shape, picked(x, np.eye(2) == 1)
    ((3, 2), (1, 2), tensor([1., 4.]))
    """
    shape = value.shape
    entries = key if isinstance(key, tuple) else (key,)
    if any(isinstance(entry, bool | np.bool_) for entry in entries):
        indices = chosen_places(entries, shape)
        return arrays.take(arrays.reshape(value, -1), indices)
    if any(entry is None for entry in entries):
        return _opened(value, entries)
    if isinstance(key, list | np.ndarray):
        indices = _of_list(key)
        return _masked(value, indices) if indices.dtype == np.bool_ else arrays.take(value, indices)
    if hasattr(key, "__difflab_apply__") and shape and key.dtype != np.bool_:
        return taken_at(value, key)
    for entry in entries:
        if hasattr(entry, "__difflab_apply__") and entry.dtype == np.bool_:
            raise at_users_line(
                IndexingError,
                "a mask of traced values selects elements whose number is not known yet",
                "np.where(mask, a, b) keeps the shape, and x[mask] = number writes to some; under"
                " grad or jvp alone the values are known",
            )
    if any(isinstance(entry, list | np.ndarray) for entry in entries):
        indices = chosen_places(entries, shape)
        return arrays.take(arrays.reshape(value, -1), indices)
    return index(value, key=static_key(key, shape), rank=len(shape))


def _opened(value: Any, entries: tuple[Any, ...]) -> Any:
    """Index by a key with None: a view, unless lists or masks choose elements."""
    shape = value.shape
    chosen = tuple([entry for entry in entries if entry is not None])
    if not all(isinstance(entry, _BASIC) for entry in chosen):
        part = picked(value, chosen)
        return arrays.reshape(part, opened_shape(entries, len(shape), part.shape))
    key = static_key(chosen, shape)
    # An element without axes would be a number, which is no view: positions keep their axes.
    kept = tuple([of if isinstance(of, tuple) else (of, of + 1, 1) for of in key])
    part = index(value, key=kept, rank=len(shape)) if shape else value
    sizes = [size for of, size in zip(key, part.shape, strict=True) if isinstance(of, tuple)]
    return arrays.reshape(part, opened_shape(entries, len(shape), tuple(sizes)))


def known_key(key: Any) -> Any:
    """Return a key whose carriers are arrays of truth values or integers, where they are known.

    Examples
    --------
    >>> import difflab as dl
    >>> known_key((dl.tensor([1.0, 0.0]) > 0.5, slice(None)))
    (array([ True, False]), slice(None, None, None))
    """
    if isinstance(key, tuple):
        return tuple([known_key(entry) for entry in key])
    if isinstance(key, list) and any(hasattr(entry, "__difflab_value__") for entry in key):
        entries = [known_key(entry) for entry in key]
        return entries if all(isinstance(entry, int | np.integer) for entry in entries) else key
    method = getattr(key, "__difflab_value__", None)
    value: Any = None if method is None else method()
    if value is None or not isinstance(value, np.ndarray | np.generic):
        return key
    if value.dtype.kind == "f" and np.all(value == np.rint(value)):
        value = value.astype(np.int64)
    if value.dtype.kind == "b":
        return np.asarray(value)
    return value if value.ndim else value[()]


def _of_list(key: Any) -> np.ndarray[Any, Any]:
    """Return a list or array of integers or truth values as an array."""
    try:
        return np.asarray(key)
    except (TypeError, ValueError):
        raise at_users_line(
            IndexingError,
            "a list of indices holds integers, or truth values, in rows of one length",
        ) from None


def _masked(value: Any, mask: np.ndarray[Any, Any]) -> Any:
    """Return the entries where a mask over the first axes holds, in their order."""
    shape = value.shape
    if mask.shape != shape[: mask.ndim]:
        raise at_users_line(
            IndexingError, f"a mask of the shape {mask.shape} does not fit the shape {shape}"
        )
    flat = arrays.reshape(value, (mask.size, *shape[mask.ndim :]))
    return arrays.take(flat, np.flatnonzero(mask))


def opened_shape(entries: tuple[Any, ...], rank: int, shape: Shape) -> Shape:
    """Return `shape` with a 1 for every None among the entries of a key.

    Examples
    --------
    >>> opened_shape((None, 0, Ellipsis, None), 3, (5, 6))
    (1, 5, 6, 1)
    """
    sizes, opened = list(shape), []
    for entry in entries:
        if entry is None:
            opened.append(1)
        elif entry is Ellipsis:
            named = sum(part is not None and part is not Ellipsis for part in entries)
            opened += [sizes.pop(0) for _ in range(rank - named)]
        elif isinstance(entry, slice):
            opened.append(sizes.pop(0))
    return (*opened, *sizes)
