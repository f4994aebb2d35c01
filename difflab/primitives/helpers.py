"""The functions of printed code: C99's, and those that rows define where a language lacks them.

These are accurate where a single expression is not: in the tails, and at nan.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from difflab.primitives import TABLE, javascript
from difflab.primitives.javascript_bessel import BESSEL
from difflab.primitives.javascript_special import SPECIAL

__all__ = ["C99", "JAVASCRIPT", "PYTHON", "C", "used"]

_WORD = re.compile(r"[A-Za-z_]\w*")
_CALL = re.compile(r"(\w+)\(\{0\}(?:, \{1\})?\)")
_DEFINED = re.compile(r"(\w+)\(")


def used(texts: Iterable[str], definitions: Mapping[str, str]) -> dict[str, str]:
    """Return the functions that `texts` call, each after the functions that it calls.

    Examples
    --------
    >>> list(used(["dsigmoid({0}) + sin({1})"], PYTHON))
    ['sigmoid', 'dsigmoid']
    """
    found: dict[str, str] = {}
    words = {word for text in texts for word in _WORD.findall(text)}
    for name, text in definitions.items():
        if name in words:
            others = {other: body for other, body in definitions.items() if other != name}
            found |= used([text], others) | {name: text}
    return found


def _by_name(texts: Iterable[str]) -> dict[str, str]:
    """Return definitions by the names of the functions, each after those that it calls."""
    found = {match[1]: text for text in texts if (match := _DEFINED.search(text))}
    return used(found, found)


PYTHON: Mapping[str, str] = _by_name(row.python_function for row in TABLE.values())
"""Python functions of floats, over `math` and each other, in an order that defines before use."""

C: Mapping[str, str] = _by_name(row.c_function for row in TABLE.values())
"""C functions, over C99's and each other, in an order that defines before use."""

JAVASCRIPT: Mapping[str, str] = _by_name(
    (*(row.javascript_function for row in TABLE.values()), *javascript.SHARED, *SPECIAL, *BESSEL)
)
"""JavaScript functions, over the members of `Math` and each other, in the same order."""

C99: Mapping[str, str] = {
    row.ufunc: match[1]
    for row in TABLE.values()
    if row.ufunc and (match := _CALL.fullmatch(row.c)) and match[1] not in C
}
"""The function of C99 for each universal function that has one."""
