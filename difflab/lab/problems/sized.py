"""Families of functions: from sizes n and m to a function and a point.

A size stands wherever a number may. Where the language wants an integer, in the shape of a
declaration, in an index and before ``times``, an expression of sizes stands for its value:
``x: [2*n]; W: [m, n + 1]; x[n - 1]; iterate(y = 0.5; 2*n times; y/2)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.diagnose.point_check import checked_point, packed
from difflab.errors import InputError, ParseError
from difflab.graph.function import Function
from difflab.graph.trace import trace
from difflab.language import parse
from difflab.language.lexer import TokenKind, clean_name, tokens

_NAMED = (TokenKind.NAME, TokenKind.ELEMENT)


class _IntegerRole(Enum):
    """Role of an integer: its least value, and its name in messages."""

    SHAPE = "size"
    INDEX = "index"
    STEPS = "number of steps"


_LEAST = {_IntegerRole.SHAPE: 1, _IntegerRole.STEPS: 0}
_VALUE = (TokenKind.NAME, TokenKind.CLOSE, TokenKind.UNBRACKET, TokenKind.ELEMENT)
_ENDS = (TokenKind.COMMA, TokenKind.COLON, TokenKind.UNBRACKET)
_LARGEST = 2.0**53


class _Expression(NamedTuple):
    """Location of an integer expression in the text."""

    role: _IntegerRole
    start: int
    end: int


def names(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield every name in `text`, normalised, with its position.

    Examples
    --------
    >>> list(names("x₁ + n*y[2]"))
    [('x1', 0, 2), ('n', 5, 6), ('y', 7, 8)]
    """
    for kind, start, end in tokens(text):
        if kind in _NAMED:
            bracket = text.find("[", start, end) if kind == TokenKind.ELEMENT else end
            stop = len(text[:bracket].rstrip())
            yield clean_name(text, start, stop), start, stop


def renamed(text: str, replacements: Mapping[str, str]) -> str:
    """Return `text` with some names replaced by other names or literals.

    Examples
    --------
    >>> renamed("x: [n]; sum(x)/n", {"n": "4"})
    'x: [4]; sum(x)/4'
    >>> renamed("2n", {"n": "4"})  # an operator is missing, and remains so
    '2 4'
    """
    parts, position = [], 0
    for name, start, end in names(text):
        if name in replacements:
            apart = " " * text[start - 1 : start].isdigit()
            parts += [text[position:start], apart, replacements[name]]
            position = end
    return "".join([*parts, text[position:]])


def _with_sizes(text: str, sizes: Mapping[str, int]) -> str:
    """Return `text` with sizes and integer expressions of them replaced by integers.

    Raises
    ------
    InputError
        The value of an expression is no integer, or no size; the error marks the expression.

    Examples
    --------
    >>> _with_sizes("x: [2*n]; W: [m, n + 1]; sum(x)/n", {"n": 3, "m": 2})
    'x: [6]; W: [2, 4]; sum(x)/3'
    """
    texts = {name: str(value) for name, value in sizes.items()}
    parts, position = [], 0
    for expression in _expressions(text):
        source = text[expression.start : expression.end]
        used = [name for name, _, _ in names(source)]
        if any(name in sizes for name in used) and source.strip() not in sizes:
            value = _value(text, expression, texts, used)
            if value is not None:
                parts += [renamed(text[position : expression.start], texts), value]
                position = expression.end
    return "".join([*parts, renamed(text[position:], texts)])


def _value(
    text: str, expression: _Expression, texts: Mapping[str, str], used: list[str]
) -> str | None:
    """Return the integer as text; None if the parser is to report the error."""
    role, start, end = expression
    try:
        constant = parse(renamed(text[start:end], texts))
    except ParseError:
        return None
    if constant.n or constant.m != 1:
        return None
    value = float(constant())
    least = _LEAST.get(role)
    fault = ""
    if not value.is_integer() or abs(value) > _LARGEST:
        fault = "an integer"
    elif least is not None and value < least:
        fault = f"at least {least}"
    if fault:
        sizes = ", ".join(f"{name} = {texts[name]}" for name in dict.fromkeys(used))
        raise InputError(
            f"{text[start:end]} is {value:.15g} for {sizes}; the {role.value} must be {fault}",
            text=text,
            span=(start, end),
            hint="choose other sizes, or floor(…), max(…, 1)",
        )
    return str(int(value))


def _expressions(text: str) -> Iterator[_Expression]:
    """Yield the parts of the text where the language wants an integer, in order."""
    before: int | None = None
    clause: int | None = None
    brackets: list[_IntegerRole | None] = []
    depth, start = 0, 0
    for kind, begin, end in tokens(text):
        inside = brackets[-1] if brackets else None
        if kind == TokenKind.BRACKET:
            role = _IntegerRole.SHAPE if before == TokenKind.COLON and not brackets else None
            brackets.append(_IntegerRole.INDEX if before in _VALUE else role)
            depth, start = 0, end
        elif inside is not None and depth == 0 and kind in _ENDS:
            yield from _trimmed(text, inside, start, begin)
            start = end
        elif kind == TokenKind.NAME and text[begin:end] == "times" and clause is not None:
            yield from _trimmed(text, _IntegerRole.STEPS, clause, begin)
        if kind == TokenKind.UNBRACKET and brackets:
            brackets.pop()
        depth += (kind == TokenKind.OPEN) - (kind == TokenKind.CLOSE)
        if kind in (TokenKind.SEMICOLON, TokenKind.ASSIGN, TokenKind.NEWLINE):
            clause = end if kind == TokenKind.SEMICOLON else None
        before = kind


def _trimmed(text: str, role: _IntegerRole, start: int, end: int) -> Iterator[_Expression]:
    """Yield the expression between two indices, without the blanks around it."""
    source = text[start:end]
    if source.strip():
        first = start + len(source) - len(source.lstrip())
        yield _Expression(role, first, start + len(source.rstrip()))


SIZES = ("n", "m")

Member = tuple[Function, NDArray[float64]]


@dataclass(frozen=True)
class SizedFamily:
    """Functions of growing size.

    Attributes
    ----------
    text : str
        What identifies the family in the key of its rows.
    sizes : tuple of str
        Which of `SIZES` it has.
    member : callable
        Maps n and m to the function and a point ``(inputs,)``; a size that the family does not
        have is ignored.
    """

    text: str
    sizes: tuple[str, ...]
    member: Callable[[int, int], Member]


def formula_family(text: str, key: str | None = None) -> SizedFamily:
    """Return the family of a formula in which the names n and m stand for sizes.

    Parameters
    ----------
    text : str
        A program of the language, with sizes in declarations (``x: [n]``), in loops (``n times``)
        and wherever a number may be, and integer expressions of them (``x: [2*n]``).
    key : str, optional
        What identifies a long text in the rows.

    Raises
    ------
    InputError
        The formula has no size, or defines one.

    Examples
    --------
    >>> family = formula_family("x: [n]; W: [m, n]; tanh(W@x)")
    >>> function, point = family.member(3, 2)
    >>> function.n, function.m, point.size
    (9, 2, 9)
    """
    occurrences = list(names(text))
    sizes = tuple(size for size in SIZES if any(name == size for name, _, _ in occurrences))
    if not sizes:
        raise InputError(
            "the formula has no size: neither n nor m occurs in it",
            hint="write n, or n and m, where sizes are, as in 'x: [n]; W: [m, n]; W@x'",
        )
    for name, start, end in occurrences:
        if name in sizes and _defined(text, end):
            raise InputError(
                f"{name} is a size of the family and cannot be defined",
                text=text,
                span=(start, end),
                hint="choose another name for this value",
            )

    def member(n: int, m: int) -> Member:
        function = parse(_with_sizes(text, {"n": n, "m": m}))
        return function, packed(function, checked_point(function, None))

    return SizedFamily(key or text, sizes, member)


def _defined(text: str, end: int) -> bool:
    rest = text[end:].lstrip()
    return rest.startswith("=") and not rest.startswith("==")


def python_family(key: str, build: Callable[..., Any], parameters: Sequence[str]) -> SizedFamily:
    """Return the family of a Python function of sizes.

    Parameters
    ----------
    key : str
        What identifies the family.
    build : callable
        Takes n, m or both by name and returns a callable or `Function` and its example arguments:
        an array or number, or a tuple of them.
    parameters : sequence of str
        The names of its parameters.

    Raises
    ------
    InputError
        A parameter is not a size.

    Examples
    --------
    >>> family = python_family("f", lambda n: (np.sin, np.ones(n)), ["n"])
    >>> family.member(3, 1)[0].n
    3
    """
    other = [name for name in parameters if name not in SIZES]
    if other or not parameters:
        wrong = f"a parameter {other[0]!r}" if other else "no parameter"
        raise InputError(
            f"{key} has {wrong}: a family is a function of the sizes n, m or both",
            hint="def family(n, m): return function, (argument, argument)",
        )

    def member(n: int, m: int) -> Member:
        sizes = {"n": n, "m": m}
        return _recorded(key, build(**{name: sizes[name] for name in parameters}))

    return SizedFamily(key, tuple(size for size in SIZES if size in parameters), member)


def _recorded(key: str, built: Any) -> Member:
    """Return the function and the point that a family returned."""
    if not isinstance(built, tuple) or len(built) != 2 or not callable(built[0]):
        raise InputError(
            f"{key} must return a function and its example arguments",
            hint="return function, (argument, argument)",
        )
    function, inputs = built
    arguments = inputs if isinstance(inputs, tuple) else (inputs,)
    arrays = [np.asarray(argument, dtype=float64) for argument in arguments]
    if not isinstance(function, Function):
        function = trace(function, *arrays)
    if len(function.inputs) != len(arrays):
        raise InputError(
            f"{key} returned {len(arrays)} arguments for a function of {len(function.inputs)}"
        )
    point = dict(zip(function.inputs, arrays, strict=True))
    return function, packed(function, checked_point(function, point))
