"""C expressions and scalar functions, translated to another language by its notation.

The rows of the table state how C spells them. Another language has a table of its own, from C99's
functions to its functions, and states how it writes numbers, conditions and definitions; the
spelling of every row follows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from difflab.primitives import helpers

__all__ = ["Definition", "Notation"]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.\d*|\d+)(?:e[+-]?\d+)?)|(?P<argument>\{\d\})"
    r"|(?P<call>[A-Za-z_]\w*)\(|(?P<name>[A-Za-z_]\w*)|(?P<operator>[<>=!]=|&&|\|\||[-+*/<>!?:(),]))"
)
_FUNCTION = re.compile(
    r"static double (?P<name>\w+)\((?P<parameters>[^)]*)\)\n\{\n(?P<body>.*)\}", re.DOTALL
)
_STATEMENT = re.compile(r"    (?:const double (?P<name>\w+) =\s+|return )(?P<value>[^;]+);\n")
_BRACE = re.compile(r"\{(\d)\}|[{}]")
"""An argument's place, or a brace of the language, which a template has twice."""

_TERNARY, _OR, _AND, _COMPARISON, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(1, 10)
_LEVELS = {"||": _OR, "&&": _AND, "+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT}
_LEVELS |= dict.fromkeys(("<", ">", "<=", ">=", "==", "!="), _COMPARISON)
_LEVELS |= {"negative": _SIGN, "!": _SIGN, ":": _TERNARY, "?": 0, "(": 0}


@dataclass(frozen=True, slots=True)
class Definition:
    """A C function of scalars; `values` are its local constants, by name."""

    name: str
    parameters: Sequence[str]
    values: Mapping[str, str]
    result: str


@dataclass(frozen=True, slots=True)
class _Operand:
    text: str
    level: int = _ATOM
    truth: bool = False

    def within(self, level: int) -> str:
        """Return the text, in parentheses if its precedence is lower than `level`."""
        return self.text if self.level >= level else f"({self.text})"


@dataclass(frozen=True)
class Notation:
    """Syntax of expressions and scalar functions in a language.

    Attributes
    ----------
    functions : mapping of str to str
        The language's template for each function of C99 that it has or defines.
    define : callable
        Writes a `Definition` in this language.
    definitions : mapping of str to str
        Functions of its own, in this language, that `functions` call, by name.
    renamed : mapping of str to str
        Other names for functions of the table whose names the language gives to something else.
    number : callable
        Writes the text of a finite number.
    constants : mapping of str to str
        What it writes for NAN and INFINITY.
    choice : str
        The value ``{1}`` where the condition ``{0}`` holds, otherwise ``{2}``.
    conjunction, disjunction, negation, unequal, unlike : str
        Its operators on truth values, and those between different numbers and truth values.
    """

    functions: Mapping[str, str]
    define: Callable[[Definition], str]
    definitions: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    number: Callable[[str], str] = str
    constants: Mapping[str, str] = field(default_factory=dict)
    choice: str = "({0} ? {1} : {2})"
    conjunction: str = "&&"
    disjunction: str = "||"
    negation: str = "!"
    unequal: str = "!="
    unlike: str = "!="

    @cached_property
    def defined(self) -> dict[str, str]:
        """The functions that printed code may contain, its own and those of the table, by name."""
        definitions = dict(self.definitions)
        for text in helpers.C.values():
            definition = self._translated(text, definitions)
            if definition is not None:
                definitions[definition.name] = self.define(definition)
        return definitions

    @cached_property
    def words(self) -> frozenset[str]:
        """The names that expressions contain, which no variable may have."""
        texts = [*self.functions.values(), *self.constants.values(), self.choice]
        return frozenset(re.findall(r"[A-Za-z_]\w*", " ".join(texts))) | self.defined.keys()

    def template(self, text: str) -> str:
        """Return a row's C template in this language; empty if that lacks a function."""
        written = (text and self._written(text, self.defined)) or ""
        return _BRACE.sub(lambda match: match[0] if match[1] else match[0] * 2, written)

    def literal(self, value: float) -> str:
        """Return a number."""
        written = repr(float(value))
        special = {"inf": "INFINITY", "-inf": "INFINITY", "nan": "NAN"}.get(written)
        if special is None:
            digits = self.number(written.removeprefix("-"))
        else:
            digits = self.constants.get(special, special)
        return f"-{digits}" if written.startswith("-") else digits

    def _translated(self, text: str, known: Mapping[str, str]) -> Definition | None:
        """Return a C function with its values in this language; None if that is not possible."""
        match = _FUNCTION.fullmatch(text)
        if match is None or _STATEMENT.sub("", match["body"]):
            return None
        values: dict[str, str] = {}
        for statement in _STATEMENT.finditer(match["body"]):
            written = self._written(statement["value"], known)
            if written is None:
                return None
            values[statement["name"] or ""] = written
        parameters = [each.split()[-1] for each in match["parameters"].split(",")]
        name = self.renamed.get(match["name"], match["name"])
        return Definition(name, parameters, values, values.pop(""))

    def _written(self, text: str, known: Mapping[str, str]) -> str | None:
        """Return a C expression in this language; None if it calls a missing function."""
        return _Translation(self, known).run(text)


class _Translation:
    """Reads operators and operands of C by their precedence, and writes each as it is complete."""

    def __init__(self, notation: Notation, known: Mapping[str, str]) -> None:
        self.notation = notation
        self.known = known
        self.operands: list[_Operand] = []
        self.operators: list[str] = []

    def run(self, text: str) -> str | None:
        """Return the expression in the other language; None if that lacks a function."""
        place, before_operand = 0, True
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None:
                return None
            place = match.end()
            if match["call"]:
                name = self.notation.renamed.get(match["call"], match["call"])
                if match["call"] not in self.notation.functions and name not in self.known:
                    return None
                self.operators.append(f"{match['call']}(")
                self.operators.append("(")
            elif match["operator"]:
                before_operand = self._operator(match["operator"], before_operand)
                continue
            else:
                self._operand(match)
            before_operand = bool(match["call"])
        self._reduce(0)
        whole = self.operands.pop().text
        return None if self.operands else whole  # a cast of C, which is no operation here

    def _operand(self, match: re.Match[str]) -> None:
        text = match[0].strip()
        if match["number"]:
            text = self.notation.number(text)
        elif match["name"]:
            text = self.notation.constants.get(text, text)
        self.operands.append(_Operand(text))

    def _operator(self, symbol: str, before_operand: bool) -> bool:
        """Push an operator, after those that bind tighter; return whether an operand follows."""
        if symbol in {")", ","}:
            self._reduce(1)
            self.operators.append(symbol) if symbol == "," else self._close()
            return symbol == ","
        if before_operand:
            self.operators.append("negative" if symbol == "-" else symbol)
            return True
        if symbol == ":":
            self._reduce(_TERNARY)
            self.operators.pop()  # the question mark
        else:
            self._reduce(_OR if symbol == "?" else _LEVELS[symbol])
        self.operators.append(symbol)
        return True

    def _reduce(self, level: int) -> None:
        """Write the operators at the top of the stack that bind at least so tightly."""
        while self.operators and _LEVELS.get(self.operators[-1], -1) >= max(level, 1):
            self._apply(self.operators.pop())

    def _close(self) -> None:
        """Write a call, or end parentheses."""
        count = 1
        while self.operators[-1] == ",":
            self.operators.pop()
            count += 1
        self.operators.pop()
        if not self.operators or not self.operators[-1].endswith("(") or self.operators[-1] == "(":
            return
        name = self.operators.pop().removesuffix("(")
        arguments = self.operands[-count:]
        del self.operands[-count:]
        template = self.notation.functions.get(name)
        if template is None:
            name = self.notation.renamed.get(name, name)
            template = f"{name}({', '.join(f'{{{k}}}' for k in range(count))})"
        self._filled(template, arguments)

    def _filled(self, template: str, arguments: Sequence[_Operand]) -> None:
        """Push a template with its arguments, in parentheses where it has none around them."""
        texts = [
            each.text if re.search(rf"[(,] ?\{{{k}\}}[,)]", template) else each.within(_ATOM)
            for k, each in enumerate(arguments)
        ]
        level = _ATOM if template.endswith(")") else _POWER if "**" in template else 0
        self.operands.append(_Operand(template.format(*texts), level))

    def _apply(self, operator: str) -> None:
        """Replace operands by the expression that an operator makes of them."""
        notation, last = self.notation, self.operands.pop()
        if operator == "negative":
            written = _Operand(f"-{last.within(_ATOM)}", _SIGN)
        elif operator == "!":
            written = _Operand(f"{notation.negation}{last.within(_ATOM)}", _SIGN, truth=True)
        elif operator == ":":
            yes, condition = self.operands.pop(), self.operands.pop()
            text = notation.choice.format(condition.text, yes.text, last.text)
            written = _Operand(text, _ATOM if text.endswith(")") else 0)
        else:
            written = self._infix(operator, self.operands.pop(), last)
        self.operands.append(written)

    def _infix(self, operator: str, left: _Operand, right: _Operand) -> _Operand:
        level, truth = _LEVELS[operator], _LEVELS[operator] <= _COMPARISON
        unequal = self.notation.unlike if left.truth else self.notation.unequal
        symbol = {
            "&&": self.notation.conjunction,
            "||": self.notation.disjunction,
            "!=": unequal,
        }.get(operator, operator)
        least = _SUM if level == _COMPARISON else level
        # Regrouping would round otherwise, so that an operand of the same level keeps its own.
        second = _ATOM if right.level == _SIGN else least + (operator in "+-*/")
        return _Operand(f"{left.within(least)} {symbol} {right.within(second)}", level, truth)
