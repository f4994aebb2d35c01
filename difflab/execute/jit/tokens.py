"""Tokens of the values that code can read, equal for equal values, and state that has none."""

from __future__ import annotations

import builtins
import ctypes
import importlib
import io
import os
import re
import sys
import time
import weakref
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from datetime import date, datetime
from functools import partial
from mmap import mmap
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from difflab.core.apply import on_host
from difflab.core.attributes import defines
from difflab.core.place import owner
from difflab.execute.jit.code import module_file

PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis))
MAPPINGS = (dict, MappingProxyType)
COLLECTIONS = (list, tuple, deque, *MAPPINGS, set, frozenset)
BUFFERS = (array, bytearray, memoryview, mmap, np.void, ctypes.Array, ctypes.Structure)
REFERENCES = (weakref.ref, weakref.ProxyType, weakref.CallableProxyType)
TABLES = frozenset({"pandas", "polars"})
"""Packages of tables whose values NumPy reads, and whose other state is out of reach."""


def parts_of(container: Any) -> list[Any]:
    """Return the items of a container, by the methods of its built-in base class."""
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
    elements: list[Any] = np.asarray(array).ravel().tolist()
    return elements


def _of_dict(container: dict[Any, Any]) -> list[Any]:
    return [*container, *container.values()]


def _of_mapping(base: Any, container: Any) -> list[Any]:
    return [*base.__iter__(container), *base.values(container)]


def _of_iterable(base: Any, container: Any) -> list[Any]:
    return list(base.__iter__(container))


def token_of(value: Any) -> Any:
    """Return a token of a value: its contents if it is plain, else the object, its version."""
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
    ((GeneratorType, io.IOBase), _of_reading),
)


def referent_of(value: Any) -> Any:
    """Return the referent of a weak reference or a proxy; None if it no longer exists."""
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


# --- state that cannot be watched, by the functions that read it and by its types ----------------

_FILE = "what it reads from a file is not watched"
_TIME = "what it returns is another value at each call"
_NAMES = "what is reached by a computed name is not watched"

READERS: dict[Any, str] = dict.fromkeys((open, os.open, os.listdir, os.scandir), _FILE)
READERS |= dict.fromkeys((np.load, np.loadtxt, np.genfromtxt, np.fromfile, np.memmap), _FILE)
READERS |= dict.fromkeys((os.stat, os.getcwd, os.path.exists, os.path.getmtime), _FILE)
READERS |= dict.fromkeys((time.time, time.time_ns, time.perf_counter, time.perf_counter_ns), _TIME)
READERS |= dict.fromkeys((time.monotonic, time.monotonic_ns, time.process_time), _TIME)
READERS |= dict.fromkeys((time.localtime, time.gmtime, time.ctime, time.strftime), _TIME)
READERS |= dict.fromkeys((datetime.now, datetime.utcnow, datetime.today, date.today), _TIME)
READERS |= dict.fromkeys((os.urandom, input), _TIME)
READERS |= dict.fromkeys((globals, vars, eval, exec, builtins.__import__), _NAMES)
READERS |= dict.fromkeys((importlib.import_module, importlib.reload, sys._getframe), _NAMES)
"""What is not watched, for each function that reads it."""

_RANDOM = ("secrets", "uuid")
"""Modules whose functions return another value at each call; not loaded here."""

METHODS = dict.fromkeys(("read_text", "read_bytes", "readline", "readlines", "iterdir"), _FILE)
"""The same for names of methods, whose objects are not known before a run."""

IRRELEVANT = frozenset({"_thread", "asyncio", "concurrent", "logging", "threading", "warnings"})
IRRELEVANT |= frozenset({"_io", "traceback", "abc", "_abc", "ast", "unittest", "_contextvars"})
"""Packages of the standard library whose objects hold no values that code computes with."""

OUTSIDE = frozenset({"socket", "ssl", "subprocess", "urllib", "http", "sqlite3", "select", "mmap"})
OUTSIDE |= frozenset({"dbm", "shelve", "zipfile", "tarfile", "gzip", "bz2", "lzma", "tempfile"})
"""Packages of the standard library whose objects read from outside of the process."""

_CODE: tuple[type, ...] = (BuiltinFunctionType, ClassMethodDescriptorType, GetSetDescriptorType)
_CODE += (MemberDescriptorType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType)


_FUNCTIONS = (FunctionType, BuiltinFunctionType, type, type(np.sum))
"""Types of functions that can be looked up among `READERS`, as their hash is their own."""
_LOADERS = re.compile(r"read_\w+|load|loadmat|loadtxt|imread|open_\w+")


def why_unwatched(name: str, value: Any) -> str:
    """Return a text that names the unwatched reads of a function; empty if there are none.

    Parameters
    ----------
    name : str
        By which the code names it.
    value : object

    Examples
    --------
    >>> why_unwatched("open", open), why_unwatched("sum", np.sum)
    ('what it reads from a file is not watched', '')
    """
    if type(value) in _FUNCTIONS and value in READERS:
        return READERS[value]
    if type(value) in _FUNCTIONS and getattr(value, "__module__", "") in _RANDOM:
        return _TIME
    return _FILE if _reads_files(name, value) else ""


def _reads_files(name: str, value: Any) -> bool:
    """Whether a function of an installed package reads files, as its name says."""
    if not _LOADERS.fullmatch(name) or not callable(value):
        return False
    module = sys.modules.get(str(getattr(value, "__module__", "")).partition(".")[0])
    return module is not None and owner(module_file(module)) == "installed"


def is_constant(value: Any) -> bool:
    """Whether an object without attributes of its own can be treated as a constant.

    Those are the built-in functions and the objects whose type compares them by value and gives
    them a hash: dates, paths, fractions, patterns, dtypes.

    Examples
    --------
    >>> is_constant(date(2000, 1, 1)), is_constant(iter([]))
    (True, False)
    """
    kind = type(value)
    if kind is object or issubclass(kind, _CODE) or callable(value):
        return True
    hashed, equal = getattr(kind, "__hash__", None), getattr(kind, "__eq__", None)
    return hashed not in (None, object.__hash__) and equal is not object.__eq__


def position_of(value: Any) -> Any:
    """Return the position of an iterator or a file; None if it is unknown.

    Examples
    --------
    >>> numbers = iter([1, 2, 3])
    >>> before = position_of(numbers)
    >>> next(numbers), position_of(numbers) == before
    (1, False)
    """
    if isinstance(value, GeneratorType):
        frame = value.gi_frame
        held = () if frame is None else tuple(_marks(frame.f_locals))
        return "generator", frame and frame.f_lasti, held
    try:
        if isinstance(value, io.IOBase):
            own = value.getvalue() if isinstance(value, io.BytesIO | io.StringIO) else ""
            return "file", value.tell(), own
        return "iterator", value.__length_hint__()
    except (AttributeError, OSError, ValueError):  # it has no position, or is closed
        return None


def _marks(variables: dict[str, Any]) -> Iterator[Any]:
    """Yield tokens of the variables of a frame; plain values by their text."""
    for name, value in variables.items():
        plain = isinstance(value, bool | int | float | str)
        yield name, repr(value) if plain else id(value), position_of(value)
