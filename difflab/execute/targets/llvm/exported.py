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
from difflab.execute.targets.llvm.arrays import NativeArrays
from difflab.execute.targets.llvm.arrays.control import FAULT
from difflab.execute.targets.llvm.functions import constant
from difflab.execute.targets.llvm.libraries import host
from difflab.execute.targets.llvm.target import NativeTarget
from difflab.graph.ir import Shape, packed_slices
from difflab.lower.nests import in_order

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
# A run reads a table of the addresses of its inputs, and leaves its results in its memory.
_POINT_OF_ARRAYS = """
define void @point(ptr noalias %x, ptr noalias %y) #0 {{
  %table = alloca i64, i64 {words}, align 64
  call void @llvm.memset.p0.i64(ptr %table, i8 0, i64 {words_bytes}, i1 false)
  %v = alloca double, i64 {memory}, align 64
{before}  call void @run(ptr %table, ptr @constants, ptr %v, i64 1)
{after}  ret void
}}
@constants = internal constant [{count} x double] [{constants}], align 64
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
_INPUT = """  %from{index} = getelementptr double, ptr %x, i64 {number}
  %word{index} = getelementptr ptr, ptr %table, i64 {index}
  store ptr %from{index}, ptr %word{index}, align 8
"""
_RESULT = """  %found{index} = getelementptr double, ptr {base}, i64 {start}
  %to{index} = getelementptr double, ptr %y, i64 {number}
  call void @llvm.memcpy.p0.p0.i64(ptr %to{index}, ptr %found{index}, i64 {nbytes}, i1 false)
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
    text : str
        LLVM IR with the function ``run``, and ``point`` that calls it.
    symbols : sequence of str
        The library functions that it calls.
    operations : int
        The number of operations.
    input_shapes, output_shapes : sequence of tuple
        The shapes of the inputs and outputs.

    Attributes
    ----------
    address : int
        The address of ``void point(const double *x, double *y)``.
    """

    def __init__(
        self,
        text: str,
        symbols: Sequence[str],
        operations: int,
        input_shapes: Sequence[Shape],
        output_shapes: Sequence[Shape],
    ) -> None:
        self.scalar = [tuple(shape) for shape in output_shapes] == [()]
        if self.scalar:
            text += _SCALAR.format(inputs=sum(map(math.prod, input_shapes)))
        compiled = engine.linked(text, symbols, host(), operations)
        _KEPT.append(compiled)
        self._find = compiled.get_function_address
        self.address: int = self._find("point")

    @classmethod
    def of_scalars(cls, native: NativeTarget) -> ExportedCode:
        """Return the code of a program of scalars.

        Raises
        ------
        UnsupportedError
            A result is a truth value, or the code needs more memory than a stack has.
        """
        if native.real != FLOAT or bool in native.kinds:
            raise UnsupportedError("machine code with an address has float64 results only")
        writer = native.writer(1)
        _require_stack(writer.memory, native.operations)
        text = writer.text() + _POINT.format(memory=max(writer.memory, 1))
        shapes = native.input_shapes, native.shapes
        return cls(text, writer.functions.symbols, native.operations, *shapes)

    @classmethod
    def of_arrays(cls, point: NativeArrays) -> ExportedCode:
        """Return the machine code of a function of arrays at one point.

        Raises
        ------
        UnsupportedError
            The code needs more memory than a stack has, or the elements of a result are not
            contiguous.
        """
        module, layout = point.module, point.layout
        _require_stack(layout.room, module.operations)
        inputs, outputs = point.input_shapes, point.output_shapes
        before = [
            _INPUT.format(index=index, number=part.start)
            for index, part in enumerate(packed_slices(inputs))
        ]
        after = []
        for index, part in enumerate(packed_slices(outputs)):
            ref = point.program.outputs[index]
            if not in_order(ref.strides, outputs[index]):
                raise UnsupportedError(
                    "machine code with an address needs results whose numbers lie side by side"
                )
            memory, start, _ = layout.address(ref)
            base = {"constants": "@constants", "values": "%v"}.get(memory) or f"%from{ref.root}"
            size = FLOAT.itemsize * (part.stop - part.start)
            after.append(
                _RESULT.format(index=index, base=base, start=start, number=part.start, nbytes=size)
            )
        words = len(inputs) + FAULT
        constants = [f"double {constant(number, 1)}" for number in (*module.constants, 0.0)]
        text = point.text + _POINT_OF_ARRAYS.format(
            words=words,
            words_bytes=FLOAT.itemsize * words,
            memory=layout.room + 1,
            before="".join(before),
            after="".join(after),
            count=len(constants),
            constants=", ".join(constants),
        )
        return cls(text, module.functions.symbols, module.operations, inputs, outputs)

    def function(self, name: str, result: Any, *arguments: Any) -> Any:
        """Return one of the module's functions for `ctypes`."""
        return ctypes.CFUNCTYPE(result, *arguments)(self._find(name))


def _require_stack(memory: int, operations: int) -> None:
    if memory > MEMORY:
        raise UnsupportedError(
            f"the function has {operations:,} operations, too many for machine code with an address"
        )


def header(
    name: str,
    inputs: Sequence[str],
    input_shapes: Sequence[Shape],
    outputs: Sequence[str],
    output_shapes: Sequence[Shape],
) -> str:
    """Return a C header for a function by address: its type, and the layout of x and y.

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
