"""A loop that is being read: its names and values, and the control node that they become."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from difflab.errors import ParseError, ShapeError
from difflab.graph.builder import Builder
from difflab.graph.control import Loop, WhileLoop
from difflab.graph.custom.rows import packed, unpacked
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.graph.rewritten import rewritten
from difflab.graph.source import NOWHERE
from difflab.graph.source import packed as packed_span
from difflab.language import complaints
from difflab.language.complaints import TextSpan
from difflab.language.scope import Scope

EXAMPLE = "write iterate(y = 0.5; 100 times; 4*y*(1 - y))"


class Clause(Enum):
    """The part of a loop that is being read."""

    BINDINGS = "the first values"
    WHILE = "the condition"
    DEFINITION = "a definition"
    VALUES = "the next values"
    COTANGENTS = "the cotangents of the last values"


class LoopScope(Scope):
    """Names of a step: its own, and those around it, which become constants of the loop."""

    __slots__ = ("around", "captured", "target")

    def __init__(self, text: str, builder: Builder, around: Scope, target: str | None) -> None:
        super().__init__(text, builder, around.variables)
        self.around = around
        self.target = target
        self.captured: dict[int, int] = {}

    def resolve(self, name: str, span: TextSpan, target: str | None) -> int:
        """Return the node of `name`; a name of the program around it becomes an input."""
        if name not in self.nodes and not self.constant(name) and name != target:
            outer = self.around.resolve(name, span, self.target)
            node = self.builder.input(name, self.around.builder.shape(outer), span)
            self.nodes[name], self._first[name] = node, span
            self.captured[node] = outer
        return super().resolve(name, span, target)

    def constant_used(self, name: str, span: TextSpan) -> None:
        """Record the use in the text around the loop, too."""
        super().constant_used(name, span)
        self.around.constant_used(name, span)


@dataclass
class OpenLoop:
    """A loop that is being read.

    Attributes
    ----------
    start : int
        Where the call begins.
    names, looped, firsts : list
        Of each binding its name, whether it goes over an array, and its first value or array.
    around : tuple
        The state of the parser outside.
    """

    start: int
    clause: Clause = Clause.BINDINGS
    names: list[TextSpan] = field(default_factory=list)
    looped: list[bool] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    around: tuple[Builder, Scope, dict[str, int], dict[str, int], str | None] | None = None
    steps: int | None = None
    test: int | None = None
    reverse: bool = False
    at_head: bool = True
    defined: TextSpan = (0, 0)

    def control(
        self, scope: LoopScope, values: list[int], spans: list[TextSpan], span: TextSpan
    ) -> tuple[Loop | WhileLoop, list[int]]:
        """Return the control node of the loop, and its arguments in the graph around it."""
        order = sorted(range(len(self.names)), key=self.looped.__getitem__)
        carries = self.looped.count(False)
        self._check_values(scope, order[:carries], values, spans, span)
        inputs = [*order, *scope.captured]  # bindings are the first nodes
        arguments = [*(self.firsts[k] for k in order), *scope.captured.values()]
        body = function_of(scope.builder, inputs, values)
        if self.test is not None:
            if carries < len(values) or carries < len(self.names) or self.reverse:
                message = "a loop with a condition has carried values only"
                hint = "write how often: 100 times"
                raise ParseError(message, text=scope.text, span=span, hint=hint)
            return WhileLoop(function_of(scope.builder, inputs, [self.test]), body), arguments
        steps = self._steps(scope, span)
        return Loop(body, carries, len(order) - carries, steps, self.reverse), arguments

    def _check_values(
        self,
        scope: LoopScope,
        carried: Sequence[int],
        values: Sequence[int],
        spans: Sequence[TextSpan],
        span: TextSpan,
    ) -> None:
        """Raise an error unless every carried value has a next value of its shape."""
        text = scope.text
        if len(values) < len(carried):
            message = f"iterate carries {len(carried)} values, and {len(values)} follow"
            hint = "list the next value of each, then results"
            raise ParseError(message, text=text, span=span, hint=hint)
        for first, node, value_span in zip(carried, values, spans, strict=False):
            shape, next_shape = scope.builder.shape(first), scope.builder.shape(node)
            if next_shape != shape:
                shown = complaints.shown(text[slice(*self.names[first])])
                message = f"'{shown}' has the shape {shape}, and its next value {next_shape}"
                hint = "give the first value the shape of the next ones: broadcast(0, [3])"
                raise ShapeError(message, text=text, span=value_span, hint=hint)

    def _steps(self, scope: LoopScope, span: TextSpan) -> int:
        """Return the number of steps: the one in the text, or that of the arrays' elements."""
        bound = zip(self.firsts, self.looped, strict=True)
        sizes = {scope.around.builder.shape(node)[0] for node, looped in bound if looped}
        sizes |= set() if self.steps is None else {self.steps}
        if len(sizes) == 1:
            return sizes.pop()
        if not sizes:
            message = "iterate does not say how often"
            hint = "write 100 times; or while y > 1; after the first values"
        else:
            message = f"the steps of iterate differ: {' and '.join(map(str, sorted(sizes)))}"
            hint = "the arrays have one element for each step"
        raise ParseError(message, text=scope.text, span=span, hint=hint)


@dataclass(frozen=True)
class LoopSweep:
    """A loop that was read, its arguments, and those whose cotangents are wanted."""

    loop: WhileLoop
    arguments: list[int]
    wanted: list[int]


def function_of(builder: Builder, inputs: list[int], outputs: list[int]) -> Function:
    """Return a part of the step, without locations: equal loops of two texts are equal."""
    names = [f"y{k + 1}" for k in range(len(outputs))]
    return rewritten(Function.build(builder, inputs, outputs, names), None, Builder())


def emitted(
    builder: Builder, control: Loop | WhileLoop, arguments: list[int], span: TextSpan
) -> int:
    """Append a loop: its only output, or all of them as one vector."""
    from difflab.autodiff.control.loops import loop_value
    from difflab.autodiff.control.while_loops import while_loop_value

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


def swept(builder: Builder, sweep: LoopSweep, cotangents: list[int], span: TextSpan) -> int:
    """Append a sweep: the only cotangent that is wanted, or all of them as one vector."""
    from difflab.autodiff.control.while_loops import while_loop_vjp

    shapes = sweep.loop.input_shapes
    builder.span = packed_span(span)
    try:
        arguments = [Node(builder, node) for node in (*sweep.arguments, *cotangents)]
        whole = while_loop_vjp(sweep.loop, arguments)
        if len(sweep.wanted) > 1 and sweep.wanted == list(range(len(shapes))):
            return whole.id
        parts = unpacked(whole, shapes)
        chosen = [parts[position] for position in sweep.wanted]
        return (chosen[0] if len(chosen) == 1 else packed(chosen)).id
    finally:
        builder.span = NOWHERE
