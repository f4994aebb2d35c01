"""Formulas of a graph in mathematical notation: ``v̄₃ × cos v₀``, ``v̄₁ / v₋₁``.

This text is not meant to be parsed; `difflab.language.printers` writes text that parses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from difflab.core.primitive import Primitive
from difflab.drawing.order import short
from difflab.graph.expansion import expansion_value
from difflab.graph.ir import Number

__all__ = ["NotationPrinter", "Phrase", "atom"]

# Precedence of the outermost operator of a phrase, from the weakest.
CHOICE, LOGIC, RELATION, SUM, PRODUCT, PREFIX, POWER, ATOM = range(8)

INFIX = {
    "add": ("+", SUM),
    "subtract": ("−", SUM),
    "multiply": ("×", PRODUCT),
    "divide": ("/", PRODUCT),
    "mod": ("mod", PRODUCT),
    "less": ("<", RELATION),
    "less_equal": ("≤", RELATION),
    "greater": (">", RELATION),
    "greater_equal": ("≥", RELATION),
    "equal": ("=", RELATION),
    "not_equal": ("≠", RELATION),
    "logical_and": ("and", LOGIC),
    "logical_or": ("or", LOGIC),
}
FUNCTIONS = {
    "log": "ln",
    "gamma": "Γ",
    "loggamma": "ln Γ",
    "digamma": "ψ",
    "sigmoid": "σ",
    "minimum": "min",
    "maximum": "max",
    "sum": "Σ",
}
SUPERSCRIPTS = str.maketrans("0123456789−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
LISTED = 6


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
        special = _SPECIAL.get(primitive.name)
        if special is not None:
            return special(*args, **params)
        if primitive.name in INFIX and len(args) == 2:
            return _infix(primitive.name, *args)
        if primitive.expansion is not None and primitive.shape is None and not primitive.names:
            phrase: Phrase = expansion_value(primitive, args, self)
            return phrase
        fallback = primitive.names[0] if primitive.names else primitive.name
        return _function(FUNCTIONS.get(primitive.name, fallback), args)


def _infix(name: str, a: Phrase, b: Phrase) -> Phrase:
    sign, level = INFIX[name]
    if name == "multiply" and b.text.startswith("1 / ") and b.level == PRODUCT:
        # t × (1 / x) is written t / x, as in Baydin et al.
        return Phrase(f"{a.within(level)} / {b.text[4:]}", level)
    if name == "add" and b.level == PREFIX and b.text.startswith("−"):
        return Phrase(f"{a.within(level)} − {b.text[1:]}", level)
    tighter = level + (0 if name in ("add", "multiply") else 1)
    right = b.within(max(tighter, PRODUCT if b.text.startswith("−") else 0))
    if b.text.startswith("−") and not right.startswith("("):
        right = f"({right})"
    if name == "multiply" and b.level == PRODUCT and " / " in b.text:
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
    parts = [
        str(part) if isinstance(part, int) else ":".join("" if p is None else str(p) for p in part)
        for part in key
    ]
    return Phrase(f"{x.within(ATOM)}[{', '.join(parts)}]")


_SPECIAL: Mapping[str, Callable[..., Phrase]] = {
    "negative": lambda x: Phrase(f"−{x.within(PREFIX + 1)}", PREFIX),
    "power": _power,
    "sqrt": lambda x: Phrase(f"√{x.within(ATOM)}", POWER),
    "absolute": lambda x: Phrase(f"|{x.text}|"),
    "where": lambda c, a, b: Phrase(
        f"{a.within(LOGIC)} if {c.text} else {b.within(CHOICE)}", CHOICE
    ),
    "logical_not": lambda c: Phrase(f"not {c.within(ATOM)}", PREFIX),
    "as_number": lambda c: Phrase(f"[{c.text}]"),
    "broadcast": lambda x, shape, rank: Phrase(f"spread {x.within(ATOM)}", POWER),
    "reshape": lambda x, shape, rank: x,
    "scatter": lambda *parts, keys, shape: Phrase(f"scatter{_list(*parts).text}"),
    "index": _indexed,
    "pack": _list,
}
