"""Straight-line code: the common part of the C, JavaScript and Python printers.

Scalars are expressions of bounded size, named if they are used twice or grow too long (compilers
recurse over nested expressions); arrays are flat, row-major, and filled by loops.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Sequence, Set
from itertools import zip_longest
from typing import ClassVar, Self

import numpy as np

from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.graph.control import Branches
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW
from difflab.graph.names import FreshNames, check_function_name
from difflab.graph.repetition.classes import flat
from difflab.language.printers.array_loops import LOOPED, elementwise, lowered
from difflab.language.printers.arrays import ArrayForms
from difflab.language.printers.bulk import bulk_lines
from difflab.language.printers.expressions import (
    ANYTHING,
    ExpressionPrinter,
    Part,
    TemplateForm,
    make_form,
    write,
)
from difflab.language.printers.helpers import Helpers, helper, used
from difflab.language.printers.statements import PRINTED, StatementForms, on_numbers, statements
from difflab.language.printers.view import PrintedGraph, forced_nodes, fused_nodes, is_copy
from difflab.lower.recorded import CONTROL
from difflab.primitives import as_number, constant_array, index, reshape

_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_LONGEST = 30
"""Maximum number of nodes in one expression."""
_IN_A_LINE = 8
"""Elements of a table per line."""


class StraightLinePrinter(StatementForms, ExpressionPrinter):
    """Printer of one function in one target language.

    Parameters
    ----------
    function : Function
        The function to print.
    name : str
        The name of the printed function.
    outer : StraightLinePrinter, optional
        The printer of the function around, if this is a block in it.
    helpers : Helpers, optional
        The functions that the code defines so far, if this is one of them.
    """

    reserved: ClassVar[Set[str]]
    """Names that no variable may have."""
    suffix: ClassVar[str] = "_"  # appended to a name that is in use
    writes_outputs = False
    """Whether the elements of outputs are written one by one into an array of the caller."""
    forever = "1"  # a condition that holds
    empty_array: ClassVar[str] = ""
    """An array without elements, which no loop reads; lists are returned."""

    def __init__(
        self,
        function: Function,
        name: str,
        outer: Self | None = None,
        helpers: Helpers | None = None,
    ) -> None:
        super().__init__(PrintedGraph(function, companions=True, empty=False, orders=True))
        self.name = name
        self.outer: Self | None = outer
        self.main = outer is None and helpers is None
        """Whether it prints the function itself: no loop's body, and no helper."""
        if self.main:
            check_function_name(name, self.reserved, self.language)
        free = FreshNames(reserved=self.reserved | {name}, suffix=self.suffix)
        self.fresh: FreshNames = free if outer is None else outer.fresh
        self.forms: dict[Primitive, TemplateForm] = {} if outer is None else outer.forms
        self.helpers: Helpers = (helpers or Helpers()) if outer is None else outer.helpers
        self.numbers: dict[int, list[str]] = {}
        """The outputs of loops and branches over numbers, by node."""
        self.targets: dict[int, list[str]] = {}
        """The variables that branches over numbers assign, by node."""
        used = np.array(self.view.uses, dtype=np.bool_)
        printed = np.bincount(self.graph.opcode[used], minlength=FIRST_ROW).tolist()
        for row, count in zip_longest(self.graph.primitives, printed[FIRST_ROW:]):
            if not count:
                continue
            if row.shape is None:
                self.forms[row] = self._made(row)
            elif row not in LOOPED and not isinstance(row.holds, PRINTED):
                raise UnsupportedError(
                    f"{self.language} has no function for the array operation '{row.name}'; "
                    "the text and LaTeX printers have, and difflab.compile runs it on NumPy"
                )
        self.lines: list[str] = []
        self.named = self.view.named_values()
        self.listed = self._listed()
        self.forced = forced_nodes(self)
        self.fused = bytearray(len(self.graph))  # arrays that are computed where they are read
        self._begin()

    def _begin(self) -> None:
        """Initialize the state that a language keeps beside the lines, and name the inputs."""

    def template(self, row: Primitive) -> str:
        """Return the primitive's template in this language; empty if that lacks the function."""
        return self.notation.template(row)

    def words(self) -> set[str]:
        """Return the words of the functions that the code calls and defines."""
        forms = [*self.forms.values(), *self.helpers.forms]
        texts = [part for form in forms for part in form.parts if type(part) is str]
        texts += [*self.definitions().values(), *self.helpers.templates.values()]
        return {word for text in texts for word in _WORD.findall(text)}

    @abstractmethod
    def defined(self, name: str, parameters: Sequence[str], value: str) -> str:
        """Return a function of scalars with the lines printed so far and the given value."""

    def definitions(self) -> dict[str, str]:
        """Return the functions that the code calls and that the language lacks, by name."""
        forms = [*self.forms.values(), *self.helpers.forms]
        texts = [*(part for form in forms for part in form.parts if type(part) is str)]
        if any(row.boolean for row in self.forms):  # which may be an output, thus a number
            texts.append(self.notation.template(as_number))
        definitions = self.notation.definitions
        return used(texts, definitions) | self.helpers.texts

    def spelled(self, name: str) -> str:
        """Return a name of the program as an identifier of this language."""
        return name

    def block(self, function: Function, names: Sequence[str]) -> Self:
        """Return the printer of a function inside this one, whose inputs have the given names."""
        printer = type(self)(function, self.name, self)
        printer.names = dict(zip(printer.view.function.input_nodes, names, strict=True))
        return printer

    def condition(self, node: int) -> str:
        """Return an expression that continues a loop where it holds."""
        return self.expression(node)

    def value(self, node: int, text: str) -> str:
        """Return the text of a node as a number; truth values are converted."""
        return text

    def form(self, row: Primitive) -> TemplateForm:
        """Return the form that the constructor prepared."""
        return self.forms[row]

    def _made(self, row: Primitive) -> TemplateForm:
        template = self.template(row) or helper(self, row)
        return make_form(template, row.name, strict=True)

    def _listed(self) -> frozenset[int]:
        """Return the output nodes that list scalars, which need no array."""
        forms = ArrayForms(self.view)
        listed: set[int] = set()
        for node in self.view.outputs:
            if self.view.uses[node] == 1 and forms.cells(node) is not None:
                listed.add(node)
                if self.view.rows[node] is reshape:
                    below = self.view.children[node][0]
                    if self.view.uses[below] > 1:
                        listed.discard(node)
                    else:
                        listed.add(below)
        return frozenset(listed)

    def compute(self) -> None:
        """Write a line, or loops, for every node that has a name."""
        for node, name in self.named.items():
            self.named[node] = self.fresh.fresh(self.spelled(name))
        self.fused = fused_nodes(self, _LONGEST)
        begin = bulk_lines(self, _LONGEST)
        sizes = [1] * len(self.graph)
        for node, row in enumerate(self.view.rows[begin:], begin):
            if row is None or not self.view.uses[node] or node in self.listed:
                continue
            if self.fused[node]:
                continue
            if 0 in self.graph.shape(node):
                self.names[node] = self.empty_array
                continue
            if row.shape is not None or self.graph.shape(node):
                self.compute_array(node, row)
                continue
            sizes[node] += sum(sizes[child] for child in self.view.children[node])
            if self.forced[node] or sizes[node] > _LONGEST:
                sizes[node] = 1
                value = self.expression(node)
                self.names[node] = self.result_name(node)
                self.lines.append(self.indent + self.scalar(self.names[node], value, row))

    def result_name(self, node: int) -> str:
        """Return the name of a node in the program, or a new name."""
        return self.named.get(node) or self.fresh.numbered("t")

    def elements(self, node: int) -> list[str]:
        """Return the expressions of an output that is a scalar or lists scalars."""
        if node in self.listed:
            cells = ArrayForms(self.view).cells(node) or []
            return [
                self.number(0, None) if isinstance(cell, str) else self.expression(cell[0])
                for cell in cells
            ]
        return [self.value(node, self.expression(node))]

    def compute_array(self, node: int, row: Primitive) -> None:
        """Write the loops of a node that is an array or an element of one."""
        children = self.view.children[node]
        shapes = [self.graph.shape(child) for child in children]
        shape = self.graph.shape(node)
        if row.shape is None:
            elementwise(self, node, row, math.prod(shape))
            return
        if row is constant_array:
            self.names[node] = self._constants(node)
            return
        if self._controlled(node, row, children):
            return
        if isinstance(row.holds, PRINTED):
            name = self.result_name(node)
            self.add(self.array(name, math.prod(shape)))
            statements(self, row.holds, [self.expression(child) for child in children], name)
            self.names[node] = name if shape else self.element(name, 0)
            return
        if not shape and not shapes[0] and row.structural:
            self.names[node] = self.expression(children[0])
            return
        if shapes[0] and row.in_order and len(children) == 1:
            below = self.names[children[0]]
            self.names[node] = below if shape else self.element(below, 0)
            return
        if row is index and not shape:
            position = flat(self.graph.params(node)["key"], shapes[0])
            self.names[node] = self.element(self.names[children[0]], position)
            return
        lowered(self, node, row)

    def last_branch(self) -> int | None:
        """Return the branch on scalars whose value is the only output; None if there is none."""
        (output, *others) = self.view.outputs
        row, below = self.view.rows[output], self.view.children[output]
        if others or row is not index or self.view.uses[output] != 1:
            return None
        inner = self.view.rows[below[0]]
        if inner is None or self.view.uses[below[0]] != 1:
            return None
        return below[0] if isinstance(inner.holds, Branches) else None

    def _controlled(self, node: int, row: Primitive, children: Sequence[int]) -> bool:
        """Write a branch or a loop on scalars, or name its output; return False for other nodes."""
        if row.name == CONTROL:
            values = [self.expression(child) for child in children]
            if isinstance(row.holds, Branches):
                values[0] = self.condition(children[0])
            self.numbers[node] = on_numbers(self, row.holds, values, self.targets.get(node))
            return True
        if children and children[0] in self.numbers:
            self.names[node] = self.numbers[children[0]][self.graph.params(node)["key"][0]]
            return True
        return False

    def _constants(self, node: int) -> str:
        """Write a constant array and return its name."""
        values = np.frombuffer(self.graph.params(node)["values"]).tolist()
        return self.tabulated([self.number(value, None) for value in values], places=False)

    def tabulated(self, values: Sequence[str], *, places: bool) -> str:
        """Write a table of constants, and return its name."""
        name = self.fresh.numbered("t")
        rows = [", ".join(values[k : k + _IN_A_LINE]) for k in range(0, len(values), _IN_A_LINE)]
        joined = f",\n{self.indent * 2}".join(rows)
        self.lines.append(self.indent + self.table(name, joined, len(values), places=places))
        return name

    def describe(self, node: int) -> tuple[Sequence[Part], int]:
        """Return the parts and the precedence of a node; for a copy, those of its source."""
        while self.fused[node] and is_copy(self, node):
            (node,) = self.view.children[node]
        return super().describe(node)

    def at_place(self, node: int, position: str, need: int = ANYTHING) -> str:
        """Return the element of an array at an index, a name's or an expression."""
        if node in self.names:
            return self.element(self.names[node], position)
        return self.computed_at(node, position, need)

    def computed_at(self, node: int, position: str, need: int = ANYTHING) -> str:
        """Return the expression of an element, in those of the arrays that have names."""
        names, stack = dict[int, str](), [node]
        while stack:
            for child in self.view.children[stack.pop()]:
                if self.fused[child]:
                    stack.append(child)
                elif self.graph.shape(child):
                    names[child] = self.element(self.names[child], position)
                elif child in self.names:
                    names[child] = self.names[child]
        return write([(node, need)], names, self.describe, self.brackets)

    def loops(self, loops: list[tuple[str, int]], target: str, sign: str, value: str) -> None:
        """Write ``target = value`` inside loops, each given by its counter and size."""
        if any(size == 0 for _, size in loops):
            return
        for depth, (counter, size) in enumerate(loops, 1):
            self.lines.append(self.indent * depth + self.loop(counter, size))
        inner = self.indent * (len(loops) + 1)
        self.lines.append(inner + self.assignment(target, sign, value))
        if self.end_loop and not self.opening:
            self.lines += [self.indent * d + self.end_loop for d in range(len(loops), 0, -1)]
