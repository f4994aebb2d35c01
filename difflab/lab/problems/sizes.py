"""Names in the text of a formula, and sizes in that of a family: integer expressions of them.

A size stands wherever a number may. Where the language wants an integer, in the shape of a
declaration, in an index and before ``times``, an expression of sizes stands for its value:
``x: [2*n]; W: [m, n + 1]; x[n - 1]; iterate(y = 0.5; 2*n times; y/2)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from difflab.errors import InputError, ParseError
from difflab.language import parse
from difflab.language.lexer import TokenKind, clean_name, tokens

_NAMED = (TokenKind.NAME, TokenKind.ELEMENT)


class _Place(Enum):
    """Role of an integer: its least value, and its name in messages."""

    SHAPE = "size"
    INDEX = "index"
    TURNS = "number of steps"


_LEAST = {_Place.SHAPE: 1, _Place.TURNS: 0}
_VALUE = (TokenKind.NAME, TokenKind.CLOSE, TokenKind.UNBRACKET, TokenKind.ELEMENT)
_LARGEST = 2.0**53


class _Expression(NamedTuple):
    """Location of an integer expression in the text."""

    place: _Place
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


def with_sizes(text: str, sizes: Mapping[str, int]) -> str:
    """Return `text` with sizes and integer expressions of them replaced by integers.

    Raises
    ------
    InputError
        The value of an expression is no integer, or no size; the error marks the expression.

    Examples
    --------
    >>> with_sizes("x: [2*n]; W: [m, n + 1]; sum(x)/n", {"n": 3, "m": 2})
    'x: [6]; W: [2, 4]; sum(x)/3'
    """
    numbers = {name: str(value) for name, value in sizes.items()}
    parts, position = [], 0
    for expression in _expressions(text):
        source = text[expression.start : expression.end]
        used = [name for name, _, _ in names(source)]
        if any(name in sizes for name in used) and source.strip() not in sizes:
            value = _value(text, expression, numbers, used)
            if value is not None:
                parts += [renamed(text[position : expression.start], numbers), value]
                position = expression.end
    return "".join([*parts, renamed(text[position:], numbers)])


def _value(
    text: str, expression: _Expression, numbers: Mapping[str, str], used: list[str]
) -> str | None:
    """Return the integer as text; None if the parser is to report the error."""
    place, start, end = expression
    try:
        constant = parse(renamed(text[start:end], numbers))
    except ParseError:
        return None
    if constant.n or constant.m != 1:
        return None
    value = float(constant())
    least = _LEAST.get(place)
    fault = ""
    if not value.is_integer() or abs(value) > _LARGEST:
        fault = "an integer"
    elif least is not None and value < least:
        fault = f"at least {least}"
    if fault:
        given = ", ".join(f"{name} = {numbers[name]}" for name in dict.fromkeys(used))
        raise InputError(
            f"{text[start:end]} is {value:.15g} for {given}; the {place.value} must be {fault}",
            text=text,
            span=(start, end),
            hint="choose other sizes, or floor(…), max(…, 1)",
        )
    return str(int(value))


def _expressions(text: str) -> Iterator[_Expression]:
    """Yield the parts of the text where the language wants an integer, in order."""
    before: int | None = None
    clause: int | None = None
    brackets: list[_Place | None] = []
    depth, start = 0, 0
    for kind, begin, end in tokens(text):
        inside = brackets[-1] if brackets else None
        if kind == TokenKind.BRACKET:
            place = _Place.SHAPE if before == TokenKind.COLON and not brackets else None
            brackets.append(_Place.INDEX if before in _VALUE else place)
            depth, start = 0, end
        elif inside is not None and depth == 0 and kind in _ENDS:
            yield from _trimmed(text, inside, start, begin)
            start = end
        elif kind == TokenKind.NAME and text[begin:end] == "times" and clause is not None:
            yield from _trimmed(text, _Place.TURNS, clause, begin)
        if kind == TokenKind.UNBRACKET and brackets:
            brackets.pop()
        depth += (kind == TokenKind.OPEN) - (kind == TokenKind.CLOSE)
        if kind in (TokenKind.SEMICOLON, TokenKind.ASSIGN, TokenKind.NEWLINE):
            clause = end if kind == TokenKind.SEMICOLON else None
        before = kind


_ENDS = (TokenKind.COMMA, TokenKind.COLON, TokenKind.UNBRACKET)


def _trimmed(text: str, place: _Place, start: int, end: int) -> Iterator[_Expression]:
    """Yield the expression between two indices, without the blanks around it."""
    source = text[start:end]
    if source.strip():
        first = start + len(source) - len(source.lstrip())
        yield _Expression(place, first, start + len(source.rstrip()))
