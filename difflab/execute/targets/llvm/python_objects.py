"""Layouts of Python's and NumPy's objects, for machine code that reads and makes them.

Every offset is found or confirmed by reading objects whose contents are known, when it is first
needed. An interpreter whose objects look otherwise (another implementation, a free-threaded or a
debug build, an unknown platform) has no layouts, and its calls are Python code.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from difflab.execute.lower.ops import FLOAT

_WORD = 8
_HEADER = 16
"""The bytes of an object before its contents: the reference count and the type."""
WORDS = _HEADER + _WORD
"""The offset of the address that `set_vectorcall` gives to the function."""
_HAVE_VECTORCALL = 1 << 11
_BASETYPE, _DEFAULT = 1 << 10, 1 << 18
_TP_MEMBERS, _T_PYSSIZET, _READONLY = 72, 19, 1
_NEW_ARRAY = 93
"""The index of ``PyArray_New`` in NumPy's C interface, a part of its stable ABI."""


class Layouts(NamedTuple):
    """Offsets in objects, in bytes, and addresses of types and functions of NumPy."""

    type: int
    size: int  # of a tuple
    items: int  # of a tuple
    number: int  # of a float
    data: int  # of an array, as the next five
    rank: int
    shape: int
    dtype: int
    flags: int
    new_array: int


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("value", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("size", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    )


def _usual_build() -> bool:
    """Return whether this is a release build of CPython with a lock, on 64-bit Linux or macOS."""
    return (
        sys.implementation.name == "cpython"
        and sys.platform in ("linux", "darwin")
        and sys.byteorder == "little"
        and ctypes.sizeof(ctypes.c_void_p) == _WORD
        and not {"d", "t"} & set(getattr(sys, "abiflags", ""))
        and not hasattr(sys, "gettotalrefcount")
        and object.__basicsize__ == _HEADER
        and _word(id(1.5), _WORD) == id(float)
    )


def _word(address: int, offset: int = 0) -> int:
    return ctypes.c_size_t.from_address(address + offset).value


def _flags_offset() -> int | None:
    """Return the offset of the flags in types, the only word that agrees for many types; or None.

    Examples
    --------
    >>> offset = _flags_offset()
    >>> offset is None or _word(id(int), offset) == int.__flags__
    True
    """
    kinds = (int, float, str, bytes, tuple, list, dict, set, type, object, Layouts, _Spec)
    offsets = [
        offset
        for offset in range(_HEADER, type.__sizeof__(object), _WORD)
        if all(_word(id(kind), offset) == kind.__flags__ for kind in kinds)
    ]
    return offsets[0] if len(offsets) == 1 else None


def _base() -> type:
    """Return a type with memory for a vectorcall function and one more address; else `object`."""
    try:
        if not _usual_build() or _FLAGS is None:
            return object
        offset = _Member(b"__vectorcalloffset__", _T_PYSSIZET, _HEADER, _READONLY, None)
        members = (_Member * 2)(offset, _Member())
        slots = (_Slot * 2)(_Slot(_TP_MEMBERS, ctypes.addressof(members)), _Slot())
        name = f"{__name__}.VectorcallBase".encode()
        spec = _Spec(name, _HEADER + 2 * _WORD, 0, _DEFAULT | _BASETYPE, ctypes.addressof(slots))
        _KEPT.extend([members, slots, spec, name])
        make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Spec))(
            ("PyType_FromSpec", ctypes.pythonapi)
        )
        made: type = make(ctypes.byref(spec))
    except Exception:  # an interpreter without these: calls are Python code
        return object
    return made


_KEPT: list[Any] = []
"""What a type of this module refers to; Python reads it as long as the type lives."""
_FLAGS = _flags_offset() if _usual_build() else None

if TYPE_CHECKING:

    class VectorcallBase:
        """Base class of objects that machine code can be set to call."""
else:
    VectorcallBase = _base()


def enable_vectorcall(cls: type) -> bool:
    """Let Python call instances of a subclass of `VectorcallBase` by their vectorcall functions.

    Instances without such a function are called by ``__call__``. Python inherits this property in
    no subclass that defines ``__call__``, hence it is set here. False if it cannot be set.
    """
    if VectorcallBase is object or _FLAGS is None or not issubclass(cls, VectorcallBase):
        return False
    if not cls.__flags__ & _HAVE_VECTORCALL:
        word = ctypes.c_size_t.from_address(id(cls) + _FLAGS)
        word.value |= _HAVE_VECTORCALL
    return bool(cls.__flags__ & _HAVE_VECTORCALL)


def set_vectorcall(instance: VectorcallBase, function: int, data: int) -> None:
    """Set the vectorcall function of an object, and the address that it finds behind it.

    The type of the object must have passed `enable_vectorcall`; `data` must outlive the object.
    """
    ctypes.c_size_t.from_address(id(instance) + WORDS).value = data
    ctypes.c_size_t.from_address(id(instance) + _HEADER).value = function


@cache
def layouts() -> Layouts | None:
    """Return the layouts of this interpreter's and this NumPy's objects; None if they are unknown.

    Examples
    --------
    >>> offsets = layouts()
    >>> offsets is None or ctypes.c_double.from_address(id(2.5) + offsets.number).value == 2.5
    True
    """
    if VectorcallBase is object:
        return None
    try:
        offsets = Layouts(
            type=_WORD,
            size=_HEADER,
            items=tuple.__basicsize__,  # of a tuple without items
            number=_HEADER,
            data=_HEADER,
            rank=_HEADER + 8,
            shape=_HEADER + 16,
            dtype=_HEADER + 40,
            flags=_HEADER + 48,
            new_array=_maker(),
        )
        return offsets if _confirmed(offsets) else None
    except Exception:  # NumPy without these: calls are Python code
        return None


@cache
def address_reader() -> Callable[[Any], int]:
    """Return a function that reads the address of an array's data, in a tenth of NumPy's time.

    Examples
    --------
    >>> array = np.ones(3)[1:]
    >>> address_reader()(array) == array.ctypes.data
    True
    """
    offsets = layouts()
    if offsets is None:
        return lambda array: int(array.ctypes.data)
    word, offset = ctypes.c_size_t.from_address, offsets.data
    return lambda array: word(id(array) + offset).value


def _maker() -> int:
    """Return the address of ``PyArray_New``."""
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = pointer(import_module("numpy._core._multiarray_umath")._ARRAY_API, None)
    if _word(table, 2 * _WORD) != id(np.ndarray):
        raise ValueError("NumPy's C interface has another order")
    return _word(table, _NEW_ARRAY * _WORD)


def _confirmed(offsets: Layouts) -> bool:
    """Return whether known objects have these layouts."""
    pair = (object(), "second")
    whole = np.arange(6.0).reshape(2, 3)
    frozen = whole.copy()
    frozen.flags.writeable = False
    arrays = (np.zeros(()), np.zeros(5), whole, whole.T, whole[:, ::2], frozen)
    return (
        all(
            ctypes.c_double.from_address(id(number) + offsets.number).value == number
            for number in (0.25, -3.5)
        )
        and float.__basicsize__ == offsets.number + _WORD
        and _word(id(pair), offsets.size) == len(pair)
        and [_word(id(pair), offsets.items + k * _WORD) for k in (0, 1)] == list(map(id, pair))
        and all(_is_laid_out(array, offsets) for array in arrays)
        and _makes_arrays(offsets)
    )


def _is_laid_out(array: Any, offsets: Layouts) -> bool:
    """Return whether an array has these contents at these offsets."""
    rank, flags = (
        ctypes.c_int.from_address(id(array) + offset).value
        for offset in (offsets.rank, offsets.flags)
    )
    shape = _word(id(array), offsets.shape)
    return (
        _word(id(array), offsets.type) == id(np.ndarray)
        and _word(id(array), offsets.data) == array.ctypes.data
        and rank == array.ndim
        and [_word(shape, k * _WORD) for k in range(rank)] == list(array.shape)
        and _word(id(array), offsets.dtype) == id(FLOAT)
        and flags == array.flags.num
    )


def _makes_arrays(offsets: Layouts) -> bool:
    """Return whether the function that makes arrays does."""
    make: Any = ctypes.PYFUNCTYPE(ctypes.py_object, *_NEW_ARRAY_ARGUMENTS)(offsets.new_array)
    shape = (ctypes.c_ssize_t * 2)(2, 3)
    array = make(np.ndarray, 2, shape, FLOAT.num, None, None, 0, 0, None)
    return type(array) is np.ndarray and array.shape == (2, 3) and array.dtype is FLOAT


_NEW_ARRAY_ARGUMENTS: Sequence[Any] = (
    ctypes.py_object,
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_void_p,
)
