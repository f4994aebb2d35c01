"""Expressions to text: notations, templates of the primitives, precedence, the printers' base.

Expressions are written with an explicit stack and only the parentheses needed.
"""

from __future__ import annotations

import re
import string
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from difflab.core.primitive import Primitive
from difflab.language.operators import LEVEL_OF
from difflab.language.printers.view import PrintedGraph
from difflab.primitives.c99 import c_name

# --- the notation of a language: its functions by their names in C99, numbers, conditions --------

HIGHEST = 100
"""Order of the Bessel functions, of which POSIX steps through all below."""
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Notation:
    """Syntax of expressions in a language.

    Attributes
    ----------
    functions : mapping of str to str
        The language's template for each function that it has, by the function's name in C99; what
        it lacks is recorded from the kernels of rows.
    definitions : mapping of str to str
        Functions of its own, in this language, that `functions` call, by name.
    exponent, whole : str
        The text before the exponent of a literal, and behind a literal without one.
    constants : mapping of str to str
        The spellings of NAN and INFINITY.
    choice : str
        The value ``{1}`` where the condition ``{0}`` holds, otherwise ``{2}``.
    conjunction, disjunction, negation : str
        Its operators on truth values.
    comparison, unequal : str
        Its comparison of ``{0}`` and ``{1}`` by the operator ``{sign}``, and whether they differ.
    """

    functions: Mapping[str, str]
    definitions: Mapping[str, str] = field(default_factory=dict)
    exponent: str = "e"
    whole: str = ""
    constants: Mapping[str, str] = field(default_factory=dict)
    choice: str = "({0} ? {1} : {2})"
    conjunction: str = "&&"
    disjunction: str = "||"
    negation: str = "!"
    unequal: str = "{0} != {1}"
    comparison: str = "{0} {sign} {1}"

    @cached_property
    def words(self) -> frozenset[str]:
        """The names that expressions contain, which no variable may have."""
        texts = [*self.functions.values(), *self.constants.values(), self.choice]
        return frozenset(_WORD.findall(" ".join(texts))) | self.definitions.keys()

    @cached_property
    def _operators(self) -> dict[str, str]:
        signs = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
        signs |= {"logical_and": self.conjunction, "logical_or": self.disjunction}
        templates = {name: f"{{0}} {sign} {{1}}" for name, sign in signs.items()}
        compared = {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
        compared["equal"] = "=="
        for name, sign in compared.items():
            templates[name] = self.comparison.replace("{sign}", sign)
        templates["not_equal"] = self.unequal
        templates["where"] = self.choice
        one, zero = self.literal(1.0), self.literal(0.0)
        templates["as_number"] = self.choice.replace("{1}", one).replace("{2}", zero)
        return templates | {"negative": "-{0}", "logical_not": f"{self.negation}{{0}}"}

    def template(self, row: Primitive) -> str:
        """Return a row's template in this language; empty if that lacks the function."""
        if isinstance(row.holds, tuple) and self._posix(*row.holds):
            return self._posix(*row.holds)
        return self._operators.get(row.name) or self.functions.get(c_name(row), "")

    def _posix(self, row: Primitive, orders: tuple[float, ...]) -> str:
        """Return POSIX's Bessel function of a whole order, where the language has it."""
        name = {"besselj": "jn", "bessely": "yn"}.get(row.name, "")
        (n, *_) = orders
        if name not in self.functions or n % 1 or abs(n) > HIGHEST:
            return ""
        call = self.functions[name].replace("{0}", f"{abs(n):.0f}").replace("{1}", "{0}")
        return f"(-{call})" if n < 0 and n % 2 else call  # DLMF 10.4.1

    def literal(self, value: float) -> str:
        """Return a number."""
        text = repr(float(value))
        sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
        special = {"inf": "INFINITY", "nan": "NAN"}.get(digits)
        if special is not None:
            return sign + self.constants.get(special, special)
        if "e" in digits:
            return sign + digits.replace("e", self.exponent)
        return f"{sign}{digits}{self.whole}"


# --- expressions ---------------------------------------------------------------------------------

Part = str | tuple[int, int]
"""Literal text, or a node and the precedence that it needs to be written without parentheses."""


def write(
    parts: Sequence[Part],
    names: dict[int, str],
    describe: Callable[[int], tuple[Sequence[Part], int]],
    brackets: tuple[str, str] = ("(", ")"),
) -> str:
    """Return the expression given by `parts` as text.

    Parameters
    ----------
    parts : sequence
        Literal text and nodes; nodes are expanded recursively.
    names : dict of int to str
        The nodes that are written as a name.
    describe : callable
        Returns the parts and the precedence of a node.
    brackets : (str, str)
        The parentheses of the notation.

    Examples
    --------
    >>> parts = {1: ((0, 6), "*", (0, 7)), 2: ((1, 9), "^", (0, 9))}
    >>> write([(2, 0)], {0: "x"}, lambda node: (parts[node], 6))
    '(x*x)^x'
    """
    out: list[str] = []
    stack: list[Part] = list(reversed(parts))
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            out.append(part)
            continue
        node, need = part
        name = names.get(node)
        if name is not None:
            out.append(name)
            continue
        below, level = describe(node)
        if level < need:
            stack.append(brackets[1])
            stack.extend(reversed(below))
            stack.append(brackets[0])
        else:
            stack.extend(reversed(below))
    return "".join(out)


ANYTHING = 0
SUM = LEVEL_OF["add"]
PRODUCT = LEVEL_OF["multiply"]
NEGATIVE = LEVEL_OF["negative"]
POWER = LEVEL_OF["power"]
ATOM = POWER + 2

_OPERATORS = frozenset({"", "-", "!", "not", "\\neg"})
_BEFORE = re.compile(
    r"(?:^if|[(\[{,&|]|\\\\|\\begin\{cases\}|\\l(?:floor|ceil)| [?:]| if| else)\s*$"
)
_BEHIND = re.compile(r"\s*(?:[)\]},&|]|\{|\\\\|\\right|\\end|[?:] |if |else )")
_DEEPER = re.compile(r"\\left|\\begin|[(\[{]")
_BRACKET = re.compile(r"\\left|\\begin|[(\[{]|\\right|\\end|[)\]}]|[ ^]")


@dataclass(frozen=True, slots=True)
class TemplateForm:
    """The printed form of a primitive.

    Attributes
    ----------
    parts : tuple
        Literal text, and ``(position, level)`` for an argument, which is written without
        parentheses if its precedence is at least `level`.
    level : int
        The precedence of the result.
    repeated : frozenset of int
        Positions of the arguments that are written more than once.
    """

    parts: tuple[Part, ...]
    level: int
    repeated: frozenset[int]


def make_form(template: str, name: str, *, strict: bool = False) -> TemplateForm:
    """Return the printed form of the primitive `name` with the given template.

    Parameters
    ----------
    template : str
        Text with ``{0}``, ``{1}``, … for the arguments.
    name : str
        The primitive, which may be an operator.
    strict : bool
        Whether Boolean operands of Boolean operators are always parenthesized.

    Examples
    --------
    >>> make_form("{0} + {1}", "add").parts
    ((0, 5), ' + ', (1, 6))
    >>> make_form("pow({0}, {1})", "power").parts
    ('pow(', (0, 0), ', ', (1, 0), ')')
    """
    literals, arguments = _split(template)
    repeated = frozenset(argument for argument in arguments if arguments.count(argument) > 1)
    operator = name in LEVEL_OF and literals[0].strip("{ ") in _OPERATORS
    parts: list[Part] = []
    for position, argument in enumerate(arguments):
        before, behind = literals[position], literals[position + 1]
        enclosed = bool(_BEFORE.search(before) and _BEHIND.match(behind))
        if operator:
            need = _operand(name, argument, enclosed, strict)
        else:
            added = before.endswith(" + ") and _BEHIND.match(behind)
            need = ANYTHING if enclosed else PRODUCT if added else ATOM
        parts += [before, (argument, need)]
    parts.append(literals[-1])
    level = LEVEL_OF[name] if operator else _outer_level("0".join(literals))
    return TemplateForm(tuple(part for part in parts if part), level, repeated)


def _split(template: str) -> tuple[list[str], list[int]]:
    """Return the literal texts around the fields, and the argument positions of the fields."""
    literals, arguments, literal = [], [], ""
    for text, field_name, _, _ in string.Formatter().parse(template):
        literal += text
        if field_name is not None:
            literals.append(literal)
            arguments.append(int(field_name))
            literal = ""
    return [*literals, literal], arguments


def _operand(name: str, argument: int, enclosed: bool, strict: bool) -> int:
    """Return the precedence that an operand needs to be written without parentheses."""
    level = LEVEL_OF[name]
    if name == "power":
        return POWER + 1 if argument == 0 else ANYTHING if enclosed else NEGATIVE
    if enclosed:
        return ANYTHING
    if name == "negative":
        return POWER
    if strict and level < SUM:
        return ATOM if name == "logical_not" else SUM
    comparison = LEVEL_OF["less"]
    return level + (argument == 1 or level == comparison)


def _outer_level(text: str) -> int:
    """Return the precedence of a template, from its text outside of brackets."""
    if text.startswith("\\frac"):
        return POWER
    if text.startswith("\\begin{cases}"):
        return ANYTHING + 1
    depth, level = 0, ATOM
    for match in _BRACKET.finditer(text):
        symbol = match[0]
        if symbol in {" ", "^"}:
            if depth == 0:
                level = min(level, POWER if symbol == "^" else ANYTHING + 1)
        else:
            depth += 1 if _DEEPER.fullmatch(symbol) else -1
    return level


class ExpressionPrinter(ABC):
    """Printer of the expressions of one graph in one notation.

    Parameters
    ----------
    view : PrintedGraph
        The graph to print.

    Attributes
    ----------
    names : dict of int to str
        The nodes that are written as a name.
    """

    brackets = ("(", ")")

    def __init__(self, view: PrintedGraph) -> None:
        self.view = view
        self.graph = view.graph
        self.names: dict[int, str] = {}

    @abstractmethod
    def form(self, row: Primitive) -> TemplateForm:
        """Return the printed form of a primitive."""

    @abstractmethod
    def number(self, value: float, name: str | None) -> str:
        """Return a constant."""

    def expression(self, node: int) -> str:
        """Return the expression of a node."""
        return write([(node, ANYTHING)], self.names, self.describe, self.brackets)

    def describe(self, node: int) -> tuple[Sequence[Part], int]:
        """Return the parts and the precedence of a node."""
        row = self.view.rows[node]
        if row is None:
            text = self.number(*self.graph.constants[node])
            return [text], NEGATIVE if text.startswith("-") else ATOM
        form = self.form(row)
        children = self.view.children[node]
        return [p if isinstance(p, str) else (children[p[0]], p[1]) for p in form.parts], form.level
