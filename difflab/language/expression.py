"""Expressions to nodes: an operator-precedence parser with explicit stacks.

There is no syntax tree. Operands are three stacks of integers (node, start, end), operators
two (kind, position), and reducing an operator emits a node. Every token is handled once, by a
table indexed by its kind, with one table per parser state; so parsing is linear in the length
of the text and nothing recurses. The method is Dijkstra's shunting-yard (Mathematisch
Centrum report MR 34/61, 1961).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from difflab.core.primitive import Primitive
from difflab.errors import ParseError, ShapeError
from difflab.graph.builder import Builder
from difflab.graph.node import Node
from difflab.graph.source import NOWHERE, SourceMap
from difflab.language import complaints
from difflab.language.brackets import read_key
from difflab.language.calls import ALIASES, CALLS, ArrayCall, Statics
from difflab.language.lexer import TokenKind, clean_name, number, superscript, tokens
from difflab.language.operators import COMPARISONS, FLOOR, LEVEL, NEGATE, ROW, UNARY
from difflab.language.placing import indexed
from difflab.language.scope import Scope
from difflab.primitives import by_spelling, negative, power

__all__ = ["BEFORE_CALL", "ExpressionParser", "Frame", "Handler", "table"]

Handler = Callable[[int, int, int], None]

_OPENERS = frozenset({int(TokenKind.OPEN), int(TokenKind.BRACKET)})
_DEEPEST = 1_000_000
"""Maximum number of open parentheses, against megabytes of `(`."""

BEFORE_CALL = re.compile(r"[ \t\xa0]*\(")
"""What follows the name of a function that is called."""

# Plain integers: looking a member up on the enumeration costs more than using it.
_OPEN, _MATMUL = int(TokenKind.OPEN), int(TokenKind.MATMUL)
_KINDS = tuple(map(int, TokenKind))
_PREFIXES = tuple(kind for kind in _KINDS if UNARY[kind])
_BINARY = tuple(kind for kind in _KINDS if LEVEL[kind] and not UNARY[kind])


class Frame(NamedTuple):
    """An open bracket: its function, the operands below it, starts of call and bracket."""

    row: Primitive | ArrayCall | None
    base: int
    start: int
    opener: int


def table(handlers: dict[int, Handler], otherwise: Handler) -> list[Handler]:
    """Return the handlers as a list indexed by token kind."""
    return [handlers.get(kind, otherwise) for kind in _KINDS]


class ExpressionParser:
    """Parser of expressions: the stacks, and one method per meaning of a token.

    Parameters
    ----------
    text : str
        The program.
    variables : iterable of str
        Names that are variables although the language reserves them.
    """

    def __init__(self, text: str, variables: Iterable[str] = ()) -> None:
        self.text = text
        self.builder = Builder(SourceMap(text))
        self.scope = Scope(text, self.builder, variables)
        self.tokens: Iterator[tuple[int, int, int]] = tokens(text)
        self.nodes: list[int] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.operators: list[int] = [int(TokenKind.END)]
        self.positions: list[int] = [0]
        self.frames: list[Frame] = []
        self.literals: dict[str, int] = {}
        self.elements: dict[str, int] = {}
        self.function: tuple[Primitive | ArrayCall, int, int] | None = None
        self.statics: dict[int, Statics] = {}
        self.target: str | None = None
        self.line = -1
        self.at_operand = table(self.operand_handlers(), self._no_expression)
        self.at_operator = table(self.operator_handlers(), self._no_expression)
        self.at_call = table({TokenKind.OPEN: self._call, TokenKind.BAD: self.stray}, self._no_call)
        self.state = self.at_operand

    def operand_handlers(self) -> dict[int, Handler]:
        """Return the handlers of tokens where an operand is expected."""
        return {
            TokenKind.NUMBER: self._number,
            TokenKind.NAME: self.name,
            TokenKind.ELEMENT: self._element,
            TokenKind.MINUS: self._minus,
            TokenKind.PLUS: self.nothing,
            TokenKind.OPEN: self._open,
            TokenKind.CLOSE: self._close_empty,
            TokenKind.NOT: self._not,
            TokenKind.ROOT: self.prefix,
            TokenKind.CUBE_ROOT: self.prefix,
            TokenKind.NEWLINE: self.nothing,
            TokenKind.BAD: self.stray,
        }

    def operator_handlers(self) -> dict[int, Handler]:
        """Return the handlers of tokens after an operand."""
        values = (TokenKind.NUMBER, TokenKind.NAME, TokenKind.ELEMENT, TokenKind.OPEN, *_PREFIXES)
        handlers: dict[int, Handler] = dict.fromkeys(_BINARY, self._binary)
        handlers |= dict.fromkeys(COMPARISONS, self._comparison)
        handlers |= dict.fromkeys(values, self._adjacent)
        return handlers | {
            TokenKind.SUPERSCRIPT: self._superscript,
            TokenKind.BRACKET: self._index,
            TokenKind.CLOSE: self.close,
            TokenKind.COMMA: self.comma,
            TokenKind.BAD: self.stray,
        }

    # Handlers where an operand is expected.

    def nothing(self, kind: int, start: int, end: int) -> None:
        """Skip a token that changes nothing."""

    def push(self, node: int, start: int, end: int) -> None:
        """Push an operand; an operator is expected next."""
        self.nodes.append(node)
        self.starts.append(start)
        self.ends.append(end)
        self.state = self.at_operator

    def _number(self, kind: int, start: int, end: int) -> None:
        literal = self.text[start:end]
        node = self.literals.get(literal)
        if node is None:
            value = number(self.text, start, end)
            node = self.literals[literal] = self.builder.constant(value, None, (start, end))
        self.push(node, start, end)

    def name(self, kind: int, start: int, end: int) -> None:
        """Read the name of a variable, a constant or a called function."""
        node = self.scope.spellings.get(self.text[start:end])
        if node is None:
            name = clean_name(self.text, start, end)
            row = self._called(name, end)
            if row is not None:
                self.function = row, start, end
                self.state = self.at_call
                return
            node = self.scope.resolve(name, (start, end), self.target)
        self.push(node, start, end)

    def _called(self, name: str, end: int) -> Primitive | ArrayCall | None:
        """Return the function that a name means here; None if it is no function's."""
        row = by_spelling.get(name)
        found = CALLS.get(name, row)
        if found is None and name in ALIASES:
            found = by_spelling[ALIASES[name]]
        if found is None or BEFORE_CALL.match(self.text, end):
            return found
        only = row is not None and row.reserved and name not in self.scope.variables
        return found if only else None

    def _element(self, kind: int, start: int, end: int) -> None:
        """Read an element of a vector, such as ``x[12]``; reuse its node if it was read before."""
        node = self.elements.get(self.text[start:end])
        if node is None:
            self._new_element(start, end)
        else:
            self.push(node, start, end)

    def _new_element(self, start: int, end: int) -> None:
        """Read a name and the indices in brackets after it."""
        opener = self.text.index("[", start)
        self.state[TokenKind.NAME](TokenKind.NAME, start, opener)
        if self.state is self.at_operator:
            node, position = self.nodes[-1], int(self.text[opener + 1 : end - 1])
            shape = self.builder.shape(node)
            if len(shape) == 1 and position < shape[0]:
                found = indexed(self.builder, node, (position,), (start, end))
                self.nodes[-1] = self.elements[self.text[start:end]] = found
                self.ends[-1] = end
                return
        following, self.tokens = self.tokens, tokens(self.text, opener + 1)
        self.state[TokenKind.BRACKET](TokenKind.BRACKET, opener, opener + 1)
        self.tokens = following

    def _minus(self, kind: int, start: int, end: int) -> None:
        self.prefix(NEGATE, start, end)

    def prefix(self, kind: int, start: int, end: int) -> None:
        """Push a prefix operator or an opening bracket."""
        self.operators.append(kind)
        self.positions.append(start)
        self.state = self.at_operand

    def _not(self, kind: int, start: int, end: int) -> None:
        if LEVEL[self.operators[-1]] > LEVEL[kind]:
            hint = "write parentheses around it: (not …)"
            message = "'not' has lower precedence than the operator before it"
            raise ParseError(message, text=self.text, span=(start, end), hint=hint)
        self.prefix(kind, start, end)

    def _open(self, kind: int, start: int, end: int) -> None:
        if len(self.frames) == _DEEPEST:
            raise complaints.too_deep(self.text, start, _DEEPEST)
        self.frames.append(Frame(None, len(self.nodes), start, start))
        self.prefix(_OPEN, start, end)

    def _call(self, kind: int, start: int, end: int) -> None:
        assert self.function is not None
        row, name_start, _ = self.function
        self._open(kind, start, end)
        self.frames[-1] = Frame(row, len(self.nodes), name_start, start)

    def _close_empty(self, kind: int, start: int, end: int) -> None:
        frame = self.frames[-1] if self.frames else None
        empty = frame is not None and not self.text[frame.opener + 1 : start].strip()
        if frame is not None and frame.row is not None and empty:
            raise complaints.wrong_count(self.text, (frame.start, end), _takes(frame.row), 0)
        self._no_expression(kind, start, end)

    # Handlers after an operand.

    def reduce(self, floor: int) -> None:
        """Emit the operators on the stack whose precedence is at least `floor`."""
        operators, nodes, starts, ends = self.operators, self.nodes, self.starts, self.ends
        while LEVEL[operators[-1]] >= floor:
            kind = operators.pop()
            start = self.positions.pop()
            row = ROW[kind]
            assert row is not None
            if UNARY[kind]:
                nodes[-1] = self._emit_prefix(row, start)
                starts[-1] = start
            else:
                right, end = nodes.pop(), ends.pop()
                starts.pop()
                span = (starts[-1], end)
                if kind == _MATMUL:
                    nodes[-1] = self._emit_array_call(
                        CALLS["matmul"], (nodes[-1], right), span, Statics()
                    )
                else:
                    nodes[-1] = self.builder.emit(row, (nodes[-1], right), (), span)
                ends[-1] = end

    def _emit_prefix(self, row: Primitive, start: int) -> int:
        """Emit a prefix operator; a minus before a literal becomes its sign."""
        node, operand, end = self.nodes[-1], self.starts[-1], self.ends[-1]
        if row is negative and self.text[operand] in "0123456789.":
            constant = self.builder.constants.get(node)
            if constant is not None:
                return self.builder.constant(-constant[0], None, (start, end))
        return self.builder.emit(row, (node,), (), (start, end))

    def _binary(self, kind: int, start: int, end: int) -> None:
        floor = FLOOR[kind]
        if LEVEL[self.operators[-1]] >= floor:
            self.reduce(floor)
        self.operators.append(kind)
        self.positions.append(start)
        self.state = self.at_operand

    def _comparison(self, kind: int, start: int, end: int) -> None:
        self.reduce(FLOOR[kind] + 1)
        if LEVEL[self.operators[-1]] == LEVEL[kind]:
            raise complaints.chained(self.text, (start, end))
        self.prefix(kind, start, end)

    def _superscript(self, kind: int, start: int, end: int) -> None:
        """Apply a superscript exponent, as in x² and e⁻ˣ, to the operand before it."""
        self.reduce(LEVEL[TokenKind.POWER] + 1)
        minus, plain = superscript(self.text, start, end)
        if plain.isdigit():
            value = number(plain, 0, len(plain))
            exponent = self.builder.constant(-value if minus else value, None, (start, end))
        elif plain in by_spelling and self._called(plain, end) is not None:
            raise complaints.unraised(self.text, (start, end))
        else:
            exponent = self.scope.resolve(plain, (start, end), self.target)
            if minus:
                exponent = self.builder.emit(negative, (exponent,), (), (start, end))
        span = (self.starts[-1], end)
        self.nodes[-1] = self.builder.emit(power, (self.nodes[-1], exponent), (), span)
        self.ends[-1] = end

    def _index(self, kind: int, start: int, end: int) -> None:
        node = self.nodes[-1]
        key, end = read_key(self.text, self.tokens, start, self.builder.shape(node))
        self.nodes[-1] = indexed(self.builder, node, key, (self.starts[-1], end))
        self.ends[-1] = end

    def comma(self, kind: int, start: int, end: int) -> None:
        """Expect the next element of a list or argument of a call."""
        self.reduce(1)
        frame = self.frames[-1] if self.frames else None
        if frame is None or (frame.row is None and self.operators[-1] == _OPEN):
            raise complaints.comma(self.text, (start, end))
        self.state = self.at_operand

    def close(self, kind: int, start: int, end: int) -> None:
        """Close a parenthesis; emit the call before it."""
        self.reduce(1)
        if self.operators[-1] != _OPEN:
            opener = self.frames[-1].opener if self.frames else None
            raise complaints.unopened(self.text, (start, end), opener)
        self.operators.pop()
        self.positions.pop()
        frame = self.frames.pop()
        if frame.row is None:
            self.starts[-1] = frame.start
            self.ends[-1] = end
            return
        self.finish_call(frame.row, frame, end)

    def finish_call(self, row: Primitive | ArrayCall, frame: Frame, end: int) -> None:
        """Replace the operands of a frame by the value of a function of them."""
        args = tuple(self.nodes[frame.base :])
        del self.nodes[frame.base :], self.starts[frame.base :], self.ends[frame.base :]
        static = self.statics.pop(frame.opener, None) or Statics()
        node = self._emit_call(row, args, (frame.start, end), static)
        self.push(node, frame.start, end)

    def _emit_call(
        self,
        row: Primitive | ArrayCall,
        args: tuple[int, ...],
        span: tuple[int, int],
        static: Statics,
    ) -> int:
        """Emit a primitive, or the operations of an array function."""
        if isinstance(row, ArrayCall):
            most = len(args) if row.most is None else row.most
            single = row.most is None and row.lists == "axes" and len(args) == 1
            scalar = single and not self.builder.shape(args[0])
            if scalar or not row.least <= len(args) <= most:
                takes = "at least 2 arguments" if scalar else row.takes
                raise complaints.wrong_count(self.text, span, takes, len(args))
            return self._emit_array_call(row, args, span, static)
        if row.arity is not None and len(args) != row.arity:
            raise complaints.wrong_count(self.text, span, _takes(row), len(args))
        return self.builder.emit(row, args, (), span)

    def _emit_array_call(
        self, call: ArrayCall, args: tuple[int, ...], span: tuple[int, int], static: Statics
    ) -> int:
        """Emit the operations of an array function; all of them have the span of the call."""
        if call.needs_list and static.integers is None:
            raise complaints.missing_list(self.text, span, call.lists)
        builder = self.builder
        builder.span = span[0] << 32 | span[1]
        try:
            found: Node = call.compute([Node(builder, node) for node in args], static)
        except ShapeError as error:
            raise ShapeError(error.message, text=self.text, span=span, hint=error.hint) from None
        finally:
            builder.span = NOWHERE
        return found.id

    # Handlers of unexpected tokens.

    def stray(self, kind: int, start: int, end: int) -> None:
        """Raise the error for a character that begins no token."""
        raise complaints.stray(self.text, start)

    def _no_expression(self, kind: int, start: int, end: int) -> None:
        opener = self.frames[-1].opener if self.frames else None
        if opener is not None and kind in {TokenKind.END, TokenKind.SEMICOLON}:
            raise complaints.unclosed(self.text, opener)
        raise complaints.expected_expression(self.text, (start, end), opener)

    def _no_call(self, kind: int, start: int, end: int) -> None:
        assert self.function is not None
        _, name_start, name_end = self.function
        token = self.text[start:end]
        raise complaints.function_without_call(self.text, (name_start, name_end), token)

    def _adjacent(self, kind: int, start: int, end: int) -> None:
        """Raise the error for adjacent operands: ``2x``, ``f(x)``, a line that ended early."""
        left = (self.starts[-1], self.ends[-1])
        if self.frames and self.line >= left[1]:
            raise complaints.unclosed(self.text, self.frames[-1].opener)
        if kind == TokenKind.OPEN and self.scope.variable(left, self.nodes[-1]) is not None:
            raise complaints.unknown_function(self.text, left)
        raise complaints.adjacent(self.text, left, (start, end))


def _takes(row: Primitive | ArrayCall) -> str:
    """Return the number of arguments of a function, in words."""
    if isinstance(row, ArrayCall):
        return row.takes
    return f"{row.arity} argument{'' if row.arity == 1 else 's'}"
