"""Formulas of a graph in mathematical notation: ``v̄₃ × cos v₀``, ``v̄₁ / v₋₁``.

This text is not meant to be parsed; `difflab.language.printers` writes text that parses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from difflab.core.primitive import Primitive
from difflab.drawing.order import key_text, short
from difflab.graph.expansion import expansion_value
from difflab.graph.ir import Number
from difflab.primitives import (
    add,
    broadcast,
    index,
    multiply,
    pack,
    power,
    reshape,
    scatter,
    where,
)

__all__ = ["NotationPrinter", "Phrase", "atom"]

# Precedence of the outermost operator of a phrase, from the weakest.
CHOICE, LOGIC, RELATION, SUM, PRODUCT, PREFIX, POWER, ATOM = range(8)

LEVELS = {
    **dict.fromkeys(("and", "or"), LOGIC),
    **dict.fromkeys(("<", "≤", ">", "≥", "=", "≠"), RELATION),
    **dict.fromkeys(("+", "−"), SUM),
}
"""Precedence of the infix signs; all others bind like a product."""
SUPERSCRIPTS = str.maketrans("0123456789−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
LISTED = 6
_FIELD = re.compile(r"\{\d\}")


@dataclass(frozen=True)
class Phrase:
    """A text and the precedence of its outermost operator."""

    text: str
    level: int = ATOM

    def within(self, level: int) -> str:
        """Return the text, in parentheses if `level` binds more tightly."""
        return self.text if self.level >= level else f"({self.text})"


def atom(text: str) -> Phrase:
    """Return a name or another text that never needs parentheses."""
    return Phrase(text)


class NotationPrinter:
    """An interpreter of graphs whose values are phrases.

    Parameters
    ----------
    known : mapping of (primitive, argument texts) to Phrase, optional
        Results with a name of their own, such as v₃.

    Examples
    --------
    >>> from difflab.primitives import log, multiply
    >>> printer = NotationPrinter()
    >>> printer.operation(multiply)(atom("t"), printer.operation(log)(atom("x"))).text
    't × ln x'
    """

    def __init__(
        self, known: Mapping[tuple[Primitive, tuple[str, ...]], Phrase] | None = None
    ) -> None:
        self.known = known or {}

    def constant(self, value: Number, name: str | None) -> Phrase:
        """Return the phrase of a constant."""
        if name is not None:
            return atom({"pi": "π"}.get(name, name))
        text = short(value)
        return Phrase(text, PREFIX if text.startswith("−") else ATOM)

    def operation(self, primitive: Primitive) -> Callable[..., Phrase]:
        """Return the function from argument phrases to the phrase of `primitive`."""

        def written(*args: Phrase, **params: Any) -> Phrase:
            found = self.known.get((primitive, tuple(arg.text for arg in args)))
            return self._written(primitive, args, params) if found is None else found

        return written

    def _written(
        self, primitive: Primitive, args: tuple[Phrase, ...], params: Mapping[str, Any]
    ) -> Phrase:
        special = _SPECIAL.get(primitive)
        if special is not None:
            return special(*args, **params)
        if primitive.expansion is not None and primitive.shape is None:
            phrase: Phrase = expansion_value(primitive, args, self)
            return phrase
        before, *signs = _FIELD.split(primitive.notation)
        if not signs:
            return _function(before, args)
        if before:
            return _enclosed(before, args[0], signs[-1])
        return _infix(primitive, signs[0].strip(), *args)


def _enclosed(before: str, x: Phrase, behind: str) -> Phrase:
    """Return ``|x|``, or a prefix: ``−x``, ``not x``, ``√x``."""
    if behind:
        return Phrase(f"{before}{x.text}{behind}")
    operand = x.within(POWER if before == "−" else ATOM)
    return Phrase(f"{before}{operand}", POWER if before == "√" else PREFIX)


def _infix(row: Primitive, sign: str, a: Phrase, b: Phrase) -> Phrase:
    level = LEVELS.get(sign, PRODUCT)
    if row is multiply and b.text.startswith("1 / ") and b.level == PRODUCT:
        # t × (1 / x) is written t / x, as in Baydin et al.
        return Phrase(f"{a.within(level)} / {b.text[4:]}", level)
    if row is add and b.level == PREFIX and b.text.startswith("−"):
        return Phrase(f"{a.within(level)} − {b.text[1:]}", level)
    tighter = level + (row is not add and row is not multiply)
    right = b.within(max(tighter, PRODUCT if b.text.startswith("−") else 0))
    if b.text.startswith("−") and not right.startswith("("):
        right = f"({right})"
    if row is multiply and b.level == PRODUCT and " / " in b.text:
        right = f"({b.text})"
    return Phrase(f"{a.within(level)} {sign} {right}", level)


def _function(name: str, args: tuple[Phrase, ...]) -> Phrase:
    """Return ``sin v₀`` for an atomic argument, else a call with parentheses."""
    if len(args) == 1 and args[0].level == ATOM and " " not in args[0].text:
        return Phrase(f"{name} {args[0].text}", POWER)
    return Phrase(f"{name}({', '.join(arg.text for arg in args)})")


def _power(x: Phrase, p: Phrase) -> Phrase:
    base = x.within(ATOM)
    digits = p.text.removeprefix("−")
    if digits.isdecimal():
        return Phrase(base + p.text.translate(SUPERSCRIPTS), POWER)
    return Phrase(f"{base}^{p.within(ATOM)}", POWER)


def _list(*args: Phrase, **_params: Any) -> Phrase:
    texts = [arg.text for arg in args]
    if len(texts) > LISTED:
        texts[LISTED - 2 : -1] = ["…"]
    return Phrase(f"[{', '.join(texts)}]")


def _indexed(x: Phrase, *, key: tuple[Any, ...], rank: int) -> Phrase:
    return Phrase(f"{x.within(ATOM)}{key_text(key)}")


# Rows that move data, by their parameters, and the two with a layout of their own.
_SPECIAL: Mapping[Primitive, Callable[..., Phrase]] = {
    power: _power,
    where: lambda c, a, b: Phrase(f"{a.within(LOGIC)} if {c.text} else {b.within(CHOICE)}", CHOICE),
    broadcast: lambda x, shape, rank: Phrase(f"spread {x.within(ATOM)}", POWER),
    reshape: lambda x, shape, rank: x,
    scatter: lambda *parts, keys, shape: Phrase(f"scatter{_list(*parts).text}"),
    index: _indexed,
    pack: _list,
}
