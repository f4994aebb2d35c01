"""Each row on Python floats: its kernel over `math`, as an expression or a function.

Plain code raises where NumPy gives nan or inf and `math` raises; guarded code never raises. Machine
code that calls the same functions of the C library as `math` computes the same bits. Where an
operation is undefined or overflows, `math` raises and the kernel is called instead, which returns
the result of IEEE 754. A nan is a nan, whatever its sign.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive
from difflab.execute.lower.ops import NumpyProgram, Op
from difflab.execute.lower.record import kernel_form
from difflab.execute.lower.schedule import PICKING, Schedule
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW, Graph
from difflab.primitives import scatter
from difflab.primitives.c99 import C99

_CALL = re.compile(r"[A-Za-z_]\w*\(|/|%")
_INACCURATE = frozenset({"ceil", "erfc", "floor", "lgamma", "rint", "tgamma"})
"""Functions of C99 whose values in `math` are off by more than 4 ULP, or are whole numbers."""

_EXACT = {
    "absolute": "fabs({0})",
    "add": "{0} + {1}",
    "ceil": "copysign(float(ceil({0})), {0})",
    "divide": "{0} / {1}",
    "equal": "{0} == {1}",
    "float32": "float32({0})",
    "floor": "copysign(float(floor({0})), {0})",
    "greater": "{0} > {1}",
    "greater_equal": "{0} >= {1}",
    "heaviside": "({0} if {0} != {0} else {1} if {0} == 0.0 else 1.0 if {0} > 0.0 else 0.0)",
    "isfinite": "isfinite({0})",
    "less": "{0} < {1}",
    "less_equal": "{0} <= {1}",
    "logical_and": "{0} and {1}",
    "logical_not": "not {0}",
    "logical_or": "{0} or {1}",
    "maximum": "({0} if {0} > {1} or {0} != {0} else {1})",
    "minimum": "({0} if {0} < {1} or {0} != {0} else {1})",
    "multiply": "{0} * {1}",
    "negative": "-{0}",
    "not_equal": "{0} != {1}",
    "remainder": "{0} % {1}",
    "rint": "copysign(float(round({0})), {0})",
    "sign": "({0} if {0} != {0} else 1.0 if {0} > 0.0 else -1.0 if {0} < 0.0 else 0.0)",
    "sqrt": "sqrt({0})",
    "subtract": "{0} - {1}",
    "where": "({1} if {0} else {2})",
}
EXACT = frozenset(_EXACT) - {"float32", "remainder"}
"""Universal functions whose results are not rounded, or in one way only, in every target."""
_TEMPLATES: Mapping[str, str] = {
    **{
        name: f"{c}({', '.join(f'{{{k}}}' for k in range(1 + (c in ('atan2', 'hypot', 'pow'))))})"
        for name, c in C99.items()
        if c not in _INACCURATE
    },
    **_EXACT,
    "logaddexp": "logaddexp({0}, {1})",
}
"""The Python expression of each universal function."""


def _float32(x: float) -> float:
    """Return the nearest float32."""
    if not abs(x) < 2.0**128:
        return x if x != x else math.copysign(math.inf, x)
    exponent = max(math.frexp(x)[1], -125) - 24
    y = math.copysign(math.ldexp(round(math.ldexp(x, -exponent)), exponent), x)
    return y if abs(y) < 2.0**128 else math.copysign(math.inf, x)


def _logaddexp(a: float, b: float) -> float:
    """Return log(eᵃ + eᵇ); the difference of equal infinities is nan, so equal numbers use 0."""
    apart = 0.0 if a == b else a - b
    return (a if a > b else b) + math.log1p(math.exp(-abs(apart)))


NAMES: dict[str, Any] = {
    **{name: getattr(math, name) for name in dir(math) if not name.startswith("_")},
    "float32": _float32,
    "logaddexp": _logaddexp,
}
"""The names that expressions may use, besides Python's `abs`, `float` and `round`."""


_MOVES = PICKING | {scatter}
"""Rows that only move elements; others add or compute."""


@cache
def _of_portable(row: Primitive) -> Primitive:
    return replace(row, kernel=row.portable or row.kernel, _computers={})


_FEW = 12
"""Operations of a portable kernel that is computed instead of SciPy's function."""


def form_over(known: Container[str], row: Primitive, kinds: tuple[str, ...]) -> NumpyProgram | None:
    """Return a row's kernel, or a short portable one, over known universal functions; else None."""
    for each in (row, _of_portable(row)):
        form = kernel_form(each, kinds)
        few = each is row or (form is not None and len(form.ops) <= _FEW)
        if form is not None and few and all(op.name in known for op in form.ops):
            return form
    return None


@cache
def plain(row: Primitive) -> tuple[str, dict[str, Any]]:
    """Return the row's expression on floats, and the functions that it names.

    Examples
    --------
    >>> from difflab.primitives import digamma, dlog, sin
    >>> plain(sin)[0], plain(digamma)[0], plain(dlog)[0]
    ('sin({0})', 'of_digamma({0})', '(nan if {0} < 0.0 else 1.0 / {0})')
    """
    arity = row.arity or 0
    kinds = tuple("truth" if position in row.truths else "number" for position in range(arity))
    form = form_over(_TEMPLATES, row, kinds)
    if row.ufunc in _TEMPLATES:
        words = set(re.findall(r"[A-Za-z_]\w*", _TEMPLATES[row.ufunc]))
        return _TEMPLATES[row.ufunc], {word: NAMES[word] for word in words & NAMES.keys()}
    operands = ", ".join(f"{{{index}}}" for index in range(arity))
    if form is None:
        return f"of_{row.name}({operands})", {f"of_{row.name}": single(row)}
    lines, value = _written(form, arity)
    words = set(re.findall(r"[A-Za-z_]\w*", " ".join([*lines, value])))
    names = {word: NAMES[word] for word in words & NAMES.keys()}
    if not lines and len(value) <= _SHORT:
        return value, names
    letters = [f"a{index}" for index in range(arity)]
    body = [*lines, f"    return {value}"]
    source = "\n".join([f"def call({', '.join(letters)}):", *body]).format(*letters)
    exec(source, names)  # noqa: S102 - built from the table's kernels only
    return f"of_{row.name}({operands})", {f"of_{row.name}": names["call"]}


_SHORT = 80
"""Characters of an expression that is no function."""


def _written(form: NumpyProgram, arity: int) -> tuple[list[str], str]:
    """Return assignments, and the expression of the value, over fields for the arguments.

    A value that is read once is inlined: branches that are not executed are not computed, and raise
    nothing.
    """
    uses: dict[int, int] = {}
    for op in form.ops:
        template = _TEMPLATES[op.name]
        for position, read in enumerate(op.reads):
            uses[read] = uses.get(read, 0) + template.count(f"{{{position}}}")
    texts = {index: f"{{{index}}}" for index in range(arity)}
    texts |= {number: _literal(value.item()) for number, value in form.known.items()}
    lines, sums = [], set[int]()
    for op in form.ops:
        template = _TEMPLATES[op.name]
        enclosed = template.endswith(")")  # a call or a choice
        operands = [texts[r] if enclosed or r not in sums else f"({texts[r]})" for r in op.reads]
        text = template.format(*operands)
        if uses.get(op.number, 0) > 1:
            lines.append(f"    t{op.number} = {text}")
            texts[op.number] = f"t{op.number}"
        else:
            texts[op.number] = text
            if not enclosed:
                sums.add(op.number)
    return lines, texts[form.outputs[0]]


def _literal(value: float | bool) -> str:
    text = repr(value)
    return f"({text})" if text.startswith("-") else text


@cache
def guarded(row: Primitive) -> tuple[str, dict[str, Any]]:
    """Return an expression with NumPy's nan and inf instead of errors, and the functions it names.

    Examples
    --------
    >>> from difflab.primitives import add, log
    >>> guarded(add)[0], guarded(log)[0]
    ('{0} + {1}', 'safe_log({0})')
    >>> guarded(log)[1]["safe_log"](0.0)
    -inf
    """
    template, names = plain(row)
    if not _CALL.search(template) or names.get(f"of_{row.name}") is single(row):
        return template, names
    operands = ", ".join(f"{{{index}}}" for index in range(row.arity or 0))
    return f"safe_{row.name}({operands})", {f"safe_{row.name}": _safe(called(row), single(row))}


@cache
def called(row: Primitive) -> Callable[..., Any]:
    """Return the row's plain expression as a function.

    Examples
    --------
    >>> from difflab.primitives import add
    >>> called(add)(1.0, 2.0)
    3.0
    """
    template, names = plain(row)
    letters = "abcd"[: row.arity]
    source = f"lambda {', '.join(letters)}: {template.format(*letters)}"
    function: Callable[..., Any] = eval(source, dict(names))  # noqa: S307 - from the table's kernels
    return function


def computes_numbers(graph: Graph) -> bool:
    """Whether all arithmetic is on scalars, and array operations only move elements."""
    if any(row.shape is not None and row not in _MOVES for row in graph.primitives):
        return False
    elementwise = {k for k, row in enumerate(graph.primitives, FIRST_ROW) if row.shape is None}
    return elementwise.isdisjoint(graph.opcode[graph.shape_ids != 0].tolist())


def evaluated(function: Function, numbers: Sequence[float]) -> list[Any] | None:
    """Return the outputs at one point as code would, without a program; None where code differs.

    Planning takes twice as long, which only later calls pay off. The function `computes_numbers`.
    """
    schedule, iterator = Schedule.started(function)
    steps, parts = list(iterator), function.split(np.array(numbers))
    values = {**schedule.known, **dict(zip(function.input_nodes, map(_plain, parts), strict=True))}
    try:
        for node, row, args, params in steps:
            if row.shape is None:
                if len(args) == 2:  # the usual case, in half the time
                    values[node] = called(row)(values[args[0]], values[args[1]])
                elif len(args) == 1:
                    values[node] = called(row)(values[args[0]])
                else:
                    values[node] = called(row)(*[values[arg] for arg in args])
                continue
            if row is scatter and 1 < len(args) != len(_elements(params["keys"])):
                return None  # parts may be added up
            values[node] = _plain(row.at_point(np, params)(*[values[arg] for arg in args]))
    except (ArithmeticError, ValueError):
        return None
    outputs = [values[node] for node in schedule.outputs]
    return [np.array(value) if type(value) is np.ndarray else value for value in outputs]


def _elements(keys: Sequence[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    """Return those of the keys that are of one element."""
    return {key for key in keys if not any(isinstance(entry, tuple) for entry in key)}


def _plain(value: Any) -> Any:
    """Return an array without axes as a Python scalar."""
    return value if value.ndim else value.item()


def _safe(raw: Callable[..., float], kernel: Callable[..., float]) -> Callable[..., float]:
    def call(*args: float) -> float:
        try:
            return raw(*args)
        except (ArithmeticError, ValueError):
            return kernel(*args)

    return call


@cache
def single(row: Primitive) -> Callable[..., float]:
    """Return the row's kernel as a function of Python floats.

    Examples
    --------
    >>> from difflab.primitives import divide
    >>> single(divide)(1.0, 0.0)
    inf
    """
    kernel = row.computer(np)

    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return kernel(*map(np.float64, args)).item()

    return call


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
_KNOWN = EXACT | {ufunc.__name__ for ufunc in LIBRARY.values()} | {"logaddexp"}


@lru_cache(maxsize=1024)
def expression_form(row: Primitive, kinds: tuple[str, ...]) -> NumpyProgram | None:
    """Return a row's kernel as universal functions with the bits of `math`; None if it has others.

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
    if row.shape is not None or any(kind not in ("number", "truth") for kind in kinds):
        return None
    if any(kind == "truth" and index not in row.truths for index, kind in enumerate(kinds)):
        return None  # Python computes with integers then
    form = form_over(_KNOWN, row, kinds)
    if form is None or not all(form.truths.issuperset(op.reads) for op in form.ops if _joins(op)):
        return None  # Python returns one of the operands
    return form


def _joins(op: Op) -> bool:
    """Whether an operation joins truth values."""
    return op.name in ("logical_and", "logical_or")
