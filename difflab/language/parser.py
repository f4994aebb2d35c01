"""Text to function: an operator-precedence parser with explicit stacks.

There is no syntax tree. Operands are three stacks of integers (node, start, end), operators
two (kind, position), and reducing an operator emits a node. Every token is handled once, by a
table indexed by its kind, with one table per parser state; so parsing is linear in the length
of the text and nothing recurses. The method is Dijkstra's shunting-yard (Mathematisch
Centrum report MR 34/61, 1961). The tables stand at the end of this module; the handlers of
square brackets are in `brackets`, those of loops in `loops` and those of roots in `roots`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import ClassVar

from difflab.core.primitive import Primitive
from difflab.errors import InputError, ParseError, ShapeError
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.names import natural_order, output_names
from difflab.graph.node import Node
from difflab.graph.source import NOWHERE, SourceMap
from difflab.language import brackets, complaints, loops, roots
from difflab.language.alike import SHORTEST, AlikeTerms
from difflab.language.brackets import OpenBracket
from difflab.language.calls import ALIASES, CALLS, CLAUSED, ITERATE, ROOT, ArrayCall, Statics
from difflab.language.complaints import TextSpan
from difflab.language.lexer import TokenKind, clean_name, number, superscript, tokens
from difflab.language.operators import (
    COMPARISONS,
    FLOOR,
    KINDS,
    LEVEL,
    NEGATE,
    PRIMITIVE,
    UNARY,
    Handler,
    table,
)
from difflab.language.scope import Scope
from difflab.primitives import by_spelling, negative, power

_OPEN, _MATMUL = int(TokenKind.OPEN), int(TokenKind.MATMUL)
_DEEPEST = 1_000_000
"""Maximum number of open parentheses, against megabytes of `(`."""

_FUNCTIONS: dict[str, Primitive | ArrayCall] = {
    **{alias: by_spelling[name] for alias, name in ALIASES.items()},
    **by_spelling,
    **CALLS,
    **{call.name: call for call in CLAUSED},
}
_NO_NAMES: tuple[str, ...] = ()
_BEFORE_CALL = re.compile(r"[ \t\xa0]*\(")
# The symbol after a statement's first name: a definition, a declaration, or a use if none.
_AFTER_NAME = re.compile(r"[ \t\xa0]*(:|=(?!=))?")


def parse(text: str, variables: Collection[str] = _NO_NAMES) -> Function:
    """Return the function that a program of the language computes.

    The inputs are the declared and the free names, in natural order (``x2`` before ``x10``).

    Parameters
    ----------
    text : str
        A program: ``name = expression`` lines, then an expression or a list of them.
    variables : collection of str, optional
        Names that are variables although the language has a meaning for them, such as ``e``, the
        elementary charge, or ``gamma``, the Lorentz factor. A function's name still means the
        function where it is called: ``gamma*gamma(x)``. Names that `text` does not use are ignored.

    Returns
    -------
    Function
        Its graph records the span in `text` of every node. The text of the function declares the
        `variables` that `text` uses without a declaration.

    Raises
    ------
    ParseError
        The text is not a valid program; the error has the span.
    InputError
        `text` is not a string, or `variables` is no collection of names.
    ShapeError
        The shapes of an operation's arguments are incompatible.

    Examples
    --------
    >>> f = parse("ln(x1) + x1*x2 - sin(x2)")
    >>> f.inputs
    ('x1', 'x2')
    >>> round(float(f(2.0, 5.0)), 12)
    11.652071455223
    >>> g = parse("e*x", variables=["e"])  # not Euler's number
    >>> g.inputs, g.text
    (('e', 'x'), 'e: []; e*x')
    """
    if not isinstance(text, str):
        raise InputError(
            f"parse takes the text of a program, not {type(text).__name__}",
            hint='write dl.parse("x^2"); dl.trace(f, *examples) records Python code',
        )
    if variables is not _NO_NAMES:
        _check_variables(variables)
    parser = Parser(text, variables)
    parser.read()
    if parser.scope.undeclared:
        declared = "".join(f"{name}: []; " for name in parser.scope.undeclared)
        # Declared in its text, the function is read again without `variables`.
        return parse(declared + text)
    return parser.result()


def _check_variables(variables: Collection[str]) -> None:
    """Raise an error unless `variables` is a collection of names."""
    named = isinstance(variables, Sequence | Set | Mapping) and not isinstance(variables, str)
    if not (named and all(isinstance(name, str) for name in variables)):
        raise InputError(
            "the variables of parse are a collection of names", hint='variables=["e", "gamma"]'
        )


class Parser:
    """State of the parser, and the handlers of tokens in expressions and statements.

    Parameters
    ----------
    text : str
        The program.
    variables : iterable of str
        Names that are variables although the language reserves them.
    """

    at_start: ClassVar[list[Handler]]
    at_operand: ClassVar[list[Handler]]
    at_operator: ClassVar[list[Handler]]
    at_call: ClassVar[list[Handler]]
    at_end: ClassVar[list[Handler]]
    after_list: ClassVar[list[Handler]]
    after_index: ClassVar[list[Handler]]
    at_binding: ClassVar[list[Handler]]
    at_clause: ClassVar[list[Handler]]
    after_times: ClassVar[list[Handler]]

    def __init__(self, text: str, variables: Iterable[str] = ()) -> None:
        self.text = text
        self.builder = Builder(SourceMap(text))
        self.scope = Scope(text, self.builder, variables)
        self.jumps: list[int] = []
        self.tokens: Iterator[tuple[int, int, int]] = tokens(text, jumps=self.jumps)
        self.state = self.at_start
        self.nodes: list[int] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.operators: list[int] = [int(TokenKind.END)]
        self.positions: list[int] = [0]
        self.frames: list[OpenBracket] = []
        self.literals: dict[str, int] = {}
        self.elements: dict[str, int] = {}
        self.function: tuple[Primitive | ArrayCall, int, int] | None = None
        self.statics: dict[int, Statics] = {}
        self.alike = AlikeTerms(self) if len(text) >= SHORTEST else None
        self.loops: list[loops.OpenLoop] = []
        self.sweeps: dict[int, loops.LoopSweep] = {}
        self.line = -1
        self.target: str | None = None
        self.target_span: TextSpan = (0, 0)
        self.outputs: list[tuple[int, int, int]] = []
        self.defined: tuple[int, int, int] | None = None
        self.closing: TextSpan | None = None

    def read(self) -> None:
        """Read the program."""
        for kind, start, end in self.tokens:
            self.state[kind](self, kind, start, end)

    def result(self) -> Function:
        """Return the function of the statements that were read."""
        if not self.outputs and self.defined is not None:
            self.outputs = [self.defined]
        if not self.outputs:
            raise complaints.empty(self.text)
        variables = [self.scope.variable((start, end), node) for node, start, end in self.outputs]
        names = self.builder.names
        inputs = sorted(names, key=lambda node: natural_order(names[node]))
        nodes = [node for node, _, _ in self.outputs]
        labels = output_names(variables, self.scope.nodes)
        return Function.build(self.builder, inputs, nodes, labels, text=self.text)

    # Handlers where an operand is expected.

    def nothing(self, kind: int, start: int, end: int) -> None:
        """Skip a token that changes nothing."""

    def push(self, node: int, start: int, end: int) -> None:
        """Push an operand; an operator is expected next."""
        self.nodes.append(node)
        self.starts.append(start)
        self.ends.append(end)
        self.state = self.at_operator

    def read_number(self, kind: int, start: int, end: int) -> None:
        """Push a literal; equal literals are one node."""
        literal = self.text[start:end]
        node = self.literals.get(literal)
        if node is None:
            value = number(self.text, start, end)
            node = self.literals[literal] = self.builder.constant(value, None, (start, end))
        self.push(node, start, end)

    def read_name(self, kind: int, start: int, end: int) -> None:
        """Read the name of a variable, a constant or a called function."""
        written = self.text[start:end]
        node = self.scope.spellings.get(written)
        if node is None:
            function = _FUNCTIONS.get(written)
            if function is None or not self.text.startswith("(", end):
                name = clean_name(self.text, start, end)
                function = self._called(name, end)
                if function is None:
                    self.push(self.scope.resolve(name, (start, end), self.target), start, end)
                    return
            self.function = function, start, end
            self.state = self.at_call
        else:
            self.push(node, start, end)

    def _called(self, name: str, end: int) -> Primitive | ArrayCall | None:
        """Return the function that a name means here; None for a variable or a constant."""
        function = _FUNCTIONS.get(name)
        if function is None or _BEFORE_CALL.match(self.text, end):
            return function
        primitive = by_spelling.get(name)
        reserved = primitive is not None and primitive.reserved
        return function if reserved and name not in self.scope.variables else None

    def read_element(self, kind: int, start: int, end: int) -> None:
        """Push an element of a vector, such as ``x[12]``; equal ones are one node."""
        node = self.elements.get(self.text[start:end])
        if node is None:
            brackets.new_element(self, start, end)
        else:
            self.push(node, start, end)

    def prefix(self, kind: int, start: int, end: int) -> None:
        """Push a prefix operator or an opening bracket."""
        self.operators.append(kind)
        self.positions.append(start)
        self.state = self.at_operand

    def minus(self, kind: int, start: int, end: int) -> None:
        """Push a unary minus."""
        self.prefix(NEGATE, start, end)

    def logical_not(self, kind: int, start: int, end: int) -> None:
        """Push ``not``, unless the operator before it has a higher precedence."""
        if LEVEL[self.operators[-1]] > LEVEL[kind]:
            message = "'not' has lower precedence than the operator before it"
            raise self.error(message, (start, end), "write parentheses around it: (not …)")
        self.prefix(kind, start, end)

    def open(self, kind: int, start: int, end: int) -> None:
        """Open a parenthesis: of the function whose name was read, or of an expression."""
        if len(self.frames) == _DEEPEST:
            raise complaints.too_deep(self.text, start, _DEEPEST)
        function, name_start, _ = self.function or (None, start, end)
        self.function = None
        self.frames.append(OpenBracket(function, len(self.nodes), name_start, start))
        self.operators.append(_OPEN)
        self.positions.append(start)
        self.state = self.at_operand
        if function is ITERATE:
            loops.begin(self)
        elif function is ROOT:
            roots.read(self)

    # Handlers after an operand.

    def reduce(self, floor: int) -> None:
        """Emit the operators on the stack whose precedence is at least `floor`."""
        operators, nodes, starts, ends = self.operators, self.nodes, self.starts, self.ends
        while LEVEL[operators[-1]] >= floor:
            kind = operators.pop()
            start = self.positions.pop()
            primitive = PRIMITIVE[kind]
            assert primitive is not None
            if UNARY[kind]:
                nodes[-1] = self._emit_prefix(primitive, start)
                starts[-1] = start
            else:
                right, end = nodes.pop(), ends.pop()
                starts.pop()
                span = (starts[-1], end)
                if kind == _MATMUL:
                    args = (nodes[-1], right)
                    nodes[-1] = self._emit_array_call(CALLS["matmul"], args, span, Statics())
                else:
                    nodes[-1] = self.builder.emit(primitive, (nodes[-1], right), (), span)
                ends[-1] = end

    def _emit_prefix(self, primitive: Primitive, start: int) -> int:
        """Emit a prefix operator; a minus before a literal becomes its sign."""
        node, operand, end = self.nodes[-1], self.starts[-1], self.ends[-1]
        if primitive.signs == (-1,) and self.text[operand] in "0123456789.":
            constant = self.builder.constants.get(node)
            if constant is not None:
                return self.builder.constant(-constant[0], None, (start, end))
        return self.builder.emit(primitive, (node,), (), (start, end))

    def binary(self, kind: int, start: int, end: int) -> None:
        """Push a binary operator after emitting those that bind at least as tightly."""
        floor = FLOOR[kind]
        if LEVEL[self.operators[-1]] >= floor:
            self.reduce(floor)
        self.operators.append(kind)
        self.positions.append(start)
        self.state = self.at_operand

    def sign(self, kind: int, start: int, end: int) -> None:
        """Push a plus or minus; terms like those before it follow without tokens."""
        self.binary(kind, start, end)
        if self.alike is not None and len(self.operators) == 2 and not self.frames:
            following = self.alike.follow(start, end)
            if following != end:
                self.jumps.append(following)

    def comparison(self, kind: int, start: int, end: int) -> None:
        """Push a comparison, which does not chain."""
        self.reduce(FLOOR[kind] + 1)
        if LEVEL[self.operators[-1]] == LEVEL[kind]:
            raise complaints.chained(self.text, (start, end))
        self.prefix(kind, start, end)

    def superscript(self, kind: int, start: int, end: int) -> None:
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

    def comma(self, kind: int, start: int, end: int) -> None:
        """Expect the next element, argument, binding or value."""
        self.reduce(1)
        frame = self.frames[-1] if self.frames else None
        if frame is None or (frame.function is None and self.operators[-1] == _OPEN):
            raise complaints.comma(self.text, (start, end))
        self.state = self.at_operand
        if frame.function is ITERATE:
            loops.comma(self, start, end)
        elif frame.function is ROOT:
            roots.comma(self)

    def close(self, kind: int, start: int, end: int) -> None:
        """Close a parenthesis; emit the call before it."""
        frame = self.closed(_OPEN, start, end)
        if frame.function is None:
            self.starts[-1] = frame.start
            self.ends[-1] = end
        elif frame.function is ITERATE:
            loops.finish(self, frame, end)
        elif frame.function is ROOT:
            roots.finish(self, frame, end)
        else:
            self.finish_call(frame.function, frame, end)

    def closed(self, opening: int, start: int, end: int) -> OpenBracket:
        """Return the frame of the bracket of the kind `opening` that is closed here."""
        self.reduce(1)
        if self.operators[-1] != opening:
            opener = self.frames[-1].opener if self.frames else None
            raise complaints.unopened(self.text, (start, end), opener)
        self.operators.pop()
        self.positions.pop()
        return self.frames.pop()

    def finish_call(self, function: Primitive | ArrayCall, frame: OpenBracket, end: int) -> None:
        """Replace the operands of a frame by the value of a function of them."""
        args = tuple(self.nodes[frame.base :])
        del self.nodes[frame.base :], self.starts[frame.base :], self.ends[frame.base :]
        span, count = (frame.start, end), len(args)
        if isinstance(function, ArrayCall):
            most = count if function.most is None else function.most
            single = function.most is None and function.lists == "axes" and count == 1
            scalar = single and not self.builder.shape(args[0])
            if scalar or not function.least <= count <= most:
                takes = "at least 2 arguments" if scalar else function.takes
                raise complaints.wrong_count(self.text, span, takes, count)
            static = self.statics.pop(frame.opener, None) or Statics()
            node = self._emit_array_call(function, args, span, static)
        elif function.arity is not None and count != function.arity:
            raise complaints.wrong_count(self.text, span, _takes(function), count)
        else:
            node = self.builder.emit(function, args, (), span)
        self.push(node, frame.start, end)

    def _emit_array_call(
        self, call: ArrayCall, args: tuple[int, ...], span: TextSpan, static: Statics
    ) -> int:
        """Emit the operations of an array function; all of them have the span of the call."""
        if call.needs_list and static.integers is None:
            raise complaints.missing_list(self.text, span, call.lists)
        builder = self.builder
        builder.span = span[0] << 32 | span[1]
        try:
            result: Node = call.compute([Node(builder, node) for node in args], static)
        except ShapeError as error:
            raise ShapeError(error.message, text=self.text, span=span, hint=error.hint) from None
        finally:
            builder.span = NOWHERE
        return result.id

    # Handlers of statements.

    def first_name(self, kind: int, start: int, end: int) -> None:
        """Begin a definition or a declaration, or an expression with its first name."""
        follows = _AFTER_NAME.match(self.text, end)
        symbol = follows[1] if follows else None
        if symbol == "=":
            self.require_no_output()
            self.target_span = (start, end)
            self.target = self.scope.new_name(self.target_span)
            next(self.tokens)
            self.state = self.at_operand
        elif symbol == ":":
            self.require_no_output()
            brackets.declare(self, start, end)
        else:
            self.read_name(kind, start, end)

    def end_of_line(self, kind: int, start: int, end: int) -> None:
        """End an expression, unless a bracket is open."""
        if self.frames:
            self.line = start
        else:
            self.end_of_expression(kind, start, end)

    def end_of_expression(self, kind: int, start: int, end: int) -> None:
        """Assign the value that was read to its name, or make it the output."""
        self.reduce(1)
        if self.frames:
            if kind == TokenKind.SEMICOLON:
                loops.semicolon(self, end)
                return
            raise complaints.unclosed(self.text, self.frames[-1].opener)
        node, left, right = self.nodes[0], self.starts[0], self.ends[0]
        if self.target is None:
            self.require_no_output()
            self.outputs = [(node, left, right)]
            self.closing = (left, right)
        else:
            self.scope.assign(self.target_span, node)
            self.defined = (node, *self.target_span)
        self.target = None
        del self.nodes[:], self.starts[:], self.ends[:]
        self.state = self.at_start

    def end_of_statement(self, kind: int, start: int, end: int) -> None:
        """Expect the next statement."""
        self.state = self.at_start

    def require_no_output(self) -> None:
        """Raise if an expression was read already: only the last one is the output."""
        if self.closing is not None:
            message = "an expression before the last line is not used"
            hint = "give it a name: a = …; for several outputs write [a, b] on the last line"
            raise self.error(message, self.closing, hint)

    # Handlers of unexpected tokens.

    def error(self, message: str, span: TextSpan, hint: str | None = None) -> ParseError:
        """Return the error that marks a span of the text."""
        return ParseError(message, text=self.text, span=span, hint=hint)

    def stray(self, kind: int, start: int, end: int) -> None:
        """Raise the error for a character that begins no token."""
        raise complaints.stray(self.text, start)

    def no_expression(self, kind: int, start: int, end: int) -> None:
        """Raise the error for a token where an expression is expected."""
        opener = self.frames[-1].opener if self.frames else None
        in_loop = bool(self.frames) and self.frames[-1].function in CLAUSED
        cut_off = kind == TokenKind.END or (kind == TokenKind.SEMICOLON and not in_loop)
        if opener is not None and cut_off:
            raise complaints.unclosed(self.text, opener)
        raise complaints.expected_expression(self.text, (start, end), opener)

    def close_empty(self, kind: int, start: int, end: int) -> None:
        """Raise the error for a parenthesis that closes without an operand."""
        frame = self.frames[-1] if self.frames else None
        empty = frame is not None and not self.text[frame.opener + 1 : start].strip()
        if frame is not None and frame.function is not None and empty:
            takes = _takes(frame.function)
            raise complaints.wrong_count(self.text, (frame.start, end), takes, 0)
        self.no_expression(kind, start, end)

    def no_call(self, kind: int, start: int, end: int) -> None:
        """Raise the error for the name of a function without a call."""
        assert self.function is not None
        _, name_start, name_end = self.function
        token = self.text[start:end]
        raise complaints.function_without_call(self.text, (name_start, name_end), token)

    def adjacent(self, kind: int, start: int, end: int) -> None:
        """Raise the error for adjacent operands: ``2x``, ``f(x)``, a line that ended early."""
        left = (self.starts[-1], self.ends[-1])
        if self.frames and self.line >= left[1]:
            raise complaints.unclosed(self.text, self.frames[-1].opener)
        if kind == TokenKind.OPEN and self.scope.variable(left, self.nodes[-1]) is not None:
            raise complaints.unknown_function(self.text, left)
        raise complaints.adjacent(self.text, left, (start, end))

    def stray_assignment(self, kind: int, start: int, end: int) -> None:
        """Raise the error for ``=`` or ``:`` after an operand."""
        raise complaints.assignment(self.text, (start, end))

    def after_statement(self, kind: int, start: int, end: int) -> None:
        """Raise the error for a token after a complete statement."""
        raise complaints.after_statement(self.text, (start, end))


def _takes(function: Primitive | ArrayCall) -> str:
    """Return the number of arguments of a function, in words."""
    if isinstance(function, ArrayCall):
        return function.takes
    return f"{function.arity} argument{'' if function.arity == 1 else 's'}"


_PREFIXES = [kind for kind in KINDS if UNARY[kind]]
_BINARY = [kind for kind in KINDS if LEVEL[kind] and not UNARY[kind]]
_VALUES = [TokenKind.NUMBER, TokenKind.NAME, TokenKind.ELEMENT, TokenKind.OPEN, *_PREFIXES]
_ENDS = [TokenKind.NEWLINE, TokenKind.SEMICOLON, TokenKind.END]
_SKIPPED: dict[int, Handler] = {TokenKind.NEWLINE: Parser.nothing, TokenKind.BAD: Parser.stray}
_OPERAND: dict[int, Handler] = _SKIPPED | {
    TokenKind.NUMBER: Parser.read_number,
    TokenKind.NAME: Parser.read_name,
    TokenKind.ELEMENT: Parser.read_element,
    TokenKind.MINUS: Parser.minus,
    TokenKind.PLUS: Parser.nothing,
    TokenKind.OPEN: Parser.open,
    TokenKind.CLOSE: Parser.close_empty,
    TokenKind.BRACKET: brackets.open_list,
    TokenKind.NOT: Parser.logical_not,
    TokenKind.ROOT: Parser.prefix,
    TokenKind.CUBE_ROOT: Parser.prefix,
}
_STATEMENT: dict[int, Handler] = _OPERAND | {
    TokenKind.NAME: Parser.first_name,
    TokenKind.BRACKET: brackets.open_outputs,
    TokenKind.SEMICOLON: Parser.nothing,
    TokenKind.END: Parser.nothing,
}
_OPERATOR: dict[int, Handler] = {
    **dict.fromkeys(_BINARY, Parser.binary),
    **dict.fromkeys((TokenKind.PLUS, TokenKind.MINUS), Parser.sign),
    **dict.fromkeys(COMPARISONS, Parser.comparison),
    **dict.fromkeys(_VALUES, Parser.adjacent),
    TokenKind.NAME: brackets.at,
    TokenKind.SUPERSCRIPT: Parser.superscript,
    TokenKind.BRACKET: brackets.index,
    TokenKind.UNBRACKET: brackets.close_list,
    TokenKind.CLOSE: Parser.close,
    TokenKind.COMMA: Parser.comma,
    TokenKind.NEWLINE: Parser.end_of_line,
    TokenKind.SEMICOLON: Parser.end_of_expression,
    TokenKind.END: Parser.end_of_expression,
    TokenKind.ASSIGN: Parser.stray_assignment,
    TokenKind.COLON: Parser.stray_assignment,
    TokenKind.BAD: Parser.stray,
}
_STATIC: dict[int, Handler] = _SKIPPED | {TokenKind.CLOSE: Parser.close}
_LIST: dict[int, Handler] = {TokenKind.NAME: brackets.along, TokenKind.COMMA: brackets.second}
_CLAUSE: dict[int, Handler] = {
    TokenKind.NUMBER: loops.times,
    TokenKind.NAME: loops.word,
    TokenKind.SEMICOLON: Parser.nothing,
}
_TIMES: dict[int, Handler] = {
    TokenKind.SEMICOLON: loops.next_clause,
    TokenKind.NAME: loops.backwards,
}

Parser.at_start = table(_STATEMENT, Parser.no_expression)
Parser.at_operand = table(_OPERAND, Parser.no_expression)
Parser.at_operator = table(_OPERATOR, Parser.no_expression)
Parser.at_call = table({TokenKind.OPEN: Parser.open, TokenKind.BAD: Parser.stray}, Parser.no_call)
Parser.at_end = table(
    {TokenKind.BAD: Parser.stray, **dict.fromkeys(_ENDS, Parser.end_of_statement)},
    Parser.after_statement,
)
Parser.after_list = table(_STATIC | _LIST, brackets.list_is_last)
Parser.after_index = table(_STATIC | {TokenKind.COMMA: Parser.comma}, brackets.list_is_last)
Parser.at_binding = table(_SKIPPED | {TokenKind.NAME: loops.binding}, loops.no_binding)
Parser.at_clause = table(_SKIPPED | _CLAUSE, loops.value)
Parser.after_times = table(_SKIPPED | _TIMES, loops.no_semicolon)
