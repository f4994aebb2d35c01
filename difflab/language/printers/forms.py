"""Templates prepared for printing: their arguments and which of these need parentheses.

A template of a primitive, such as ``"pow({0}, {1})"``, states no precedence. `make_form` gives
each field the precedence that its argument needs to be written without parentheses: none between
brackets and commas, that of the operator beside an operator, an atom's anywhere else.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass

from difflab.language.operators import LEVEL_OF
from difflab.language.printers.writer import Part

__all__ = [
    "ANYTHING",
    "ATOM",
    "NEGATIVE",
    "POWER",
    "PRODUCT",
    "SUM",
    "TemplateForm",
    "make_form",
]

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
    for text, field, _, _ in string.Formatter().parse(template):
        literal += text
        if field is not None:
            literals.append(literal)
            arguments.append(int(field))
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
