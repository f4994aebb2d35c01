"""Loops in expressions: ``iterate(y = x; 100 times; 4*y*(1 - y))``.

The clauses are separated by semicolons: the values that are carried, ``y = x``, and the elements of
arrays, ``v in xs``; how often, ``100 times``, or ``while y > 1``, which may be omitted with arrays;
definitions ``name = expression``; and last the next values, then results of every step. A step is a
graph of its own. Its names are local; other names are those outside.

The last part of a loop with a condition may be a reverse sweep,
``iterate(y = x; while y > 1; y*a; back to y, a from 1)``: from the cotangents of the last values to
those of the values that it names: a carried name for its first value, or a name outside. `str`
prints it for the reverse mode of such a loop, whose number of steps is not known in advance.

The functions of a parser and a token are handlers of its tables.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from difflab.errors import ParseError, ShapeError
from difflab.graph.builder import Builder
from difflab.graph.control import Loop, WhileLoop
from difflab.graph.source import SourceMap
from difflab.language import complaints
from difflab.language.brackets import OpenBracket
from difflab.language.calls import CLAUSED, ITERATE
from difflab.language.complaints import TextSpan
from difflab.language.lexer import TokenKind, clean_name
from difflab.language.open_loops import (
    EXAMPLE,
    Clause,
    LoopScope,
    LoopSweep,
    OpenLoop,
    emitted,
    swept,
)
from difflab.primitives import as_number, not_equal

if TYPE_CHECKING:
    from difflab.language.parser import Parser

__all__ = [
    "LoopSweep",
    "OpenLoop",
    "backwards",
    "begin",
    "binding",
    "comma",
    "finish",
    "next_clause",
    "no_binding",
    "no_semicolon",
    "semicolon",
    "times",
    "value",
    "word",
]

_MOST_OPEN = 100
"""Maximum number of loops inside one another."""

_BINDING = re.compile(r"[ \t\xa0]*(=(?!=)|in(?![\w\[]))")
_TIMES = re.compile(r"[ \t\xa0]*times(?![\w\[])")
_DEFINED = re.compile(r"[ \t\xa0]*=(?!=)")
_BACK = re.compile(r"\s*back[ \t\xa0]+to(?![\w\[])")
_SWEEP_EXAMPLE = "write iterate(y = x; while y > 1; y*a; back to y, a from 1)"


def begin(parser: Parser) -> None:
    """Begin a loop, whose parenthesis was opened."""
    start = parser.frames[-1].start
    if len(parser.loops) == _MOST_OPEN:
        message = f"more than {_MOST_OPEN} loops are inside one another"
        raise parser.error(message, (start, start + len(ITERATE.name)))
    parser.loops.append(OpenLoop(start))
    parser.state = parser.at_binding


# The first clause.


def binding(parser: Parser, kind: int, start: int, end: int) -> None:
    """Read the name of a carried value, or of the elements of an array."""
    follows = _BINDING.match(parser.text, end)
    if follows is None:
        no_binding(parser, kind, start, end)
        return
    next(parser.tokens)
    loop = parser.loops[-1]
    loop.names.append((start, end))
    loop.looped.append(follows[1] == "in")
    parser.state = parser.at_operand


def comma(parser: Parser, start: int, end: int) -> None:
    """Expect the next binding or value, after a comma in a loop."""
    loop = parser.loops[-1]
    if loop.clause is Clause.BINDINGS:
        _bind(parser, loop)
        parser.state = parser.at_binding
    elif loop.clause not in (Clause.VALUES, Clause.COTANGENTS):
        message = f"{loop.clause.value} of iterate is one expression"
        raise parser.error(message, (start, end), "end it with ;")


def _bind(parser: Parser, loop: OpenLoop) -> None:
    """Record the first value or the array of the latest binding."""
    node = _popped(parser)
    if loop.looped[-1] and not parser.builder.shape(node):
        message = "iterate takes the elements of an array, and this is a number"
        raise parser.error(message, loop.names[-1], "carry a number: name = value")
    loop.firsts.append(node)


def _popped(parser: Parser) -> int:
    """Remove the latest operand from the stacks and return its node."""
    del parser.starts[-1], parser.ends[-1]
    return parser.nodes.pop()


def _enter(parser: Parser, loop: OpenLoop) -> None:
    """Begin the step, in a graph of its own."""
    outer = parser.builder
    loop.around = (outer, parser.scope, parser.literals, parser.elements, parser.target)
    builder = Builder(SourceMap(parser.text))
    scope = LoopScope(parser.text, builder, parser.scope, parser.target)
    for span, node, looped in zip(loop.names, loop.firsts, loop.looped, strict=True):
        scope.declare(span, outer.shape(node)[looped:])
    parser.builder, parser.scope = builder, scope
    parser.literals, parser.elements, parser.target = {}, {}, None


# The other clauses.


def semicolon(parser: Parser, end: int) -> None:
    """End a clause of a loop; a sweep may follow the next values."""
    frame = parser.frames[-1]
    if parser.operators[-1] != TokenKind.OPEN or frame.function not in CLAUSED:
        raise complaints.unclosed(parser.text, frame.opener)
    loop = parser.loops[-1]
    if loop.clause is Clause.BINDINGS:
        _bind(parser, loop)
        _enter(parser, loop)
    elif loop.clause is Clause.WHILE:
        loop.test = _truth(parser)
    elif loop.clause is Clause.DEFINITION:
        parser.target = None
        parser.scope.assign(loop.defined, _popped(parser))
    elif loop.clause is Clause.VALUES and _BACK.match(parser.text, end):
        _begin_sweep(parser, loop, frame, end)
        return
    else:
        message = "the next values are the last part of iterate"
        if frame.function is not ITERATE:
            message = "the expression is the last definition of root"
        hint = "give the expression before it a name: a = …"
        raise parser.error(message, (parser.starts[-1], end), hint)
    parser.state = parser.at_clause


def _truth(parser: Parser) -> int:
    """Return the condition that was read."""
    span = (parser.starts[-1], parser.ends[-1])
    node, builder = _popped(parser), parser.builder
    if builder.shape(node):
        message = f"the condition has the shape {builder.shape(node)}"
        raise parser.error(message, span, "a condition is a number or a comparison of two")
    if builder.boolean[builder.opcode[node]]:
        return node
    return builder.emit(not_equal, (node, builder.constant(0)), (), span)


def times(parser: Parser, kind: int, start: int, end: int) -> None:
    """Read a number at the start of a clause: the number of steps, or part of a value."""
    loop = parser.loops[-1]
    if not loop.at_head or _TIMES.match(parser.text, end) is None:
        value(parser, kind, start, end)
        return
    literal = parser.text[start:end]
    if not literal.isdigit() or len(literal) > 15:
        message = "the number of steps is an integer"
        raise parser.error(message, (start, end), "write 100 times")
    next(parser.tokens)
    loop.steps, loop.at_head = int(literal), False
    parser.state = parser.after_times


def word(parser: Parser, kind: int, start: int, end: int) -> None:
    """Read a name at the start of a clause: a definition, a keyword, or of a value."""
    loop, name = parser.loops[-1], parser.text[start:end]
    if _DEFINED.match(parser.text, end):
        next(parser.tokens)
        loop.clause, loop.at_head, loop.defined = Clause.DEFINITION, False, (start, end)
        parser.target = parser.scope.new_name((start, end))
        parser.state = parser.at_operand
    elif loop.at_head and name == "while":
        loop.clause, loop.at_head = Clause.WHILE, False
        parser.state = parser.at_operand
    elif loop.at_head and name == "backwards":
        backwards(parser, kind, start, end)
    else:
        value(parser, kind, start, end)


def backwards(parser: Parser, kind: int, start: int, end: int) -> None:
    """Read the keyword of a loop from the last elements to the first."""
    loop = parser.loops[-1]
    if parser.text[start:end] != "backwards" or loop.reverse:
        no_semicolon(parser, kind, start, end)
    loop.reverse, loop.at_head = True, False
    parser.state = parser.after_times


def next_clause(parser: Parser, kind: int, start: int, end: int) -> None:
    """Expect the next clause."""
    parser.state = parser.at_clause


def value(parser: Parser, kind: int, start: int, end: int) -> None:
    """Begin the next values."""
    loop = parser.loops[-1]
    loop.clause, loop.at_head = Clause.VALUES, False
    parser.state = parser.at_operand
    parser.state[kind](parser, kind, start, end)


# The end of a loop.


def finish(parser: Parser, frame: OpenBracket, end: int) -> None:
    """Replace the operands of a frame by the value of a loop or of its sweep."""
    sweep = parser.sweeps.pop(frame.start, None)
    loop = parser.loops.pop()
    span = (frame.start, end)
    if sweep is not None:
        _finish_sweep(parser, sweep, frame, span)
        return
    if loop.clause is not Clause.VALUES or loop.around is None:
        missing = "how often, and the next values" if loop.around is None else "the next values"
        raise parser.error(f"iterate needs {missing}", span, EXAMPLE)
    control, arguments = _control(parser, loop, frame, span)
    parser.push(emitted(parser.builder, control, arguments, span), *span)


def _operands(parser: Parser, frame: OpenBracket) -> tuple[list[int], list[TextSpan]]:
    """Remove the operands of a frame from the stacks; return their nodes and spans."""
    base = frame.base
    spans = list(zip(parser.starts[base:], parser.ends[base:], strict=True))
    nodes = parser.nodes[base:]
    del parser.nodes[base:], parser.starts[base:], parser.ends[base:]
    return nodes, spans


def _control(
    parser: Parser, loop: OpenLoop, frame: OpenBracket, span: TextSpan
) -> tuple[Loop | WhileLoop, list[int]]:
    """Return the loop whose next values were read, and its arguments; leave its step."""
    assert loop.around is not None
    assert isinstance(parser.scope, LoopScope)
    builder = parser.builder
    nodes, spans = _operands(parser, frame)
    truths = [builder.boolean[builder.opcode[node]] for node in nodes]
    values = [
        builder.emit(as_number, (node,)) if truth else node
        for node, truth in zip(nodes, truths, strict=True)
    ]
    control = loop.control(parser.scope, values, spans, span)
    (parser.builder, parser.scope, parser.literals, parser.elements, parser.target) = loop.around
    return control


# Reverse sweeps.


def _begin_sweep(parser: Parser, loop: OpenLoop, frame: OpenBracket, end: int) -> None:
    """Read ``back to y, a from`` after the next values of a loop."""
    wanted = _wanted(parser, loop)
    span = (frame.start, end)
    control, arguments = _control(parser, loop, frame, span)
    if not isinstance(control, WhileLoop):
        message = "only a loop with a condition goes back to names"
        raise parser.error(message, span, _SWEEP_EXAMPLE)
    parser.sweeps[frame.start] = LoopSweep(control, arguments, wanted)
    loop.clause = Clause.COTANGENTS
    parser.state = parser.at_operand


def _finish_sweep(parser: Parser, sweep: LoopSweep, frame: OpenBracket, span: TextSpan) -> None:
    """Replace the cotangents of the last values by those of the names of a sweep."""
    cotangents, spans = _operands(parser, frame)
    shapes = sweep.loop.output_shapes
    if len(cotangents) != len(shapes):
        message = f"iterate carries {len(shapes)} values, and goes back from {len(cotangents)}"
        raise parser.error(message, span, "list the cotangent of each last value")
    for node, expected, node_span in zip(cotangents, shapes, spans, strict=True):
        shape = parser.builder.shape(node)
        if shape != expected:
            message = f"a last value has the shape {expected}, and its cotangent {shape}"
            raise ShapeError(message, text=parser.text, span=node_span)
    parser.push(swept(parser.builder, sweep, cotangents, span), *span)


def _wanted(parser: Parser, loop: OpenLoop) -> list[int]:
    """Read ``back to y, a from``; return which arguments of the loop the names are."""
    scope = parser.scope
    assert isinstance(scope, LoopScope)
    own = [clean_name(parser.text, *span) for span in loop.names]
    wanted: list[int] = []
    for span in _names(parser):
        name = clean_name(parser.text, *span)
        if name not in own:
            scope.resolve(name, span, None)
        node = scope.nodes.get(name)
        if node is None or (name not in own and node not in scope.captured):
            shown = complaints.shown(name)
            message = f"'{shown}' is neither carried nor a name outside the loop"
            raise parser.error(message, span, _SWEEP_EXAMPLE)
        outside = len(own) + list(scope.captured).index(node) if name not in own else 0
        wanted.append(own.index(name) if name in own else outside)
    return wanted


def _names(parser: Parser) -> list[TextSpan]:
    """Read the names between the words ``back to`` and ``from``."""
    words = [_next(parser, TokenKind.NAME) for _ in "12"]  # back to
    spans = [_next(parser, TokenKind.NAME)]
    while parser.text[slice(*(behind := _next(parser, None)))] == ",":
        spans.append(_next(parser, TokenKind.NAME))
    if parser.text[slice(*behind)] != "from":
        message = "the names after 'back to' end with 'from' and the cotangents"
        raise parser.error(message, (words[0][0], behind[1]), _SWEEP_EXAMPLE)
    return spans


def _next(parser: Parser, required: TokenKind | None) -> TextSpan:
    """Return the span of the next token, which must be of the required kind."""
    for kind, start, end in parser.tokens:
        if kind == TokenKind.NEWLINE:
            continue
        if required is not None and kind != required:
            message = "a name is expected after 'back to'"
            raise parser.error(message, (start, end), _SWEEP_EXAMPLE)
        return start, end
    raise AssertionError("tokens end with END")


# Errors.


def no_binding(parser: Parser, kind: int, start: int, end: int) -> None:
    """Raise the error for a loop that does not begin with a binding."""
    raise _error(parser, kind, (start, end), "iterate begins with the first values")


def no_semicolon(parser: Parser, kind: int, start: int, end: int) -> None:
    """Raise the error for a clause that does not end with a semicolon."""
    raise _error(parser, kind, (start, end), "the parts of iterate are separated by ';'")


def _error(parser: Parser, kind: int, span: TextSpan, message: str) -> ParseError:
    """Return the error for an unexpected token in a loop."""
    if kind == TokenKind.END:
        return complaints.unclosed(parser.text, parser.frames[-1].opener)
    return parser.error(message, span, EXAMPLE)
