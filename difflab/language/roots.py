"""Roots in expressions: ``root(x^2 - a, x, 1)`` is the x with x² = a that Newton finds from 1.

The first argument is an expression of the name that follows, which is local, and of names outside;
definitions may precede it: ``root(t = x^2; t + t^3 - a, x, 1)``. The name and the first value are
read before the expression, since they state the shape of the unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from difflab.errors import ShapeError
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.graph.source import NOWHERE, SourceMap
from difflab.graph.source import packed as packed_span
from difflab.language import complaints
from difflab.language.brackets import OpenBracket
from difflab.language.complaints import TextSpan
from difflab.language.lexer import TokenKind
from difflab.language.open_loops import Clause, LoopScope, OpenLoop, function_of
from difflab.primitives import as_number

if TYPE_CHECKING:
    from difflab.language.parser import Parser


EXAMPLE = "write root(x^2 - a, x, 1): an expression, its unknown, a first value"

_MOST_OPEN = 50
"""Maximum number of roots and loops inside one another: each is read by calls of Python."""

_OPENING = frozenset({TokenKind.OPEN, TokenKind.BRACKET})
_CLOSING = frozenset({TokenKind.CLOSE, TokenKind.UNBRACKET})
Token = tuple[int, int, int]


def read(parser: Parser) -> None:
    """Read a root whose parenthesis was opened: the first value, and then the expression."""
    start = parser.frames[-1].start
    if len(parser.loops) >= _MOST_OPEN:
        message = f"more than {_MOST_OPEN} roots and loops are inside one another"
        raise parser.error(message, (start, start + len("root")))
    parts, between, end = _arguments(parser)
    name = [token for token in parts[1] if token[0] != TokenKind.NEWLINE]
    if len(name) != 1 or name[0][0] != TokenKind.NAME:
        span = (name[0][1], name[-1][2]) if name else between[1][1:]
        message = "the second argument of root is the name of the unknown"
        raise parser.error(message, span, EXAMPLE)
    parser.loops.append(OpenLoop(start, names=[name[0][1:]], looped=[False], at_head=False))
    outer = parser.tokens
    parser.tokens = iter([*parts[2], between[0], *parts[0], end])
    for token in parser.tokens:
        parser.state[token[0]](parser, *token)
    parser.tokens = outer


def _arguments(parser: Parser) -> tuple[list[list[Token]], list[Token], Token]:
    """Return the tokens of the three arguments, the commas between them, and the last one."""
    frame = parser.frames[-1]
    parts: list[list[Token]] = [[]]
    commas: list[Token] = []
    for token, depth in _nested(parser.tokens):
        kind = token[0]
        if kind == TokenKind.END:
            raise complaints.unclosed(parser.text, frame.opener)
        if depth < 0:
            if len(parts) != 3 or not all(parts):
                span = (frame.start, token[2])
                raise complaints.wrong_count(
                    parser.text, span, "3 arguments", len([part for part in parts if part])
                )
            return parts, commas, token
        if kind == TokenKind.COMMA and depth == 0:
            commas.append(token)
            parts.append([])
        else:
            parts[-1].append(token)
    raise AssertionError("tokens end with END")


def _nested(tokens: Iterator[Token]) -> Iterator[tuple[Token, int]]:
    """Yield tokens with the number of brackets around each that were opened here."""
    depth = 0
    for token in tokens:
        depth -= token[0] in _CLOSING
        yield token, depth
        depth += token[0] in _OPENING


def comma(parser: Parser) -> None:
    """Begin the expression, in a graph of its own, behind the first value."""
    loop = parser.loops[-1]
    if loop.clause is not Clause.BINDINGS:
        start = parser.frames[-1].start
        raise parser.error("root has one expression", (start, start + len("root")), EXAMPLE)
    del parser.starts[-1], parser.ends[-1]
    loop.firsts.append(parser.nodes.pop())
    outer = parser.builder
    loop.around = (outer, parser.scope, parser.literals, parser.elements, parser.target)
    builder = Builder(SourceMap(parser.text))
    scope = LoopScope(parser.text, builder, parser.scope, parser.target)
    scope.declare(loop.names[0], outer.shape(loop.firsts[0]))
    parser.builder, parser.scope = builder, scope
    parser.literals, parser.elements, parser.target = {}, {}, None
    loop.clause = Clause.DEFINITION
    parser.state = parser.at_clause


def finish(parser: Parser, frame: OpenBracket, end: int) -> None:
    """Replace the operands of a frame by the solution."""
    loop, span = parser.loops.pop(), (frame.start, end)
    if loop.clause is not Clause.VALUES or loop.around is None:
        raise parser.error("root needs an expression", span, EXAMPLE)
    assert isinstance(parser.scope, LoopScope)
    scope, builder = parser.scope, parser.builder
    node, own = parser.nodes.pop(), (parser.starts.pop(), parser.ends.pop())
    if builder.boolean[builder.opcode[node]]:
        node = builder.emit(as_number, (node,))
    unknown = next(iter(builder.names))
    shape, wanted = builder.shape(node), builder.shape(unknown)
    if shape != wanted:
        shown = complaints.shown(parser.text[slice(*loop.names[0])])
        message = f"'{shown}' has the shape {wanted}, and the expression {shape}"
        hint = "as many equations as unknowns: give the first value that shape"
        raise ShapeError(message, text=parser.text, span=own, hint=hint)
    residual = function_of(builder, [unknown, *scope.captured], [node])
    arguments = [*loop.firsts, *scope.captured.values()]
    (parser.builder, parser.scope, parser.literals, parser.elements, parser.target) = loop.around
    parser.push(_emitted(parser.builder, residual, arguments, span), *span)


def _emitted(builder: Builder, residual: Function, arguments: list[int], span: TextSpan) -> int:
    """Append the solution to a graph."""
    from difflab.autodiff.solutions.written import root_value

    builder.span = packed_span(span)
    try:
        return root_value(residual, [Node(builder, node) for node in arguments]).id
    finally:
        builder.span = NOWHERE
