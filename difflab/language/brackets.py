"""Square brackets: the shape of a declaration, the key of an indexing expression.

Both are static integers, so they are read directly, without the parser's stacks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from difflab.errors import ParseError
from difflab.language.complaints import shown, stray, unclosed
from difflab.language.keys import AxisIndex, IndexKey, RawKey, axis_index
from difflab.language.lexer import TokenKind

__all__ = ["read_integers", "read_key", "read_place", "read_shape"]

Tokens = Iterator[tuple[int, int, int]]
_LARGEST = 2**40
"""Maximum number of elements of an array input; more is assumed to be a typing error."""

_DEEPEST = 32
_DIGITS = 15


class _Reader:
    """Reader of the tokens up to the closing bracket, one at a time."""

    def __init__(self, text: str, tokens: Tokens, opener: int) -> None:
        self.text = text
        self.tokens = tokens
        self.opener = opener
        self.advance()

    def advance(self) -> None:
        """Move to the next token; newlines inside brackets are skipped."""
        self.kind, self.start, self.end = next(
            token for token in self.tokens if token[0] != TokenKind.NEWLINE
        )
        if self.kind in {TokenKind.END, TokenKind.SEMICOLON}:
            raise unclosed(self.text, self.opener)
        if self.kind == TokenKind.BAD:
            raise stray(self.text, self.start)

    def integer(self) -> int | None:
        """Read an integer with its sign; None if the current token begins none."""
        sign = -1 if self.kind == TokenKind.MINUS else 1
        if self.kind == TokenKind.MINUS:
            self.advance()
        literal = self.text[self.start : self.end]
        if self.kind != TokenKind.NUMBER:
            if sign < 0:
                raise self.complaint("expected an integer after the minus")
            return None
        if not literal.isdigit() or len(literal) > _DIGITS:
            raise self.complaint(f"{shown(literal)} is not a valid index or size")
        self.advance()
        return sign * int(literal)

    def complaint(self, message: str, span: tuple[int, int] | None = None) -> ParseError:
        """Return the error that marks the current token, or at `span`."""
        return ParseError(message, text=self.text, span=span or (self.start, self.end))

    def separated(self) -> bool:
        """Skip a comma and return True; return False at the closing bracket."""
        if self.kind == TokenKind.UNBRACKET:
            return False
        if self.kind != TokenKind.COMMA:
            raise self.no_integer()
        self.advance()
        return True

    def no_integer(self) -> ParseError:
        """Return the error for a token where an integer is expected."""
        if self.kind in {TokenKind.COMMA, TokenKind.UNBRACKET}:
            return self.complaint("an integer is missing")
        token = shown(self.text[self.start : self.end])
        hint = (
            "declare the array as an input: A: [2, 2]; norm(A)"
            if token == "["
            else "only integers are allowed here: x[0], x[1:], x[::2], W[1, 2]"
        )
        span = (self.start, self.end)
        return ParseError(f"'{token}' is not an integer", text=self.text, span=span, hint=hint)


def read_shape(text: str, tokens: Tokens, opener: int) -> tuple[tuple[int, ...], int]:
    """Read the shape after ``[``; return it and the index of its end.

    Raises
    ------
    ParseError
        If it is not a list of positive integers, or has too many elements or axes.
    """
    reader = _Reader(text, tokens, opener)
    shape: list[int] = []
    more = reader.kind != TokenKind.UNBRACKET
    while more:
        start = reader.start
        size = reader.integer()
        if size is None:
            raise reader.no_integer()
        if size < 1:
            raise reader.complaint("a size must be at least 1", (start, reader.start))
        shape.append(size)
        more = reader.separated()
    if math.prod(shape) > _LARGEST or len(shape) > _DEEPEST:
        message = "an array input holds at most 2^40 elements on 32 axes"
        raise reader.complaint(message, (opener, reader.end))
    return tuple(shape), reader.end


def read_integers(text: str, tokens: Tokens, opener: int) -> tuple[tuple[int, ...], int]:
    """Read the integers after ``[``, such as axes; return them and the index of their end.

    Raises
    ------
    ParseError
        If it is not a list of integers, or an empty one.
    """
    reader = _Reader(text, tokens, opener)
    if reader.kind == TokenKind.UNBRACKET:
        raise reader.complaint("empty brackets", (opener, reader.end))
    found: list[int] = []
    more = True
    while more:
        integer = reader.integer()
        if integer is None:
            raise reader.no_integer()
        found.append(integer)
        more = reader.separated()
    return tuple(found), reader.end


def read_key(
    text: str, tokens: Tokens, opener: int, shape: tuple[int, ...]
) -> tuple[IndexKey, int]:
    """Read the indices after ``[`` for a value of `shape`; return them and the index of their end.

    The key has one element per axis: an index, or ``(start, stop, step)``.

    Raises
    ------
    ParseError
        If an index is out of bounds, a slice is empty, or there are too many indices.
    """
    reader = _Reader(text, tokens, opener)
    key: list[AxisIndex] = []
    if reader.kind == TokenKind.UNBRACKET:
        raise reader.complaint("empty brackets", (opener, reader.end))
    more = True
    while more:
        if len(key) == len(shape):
            raise _too_many(reader, shape)
        key.append(_entry(reader, shape[len(key)]))
        more = reader.separated()
    key += [(0, size, 1) for size in shape[len(key) :]]
    return tuple(key), reader.end


def read_place(text: str, tokens: Tokens, opener: int) -> RawKey:
    """Read the indices after ``[`` for a value of a shape that is not yet known."""
    reader = _Reader(text, tokens, opener)
    key = [_parts(reader)[0]]
    while reader.separated():
        key.append(_parts(reader)[0])
    return tuple(key)


def _too_many(reader: _Reader, shape: tuple[int, ...]) -> ParseError:
    if shape:
        return reader.complaint(f"too many indices for the shape {list(shape)}")
    hint = "an array input is declared by a line such as x: [100]"
    return ParseError(
        "a scalar cannot be indexed",
        text=reader.text,
        span=(reader.opener, reader.end),
        hint=hint,
    )


def _entry(reader: _Reader, size: int) -> AxisIndex:
    """Read an index or a slice of an axis of the given size."""
    parts, span = _parts(reader)
    try:
        return axis_index(parts, size)
    except ValueError as error:
        raise reader.complaint(str(error), span) from None


def _parts(reader: _Reader) -> tuple[tuple[int | None, ...], tuple[int, int]]:
    """Read the integers of an index or a slice; return them and their span."""
    start = reader.start
    parts: list[int | None] = [reader.integer()]
    end = reader.start
    while reader.kind == TokenKind.COLON and len(parts) < 3:
        reader.advance()
        parts.append(reader.integer())
        end = reader.start
    if parts == [None]:
        raise reader.no_integer()
    return tuple(parts), (start, len(reader.text[start:end].rstrip()) + start)
