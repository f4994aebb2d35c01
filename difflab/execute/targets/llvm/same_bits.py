"""Machine code for one point with the bits of the target ``python``, which it takes over from."""

from __future__ import annotations

import ctypes
import math
import random
import struct
from collections.abc import Sequence
from functools import cache
from typing import Any

from difflab.errors import UnsupportedError
from difflab.execute.lower.scalar import LIBRARY, expression_form
from difflab.execute.lower.schedule import ScalarProgram
from difflab.execute.targets.llvm import vector_calls
from difflab.execute.targets.llvm.libraries import address
from difflab.execute.targets.llvm.spelling import SPELLINGS
from difflab.execute.targets.llvm.target import NativeTarget
from difflab.graph.ir import Shape

TRIALS = 300
"""Arguments at which a function of `math` is compared with that of the C library."""


def same_bits(program: ScalarProgram, input_shapes: Sequence[Shape]) -> NativeTarget | None:
    """Return machine code that gives what `PythonTarget` gives, bit by bit; None if there is none.

    It consists of the operations of the Python expressions in their order, each rounded as IEEE
    754 requires, and of the C library's functions that `math` calls.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab.execute.lower.schedule import Schedule
    >>> f, g = dl.parse("x*sin(x)"), dl.parse("gamma(x)")
    >>> [same_bits(ScalarProgram.of(each), [()]) is None for each in (f, g)]
    [False, True]
    """
    try:
        native = NativeTarget(program, input_shapes, 1, forms=expression_form)
    except UnsupportedError:
        return None
    names = {SPELLINGS[op.name].function for op in native.code.ops} - {""}
    if native.operations >= vector_calls.LEAST or not all(map(_is_shared, names)):
        return None
    return native


@cache
def _is_shared(name: str) -> bool:
    """Return whether a function of `math` is that of the C library, as far as some values show."""
    if name not in LIBRARY or not address(name):
        return False
    own, arity = getattr(math, name), LIBRARY[name].nin
    call = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * arity)(address(name))
    return all(_value(own, point) == _value(call, point) for point in _points(arity))


@cache
def _points(arity: int) -> list[list[float]]:
    """Return arguments of many magnitudes, the same ones each time."""
    draw = random.Random(0).uniform
    return [
        [draw(-1.0, 1.0) * 2.0 ** draw(-12.0, 9.0) for _ in range(arity)] for _ in range(TRIALS)
    ]


def _value(call: Any, point: Sequence[float]) -> bytes:
    """Return the bits of a function's value; nothing where it is not finite."""
    try:
        found = call(*point)
    except (ArithmeticError, ValueError):  # math's, where the C library gives nan or inf
        return b""
    return struct.pack("d", found) if math.isfinite(found) else b""
