"""What stands in square brackets: the shape of a declaration, the key of an indexing.

Both are static integers, so they are read here at once, without the parser's stacks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from difflab.errors import ParseError
from difflab.language.complaints import shown, stray, unclosed
from difflab.language.lexer import Kind

__all__ = ["Key", "read_integers", "read_key", "read_shape"]

Tokens = Iterator[tuple[int, int, int]]
Entry = int | tuple[int, int | None, int]
Key = tuple[Entry, ...]

_LARGEST = 2**40
"""Elements of an array input; more is a slip of the keyboard, not a wish."""

_DEEPEST = 32
_DIGITS = 15


class _Reader:
    """Tokens up to the closing bracket, one at a time."""

    def __init__(self, text: str, tokens: Tokens, opener: int) -> None:
        self.text = text
        self.tokens = tokens
        self.opener = opener
        self.advance()

    def advance(self) -> None:
        """Move to the next token; newlines inside brackets do not count."""
        self.kind, self.start, self.end = next(
            token for token in self.tokens if token[0] != Kind.NEWLINE
        )
        if self.kind in {Kind.END, Kind.SEMICOLON}:
            raise unclosed(self.text, self.opener)
        if self.kind == Kind.BAD:
            raise stray(self.text, self.start)

    def integer(self) -> int | None:
        """Read an integer with its sign, if one stands here."""
        sign = -1 if self.kind == Kind.MINUS else 1
        if self.kind == Kind.MINUS:
            self.advance()
        literal = self.text[self.start : self.end]
        if self.kind != Kind.NUMBER:
            if sign < 0:
                raise self.complaint("an integer should follow the minus")
            return None
        if not literal.isdigit() or len(literal) > _DIGITS:
            raise self.complaint(f"{shown(literal)} is not an integer that can count elements")
        self.advance()
        return sign * int(literal)

    def complaint(self, message: str, span: tuple[int, int] | None = None) -> ParseError:
        """Return the error that points at the current token, or at `span`."""
        return ParseError(message, text=self.text, span=span or (self.start, self.end))

    def separated(self) -> bool:
        """Step over a comma; False at the closing bracket."""
        if self.kind == Kind.UNBRACKET:
            return False
        if self.kind != Kind.COMMA:
            raise self.no_integer()
        self.advance()
        return True

    def no_integer(self) -> ParseError:
        """Return the error about what stands where an integer should."""
        if self.kind in {Kind.COMMA, Kind.UNBRACKET}:
            return self.complaint("an integer is missing")
        token = shown(self.text[self.start : self.end])
        hint = (
            "an array is an input of its own: A: [2, 2]; det(A)"
            if token == "["
            else "only integers can stand here: x[0], x[1:], x[::2], W[1, 2]"
        )
        place = (self.start, self.end)
        return ParseError(f"'{token}' is not an integer", text=self.text, span=place, hint=hint)


def read_shape(text: str, tokens: Tokens, opener: int) -> tuple[tuple[int, ...], int]:
    """Read the shape behind ``[``; return it and where it ends.

    Raises
    ------
    ParseError
        If it is not a list of positive integers, or asks for too many elements.
    """
    reader = _Reader(text, tokens, opener)
    shape: list[int] = []
    more = reader.kind != Kind.UNBRACKET
    while more:
        start = reader.start
        size = reader.integer()
        if size is None:
            raise reader.no_integer()
        if size < 1:
            raise reader.complaint("a size is at least 1", (start, reader.start))
        shape.append(size)
        more = reader.separated()
    if math.prod(shape) > _LARGEST or len(shape) > _DEEPEST:
        message = "an array input holds at most 2^40 elements on 32 axes"
        raise reader.complaint(message, (opener, reader.end))
    return tuple(shape), reader.end


def read_integers(text: str, tokens: Tokens, opener: int) -> tuple[tuple[int, ...], int]:
    """Read the integers behind ``[``, such as axes; return them and where they end.

    Raises
    ------
    ParseError
        If it is not a list of integers, or an empty one.
    """
    reader = _Reader(text, tokens, opener)
    if reader.kind == Kind.UNBRACKET:
        raise reader.complaint("nothing between the brackets", (opener, reader.end))
    found: list[int] = []
    more = True
    while more:
        integer = reader.integer()
        if integer is None:
            raise reader.no_integer()
        found.append(integer)
        more = reader.separated()
    return tuple(found), reader.end


def read_key(text: str, tokens: Tokens, opener: int, shape: tuple[int, ...]) -> tuple[Key, int]:
    """Read the indices behind ``[`` for a value of `shape`; return them and where they end.

    The key has one entry per axis: a position, or ``(start, stop, step)``.

    Raises
    ------
    ParseError
        If an index is out of bounds, a slice selects nothing, or there are too many.
    """
    reader = _Reader(text, tokens, opener)
    key: list[Entry] = []
    if reader.kind == Kind.UNBRACKET:
        raise reader.complaint("nothing between the brackets", (opener, reader.end))
    more = True
    while more:
        if len(key) == len(shape):
            raise _too_many(reader, shape)
        key.append(_entry(reader, shape[len(key)]))
        more = reader.separated()
    key += [(0, size, 1) for size in shape[len(key) :]]
    return tuple(key), reader.end


def _too_many(reader: _Reader, shape: tuple[int, ...]) -> ParseError:
    if shape:
        return reader.complaint(f"an index too many for the shape {list(shape)}")
    hint = "an array input is declared by a line such as x: [100]"
    return ParseError(
        "a scalar cannot be indexed",
        text=reader.text,
        span=(reader.opener, reader.end),
        hint=hint,
    )


def _entry(reader: _Reader, size: int) -> Entry:
    """Read an index or a slice of an axis of that size."""
    start = reader.start
    parts: list[int | None] = [reader.integer()]
    end = reader.start
    while reader.kind == Kind.COLON and len(parts) < 3:
        reader.advance()
        parts.append(reader.integer())
        end = reader.start
    place = (start, len(reader.text[start:end].rstrip()) + start)
    if len(parts) == 1:
        position = parts[0]
        if position is None:
            raise reader.no_integer()
        if not -size <= position < size:
            message = f"index {position} is outside an axis of size {size}"
            raise reader.complaint(message, place)
        return position % size
    if parts[2:] == [0]:
        raise reader.complaint("a slice cannot step by 0", place)
    chosen = range(*slice(*parts).indices(size))
    if not chosen:
        raise reader.complaint(f"this slice of an axis of size {size} selects nothing", place)
    return (chosen.start, chosen.stop if chosen.stop >= 0 else None, chosen.step)
