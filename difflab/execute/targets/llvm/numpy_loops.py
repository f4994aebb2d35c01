"""The addresses of NumPy's inner loops; no documented interface gives them: each is tried first."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

LOOP = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)
"""A loop takes pointers to operands and results, the sizes, the steps in bytes, and nothing."""


class _UniversalFunction(ctypes.Structure):
    """The public head of NumPy's ``PyUFuncObject``, behind the head of every object."""

    _fields_ = (
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
    )


def loop_of(ufunc: Any, types: str) -> int:
    """Return the address of a universal function's loop over types such as ``"d->d"``; 0 if none.

    Examples
    --------
    >>> loop_of(np.exp, "d->d") > 0, loop_of(np.exp, "d->q")
    (True, 0)
    """
    if sys.implementation.name != "cpython" or type(ufunc) is not np.ufunc:
        return 0
    head = _UniversalFunction.from_address(id(ufunc) + object.__basicsize__)
    known = (ufunc.nin, ufunc.nout, ufunc.ntypes)
    if (head.nin, head.nout, head.ntypes) != known or types not in ufunc.types:
        return 0
    position = ufunc.types.index(types)
    found, data = head.functions[position], head.data[position] if head.data else None
    return 0 if data else found or 0
