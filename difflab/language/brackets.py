"""Square brackets: lists of elements and of outputs, shapes, indices and integers of calls.

A bracket where an operand is expected lists the elements of an array, ``[x, 2*x]``; after the
first argument of an array function that takes some it lists integers, ``sum(x, [0])``. Shapes,
indices and such integers are static, so they are read directly, without the parser's stacks.
The functions of a parser and a token are handlers of its tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from difflab.core.primitive import Primitive
from difflab.errors import ParseError
from difflab.language import complaints
from difflab.language.calls import CLAUSED, LIST, ArrayCall, Statics
from difflab.language.complaints import shown
from difflab.language.lexer import TokenKind, tokens
from difflab.language.placing import AxisIndex, IndexKey, RawKey, axis_index, indexed

if TYPE_CHECKING:
    from difflab.language.parser import Parser


_OPEN, _BRACKET = int(TokenKind.OPEN), int(TokenKind.BRACKET)

Tokens = Iterator[tuple[int, int, int]]
_LARGEST = 2**40
"""Maximum number of elements of an array input; more is assumed to be a typing error."""

_DEEPEST = 32
_DIGITS = 15


class OpenBracket(NamedTuple):
    """An open bracket: its function, the operands below it, starts of call and bracket."""

    function: Primitive | ArrayCall | None
    base: int
    start: int
    opener: int


def open_list(parser: Parser, kind: int, start: int, end: int) -> None:
    """Open an array, or read the integers in brackets after the arguments of a call."""
    frame = parser.frames[-1] if parser.frames else None
    function = None if frame is None else frame.function
    inside = parser.operators[-1] == _OPEN and function not in CLAUSED
    first = frame is not None and len(parser.nodes) == frame.base
    if not isinstance(function, ArrayCall) or not function.lists or not inside or first:
        parser.frames.append(OpenBracket(LIST, len(parser.nodes), start, start))
        parser.prefix(_BRACKET, start, end)
        return
    _static(parser).integers = _read_integers(parser.text, parser.tokens, start)
    parser.state = parser.after_list


def open_outputs(parser: Parser, kind: int, start: int, end: int) -> None:
    """Open the list of the outputs."""
    parser.frames.append(OpenBracket(None, len(parser.nodes), start, start))
    parser.prefix(kind, start, end)


def close_list(parser: Parser, kind: int, start: int, end: int) -> None:
    """Close the brackets of an array or, on the last line, of the outputs."""
    array = bool(parser.frames) and parser.frames[-1].function is not None
    frame = parser.closed(_BRACKET, start, end)
    if array:
        parser.finish_call(LIST, frame, end)
        return
    parser.require_no_output()
    parser.outputs = list(zip(parser.nodes, parser.starts, parser.ends, strict=True))
    parser.closing = (frame.opener, end)
    del parser.nodes[:], parser.starts[:], parser.ends[:]
    parser.state = parser.at_end


def declare(parser: Parser, start: int, end: int) -> None:
    """Read a declaration, such as ``x: [100]``, whose name was read."""
    next(parser.tokens)
    kind, opener, stop = next(parser.tokens)
    if kind != TokenKind.BRACKET:
        hint = "write name: [100], name: [4, 3], or name: [] for a scalar"
        raise parser.error("a declaration needs a shape in brackets", (start, stop), hint)
    shape = _read_shape(parser.text, parser.tokens, opener)
    parser.scope.declare((start, end), shape, hides=True)
    parser.state = parser.at_end


def index(parser: Parser, kind: int, start: int, end: int) -> None:
    """Index the operand before the bracket."""
    node = parser.nodes[-1]
    key, end = _read_key(parser.text, parser.tokens, start, parser.builder.shape(node))
    parser.nodes[-1] = indexed(parser.builder, node, key, (parser.starts[-1], end))
    parser.ends[-1] = end


def new_element(parser: Parser, start: int, end: int) -> None:
    """Read a name and the indices in brackets after it."""
    opener = parser.text.index("[", start)
    parser.state[TokenKind.NAME](parser, TokenKind.NAME, start, opener)
    if parser.state is parser.at_operator:
        node, position = parser.nodes[-1], int(parser.text[opener + 1 : end - 1])
        shape = parser.builder.shape(node)
        if len(shape) == 1 and position < shape[0]:
            element = indexed(parser.builder, node, (position,), (start, end))
            parser.nodes[-1] = parser.elements[parser.text[start:end]] = element
            parser.ends[-1] = end
            return
    following, parser.tokens = parser.tokens, tokens(parser.text, opener + 1)
    parser.state[TokenKind.BRACKET](parser, TokenKind.BRACKET, opener, opener + 1)
    parser.tokens = following


def _static(parser: Parser) -> Statics:
    """Return the static arguments of the innermost call."""
    return parser.statics.setdefault(parser.frames[-1].opener, Statics())


def at(parser: Parser, kind: int, start: int, end: int) -> None:
    """Read the indices at which an argument is put: ``at [1:]``."""
    function = parser.frames[-1].function if parser.frames else None
    placed = isinstance(function, ArrayCall) and function.placed
    if not placed or parser.text[start:end] != "at":
        parser.adjacent(kind, start, end)
    parser.reduce(1)
    following, opener, _ = next(parser.tokens)
    if following != TokenKind.BRACKET or parser.operators[-1] != _OPEN:
        hint = "write x at [0], y at [1:]"
        raise parser.error("'at' needs indices in brackets", (start, end), hint)
    _static(parser).places.append(_read_raw_key(parser.text, parser.tokens, opener))
    parser.state = parser.after_index


def along(parser: Parser, kind: int, start: int, end: int) -> None:
    """Read the axis of the indices in a list: ``along 1``."""
    function = parser.frames[-1].function
    allowed = isinstance(function, ArrayCall) and function.along
    if parser.text[start:end] != "along" or not allowed:
        list_is_last(parser, kind, start, end)
    following, begin, stop = next(parser.tokens)
    literal = parser.text[begin:stop]
    if following != TokenKind.NUMBER or not literal.isdigit():
        hint = "write [2, 0] along 1"
        raise parser.error("'along' needs the number of an axis", (start, end), hint)
    _static(parser).axis = int(literal)


def second(parser: Parser, kind: int, start: int, end: int) -> None:
    """Read the second list of a call, the shape of its result."""
    function, static = parser.frames[-1].function, _static(parser)
    following, opener, _ = next(parser.tokens)
    allowed = isinstance(function, ArrayCall) and function.second and static.shape is None
    if not allowed or following != TokenKind.BRACKET:
        list_is_last(parser, kind, start, end)
    static.shape = _read_integers(parser.text, parser.tokens, opener)


def list_is_last(parser: Parser, kind: int, start: int, end: int) -> None:
    """Raise the error for a token after the list in a call."""
    if kind in {TokenKind.END, TokenKind.SEMICOLON}:
        raise complaints.unclosed(parser.text, parser.frames[-1].opener)
    raise complaints.after_list(parser.text, (start, end))


class _IntegerReader:
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
            raise complaints.unclosed(self.text, self.opener)
        if self.kind == TokenKind.BAD:
            raise complaints.stray(self.text, self.start)

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


def _read_shape(text: str, tokens: Tokens, opener: int) -> tuple[int, ...]:
    """Read the shape after ``[``.

    Raises
    ------
    ParseError
        If it is not a list of positive integers, or has too many elements or axes.
    """
    reader = _IntegerReader(text, tokens, opener)
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
    return tuple(shape)


def _read_integers(text: str, tokens: Tokens, opener: int) -> tuple[int, ...]:
    """Read the integers after ``[``, such as axes.

    Raises
    ------
    ParseError
        If it is not a list of integers, or an empty one.
    """
    reader = _IntegerReader(text, tokens, opener)
    if reader.kind == TokenKind.UNBRACKET:
        raise reader.complaint("empty brackets", (opener, reader.end))
    integers: list[int] = []
    more = True
    while more:
        integer = reader.integer()
        if integer is None:
            raise reader.no_integer()
        integers.append(integer)
        more = reader.separated()
    return tuple(integers)


def _read_key(
    text: str, tokens: Tokens, opener: int, shape: tuple[int, ...]
) -> tuple[IndexKey, int]:
    """Read the indices after ``[`` for a value of `shape`; return them and the index of their end.

    The key has one element per axis: an index, or ``(start, stop, step)``.

    Raises
    ------
    ParseError
        If an index is out of bounds, a slice is empty, or there are too many indices.
    """
    reader = _IntegerReader(text, tokens, opener)
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


def _read_raw_key(text: str, tokens: Tokens, opener: int) -> RawKey:
    """Read the indices after ``[`` for a value of a shape that is not yet known."""
    reader = _IntegerReader(text, tokens, opener)
    key = [_parts(reader)[0]]
    while reader.separated():
        key.append(_parts(reader)[0])
    return tuple(key)


def _too_many(reader: _IntegerReader, shape: tuple[int, ...]) -> ParseError:
    if shape:
        return reader.complaint(f"too many indices for the shape {list(shape)}")
    hint = "an array input is declared by a line such as x: [100]"
    return ParseError(
        "a scalar cannot be indexed",
        text=reader.text,
        span=(reader.opener, reader.end),
        hint=hint,
    )


def _entry(reader: _IntegerReader, size: int) -> AxisIndex:
    """Read an index or a slice of an axis of the given size."""
    parts, span = _parts(reader)
    try:
        return axis_index(parts, size)
    except ValueError as error:
        raise reader.complaint(str(error), span) from None


def _parts(reader: _IntegerReader) -> tuple[tuple[int | None, ...], tuple[int, int]]:
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
