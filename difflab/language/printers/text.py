"""Graph to the language itself: ``parse(text(f))`` is `f`.

Array operations that only derivatives use have no syntax in the language; they are printed as
calls, for the reader only.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from difflab.core.primitive import Primitive
from difflab.graph.function import Function
from difflab.graph.names import FreshNames, output_names
from difflab.language.lexer import is_name
from difflab.language.printers.arrays import ArrayForms
from difflab.language.printers.expressions import ExpressionPrinter
from difflab.language.printers.forms import ANYTHING, ATOM, NEGATIVE, TemplateForm, make_form
from difflab.language.printers.view import PrintedGraph
from difflab.language.printers.writer import Part
from difflab.language.scope import CONSTANTS, KEYWORDS
from difflab.primitives import as_number, broadcast, by_spelling, index, matmul, negative

__all__ = ["text"]

RESERVED = frozenset({*by_spelling, *CONSTANTS, *KEYWORDS})
_TIGHT = frozenset({"*", "/", "^"})


def text(function: Function) -> str:
    """Return a program of the language that computes `function`.

    Parameters
    ----------
    function : Function
        A function, parsed or derived.

    Returns
    -------
    str
        The program. Shared subexpressions get their own line (``t1 = …``) if repeating them
        would make the expression tree more than twice as large as the graph.

    Notes
    -----
    `parse` reads the text back if the language has syntax for all operations. It has none for
    operations that only derivatives and vectorized repetitions use (scattering into a larger
    array, sums in a given order, constant vectors inside an expression): these are printed as
    complete calls, for the reader only.

    Examples
    --------
    >>> import difflab as dl
    >>> text(dl.parse("-(x1*(x2+3))^2 − 1/x1/x2"))
    '-(x1*(x2 + 3))^2 - 1/x1/x2'
    >>> print(text(dl.parse("a = x*x; [a, a + 1]")))
    a = x*x
    [a, a + 1]
    """
    return _Text(function).program()


class _Text(ExpressionPrinter):
    """Printer of one program: the names and the text of each node."""

    def __init__(self, function: Function) -> None:
        super().__init__(PrintedGraph(function, implied={as_number, broadcast}))
        self.fresh = FreshNames(reserved=RESERVED)
        self.names = {
            node: self.fresh.fresh(_legal(name))
            for node, name in zip(
                self.view.function.input_nodes, self.view.function.inputs, strict=True
            )
        }
        self.arrays = ArrayForms(self.view)
        self.inputs = frozenset(self.names.values())
        self.lines: list[str] = []

    def program(self) -> str:
        """Return declarations, named lines and the outputs."""
        self._declare()
        variables = self._variables()
        named = self._claimed(variables)
        for name in variables:
            if name is not None and name not in self.inputs:
                self.fresh.fresh(name)
        used = set(named.values())
        for node, label in self.view.named_values().items():
            if node not in named and label not in used and is_name(label):
                named[node] = self.fresh.fresh(label)
        for node in self.view.own_lines(named):
            name = named.get(node) or self.fresh.numbered("t")
            self.lines.append(f"{name} = {self.expression(node)}")
            self.names[node] = name
        self._finish(variables)
        return "\n".join(self.lines)

    def _declare(self) -> None:
        """Declare arrays, and scalars that the function does not depend on."""
        for node in self.view.function.input_nodes:
            shape = self.graph.shape(node)
            if shape or not self.view.uses[node]:
                self.lines.append(f"{self.names[node]}: {list(shape)}")

    def _variables(self) -> list[str | None]:
        """Return, for each output, the variable that preserves its name, or None."""
        function = self.view.function
        single = len(function.outputs) == 1
        row = self.view.rows[self.view.outputs[0]]
        if single and row is not None and row.structural and row is not index:
            return [None]
        variables: list[str | None] = []
        seen: set[str | None] = set()
        known = [*function.inputs, *self.graph.labels.values()]
        unnamed = output_names([None] * len(function.outputs), known)
        for node, name, default in zip(
            self.view.outputs, function.output_names, unnamed, strict=True
        ):
            unnamed_output = name == default
            own = self.names.get(node) == name
            used = name in self.inputs or name in seen or name in RESERVED
            free = is_name(name) and not used
            variables.append(name if own or (free and not unnamed_output) else None)
            seen.add(variables[-1])
        return variables

    def _claimed(self, variables: Sequence[str | None]) -> dict[int, str]:
        """Return the names that outputs give to their nodes."""
        claimed: dict[int, str] = {}
        for node, name in zip(self.view.outputs, variables, strict=True):
            if name is not None and not self.view.leaf(node):
                claimed.setdefault(node, name)
        return claimed

    def _finish(self, variables: Sequence[str | None]) -> None:
        """Write the last line; parentheses mark an output without a name."""
        written = []
        for node, name in zip(self.view.outputs, variables, strict=True):
            known = self.names.get(node)
            if name is None:
                expression = self.expression(node)
                written.append(f"({expression})" if known is not None else expression)
            else:
                if known != name:
                    self.lines.append(f"{name} = {self.expression(node)}")
                written.append(name)
        self.lines.append(written[0] if len(written) == 1 else f"[{', '.join(written)}]")

    def describe(self, node: int) -> tuple[Sequence[Part], int]:
        row = self.view.rows[node]
        if row is not None and row.shape is not None and row is not matmul:
            return self.arrays.describe(node), ATOM
        child = self.view.children[node][0] if row is negative else node
        if row is negative and child in self.graph.constants and not self.graph.constants[child][1]:
            # Without parentheses the minus would become the sign of the literal.
            return ["-(", (child, ANYTHING), ")"], NEGATIVE
        return super().describe(node)

    def form(self, row: Primitive) -> TemplateForm:
        return _form(row)

    def number(self, value: float, name: str | None) -> str:
        """Return a constant; ``repr`` is the shortest text that round-trips a float64."""
        return name or repr(value)


@cache
def _form(row: Primitive) -> TemplateForm:
    if row.infix:
        symbol = row.infix if row.infix in _TIGHT else f" {row.infix} "
        prefix = "not {0}" if row.infix == "not" else "-{0}"
        return make_form(f"{{0}}{symbol}{{1}}" if row.arity == 2 else prefix, row.name)
    places = ", ".join(f"{{{position}}}" for position in range(row.arity or 0))
    return make_form(f"{row.names[0] if row.names else row.name}({places})", row.name)


def _legal(name: str) -> str:
    """Return a valid name of the language, for inputs named elsewhere."""
    if is_name(name):
        return name
    kept = "".join(c if is_name(f"x{c}") else "_" for c in name)
    return kept if is_name(kept) else f"x{kept}"
