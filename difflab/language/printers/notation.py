"""The notation of a language: its functions by their names in C99, numbers and conditions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from difflab.core.primitive import Primitive
from difflab.primitives.c99 import c_name

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
        What is before the exponent of a number, and behind a number without one.
    constants : mapping of str to str
        What it writes for NAN and INFINITY.
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
        found = {name: f"{{0}} {sign} {{1}}" for name, sign in signs.items()}
        compared = {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
        compared["equal"] = "=="
        for name, sign in compared.items():
            found[name] = self.comparison.replace("{sign}", sign)
        found["not_equal"] = self.unequal
        found["where"] = self.choice
        one, zero = self.literal(1.0), self.literal(0.0)
        found["as_number"] = self.choice.replace("{1}", one).replace("{2}", zero)
        return found | {"negative": "-{0}", "logical_not": f"{self.negation}{{0}}"}

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
        written = repr(float(value))
        sign, digits = ("-", written[1:]) if written.startswith("-") else ("", written)
        special = {"inf": "INFINITY", "nan": "NAN"}.get(digits)
        if special is not None:
            return sign + self.constants.get(special, special)
        if "e" in digits:
            return sign + digits.replace("e", self.exponent)
        return f"{sign}{digits}{self.whole}"
