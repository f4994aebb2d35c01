"""Square brackets in expressions: arrays that list their elements, and the integers of calls."""

from __future__ import annotations

from collections.abc import Iterable

from difflab.errors import ParseError
from difflab.language import complaints
from difflab.language.brackets import read_integers, read_place
from difflab.language.calls import ITERATE, LIST, ArrayCall, Statics
from difflab.language.complaints import TextSpan
from difflab.language.expression import ExpressionParser, Frame, Handler, table
from difflab.language.lexer import TokenKind

__all__ = ["ListParser"]

_OPEN, _BRACKET = int(TokenKind.OPEN), int(TokenKind.BRACKET)


class ListParser(ExpressionParser):
    """Parser of expressions with lists.

    A bracket where an operand is expected lists the elements of an array, ``[x, 2*x]``; after the
    first argument of an array function that takes some it lists integers, ``sum(x, [0])``.
    """

    def __init__(self, text: str, variables: Iterable[str] = ()) -> None:
        super().__init__(text, variables)
        closing: dict[int, Handler] = {
            TokenKind.CLOSE: self.close,
            TokenKind.NEWLINE: self.nothing,
            TokenKind.BAD: self.stray,
        }
        behind: dict[int, Handler] = {TokenKind.NAME: self._along, TokenKind.COMMA: self._second}
        self.behind_list = table(closing | behind, self._list_is_last)
        self.behind_place = table(closing | {TokenKind.COMMA: self.comma}, self._list_is_last)

    def operand_handlers(self) -> dict[int, Handler]:
        """Return the handlers of tokens where an operand is expected."""
        return super().operand_handlers() | {TokenKind.BRACKET: self._list}

    def operator_handlers(self) -> dict[int, Handler]:
        """Return the handlers of tokens after an operand."""
        handlers = super().operator_handlers()
        self._otherwise = handlers[TokenKind.NAME]
        return handlers | {TokenKind.NAME: self._at, TokenKind.UNBRACKET: self.close_list}

    def _list(self, kind: int, start: int, end: int) -> None:
        """Open an array, or read the integers in brackets after the arguments of a call."""
        row = self.frames[-1].row if self.frames else None
        inside = self.operators[-1] == _OPEN and row is not ITERATE
        first = bool(self.frames) and len(self.nodes) == self.frames[-1].base
        if not isinstance(row, ArrayCall) or not row.lists or not inside or first:
            self.frames.append(Frame(LIST, len(self.nodes), start, start))
            self.prefix(_BRACKET, start, end)
            return
        integers, _ = read_integers(self.text, self.tokens, start)
        self._static().integers = integers
        self.state = self.behind_list

    def close_list(self, kind: int, start: int, end: int) -> None:
        """Close the brackets of an array."""
        frame = self.closed_bracket(start, end)
        self.finish_call(LIST, frame, end)

    def closed_bracket(self, start: int, end: int) -> Frame:
        """Return the frame of the bracket that is closed here."""
        self.reduce(1)
        if self.operators[-1] != _BRACKET:
            opener = self.frames[-1].opener if self.frames else None
            raise complaints.unopened(self.text, (start, end), opener)
        self.operators.pop()
        self.positions.pop()
        return self.frames.pop()

    def _static(self) -> Statics:
        """Return what the innermost call says beside its arguments."""
        return self.statics.setdefault(self.frames[-1].opener, Statics())

    def _at(self, kind: int, start: int, end: int) -> None:
        """Read the place of an argument: ``at [1:]``."""
        row = self.frames[-1].row if self.frames else None
        placed = isinstance(row, ArrayCall) and row.placed
        if not placed or self.text[start:end] != "at":
            self._otherwise(kind, start, end)
        self.reduce(1)
        following, opener, _ = next(self.tokens)
        if following != TokenKind.BRACKET or self.operators[-1] != _OPEN:
            raise self._error("'at' needs indices in brackets", (start, end), "x at [0], y at [1:]")
        self._static().places.append(read_place(self.text, self.tokens, opener))
        self.state = self.behind_place

    def _along(self, kind: int, start: int, end: int) -> None:
        """Read the axis of the indices in a list: ``along 1``."""
        row = self.frames[-1].row
        if self.text[start:end] != "along" or not (isinstance(row, ArrayCall) and row.along):
            self._list_is_last(kind, start, end)
        following, begin, stop = next(self.tokens)
        literal = self.text[begin:stop]
        if following != TokenKind.NUMBER or not literal.isdigit():
            raise self._error("'along' needs the number of an axis", (start, end), "[2, 0] along 1")
        self._static().axis = int(literal)

    def _second(self, kind: int, start: int, end: int) -> None:
        """Read the second list of a call, the shape of its result."""
        row, static = self.frames[-1].row, self._static()
        following, opener, _ = next(self.tokens)
        wanted = isinstance(row, ArrayCall) and row.second and static.shape is None
        if not wanted or following != TokenKind.BRACKET:
            self._list_is_last(kind, start, end)
        static.shape, _ = read_integers(self.text, self.tokens, opener)

    def _error(self, message: str, span: TextSpan, example: str) -> ParseError:
        return ParseError(message, text=self.text, span=span, hint=f"write {example}")

    def _list_is_last(self, kind: int, start: int, end: int) -> None:
        if kind in {TokenKind.END, TokenKind.SEMICOLON}:
            raise complaints.unclosed(self.text, self.frames[-1].opener)
        raise complaints.after_list(self.text, (start, end))
