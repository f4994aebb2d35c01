"""The Python expression of a row as universal functions, which give the same bits.

The expression is run on values that record the operations on them, with a universal function in
place of each function of `math` that machine code calls by the same name in the C library; its
conditions are selections. Where an operation is undefined or overflows, `math` raises and the
kernel is called instead, which gives what IEEE 754 gives. A nan is a nan, whatever its sign.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive
from difflab.execute.lower.ops import BOOL, FLOAT, NumpyProgram
from difflab.execute.lower.record import RecordedValue, Recorder, Unrecordable
from difflab.primitives.helpers import PYTHON, used

__all__ = ["LIBRARY", "expression_form"]

LIBRARY: dict[str, np.ufunc] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "pow": np.power,
    "sin": np.sin,
    "sinh": np.sinh,
    "tan": np.tan,
    "tanh": np.tanh,
}
"""The functions of `math` that are the C library's; `hypot` and others are Python's own."""
_EXACT: dict[str, Callable[..., Any]] = {
    "abs": np.absolute,
    "fabs": np.absolute,
    "sqrt": np.sqrt,
    "ceil": np.ceil,
    "floor": np.floor,
    "round": np.rint,
    "float": lambda x: x,
}
"""Functions whose results are not rounded, or in one way only."""


@lru_cache(maxsize=1024)
def expression_form(row: Primitive, kinds: tuple[str, ...]) -> NumpyProgram | None:
    """Return a row's Python expression as universal functions; None if there are none for it.

    Parameters
    ----------
    row : Primitive
        The row.
    kinds : tuple of str
        For each argument ``"number"`` or ``"truth"``.

    Examples
    --------
    >>> from difflab.primitives import gamma, sigmoid
    >>> [op.name for op in expression_form(sigmoid, ("number",)).ops]
    ['less', 'negative', 'where', 'exp', 'where', 'add', 'divide']
    >>> expression_form(gamma, ("number",)) is None
    True
    """
    if not row.python or row.inexact or any(kind not in ("number", "truth") for kind in kinds):
        return None
    if any(kind == "truth" and place not in row.truths for place, kind in enumerate(kinds)):
        return None  # Python computes with whole numbers then
    recorder = Recorder([()] * len(kinds), [BOOL if kind == "truth" else FLOAT for kind in kinds])
    letters = "abc"[: len(kinds)]
    try:
        call = _evaluated(f"lambda {', '.join(letters)}: {row.python.format(*letters)}")
        result = call(*recorder.inputs)
    except (Unrecordable, TypeError, ValueError, NameError, AttributeError, KeyError):
        return None
    recorder.program.outputs.append(recorder.number(result))
    recorder.program.drop_unused()
    return recorder.program


def _evaluated(source: str) -> Any:
    """Return the value of an expression of the table, on values that record."""
    names: dict[str, Any] = {"__builtins__": {}, "range": range, "sum": sum}
    names |= {"inf": math.inf, "nan": math.nan, "max": _larger, "copysign": _signed}
    names |= {"_select": _select, "_both": _both, "_either": _either, "_not": np.logical_not}
    names |= _EXACT | LIBRARY  # other functions of `math` are missing
    for text in used([source], PYTHON).values():
        exec(_compiled(text, "exec"), names)  # noqa: S102 - text of the table of primitives
    return eval(_compiled(source, "eval"), names)  # noqa: S307 - text of the table of primitives


def _compiled(source: str, mode: str) -> CodeType:
    tree = ast.fix_missing_locations(_Selections().visit(ast.parse(source, mode=mode)))
    found: CodeType = compile(tree, "<difflab.expression>", mode)
    return found


class _Selections(ast.NodeTransformer):
    """Replaces conditions of expressions, which values that record have not, by selections."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        return _call("_select", node.test, node.body, node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        name = "_both" if isinstance(node.op, ast.And) else "_either"
        found, *others = node.values
        for other in others:
            found = _call(name, found, other)
        return found

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return _call("_not", node.operand) if isinstance(node.op, ast.Not) else node


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def _select(condition: Any, value: Any, other: Any) -> Any:
    if not isinstance(condition, RecordedValue) or _is_truth(value) or _is_truth(other):
        raise Unrecordable
    return condition.recorder.where(condition, value, other)


def _both(a: Any, b: Any) -> Any:
    if not (_is_truth(a) and _is_truth(b)):
        raise Unrecordable  # Python gives one of the numbers
    return np.logical_and(a, b)


def _either(a: Any, b: Any) -> Any:
    if not (_is_truth(a) and _is_truth(b)):
        raise Unrecordable
    return np.logical_or(a, b)


def _is_truth(value: Any) -> bool:
    return isinstance(value, RecordedValue) and value.dtype == BOOL


def _larger(a: Any, b: Any) -> Any:
    """Return what `max` of two numbers returns, of equal ones the first."""
    return _select(b > a, b, a)


def _signed(number: Any, sign: Any) -> Any:
    """Return a whole number, for which rows restore the sign of a zero, as IEEE 754 does."""
    if isinstance(number, RecordedValue):
        made = number.recorder.program.made.get(number.number)
        if made is not None and made.name in ("ceil", "floor", "rint"):
            return number
    raise Unrecordable
