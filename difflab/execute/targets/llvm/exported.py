"""Machine code for one point as functions of C, which other compiled code calls by address."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Sequence
from typing import Any

from difflab.errors import InputError, UnsupportedError
from difflab.execute.lower.ops import FLOAT
from difflab.execute.targets.llvm import engine
from difflab.execute.targets.llvm.target import NativeTarget
from difflab.graph.ir import Shape

__all__ = ["ExportedCode", "header"]

MEMORY = 1 << 16
"""Numbers between pieces of code that a call may have on its stack."""

# A call's memory is on its stack, so that any number of threads can call at once.
_POINT = """
define void @point(ptr noalias %x, ptr noalias %y) #0 {{
  %v = alloca double, i64 {memory}, align 64
  call void @run(ptr %x, ptr %y, ptr %v, i64 1)
  ret void
}}
"""
_SCALAR = """
define double @integrand(i32 %n, ptr %x, ptr %data) #0 {{
  %y = alloca double
  call void @point(ptr %x, ptr %y)
  %value = load double, ptr %y
  ret double %value
}}
define i32 @filter(ptr %x, i64 %n, ptr %y, ptr %data) #0 {{
  %right = icmp eq i64 %n, {inputs}
  br i1 %right, label %fits, label %wrong
fits:
  call void @point(ptr %x, ptr %y)
  ret i32 1
wrong:
  ret i32 0
}}
"""

_KEPT: list[Any] = []
"""Machine code whose address was given out is never unloaded: other code may have it for ever."""


class ExportedCode:
    """Compiled code for one point with C's calling convention; it is never unloaded.

    Parameters
    ----------
    native : NativeTarget
        The program in float64.

    Attributes
    ----------
    address : int
        The address of ``void point(const double *x, double *y)``.

    Raises
    ------
    UnsupportedError
        A result is a truth value, or the code needs more memory than a stack has.
    """

    def __init__(self, native: NativeTarget) -> None:
        if native.real != FLOAT or bool in native.kinds:
            raise UnsupportedError("machine code with an address has float64 results only")
        writer = native.writer(1)
        if writer.memory > MEMORY:
            raise UnsupportedError(
                f"the function has {native.operations:,} operations, too many for machine code"
                " with an address"
            )
        self.scalar = [tuple(shape) for shape in native.shapes] == [()]
        inputs = sum(map(math.prod, native.input_shapes))
        text = writer.text() + _POINT.format(memory=max(writer.memory, 1))
        if self.scalar:
            text += _SCALAR.format(inputs=inputs)
        found = engine.linked(text, writer.symbols, native.machine, native.operations)
        _KEPT.append(found)
        self._find = found.get_function_address
        self.address: int = self._find("point")

    def function(self, name: str, result: Any, *arguments: Any) -> Any:
        """Return one of the module's functions for `ctypes`."""
        return ctypes.CFUNCTYPE(result, *arguments)(self._find(name))


def header(
    name: str,
    inputs: Sequence[str],
    input_shapes: Sequence[Shape],
    outputs: Sequence[str],
    output_shapes: Sequence[Shape],
) -> str:
    """Return a C header for a function by address: its type, and where x and y hold what.

    Raises
    ------
    InputError
        The name is no name of C.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise InputError(f"{name!r} is no name of C", hint="use letters, digits and underscores")
    large = name.upper()
    lines = ["/* One point: reads the inputs from x, writes the outputs to y.", ""]
    for table, names, shapes in (("x", inputs, input_shapes), ("y", outputs, output_shapes)):
        start = 0
        for each, shape in zip(names, shapes, strict=True):
            size = math.prod(shape)
            where = f"{table}[{start}]" if shape == () else f"{table}[{start}:{start + size}]"
            lines.append(f"   {where}: {each}{list(shape) if shape else ''}")
            start += size
    n, m = (sum(map(math.prod, shapes)) for shapes in (input_shapes, output_shapes))
    guard = f"{large}_H"
    return "\n".join(
        [
            *lines,
            "*/",
            f"#ifndef {guard}",
            f"#define {guard}",
            f"#define {large}_INPUTS {n}",
            f"#define {large}_OUTPUTS {m}",
            f"typedef void (*{name}_function)(const double *x, double *y);",
            "#endif",
            "",
        ]
    )
