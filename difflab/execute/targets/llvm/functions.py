"""Types, constants and library functions of LLVM modules, for vectors of any width."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np

from difflab.execute.targets.llvm.libraries import NUMPY, SCIPY, Host, address
from difflab.execute.targets.llvm.matrix_loops import PREFIX, MatrixLoop

_ONE_NUMBER = """@numpy.count = private constant [1 x i64] [i64 1]
@numpy.steps = private constant [2 x i64] [i64 8, i64 8]"""
_INNER_LOOP = """declare void @numpy.{name}(ptr, ptr, ptr, ptr)
define internal double @one.numpy.{name}(double %a) {{
%x = alloca double
%y = alloca double
%p = alloca [2 x ptr]
store double %a, ptr %x
store ptr %x, ptr %p
%q = getelementptr ptr, ptr %p, i64 1
store ptr %y, ptr %q
call void @numpy.{name}(ptr %p, ptr @numpy.count, ptr @numpy.steps, ptr null)
%r = load double, ptr %y
ret double %r
}}"""
"""A call of an inner loop of NumPy's for one number."""
_CALLED = re.compile(r"\{(exp|log1p)\}")
_TOGETHER = frozenset(("sin", "cos"))
"""Functions of which LLVM calls both at once for one argument, by `sincos`: the same bits."""
SIZES = {"double": 8, "float": 4}
"""The bytes of the types of numbers."""


class Functions:
    """The functions that a module calls, each declared once.

    Parameters
    ----------
    host : Host
        The processor to compile for.
    real : str
        The type of numbers, "double" or "float".

    Attributes
    ----------
    texts : dict of str to str
        Declarations and definitions by name.
    """

    def __init__(self, host: Host, real: str = "double") -> None:
        self.host = host
        self.real = real
        self.texts: dict[str, str] = {}

    def function(self, name: str, arity: int, width: int) -> str:
        """Return the name of a mathematical function on vectors of `width`, or on scalars if 1."""
        scalar = self._scalar(name, arity)
        if width == 1:
            return scalar
        vector = self.vector(name, arity, width)
        v = types(width, self.real)["v"]
        if vector:
            arguments = ", ".join([v] * arity)
            self.texts.setdefault(vector, f"declare {v} @{vector}({arguments}) #0")
            return vector
        lanes = f"lanes{width}.{name}"
        if lanes not in self.texts:
            self.texts[lanes] = "\n".join(_lanes(lanes, scalar, arity, width, self.real))
        return lanes

    def vector(self, name: str, arity: int, width: int) -> str:
        """Return the name of a function of libmvec, empty if it has none."""
        return self.host.vector(name, arity, width, single=self.real == "float")

    def on_scalars(self, name: str, arity: int, width: int) -> str:
        """Return the name of a vector function that takes scalars, and a pointer for its results.

        Its scalars are the operands of one lane after the other.
        """
        found = f"scalars{width}.{name}"
        if found not in self.texts:
            vector = self.function(name, arity, width)
            self.texts[found] = "\n".join(_on_scalars(found, vector, arity, width, self.real))
        return found

    def of_matrices(self, called: MatrixLoop) -> str:
        """Return the name of a function that calls one of NumPy's loops over matrices."""
        row, *numbers, stacks = called
        name = ".".join(map(str, ("matrices", row, *numbers, *stacks)))
        self.declare("void", f"{PREFIX}{called.row}", *["ptr"] * 4)
        if name not in self.texts:
            self.texts[name] = "\n".join(called.code(name))
        return name

    def declare(self, result: str, name: str, *arguments: str) -> None:
        """Declare a function of the C library."""
        self.texts.setdefault(name, f"declare {result} @{name}({', '.join(arguments)})")

    def called(self, template: str, width: int) -> dict[str, str]:
        """Return the functions that a template calls."""
        return {name: self.function(name, 1, width) for name in _CALLED.findall(template)}

    def _scalar(self, name: str, arity: int) -> str:
        if self.host.of_numpy and name in NUMPY:
            self.texts.setdefault(f"one.numpy.{name}", _INNER_LOOP.format(name=name))
            self.texts.setdefault("numpy.one", _ONE_NUMBER)
            return f"one.numpy.{name}"
        if name not in SCIPY:
            arguments = ", ".join([self.real] * arity)
            suffix = "f" if self.real == "float" else ""
            together = name in _TOGETHER and address(f"sincos{suffix}")
            pure = " nounwind willreturn memory(none)" if together else ""
            name = f"{name}{suffix}"
            self.texts.setdefault(name, f"declare {self.real} @{name}({arguments}){pure}")
            return name
        doubles = ", ".join(["double"] * arity)
        operands = ", ".join(f"double %{letter}" for letter in "abc"[:arity])
        self.texts.setdefault(
            f"one.{name}",
            f"declare double @scipy.{name}({doubles}, i32)\n"
            f"define internal double @one.{name}({operands}) {{\n"
            f"%r = call double @scipy.{name}({operands}, i32 0)\nret double %r\n}}",
        )
        return f"one.{name}"

    @property
    def symbols(self) -> list[str]:
        """The library functions that the module calls."""
        declared = (
            line
            for text in self.texts.values()
            for line in text.splitlines()
            if line.startswith("declare")
        )
        found = {line.split("@", 1)[1].split("(", 1)[0] for line in declared}
        for suffix in ("", "f"):
            both = {f"{name}{suffix}" for name in _TOGETHER} <= found
            if both and address(f"sincos{suffix}"):
                found.add(f"sincos{suffix}")  # LLVM may call it for them
        return sorted(found)


def _lanes(name: str, scalar: str, arity: int, width: int, real: str) -> Iterator[str]:
    """Yield a vector function that calls a scalar function for each lane."""
    v = types(width, real)["v"]
    letters = "abc"[:arity]
    parameters = ", ".join(f"{v} %{letter}" for letter in letters)
    yield f"define internal {v} @{name}({parameters}) #0 {{"
    last = "poison"
    for lane in range(width):
        for letter in letters:
            yield f"%{letter}{lane} = extractelement {v} %{letter}, i32 {lane}"
        arguments = ", ".join(f"{real} %{letter}{lane}" for letter in letters)
        yield f"%y{lane} = call {real} @{scalar}({arguments})"
        yield f"%r{lane} = insertelement {v} {last}, {real} %y{lane}, i32 {lane}"
        last = f"%r{lane}"
    yield from (f"ret {v} {last}", "}")


def _on_scalars(name: str, vector: str, arity: int, width: int, real: str) -> Iterator[str]:
    """Yield a function that calls a vector function on scalars and stores its results."""
    v = types(width, real)["v"]
    letters = "abc"[:arity]
    parameters = ", ".join(f"{real} %{letter}{lane}" for lane in range(width) for letter in letters)
    yield f"define internal void @{name}({parameters}, ptr %y) #0 {{"
    for letter in letters:
        last = "poison"
        for lane in range(width):
            yield f"%v{letter}{lane} = insertelement {v} {last}, {real} %{letter}{lane}, i32 {lane}"
            last = f"%v{letter}{lane}"
    arguments = ", ".join(f"{v} %v{letter}{width - 1}" for letter in letters)
    yield f"%r = call {v} @{vector}({arguments})"
    yield f"store {v} %r, ptr %y, align {SIZES[real]}"
    yield from ("ret void", "}")


@cache
def types(width: int, real: str = "double") -> Mapping[str, str]:
    """Return the types and constants that templates use, for numbers of the type `real`."""
    v, b, c = (real, "i1", "i8")
    if width > 1:
        v, b, c = (f"<{width} x {kind}>" for kind in (v, b, c))
    bits = 8 * SIZES[real]
    suffix = f".v{width}f{bits}" if width > 1 else f".f{bits}"
    single = f"<{width} x float>" if width > 1 else "float"
    found = {"v": v, "b": b, "c": c, "w": suffix, "single": single}
    numbers = {"zero": 0.0, "one": 1.0, "minus": -1.0, "nan": math.nan, "inf": math.inf}
    found.update({name: constant(number, width, real) for name, number in numbers.items()})
    found["true"] = "splat (i1 true)" if width > 1 else "true"
    found["false"] = "zeroinitializer" if width > 1 else "false"
    return found


def constant(value: float, width: int, real: str = "double") -> str:
    """Return the exact literal of a number, in each lane of a vector.

    LLVM writes a number of type float as the double that is equal to it.
    """
    if real == "float":
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    text = f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    return f"splat ({real} {text})" if width > 1 else text
