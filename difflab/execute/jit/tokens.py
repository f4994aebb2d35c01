"""Tokens: what identifies a value that code can read; values of equal tokens are equal."""

from __future__ import annotations

import ctypes
import sys
import weakref
from array import array
from collections import deque
from collections.abc import Callable
from functools import partial
from io import IOBase
from mmap import mmap
from types import FunctionType, GeneratorType, MappingProxyType, ModuleType
from typing import Any

import numpy as np

from difflab.core.attributes import defines
from difflab.core.devices import on_host
from difflab.execute.jit.unwatched import position_of

PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis))
MAPPINGS = (dict, MappingProxyType)
COLLECTIONS = (list, tuple, deque, *MAPPINGS, set, frozenset)
BUFFERS = (array, bytearray, memoryview, mmap, np.void, ctypes.Array, ctypes.Structure)
REFERENCES = (weakref.ref, weakref.ProxyType, weakref.CallableProxyType)
TABLES = frozenset({"pandas", "polars"})
"""Packages of tables whose values NumPy reads, and whose other state is out of reach."""


def parts_of(container: Any) -> list[Any]:
    """Return what a container holds, by the methods of its built-in base class."""
    return parter(type(container))(container)


def parter(kind: type) -> Callable[[Any], list[Any]]:
    """Return the function that gives the parts of containers of a type."""
    if issubclass(kind, np.ndarray):
        return _elements
    base = next(base for base in COLLECTIONS if issubclass(kind, base))
    if base in MAPPINGS:
        return _of_dict if kind is dict else partial(_of_mapping, base)
    return list if kind is base else partial(_of_iterable, base)


def _elements(array: Any) -> list[Any]:
    found: list[Any] = np.asarray(array).ravel().tolist()
    return found


def _of_dict(container: dict[Any, Any]) -> list[Any]:
    return [*container, *container.values()]


def _of_mapping(base: Any, container: Any) -> list[Any]:
    return [*base.__iter__(container), *base.values(container)]


def _of_iterable(base: Any, container: Any) -> list[Any]:
    return list(base.__iter__(container))


def token_of(value: Any) -> Any:
    """Return what identifies a value: its contents if it is plain, else the object, its version."""
    return tokener(type(value))(value)


def tokener(kind: type) -> Callable[[Any], Any]:
    """Return the function that gives the tokens of values of a type."""
    if kind is slice or issubclass(kind, float | complex):
        return _of_text
    for kinds, make in _MAKERS:
        if issubclass(kind, kinds):
            return make
    if kind in PLAIN:
        return _of_plain
    if defines(kind, "__next__") and defines(kind, "__length_hint__"):
        return _of_reading
    return _of_library(kind) or _of_object


def has_contents(kind: type) -> bool:
    """Whether values of a type are arrays or tables of another library."""
    return _of_library(kind) is not None


def _of_object(value: Any) -> Any:
    return type(value), id(value)


def _of_plain(value: Any) -> Any:
    return type(value), value


def _of_text(value: Any) -> Any:
    return type(value), repr(value)  # distinguishes 0.0 from -0.0


def _of_array(value: Any) -> Any:
    plain = value if type(value) is np.ndarray else np.asarray(value)
    if plain.dtype == object:
        return type(value), plain.shape, tuple(map(_of_child, plain.ravel().tolist()))
    return type(value), plain.shape, plain.dtype.str, plain.tobytes()


def _of_collection(value: Any) -> Any:
    return type(value), tuple(map(_of_child, parts_of(value)))


def _of_set(value: Any) -> Any:
    return type(value), frozenset(map(_of_child, parts_of(value)))


def _of_child(value: Any) -> Any:
    """Return the token of a plain child of a container; other children have tokens of their own."""
    kind = type(value)
    return tokener(kind)(value) if kind in PLAIN else kind


def _of_function(value: Any) -> Any:
    return type(value), id(value), id(value.__code__)


def _of_reference(value: Any) -> Any:
    return type(value), id(value), referent_of(value) is None


def _of_buffer(value: Any) -> Any:
    try:
        return type(value), memoryview(value).tobytes()
    except ValueError:  # it is closed
        return type(value), None


def _of_reading(value: Any) -> Any:
    return type(value), id(value), position_of(value)


def _of_torch(tensor: Any) -> Any:
    """Return the elements of PyTorch's tensor: writes to `.data` change no version."""
    known = type(tensor), id(tensor), tensor.requires_grad, tensor.dtype, tensor.shape
    try:
        flat = tensor.detach().cpu().resolve_conj().resolve_neg().reshape(-1)
        return *known, flat.view(sys.modules["torch"].uint8).numpy().tobytes()
    except (TypeError, RuntimeError):  # a sparse tensor, one on a device without values
        return *known, tensor._version


def _of_device(value: Any) -> Any:
    return type(value), id(value), _of_array(on_host(value))


def _of_table(value: Any) -> Any:
    return type(value), id(value), _of_array(np.asarray(value))


def _of_library(kind: type) -> Callable[[Any], Any] | None:
    """Return the function for arrays and tables of other libraries; None for other objects."""
    package = str(kind.__module__).partition(".")[0]
    if package == "torch" and defines(kind, "data_ptr"):
        return _of_torch
    if package in TABLES and defines(kind, "__array__"):
        return _of_table
    on_device = package == "cupy" or defines(kind, "__array_namespace__")
    return _of_device if on_device and defines(kind, "shape") else None


_MAKERS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (np.ndarray, _of_array),
    (BUFFERS, _of_buffer),
    (np.generic, _of_text),
    ((set, frozenset), _of_set),
    (COLLECTIONS, _of_collection),
    (FunctionType, _of_function),
    (REFERENCES, _of_reference),
    ((GeneratorType, IOBase), _of_reading),
)


def referent_of(value: Any) -> Any:
    """Return what a weak reference or a proxy refers to, None if that is gone."""
    if issubclass(type(value), weakref.ref):
        return value()
    try:
        return value.__repr__.__self__  # a proxy forwards everything
    except ReferenceError:
        return None


def shown(value: Any) -> str:
    """Return a short text of a value."""
    kind = type(value)
    if issubclass(kind, np.ndarray):
        small = value.size <= 4 and value.dtype != object
        return str(value.tolist()) if small else f"an array of shape {value.shape}"
    if issubclass(kind, FunctionType | type | ModuleType):
        return str(value.__name__)
    short = kind in (list, tuple, dict) and len(value) <= 8
    text = ""
    if kind in PLAIN or issubclass(kind, np.generic) or short:
        text = repr(value)
    return text if text and len(text) <= 40 else f"{kind.__name__} {text[:36]}…".rstrip("… ")
