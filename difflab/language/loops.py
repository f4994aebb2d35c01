"""Loops in expressions: ``iterate(y = x; 100 times; 4*y*(1 - y))``.

The clauses are separated by semicolons: the values that are carried, ``y = x``, and the elements of
arrays, ``v in xs``; how often, ``100 times``, or ``while y > 1``, which may be omitted with arrays;
definitions ``name = expression``; and last the next values, then results of every step. A step is a
graph of its own. Its names are local; other names are those outside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from difflab.core.primitive import Primitive
from difflab.errors import ParseError, ShapeError
from difflab.graph.builder import Builder
from difflab.graph.control import Loop, WhileLoop
from difflab.graph.custom.rows import unpacked
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.graph.rewritten import rewritten
from difflab.graph.source import NOWHERE, SourceMap
from difflab.graph.source import packed as packed_span
from difflab.language import complaints
from difflab.language.calls import ITERATE, ArrayCall
from difflab.language.complaints import TextSpan
from difflab.language.expression import BEFORE_CALL, Frame, Handler, table
from difflab.language.lexer import TokenKind
from difflab.language.lists import ListParser
from difflab.language.open_loops import Clause, LoopScope, OpenLoop
from difflab.primitives import as_number, not_equal

__all__ = ["LoopParser"]

_MOST_OPEN = 100
"""Maximum number of loops inside one another."""

_BINDING = re.compile(r"[ \t\xa0]*(=(?!=)|in(?![\w\[]))")
_TIMES = re.compile(r"[ \t\xa0]*times(?![\w\[])")
_DEFINED = re.compile(r"[ \t\xa0]*=(?!=)")
_EXAMPLE = "write iterate(y = 0.5; 100 times; 4*y*(1 - y))"

_OPEN = int(TokenKind.OPEN)


class LoopParser(ListParser):
    """Parser of expressions with loops."""

    def __init__(self, text: str, variables: Iterable[str] = ()) -> None:
        super().__init__(text, variables)
        self.loops: list[OpenLoop] = []
        skipped: dict[int, Handler] = {TokenKind.NEWLINE: self.nothing, TokenKind.BAD: self.stray}
        self.at_binding = table(skipped | {TokenKind.NAME: self._binding}, self._no_binding)
        names = {TokenKind.NUMBER: self._times, TokenKind.NAME: self._word}
        self.at_clause = table(skipped | names | {TokenKind.SEMICOLON: self.nothing}, self._value)
        ends = {TokenKind.SEMICOLON: self._next_clause, TokenKind.NAME: self._backwards}
        self.after_times = table(skipped | ends, self._no_semicolon)

    def name(self, kind: int, start: int, end: int) -> None:
        """Read a name, which may begin a loop."""
        called = end - start == len(ITERATE.name) and self.text.startswith(ITERATE.name, start)
        opener = BEFORE_CALL.match(self.text, end) if called else None
        if opener is None:
            super().name(kind, start, end)
            return
        _, bracket, _ = next(self.tokens)
        if len(self.loops) == _MOST_OPEN:
            message = f"more than {_MOST_OPEN} loops are inside one another"
            raise ParseError(message, text=self.text, span=(start, end))
        self.frames.append(Frame(ITERATE, len(self.nodes), start, bracket))
        self.prefix(_OPEN, bracket, bracket + 1)
        self.loops.append(OpenLoop(start))
        self.state = self.at_binding

    def operand_handlers(self) -> dict[int, Handler]:
        """Return the handlers of tokens where an operand is expected."""
        return super().operand_handlers() | {TokenKind.SEMICOLON: self._no_operand}

    def _no_operand(self, kind: int, start: int, end: int) -> None:
        """Raise the error for an expression that a semicolon cuts off."""
        if self.frames and self.frames[-1].row is not ITERATE:
            raise complaints.unclosed(self.text, self.frames[-1].opener)
        raise complaints.expected_expression(self.text, (start, end), None)

    # The first clause.

    def _binding(self, kind: int, start: int, end: int) -> None:
        follows = _BINDING.match(self.text, end)
        if follows is None:
            self._no_binding(kind, start, end)
            return
        next(self.tokens)
        loop = self.loops[-1]
        loop.names.append((start, end))
        loop.looped.append(follows[1] == "in")
        self.state = self.at_operand

    def comma(self, kind: int, start: int, end: int) -> None:
        """Expect the next element, argument, binding or value."""
        super().comma(kind, start, end)
        if self.frames[-1].row is not ITERATE:
            return
        loop = self.loops[-1]
        if loop.clause is Clause.BINDINGS:
            self._bind(loop)
            self.state = self.at_binding
        elif loop.clause not in (Clause.VALUES, Clause.COTANGENTS):
            message = f"{loop.clause.value} of iterate is one expression"
            raise self.loop_error(message, (start, end), "end it with ;")

    def _bind(self, loop: OpenLoop) -> None:
        """Keep the first value or the array of the latest binding."""
        node = self._popped()
        if loop.looped[-1] and not self.builder.shape(node):
            message = "iterate takes the elements of an array, and this is a number"
            raise self.loop_error(message, loop.names[-1], "carry a number: name = value")
        loop.firsts.append(node)

    def _popped(self) -> int:
        del self.starts[-1], self.ends[-1]
        return self.nodes.pop()

    def _enter(self, loop: OpenLoop) -> None:
        """Begin the step, in a graph of its own."""
        outer = self.builder
        loop.around = (outer, self.scope, self.literals, self.elements, self.target)
        builder = Builder(SourceMap(self.text))
        scope = LoopScope(self.text, builder, self.scope, self.target)
        for span, node, looped in zip(loop.names, loop.firsts, loop.looped, strict=True):
            scope.declare(span, outer.shape(node)[looped:])
        self.builder, self.scope = builder, scope
        self.literals, self.elements, self.target = {}, {}, None

    # The other clauses.

    def semicolon(self, kind: int, start: int, end: int) -> None:
        """End a clause of a loop."""
        if self.operators[-1] != _OPEN or self.frames[-1].row is not ITERATE:
            raise complaints.unclosed(self.text, self.frames[-1].opener)
        loop = self.loops[-1]
        if loop.clause is Clause.BINDINGS:
            self._bind(loop)
            self._enter(loop)
        elif loop.clause is Clause.WHILE:
            loop.test = self._truth()
        elif loop.clause is Clause.DEFINITION:
            self.target = None
            self.scope.assign(loop.defined, self._popped())
        else:
            message = "the next values are the last part of iterate"
            hint = "give the expression before it a name: a = …"
            raise self.loop_error(message, (self.starts[-1], end), hint)
        self.state = self.at_clause

    def _truth(self) -> int:
        """Return the condition that was read."""
        span = (self.starts[-1], self.ends[-1])
        node, builder = self._popped(), self.builder
        if builder.shape(node):
            message = f"the condition has the shape {builder.shape(node)}"
            raise self.loop_error(message, span, "a condition is a number or a comparison of two")
        if builder.boolean[builder.opcode[node]]:
            return node
        return builder.emit(not_equal, (node, builder.constant(0)), (), span)

    def _times(self, kind: int, start: int, end: int) -> None:
        """Read a number at the start of a clause: perhaps how often."""
        loop = self.loops[-1]
        if not loop.at_head or _TIMES.match(self.text, end) is None:
            self._value(kind, start, end)
            return
        literal = self.text[start:end]
        if not literal.isdigit() or len(literal) > 15:
            hint = "write 100 times"
            raise self.loop_error("the number of steps is an integer", (start, end), hint)
        next(self.tokens)
        loop.steps, loop.at_head = int(literal), False
        self.state = self.after_times

    def _word(self, kind: int, start: int, end: int) -> None:
        """Read a name at the start of a clause: a definition, a keyword, or of a value."""
        loop, word = self.loops[-1], self.text[start:end]
        if _DEFINED.match(self.text, end):
            next(self.tokens)
            loop.clause, loop.at_head, loop.defined = Clause.DEFINITION, False, (start, end)
            self.target = self.scope.new_name((start, end))
            self.state = self.at_operand
        elif loop.at_head and word == "while":
            loop.clause, loop.at_head = Clause.WHILE, False
            self.state = self.at_operand
        elif loop.at_head and word == "backwards":
            self._backwards(kind, start, end)
        else:
            self._value(kind, start, end)

    def _backwards(self, kind: int, start: int, end: int) -> None:
        if self.text[start:end] != "backwards" or self.loops[-1].reverse:
            self._no_semicolon(kind, start, end)
        self.loops[-1].reverse, self.loops[-1].at_head = True, False
        self.state = self.after_times

    def _next_clause(self, kind: int, start: int, end: int) -> None:
        self.state = self.at_clause

    def _value(self, kind: int, start: int, end: int) -> None:
        """Begin the next values."""
        loop = self.loops[-1]
        loop.clause, loop.at_head = Clause.VALUES, False
        self.state = self.at_operand
        self.state[kind](kind, start, end)

    # The end of a loop.

    def finish_call(self, row: Primitive | ArrayCall, frame: Frame, end: int) -> None:
        """Replace the operands of a frame by the value of a function of them, or of a loop."""
        if row is not ITERATE:
            super().finish_call(row, frame, end)
            return
        loop = self.loops.pop()
        span = (frame.start, end)
        if loop.clause is not Clause.VALUES or loop.around is None:
            missing = "how often, and the next values" if loop.around is None else "the next values"
            raise self.loop_error(f"iterate needs {missing}", span)
        self.push(self._emitted(*self.read(loop, frame, span), span), *span)

    def operands(self, frame: Frame) -> tuple[list[int], list[TextSpan]]:
        """Take the operands of a frame, and where they are."""
        spans = list(zip(self.starts[frame.base :], self.ends[frame.base :], strict=True))
        values = self.nodes[frame.base :]
        del self.nodes[frame.base :], self.starts[frame.base :], self.ends[frame.base :]
        return values, spans

    def read(
        self, loop: OpenLoop, frame: Frame, span: TextSpan
    ) -> tuple[Loop | WhileLoop, list[int]]:
        """Return the loop whose next values were read, and its arguments; leave its step."""
        assert loop.around is not None
        nodes, spans = self.operands(frame)
        found = self._control(loop, list(map(self._number_of, nodes)), spans, span)
        self.builder, self.scope, self.literals, self.elements, self.target = loop.around
        return found

    def _number_of(self, node: int) -> int:
        """Return a value of a step; a truth value becomes a number."""
        builder = self.builder
        return builder.emit(as_number, (node,)) if builder.boolean[builder.opcode[node]] else node

    def _control(
        self, loop: OpenLoop, values: list[int], spans: list[TextSpan], span: TextSpan
    ) -> tuple[Loop | WhileLoop, list[int]]:
        """Return the loop that was read, and its arguments in the graph around it."""
        assert isinstance(self.scope, LoopScope)
        order = sorted(range(len(loop.names)), key=loop.looped.__getitem__)
        carries = loop.looped.count(False)
        self._check_values(loop, order[:carries], values, spans, span)
        inputs = [*order, *self.scope.captured]  # bindings are the first nodes
        arguments = [*(loop.firsts[k] for k in order), *self.scope.captured.values()]
        body = self._function(inputs, values)
        if loop.test is not None:
            if carries < len(values) or carries < len(loop.names) or loop.reverse:
                message = "a loop with a condition has carried values only"
                raise self.loop_error(message, span, "write how often: 100 times")
            return WhileLoop(self._function(inputs, [loop.test]), body), arguments
        steps = self._steps(loop, span)
        return Loop(body, carries, len(order) - carries, steps, loop.reverse), arguments

    def _check_values(
        self,
        loop: OpenLoop,
        carried: Sequence[int],
        values: Sequence[int],
        spans: Sequence[TextSpan],
        span: TextSpan,
    ) -> None:
        """Raise an error unless every carried value has a next value of its shape."""
        if len(values) < len(carried):
            message = f"iterate carries {len(carried)} values, and {len(values)} follow"
            raise self.loop_error(message, span, "list the next value of each, then results")
        for first, node, place in zip(carried, values, spans, strict=False):
            shape, found = self.builder.shape(first), self.builder.shape(node)
            if found != shape:
                shown = complaints.shown(self.text[slice(*loop.names[first])])
                message = f"'{shown}' has the shape {shape}, and its next value {found}"
                hint = "give the first value the shape of the next ones: broadcast(0, [3])"
                raise ShapeError(message, text=self.text, span=place, hint=hint)

    def _function(self, inputs: list[int], outputs: list[int]) -> Function:
        """Return a part of the step, without locations: equal loops of two texts are equal."""
        names = [f"y{k + 1}" for k in range(len(outputs))]
        return rewritten(Function.build(self.builder, inputs, outputs, names), None, Builder())

    def _steps(self, loop: OpenLoop, span: TextSpan) -> int:
        assert loop.around is not None
        builder = loop.around[0]
        bound = zip(loop.firsts, loop.looped, strict=True)
        sizes = {builder.shape(node)[0] for node, looped in bound if looped}
        sizes |= set() if loop.steps is None else {loop.steps}
        if not sizes:
            hint = "write 100 times; or while y > 1; after the first values"
            raise self.loop_error("iterate does not say how often", span, hint)
        if len(sizes) > 1:
            found = " and ".join(map(str, sorted(sizes)))
            message = f"the steps of iterate differ: {found}"
            raise self.loop_error(message, span, "the arrays have one element for each step")
        return sizes.pop()

    def _emitted(self, control: Loop | WhileLoop, arguments: list[int], span: TextSpan) -> int:
        """Append a loop: its only output, or all of them as one vector."""
        from difflab.autodiff.control.loop import loop_value
        from difflab.autodiff.control.while_loop import while_loop_value

        builder = self.builder
        nodes = [Node(builder, node) for node in arguments]
        builder.span = packed_span(span)
        try:
            if isinstance(control, Loop):
                whole = loop_value(control, nodes)
            else:
                whole = while_loop_value(control, nodes)
            shapes = control.output_shapes
            return unpacked(whole, shapes)[0].id if len(shapes) == 1 else whole.id
        finally:
            builder.span = NOWHERE

    # Errors.

    def loop_error(self, message: str, span: TextSpan, hint: str = _EXAMPLE) -> ParseError:
        """Return an error of a loop."""
        return ParseError(message, text=self.text, span=span, hint=hint)

    def _no_binding(self, kind: int, start: int, end: int) -> None:
        if kind == TokenKind.END:
            raise complaints.unclosed(self.text, self.frames[-1].opener)
        raise self.loop_error("iterate begins with the first values", (start, end))

    def _no_semicolon(self, kind: int, start: int, end: int) -> None:
        if kind == TokenKind.END:
            raise complaints.unclosed(self.text, self.frames[-1].opener)
        raise self.loop_error("the parts of iterate are separated by ';'", (start, end))
