"""Operations in LLVM IR: types, constants, library functions, and universal functions."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from difflab.execute.targets.llvm.libraries import NUMPY, PREFIX, SCIPY, Host, MatrixLoop, address
from difflab.primitives.c99 import C99

# --- functions of libraries ----------------------------------------------------------------------

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
        The floating-point type, "double" or "float".

    Attributes
    ----------
    texts : dict of str to str
        Declarations and definitions by name.
    """

    def __init__(self, host: Host, real: str = "double") -> None:
        self.host = host
        self.real = real
        self.texts: dict[str, str] = {}
        self._spelled: dict[tuple[str, int], str] = {}

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
        symbol = f"scalars{width}.{name}"
        if symbol not in self.texts:
            vector = self.function(name, arity, width)
            self.texts[symbol] = "\n".join(_on_scalars(symbol, vector, arity, width, self.real))
        return symbol

    def of_matrices(self, called: MatrixLoop) -> str:
        """Return the name of a function that calls one of NumPy's loops over matrices."""
        row, *sizes, stacks = called
        name = ".".join(map(str, ("matrices", row, *sizes, *stacks)))
        self.declare("void", f"{PREFIX}{called.row}", *["ptr"] * 4)
        if name not in self.texts:
            self.texts[name] = "\n".join(called.code(name))
        return name

    def declare(self, result: str, name: str, *arguments: str) -> None:
        """Declare a function of the C library."""
        self.texts.setdefault(name, f"declare {result} @{name}({', '.join(arguments)})")

    def spelled(self, template: str, width: int) -> str:
        """Return a template with its types and the functions that it calls, without operands."""
        text = self._spelled.get((template, width))
        if text is None:
            called = {name: self.function(name, 1, width) for name in _CALLED.findall(template)}
            kinds = types(width, self.real)
            text = template.format("{0}", "{1}", "{2}", r="{r}", **kinds, **called)
            self._spelled[template, width] = text
        return text

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
        symbols = {line.split("@", 1)[1].split("(", 1)[0] for line in declared}
        for suffix in ("", "f"):
            both = {f"{name}{suffix}" for name in _TOGETHER} <= symbols
            if both and address(f"sincos{suffix}"):
                symbols.add(f"sincos{suffix}")  # LLVM may call it for them
        return sorted(symbols)


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


# --- types and constants -------------------------------------------------------------------------


@cache
def types(width: int, real: str = "double") -> Mapping[str, str]:
    """Return the types and constants that templates use, for floats of the type `real`."""
    v, b, c = (real, "i1", "i8")
    if width > 1:
        v, b, c = (f"<{width} x {kind}>" for kind in (v, b, c))
    bits = 8 * SIZES[real]
    suffix = f".v{width}f{bits}" if width > 1 else f".f{bits}"
    single = f"<{width} x float>" if width > 1 else "float"
    texts = {"v": v, "b": b, "c": c, "w": suffix, "single": single}
    constants = {"zero": 0.0, "one": 1.0, "minus": -1.0, "nan": math.nan, "inf": math.inf}
    texts.update({name: constant(number, width, real) for name, number in constants.items()})
    texts["true"] = "splat (i1 true)" if width > 1 else "true"
    texts["false"] = "zeroinitializer" if width > 1 else "false"
    return texts


def function_attributes(bits: int) -> str:
    """Return the attributes ``#0`` of functions that compute on vectors of a size in bits."""
    return (
        f'attributes #0 = {{ nounwind "min-legal-vector-width"="{bits}"'
        f' "prefer-vector-width"="{bits}" }}'
    )


def constant(value: float, width: int, real: str = "double") -> str:
    """Return the exact literal of a number, in each lane of a vector.

    LLVM writes a number of type float as the double that is equal to it.
    """
    if real == "float":
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    text = f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    return f"splat ({real} {text})" if width > 1 else text


# --- universal functions, for scalars and vectors ------------------------------------------------
# In a template ``{r}`` is the result and ``{r}.…`` are intermediate values; ``{0}``, ``{1}`` are
# the operands; ``{v}`` and ``{b}`` are the types of floats and truth values; ``{w}`` is the
# suffix of an intrinsic's name. Every operation rounds as IEEE 754 requires: nothing is
# contracted, reassociated or assumed to be finite.


class LlvmSpelling(NamedTuple):
    """The LLVM IR of an operation.

    Attributes
    ----------
    template : str
        Its instructions; empty for a call of `function`.
    function : str
        The C name of the mathematical function that it calls.
    truths : tuple of int
        The indices of operands that are truth values; the others are floats.
    """

    template: str = ""
    function: str = ""
    truths: tuple[int, ...] = ()


def _binary(instruction: str) -> LlvmSpelling:
    return LlvmSpelling(f"{{r}} = {instruction} {{v}} {{0}}, {{1}}")


def _intrinsic(name: str) -> LlvmSpelling:
    return LlvmSpelling(f"{{r}} = call {{v}} @llvm.{name}{{w}}({{v}} {{0}})")


def _extreme(relation: str) -> LlvmSpelling:
    """Return the IR of the larger or smaller of two numbers, which propagates nan."""
    return LlvmSpelling(
        f"""{{r}}.a = fcmp {relation} {{v}} {{0}}, {{1}}
{{r}}.n = fcmp uno {{v}} {{0}}, {{0}}
{{r}}.c = or {{b}} {{r}}.a, {{r}}.n
{{r}} = select {{b}} {{r}}.c, {{v}} {{0}}, {{v}} {{1}}"""
    )


# Adding 0 turns -0 into 0 and propagates nan.
_SIGN = """{r}.p = fcmp ogt {v} {0}, {zero}
{r}.n = fcmp olt {v} {0}, {zero}
{r}.z = fadd {v} {0}, {zero}
{r}.s = select {b} {r}.n, {v} {minus}, {v} {r}.z
{r} = select {b} {r}.p, {v} {one}, {v} {r}.s"""

_HEAVISIDE = """{r}.p = fcmp ogt {v} {0}, {zero}
{r}.n = fcmp olt {v} {0}, {zero}
{r}.z = fcmp oeq {v} {0}, {zero}
{r}.a = select {b} {r}.z, {v} {1}, {v} {0}
{r}.b = select {b} {r}.n, {v} {zero}, {v} {r}.a
{r} = select {b} {r}.p, {v} {one}, {v} {r}.b"""

# The remainder of truncated division, shifted to the divisor's sign. The last line works around
# LLVM 22, whose code generator folds the remainder of a vector of zeros to zero for any divisor.
_REMAINDER = """{r}.m = frem {v} {0}, {1}
{r}.z = fcmp oeq {v} {r}.m, {zero}
{r}.k = call {v} @llvm.copysign{w}({v} {zero}, {v} {1})
{r}.d = fcmp olt {v} {1}, {zero}
{r}.s = fcmp olt {v} {r}.m, {zero}
{r}.o = xor {b} {r}.d, {r}.s
{r}.t = fadd {v} {r}.m, {1}
{r}.u = select {b} {r}.o, {v} {r}.t, {v} {r}.m
{r}.v = select {b} {r}.z, {v} {r}.k, {v} {r}.u
{r}.n = fcmp ueq {v} {1}, {zero}
{r} = select {b} {r}.n, {v} {nan}, {v} {r}.v"""

# max(a, b) + log1p(exp(-|a - b|)); equal operands use 0, since inf - inf is nan.
_LOGADDEXP = """{r}.g = fcmp ogt {v} {0}, {1}
{r}.m = select {b} {r}.g, {v} {0}, {v} {1}
{r}.d = fsub {v} {0}, {1}
{r}.e = fcmp oeq {v} {0}, {1}
{r}.f = select {b} {r}.e, {v} {zero}, {v} {r}.d
{r}.a = call {v} @llvm.fabs{w}({v} {r}.f)
{r}.n = fneg {v} {r}.a
{r}.x = call {v} @{exp}({v} {r}.n)
{r}.l = call {v} @{log1p}({v} {r}.x)
{r} = fadd {v} {r}.m, {r}.l"""

_RELATIONS = {
    "less": "olt",
    "less_equal": "ole",
    "greater": "ogt",
    "greater_equal": "oge",
    "equal": "oeq",
    "not_equal": "une",
}
_FUNCTIONS = {**C99, **{name: name for name in SCIPY}}  # SciPy's where C99's err or are missing

SPELLINGS: dict[str, LlvmSpelling] = {
    **{name: LlvmSpelling(function=function) for name, function in _FUNCTIONS.items()},
    "add": _binary("fadd"),
    "subtract": _binary("fsub"),
    "multiply": _binary("fmul"),
    "divide": _binary("fdiv"),
    "negative": LlvmSpelling("{r} = fneg {v} {0}"),
    "absolute": _intrinsic("fabs"),
    "sqrt": _intrinsic("sqrt"),
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "rint": _intrinsic("rint"),
    "maximum": _extreme("ogt"),
    "minimum": _extreme("olt"),
    "sign": LlvmSpelling(_SIGN),
    "heaviside": LlvmSpelling(_HEAVISIDE),
    "float32": LlvmSpelling(
        "{r}.s = fptrunc {v} {0} to {single}\n{r} = fpext {single} {r}.s to {v}"
    ),
    "positive": LlvmSpelling("{r} = fmul {v} {0}, {one}"),
    "remainder": LlvmSpelling(_REMAINDER),
    "logaddexp": LlvmSpelling(_LOGADDEXP),
    "isfinite": LlvmSpelling(
        "{r}.a = call {v} @llvm.fabs{w}({v} {0})\n{r} = fcmp olt {v} {r}.a, {inf}"
    ),
    "logical_and": LlvmSpelling("{r} = and {b} {0}, {1}", truths=(0, 1)),
    "logical_or": LlvmSpelling("{r} = or {b} {0}, {1}", truths=(0, 1)),
    "logical_not": LlvmSpelling("{r} = xor {b} {0}, {true}", truths=(0,)),
    "where": LlvmSpelling("{r} = select {b} {0}, {v} {1}, {v} {2}", truths=(0,)),
    **{
        name: LlvmSpelling(f"{{r}} = fcmp {relation} {{v}} {{0}}, {{1}}")
        for name, relation in _RELATIONS.items()
    },
}
"""The operations that have machine code."""


# --- operations on floats and truth values -------------------------------------------------------


class OperationWriter:
    """Writes operations on vectors of one width; values are converted where that is needed.

    Parameters
    ----------
    functions : Functions
        The functions of the module.
    width : int
        The lanes of a vector; 1 for scalars.
    lines : list of str
        The lines that instructions are appended to.

    Attributes
    ----------
    numbers, bits : dict
        The names of values as floats and as truth values.
    """

    def __init__(self, functions: Functions, width: int, lines: list[str]) -> None:
        self.functions = functions
        self.width = width
        self.lines = lines
        self.types = types(width, functions.real)
        self.numbers: dict[Any, str] = {}
        self.bits: dict[Any, str] = {}

    def loaded(self, value: Any) -> str:
        """Return the name of a value that no operation defines."""
        raise NotImplementedError

    def name(self, key: Any, kind: str) -> str:
        """Return a new name for a value: an operation's result is of kind ``"t"``."""
        raise NotImplementedError

    def operation(self, name: str, operands: Sequence[Any], key: Any, *, truth: bool) -> None:
        """Write an operation, whose result is a float or a truth value."""
        spelling, v = SPELLINGS[name], self.types["v"]
        names = [
            self.bit(operand) if index in spelling.truths else self.number(operand)
            for index, operand in enumerate(operands)
        ]
        result = self.name(key, "t")
        if spelling.function:
            function = self.functions.function(spelling.function, len(names), self.width)
            typed = ", ".join([f"{v} {operand}" for operand in names])
            self.lines.append(f"{result} = call {v} @{function}({typed})")
        else:
            template = self.functions.spelled(spelling.template, self.width)
            self.lines.append(template.format(*names, r=result))
        (self.bits if truth else self.numbers)[key] = result

    def number(self, key: Any) -> str:
        """Return a value as a float."""
        number = self.numbers.get(key)
        if number is None:
            if key in self.bits:
                number = self.name(key, "n")
                b, v = self.types["b"], self.types["v"]
                self.lines.append(f"{number} = uitofp {b} {self.bits[key]} to {v}")
            else:
                number = self.loaded(key)
            self.numbers[key] = number
        return number

    def bit(self, key: Any) -> str:
        """Return a value as a truth value; every float except 0 is true, nan included."""
        bit = self.bits.get(key)
        if bit is None:
            number, bit = self.number(key), self.name(key, "b")
            v, zero = self.types["v"], self.types["zero"]
            self.lines.append(f"{bit} = fcmp une {v} {number}, {zero}")
            self.bits[key] = bit
        return bit
