"""Text to function: statements, declarations and outputs around the expressions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set

from difflab.errors import InputError, ParseError
from difflab.graph.function import Function
from difflab.graph.names import natural_order, output_names
from difflab.language import complaints
from difflab.language.brackets import read_shape
from difflab.language.complaints import TextSpan
from difflab.language.expression import Frame, Handler, table
from difflab.language.lexer import TokenKind
from difflab.language.sweeps import SweepParser

__all__ = ["parse"]

# The symbol after a statement's first name: a definition, a declaration, or a use if none.
_AFTER_NAME = re.compile(r"[ \t\xa0]*(:|=(?!=))?")


def parse(text: str, variables: Collection[str] = ()) -> Function:
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
    named = isinstance(variables, Sequence | Set | Mapping) and not isinstance(variables, str)
    if not (named and all(isinstance(name, str) for name in variables)):
        raise InputError(
            "the variables of parse are a collection of names", hint='variables=["e", "gamma"]'
        )
    parser = _ProgramParser(text, variables)
    for kind, start, end in parser.tokens:
        parser.state[kind](kind, start, end)
    declared = "".join(f"{name}: []; " for name in parser.scope.undeclared)
    # Declared in its text, the function is read again without `variables`.
    return parse(declared + text) if declared else parser.result()


class _ProgramParser(SweepParser):
    """Parser of statements: handles tokens at the start and at the end of each."""

    def __init__(self, text: str, variables: Iterable[str] = ()) -> None:
        super().__init__(text, variables)
        starts = self.operand_handlers() | {
            TokenKind.NAME: self._first_name,
            TokenKind.BRACKET: self._open_list,
            TokenKind.SEMICOLON: self.nothing,
            TokenKind.END: self.nothing,
        }
        ends = (TokenKind.NEWLINE, TokenKind.SEMICOLON, TokenKind.END)
        after: dict[int, Handler] = {TokenKind.BAD: self.stray, **dict.fromkeys(ends, self._end)}
        self.at_start = table(starts, self._no_expression)
        self.at_end = table(after, self._after_statement)
        self.state = self.at_start
        self.target_span: TextSpan | None = None
        self.outputs: list[tuple[int, int, int]] = []
        self.defined: tuple[int, int, int] | None = None
        self.closing: TextSpan | None = None

    def operator_handlers(self) -> dict[int, Handler]:
        """Return the handlers of tokens after a value, ends of statements among them."""
        return super().operator_handlers() | {
            TokenKind.NEWLINE: self._end_of_line,
            TokenKind.SEMICOLON: self._end_of_expression,
            TokenKind.END: self._end_of_expression,
            TokenKind.ASSIGN: self._stray_assignment,
            TokenKind.COLON: self._stray_assignment,
        }

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

    def _first_name(self, kind: int, start: int, end: int) -> None:
        follows = _AFTER_NAME.match(self.text, end)
        symbol = follows[1] if follows else None
        if symbol == "=":
            self._only_last()
            self.target_span = (start, end)
            self.target = self.scope.new_name(self.target_span)
            next(self.tokens)
            self.state = self.at_operand
        elif symbol == ":":
            self._only_last()
            self._declare(start, end)
        else:
            self.name(kind, start, end)

    def _declare(self, start: int, end: int) -> None:
        """Read a declaration, such as ``x: [100]``."""
        next(self.tokens)
        kind, opener, stop = next(self.tokens)
        if kind != TokenKind.BRACKET:
            hint = "write name: [100], name: [4, 3], or name: [] for a scalar"
            message = "a declaration needs a shape in brackets"
            raise ParseError(message, text=self.text, span=(start, stop), hint=hint)
        shape, _ = read_shape(self.text, self.tokens, opener)
        self.scope.declare((start, end), shape, hides=True)
        self.state = self.at_end

    def _open_list(self, kind: int, start: int, end: int) -> None:
        self.frames.append(Frame(None, len(self.nodes), start, start))
        self.prefix(kind, start, end)

    def close_list(self, kind: int, start: int, end: int) -> None:
        """Close the brackets of an array or, on the last line, of the outputs."""
        if self.frames and self.frames[-1].row is not None:
            super().close_list(kind, start, end)
            return
        opener = self.closed_bracket(start, end).opener
        self._only_last()
        self.outputs = list(zip(self.nodes, self.starts, self.ends, strict=True))
        self.closing = (opener, end)
        self._clear()
        self.state = self.at_end

    def _end_of_line(self, kind: int, start: int, end: int) -> None:
        if self.frames:
            self.line = start
        else:
            self._end_of_expression(kind, start, end)

    def _end_of_expression(self, kind: int, start: int, end: int) -> None:
        self.reduce(1)
        if self.frames:
            if kind == TokenKind.SEMICOLON:
                self.semicolon(kind, start, end)
                return
            raise complaints.unclosed(self.text, self.frames[-1].opener)
        node, left, right = self.nodes[0], self.starts[0], self.ends[0]
        if self.target is None or self.target_span is None:
            self._only_last()
            self.outputs = [(node, left, right)]
            self.closing = (left, right)
        else:
            self.scope.assign(self.target_span, node)
            self.defined = (node, *self.target_span)
        self._clear()
        self.state = self.at_start

    def _clear(self) -> None:
        """Prepare for the next statement."""
        self.target = self.target_span = None
        self.nodes.clear()
        self.starts.clear()
        self.ends.clear()

    def _end(self, kind: int, start: int, end: int) -> None:
        self.state = self.at_start

    def _only_last(self) -> None:
        """Raise if an expression was read already: only the last one is the output."""
        if self.closing is not None:
            message = "an expression before the last line is not used"
            hint = "give it a name: a = …; for several outputs write [a, b] on the last line"
            raise ParseError(message, text=self.text, span=self.closing, hint=hint)

    def _stray_assignment(self, kind: int, start: int, end: int) -> None:
        raise complaints.assignment(self.text, (start, end))

    def _after_statement(self, kind: int, start: int, end: int) -> None:
        raise complaints.after_statement(self.text, (start, end))
