"""Reverse sweeps of loops: ``iterate(y = x; while y > 1; y*a; back to y, a from 1)``.

The last part of a loop with a condition may go back over its turns: from the cotangents of the last
values to those of what it names, a carried name for its first value, or a name outside. It is what
`str` prints of the reverse mode of such a loop, whose turns are not known in advance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from difflab.core.primitive import Primitive
from difflab.errors import ShapeError
from difflab.graph.control import WhileLoop
from difflab.graph.custom.rows import packed, unpacked
from difflab.graph.node import Node
from difflab.graph.source import NOWHERE
from difflab.graph.source import packed as packed_span
from difflab.language.calls import ITERATE, ArrayCall
from difflab.language.complaints import TextSpan, shown
from difflab.language.expression import Frame
from difflab.language.lexer import TokenKind, clean_name
from difflab.language.loops import LoopParser
from difflab.language.open_loops import Clause, LoopScope, OpenLoop

__all__ = ["SweepParser"]

_BACK = re.compile(r"\s*back[ \t\xa0]+to(?![\w\[])")
_EXAMPLE = "write iterate(y = x; while y > 1; y*a; back to y, a from 1)"


@dataclass(frozen=True)
class _Sweep:
    """A loop that was read, its arguments, and those whose cotangents are wanted."""

    loop: WhileLoop
    arguments: list[int]
    wanted: list[int]


class SweepParser(LoopParser):
    """Parser of expressions with loops and their reverse sweeps."""

    def __init__(self, text: str, variables: Iterable[str] = ()) -> None:
        super().__init__(text, variables)
        self.sweeps: dict[int, _Sweep] = {}

    def semicolon(self, kind: int, start: int, end: int) -> None:
        """End a clause of a loop; behind the next values a sweep may follow."""
        frame = self.frames[-1]
        inside = frame.row is ITERATE and self.operators[-1] == TokenKind.OPEN
        behind_values = inside and self.loops[-1].clause is Clause.VALUES
        if not (behind_values and _BACK.match(self.text, end)):
            super().semicolon(kind, start, end)
            return
        loop = self.loops[-1]
        places = self._wanted(loop)
        control, arguments = self.read(loop, frame, (frame.start, end))
        if not isinstance(control, WhileLoop):
            message = "only a loop with a condition goes back to names"
            raise self.loop_error(message, (frame.start, end), _EXAMPLE)
        self.sweeps[frame.start] = _Sweep(control, arguments, places)
        loop.clause = Clause.COTANGENTS
        self.state = self.at_operand

    def finish_call(self, row: Primitive | ArrayCall, frame: Frame, end: int) -> None:
        """Replace the operands of a frame by the value of a function, a loop or a sweep."""
        sweep = self.sweeps.pop(frame.start, None) if row is ITERATE else None
        if sweep is None:
            super().finish_call(row, frame, end)
            return
        self.loops.pop()
        span = (frame.start, end)
        bars, spans = self.operands(frame)
        shapes = sweep.loop.output_shapes
        if len(bars) != len(shapes):
            message = f"iterate carries {len(shapes)} values, and goes back from {len(bars)}"
            raise self.loop_error(message, span, "list the cotangent of each last value")
        for bar, shape, place in zip(bars, shapes, spans, strict=True):
            found = self.builder.shape(bar)
            if found != shape:
                message = f"a last value has the shape {shape}, and its cotangent {found}"
                raise ShapeError(message, text=self.text, span=place)
        self.push(self._swept(sweep, bars, span), *span)

    def _swept(self, sweep: _Sweep, bars: list[int], span: TextSpan) -> int:
        """Append a sweep: the only cotangent that is wanted, or all of them as one vector."""
        from difflab.autodiff.control.while_loop import while_loop_vjp

        builder, shapes = self.builder, sweep.loop.input_shapes
        builder.span = packed_span(span)
        try:
            arguments = [Node(builder, node) for node in (*sweep.arguments, *bars)]
            whole = while_loop_vjp(sweep.loop, arguments)
            if len(sweep.wanted) > 1 and sweep.wanted == list(range(len(shapes))):
                return whole.id
            parts = unpacked(whole, shapes)
            chosen = [parts[place] for place in sweep.wanted]
            return (chosen[0] if len(chosen) == 1 else packed(chosen)).id
        finally:
            builder.span = NOWHERE

    def _wanted(self, loop: OpenLoop) -> list[int]:
        """Read ``back to y, a from``; return which arguments of the loop the names are."""
        scope = self.scope
        assert isinstance(scope, LoopScope)
        own = [clean_name(self.text, *span) for span in loop.names]
        found: list[int] = []
        for span in self._names():
            name = clean_name(self.text, *span)
            if name not in own:
                scope.resolve(name, span, None)
            node = scope.nodes.get(name)
            if node is None or (name not in own and node not in scope.captured):
                message = f"'{shown(name)}' is neither carried nor a name outside the loop"
                raise self.loop_error(message, span, _EXAMPLE)
            outside = len(own) + list(scope.captured).index(node) if name not in own else 0
            found.append(own.index(name) if name in own else outside)
        return found

    def _names(self) -> list[TextSpan]:
        """Read the names between the words ``back to`` and ``from``."""
        words = [self._next(TokenKind.NAME) for _ in "12"]  # back to
        spans = [self._next(TokenKind.NAME)]
        while self.text[slice(*(behind := self._next(None)))] == ",":
            spans.append(self._next(TokenKind.NAME))
        if self.text[slice(*behind)] != "from":
            message = "the names after 'back to' end with 'from' and the cotangents"
            raise self.loop_error(message, (words[0][0], behind[1]), _EXAMPLE)
        return spans

    def _next(self, wanted: TokenKind | None) -> TextSpan:
        """Return where the next token is, which must be of a kind."""
        for kind, start, end in self.tokens:
            if kind == TokenKind.NEWLINE:
                continue
            if wanted is not None and kind != wanted:
                raise self.loop_error("a name is expected after 'back to'", (start, end), _EXAMPLE)
            return start, end
        raise AssertionError("tokens end with END")
