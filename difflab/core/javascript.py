"""C expressions and functions of numbers as JavaScript, whose syntax is the same but for types."""

from __future__ import annotations

import re

__all__ = ["from_c"]

_RULES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\bstatic double (\w+\(.*\))\n{", r"function \1 {"),
        (r"\bdouble ", ""),
        (r"\bfabs\b", "abs"),
        (r"\bNAN\b", "NaN"),
        (r"\bINFINITY\b", "Infinity"),
    )
)


def from_c(text: str) -> str:
    """Return C code over numbers, a template or a function, as JavaScript over `Math`.

    Examples
    --------
    >>> from_c("({0} >= 0.0 ? fabs({0}) : NAN)")
    '({0} >= 0.0 ? abs({0}) : NaN)'
    """
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text
