"""Graph to the language itself: ``parse(text(f))`` is `f`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Protocol

import numpy as np

from difflab.autodiff.solutions.written import written_root
from difflab.core.primitive import Custom, Primitive
from difflab.graph.control import Loop, Solution, WhileLoop, WhileLoopVjp
from difflab.graph.described import length, roles
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.names import FreshNames, output_names
from difflab.language.lexer import is_name
from difflab.language.printers.arrays import ArrayForms, written_number
from difflab.language.printers.expressions import (
    ANYTHING,
    ATOM,
    NEGATIVE,
    ExpressionPrinter,
    Part,
    TemplateForm,
    make_form,
)
from difflab.language.printers.view import PrintedGraph, call_results
from difflab.language.scope import KEYWORDS
from difflab.language.scope import RESERVED as VARIABLES_IF_DECLARED
from difflab.primitives import as_number, broadcast, index, matmul, reshape

# --- loops and roots -----------------------------------------------------------------------------
# A loop is written as ``iterate(y = x; 100 times; 4*y*(1 - y))``, and its reverse sweep alike.
# Roots are written ``root(x^2 - a, x, 1)``: their expression is a step of a name of its own.

WrittenLoop = Loop | WhileLoop | WhileLoopVjp
"""What rows hold that is written as a loop of the language."""

LONGEST_LINE = 60
"""Characters above which the parts of a loop have lines of their own."""


class Step(Protocol):
    """Printer of a function of a loop's inputs: its definitions, if wanted, and its outputs."""

    def __call__(self, inner: Function, *, lines: bool) -> tuple[list[str], list[str]]:
        """Return both as text."""


class LoopForms:
    """Printer of loops, as parts of text.

    Parameters
    ----------
    view : PrintedGraph
        The graph that is printed.
    names : dict of int to str
        The nodes that are written as a name, when a loop is described.
    step : callable
        Returns, for a function and the names of its last inputs, names of the others and the
        printer of such functions.
    alias : callable
        Gives a value that has a name another one.

    Attributes
    ----------
    nodes : dict of int to Loop, WhileLoop or WhileLoopVjp
        The loops that are printed.
    """

    def __init__(
        self,
        view: PrintedGraph,
        names: dict[int, str],
        step: Callable[[Function, Sequence[str]], tuple[list[str], Step]],
        alias: Callable[[str], str],
    ) -> None:
        self.view = view
        self.names = names
        self.step = step
        self.alias = alias
        self.nodes: dict[int, WrittenLoop] = {}
        self.roots: dict[int, Function] = {}
        for node, row in enumerate(view.rows):
            held = None if row is None else row.holds
            if held is None or not view.uses[node]:
                continue
            if isinstance(held, WrittenLoop):
                self.nodes[node] = held
            elif (residual := written_root(held)) is not None:
                self.roots[node] = residual

    def constants(self) -> set[int]:
        """Return the arguments that steps read by name."""
        used: set[int] = set()
        for node, loop in self.nodes.items():
            used.update(self.view.children[node][_bound(loop) : len(_forward(loop).body.inputs)])
        for node in self.roots:
            used.update(self.view.children[node][1:])
        return used - set(self.names)

    def describe(self, node: int) -> list[Part] | None:
        """Return the parts of a loop, or of the only output of one; None for other nodes.

        A loop of one output is that output in the language, and the vector of its elements in a
        graph.
        """
        if node in self.nodes:
            (shape, *more) = self.nodes[node].output_shapes
            parts = self._parts(node)
            if more or len(shape) == 1:
                return parts
            return ["reshape(", *parts, f", [{math.prod(shape)}])"]
        if node in self.roots:
            return self._root(node)
        child = node
        for row in (reshape, index):  # an array is unpacked by both
            if self.view.rows[child] is row and (child == node or child not in self.names):
                (child,) = self.view.children[child]
        loop = self.nodes.get(child)
        if loop is None or child in self.names:
            return None
        sole: list[Shape] = [self.view.graph.shape(node)]
        return self._parts(child) if list(loop.output_shapes) == sole else None

    def _root(self, node: int) -> list[Part]:
        """Return the arguments of a root: the expression, its unknown, the first value."""
        residual, (first, *rest) = self.roots[node], self.view.children[node]
        (name,), step = self.step(residual, [self.names[argument] for argument in rest])
        definitions, (value,) = step(residual, lines=True)
        clauses = "; ".join([*definitions, value])
        if definitions:
            inner = ";\n".join([*definitions, value]).replace("\n", "\n    ")
            clauses = f"\n    {inner}"
        return ["root(", f"{clauses}, {name}, ", (first, ANYTHING), ")"]

    def _parts(self, node: int) -> list[Part]:
        """Return the clauses of a loop."""
        held, arguments = self.nodes[node], self.view.children[node]
        loop, bound = _forward(held), _bound(held)
        body = loop.body
        constants = [self.names[argument] for argument in arguments[bound : len(body.inputs)]]
        back: list[Part] = []
        if isinstance(held, WhileLoopVjp):
            constants = self._distinct(constants)
        names, step = self.step(body, constants)
        head: list[Part] = []
        for position, (name, argument) in enumerate(zip(names, arguments[:bound], strict=True)):
            over = isinstance(loop, Loop) and position >= loop.carries
            head += [", " if position else "", f"{name} in " if over else f"{name} = "]
            head.append((argument, ANYTHING))
        if isinstance(loop, WhileLoop):
            repetition = f"while {step(loop.test, lines=False)[1][0]}"
        else:
            repetition = f"{loop.steps} times{' backwards' * loop.reverse}"
        definitions, values = step(body, lines=True)
        clauses = [repetition, *definitions, ", ".join(values)]
        if isinstance(held, WhileLoopVjp):
            clauses.append(f"back to {', '.join([*names, *constants])} from ")
            for bar in arguments[len(body.inputs) :]:
                back += [", " if back else "", (bar, ANYTHING)]
        if not definitions and sum(map(len, clauses)) < LONGEST_LINE:
            return ["iterate(", *head, "; ", "; ".join(clauses), *back, ")"]
        inner = ";\n".join(clauses).replace("\n", "\n    ")
        return ["iterate(", *head, f";\n    {inner}", *back, ")"]

    def _distinct(self, names: Sequence[str]) -> list[str]:
        """Return another name for each that is repeated: each has a cotangent of its own."""
        return [self.alias(name) if name in names[:k] else name for k, name in enumerate(names)]


def _forward(loop: WrittenLoop) -> Loop | WhileLoop:
    """Return a loop itself, or the one whose reverse sweep it is."""
    return loop.loop if isinstance(loop, WhileLoopVjp) else loop


def _bound(loop: WrittenLoop) -> int:
    """Return how many inputs of a step differ between iterations."""
    if isinstance(loop, Loop):
        return loop.carries + loop.arrays
    return len(_forward(loop).output_shapes)


# --- programs ------------------------------------------------------------------------------------

RESERVED = VARIABLES_IF_DECLARED | KEYWORDS
_TIGHT = frozenset({"*", "/", "^"})


def text(function: Function, *, whole: bool = False, calls: bool = False) -> str:
    """Return a program of the language that computes `function`.

    Parameters
    ----------
    function : Function
        A function, parsed, traced or derived.
    whole : bool
        Whether a single output that lists its elements is one array, with the output's name, and
        comments name what the language cannot spell and the calls, of functions and layers in
        traced code, whose values get their own lines. Otherwise such a list is the program's last
        line, which lists outputs.
    calls : bool
        Whether branches and custom functions are printed as calls, for reading, although they
        could be written out.

    Returns
    -------
    str
        The program. Shared subexpressions get their own line (``t1 = …``) if repeating them
        would make the expression tree more than twice as large as the graph.

    Notes
    -----
    `parse` reads the text back, as a function of the same values. Exceptions are arrays without
    elements, and operations that run Python code, which are printed as calls. Inputs named like a
    constant or a function are declared, other values of such a name get an underscore, and the
    inputs are read in natural order.

    Examples
    --------
    >>> import difflab as dl
    >>> text(dl.parse("-(x1*(x2+3))^2 − 1/x1/x2"))
    '-(x1*(x2 + 3))^2 - 1/x1/x2'
    >>> print(text(dl.parse("a = x*x; [a, a + 1]")))
    a = x*x
    [a, a + 1]
    >>> text(dl.gradient(dl.parse("x^2*y")), whole=True)
    'gradient = [y*(2*x), x^2]'
    """
    return _Text(function, whole, calls).program()


class _Text(ExpressionPrinter):
    """Printer of one program: the names and the text of each node.

    The step of a loop is another, with `fresh` names of its own and the names of its inputs.
    """

    def __init__(
        self,
        function: Function,
        whole: bool,
        calls: bool,
        outer: _Text | None = None,
        fresh: FreshNames | None = None,
        inputs: Sequence[str] = (),
    ) -> None:
        implied = {as_number, broadcast}
        view = PrintedGraph(function, implied=implied, calls=calls, written=(Loop, Solution))
        super().__init__(view)
        self.whole = whole
        self.calls = calls
        function = self.view.function
        own = VARIABLES_IF_DECLARED & {*function.inputs}
        self.declared: frozenset[str] = own if outer is None else outer.declared
        self.fresh = fresh or FreshNames(reserved=RESERVED - self.declared)
        names = inputs or [self.fresh.fresh(_legal(name)) for name in function.inputs]
        self.names = dict(zip(function.input_nodes, names, strict=True))
        self.arrays = ArrayForms(self.view)
        self.loops = LoopForms(self.view, self.names, self._step, self._alias)
        self.inputs = frozenset(self.names.values())
        self.lines: list[str] = []

    def program(self) -> str:
        """Return declarations, named lines and the outputs."""
        if self.whole:
            self._warn()
        self._declare()
        variables = self._variables()
        named = self._claimed(variables)
        for name in variables:
            if name is not None and name not in self.inputs:
                self.fresh.fresh(name)
        self._define(named)
        self._finish(variables)
        return "\n".join(self.lines)

    def _define(self, named: dict[int, str]) -> None:
        """Write the lines of values that have a name, or need one."""
        used = set(named.values())
        for node, label in self.view.named_values().items():
            if node not in named and label not in used and is_name(label):
                named[node] = self.fresh.fresh(label)
        calls = call_results(self.view) if self.whole and not self.calls else {}
        own = named.keys() | self._lists() | self.loops.constants() | calls.keys()
        for node in self.view.own_lines(own, repeats=not (self.loops.nodes or self.loops.roots)):
            expression = self.expression(node)
            name = named.get(node) or self.fresh.numbered("t")
            remark = f"  # {calls[node]}" if node in calls else ""
            self.lines.append(f"{name} = {expression}{remark}")
            self.names[node] = name

    def _step(self, function: Function, constants: Sequence[str]) -> tuple[list[str], Step]:
        """Return the names of a loop's other inputs, and the printer of functions of them all."""
        count = len(function.inputs) - len(constants)
        fresh = FreshNames(constants, RESERVED)
        names = [fresh.fresh(_legal(name)) for name in function.inputs[:count]]

        def step(inner: Function, *, lines: bool) -> tuple[list[str], list[str]]:
            printer = _Text(inner, False, self.calls, self, fresh, [*names, *constants])
            if lines:
                printer._define({})
            return printer.lines, [printer.expression(node) for node in printer.view.outputs]

        return names, step

    def _alias(self, name: str) -> str:
        """Write a line that gives a value another name."""
        other = self.fresh.numbered("t")
        self.lines.append(f"{other} = {name}")
        return other

    def _warn(self) -> None:
        """Warn about operations that the language lacks, naming those that are printed instead."""
        for row in self.graph.primitives:
            written = isinstance(row.holds, WrittenLoop) or written_root(row.holds) is not None
            if written or not isinstance(row.rule, Custom):
                continue
            nodes = np.flatnonzero(self.graph.applies(row)).tolist()
            if not any(self.view.uses[node] for node in nodes):
                continue
            self.lines.append(f"# not in the language, for reading only: {row.name}")
            if row.holds is None:
                continue
            for role, function in roles(row.holds):
                iterations = length(row.holds)
                self.lines.append(f"#   {role}{f', {iterations}' if iterations else ''}:")
                inner = text(function, whole=True, calls=True)
                self.lines += [f"#     {line}" for line in inner.splitlines()]

    def _lists(self) -> set[int]:
        """Return the lists that need their own line: those inside an expression."""
        lists = {
            node
            for node, uses in enumerate(self.view.uses)
            if uses and self.view.rows[node] is not None and self.arrays.is_list(node)
        }
        inner = Counter(
            self.view.children[node][0] for node in lists if self.view.rows[node] is reshape
        )
        lists -= {node for node, count in inner.items() if self.view.uses[node] == count}
        if len(self.view.outputs) == 1 and not self.whole:
            (output,) = self.view.outputs
            return lists - {output} if self.view.uses[output] == 1 else lists
        return lists

    def _declare(self) -> None:
        """Declare arrays, reserved names, and scalars that the function does not depend on."""
        for node in self.view.function.input_nodes:
            shape = self.graph.shape(node)
            if shape or not self.view.uses[node] or self.names[node] in self.declared:
                self.lines.append(f"{self.names[node]}: {list(shape)}")

    def _variables(self) -> list[str | None]:
        """Return, for each output, the variable that preserves its name, or None."""
        function = self.view.function
        single = len(function.outputs) == 1
        row = self.view.rows[self.view.outputs[0]]
        if single and row is not None and row.structural and row is not index:
            (name,) = function.output_names
            is_list = self.whole and self.arrays.is_list(self.view.outputs[0])
            free = is_name(name) and name not in self.inputs and name not in RESERVED
            return [name if is_list and free else None]
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
        results = []
        for node, name in zip(self.view.outputs, variables, strict=True):
            known = self.names.get(node)
            if name is None:
                expression = self.expression(node)
                results.append(f"({expression})" if known is not None else expression)
            else:
                if known != name:
                    self.lines.append(f"{name} = {self.expression(node)}")
                results.append(name)
        if self.whole and len(results) == 1 and self.lines:
            (name,) = variables
            if name is not None and self.lines[-1].startswith(f"{name} = "):
                return  # the value that is defined last is the output
        self.lines.append(results[0] if len(results) == 1 else f"[{', '.join(results)}]")

    def describe(self, node: int) -> tuple[Sequence[Part], int]:
        row = self.view.rows[node]
        described = self.loops.describe(node)
        if described is not None:
            return described, ATOM
        if row is not None and row.shape is not None and row is not matmul:
            return self.arrays.describe(node), ATOM
        minus = row is not None and row.signs == (-1,)
        child = self.view.children[node][0] if minus else node
        if minus and child in self.graph.constants and not self.graph.constants[child][1]:
            # Without parentheses the minus would become the sign of the literal.
            return ["-(", (child, ANYTHING), ")"], NEGATIVE
        return super().describe(node)

    def form(self, row: Primitive) -> TemplateForm:
        return _form(row)

    def number(self, value: float, name: str | None) -> str:
        """Return a constant."""
        return written_number(value) if name is None or name in self.declared else name


@cache
def _form(row: Primitive) -> TemplateForm:
    if row.infix:
        symbol = row.infix if row.infix in _TIGHT else f" {row.infix} "
        prefix = "not {0}" if row.infix == "not" else "-{0}"
        return make_form(f"{{0}}{symbol}{{1}}" if row.arity == 2 else prefix, row.name)
    operands = ", ".join(f"{{{position}}}" for position in range(row.arity or 0))
    return make_form(f"{row.names[0] if row.names else row.name}({operands})", row.name)


def _legal(name: str) -> str:
    """Return a valid name of the language, for inputs named elsewhere."""
    if is_name(name):
        return name
    kept = "".join(c if is_name(f"x{c}") else "_" for c in name)
    return kept if is_name(kept) else f"x{kept}"
