"""The LLVM IR of each universal function, for scalars and vectors.

In a template ``{r}`` is the result and ``{r}.…`` are intermediate values; ``{0}``, ``{1}`` are the
operands; ``{v}`` and ``{b}`` are the types of numbers and truth values; ``{w}`` is the suffix of an
intrinsic's name. Every operation rounds as IEEE 754 requires: nothing is contracted, reassociated
or assumed to be finite.
"""

from __future__ import annotations

from typing import NamedTuple

from difflab.execute.targets.llvm.libraries import SCIPY
from difflab.primitives.c99 import C99


class LlvmSpelling(NamedTuple):
    """The LLVM IR of an operation.

    Attributes
    ----------
    template : str
        Its instructions; empty for a call of `function`.
    function : str
        The C name of the mathematical function that it calls.
    truths : tuple of int
        The indices of operands that are truth values; the others are numbers.
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
