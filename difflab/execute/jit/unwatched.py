"""State that cannot be watched: what it is, by the functions that read it and by its types."""

from __future__ import annotations

import builtins
import importlib
import io
import os
import re
import sys
import time
from collections.abc import Iterator
from datetime import date, datetime
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodWrapperType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from difflab.core.place import owner
from difflab.execute.jit.code import module_file

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
    """Return what a function reads that is not watched; empty if there is nothing.

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
    """Whether an object without attributes of its own can be taken for a constant.

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
    """Return how far an iterator or a file was read; None if it cannot be told.

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
    """Yield what identifies the variables of a frame, values by their text."""
    for name, value in variables.items():
        plain = isinstance(value, bool | int | float | str)
        yield name, repr(value) if plain else id(value), position_of(value)
