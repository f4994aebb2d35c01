"""Each row on Python floats: the expression in the table, and the functions that it calls.

Plain expressions raise where NumPy gives nan or inf and `math` raises; guarded ones never raise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive
from difflab.primitives import helpers

__all__ = ["guarded", "plain", "single"]

_CALL = re.compile(r"[A-Za-z_]\w*\(|/|%")


def _names() -> dict[str, Any]:
    names = {name: getattr(math, name) for name in dir(math) if not name.startswith("_")}
    exec("\n".join(helpers.PYTHON.values()), names)  # noqa: S102 - text of the table of primitives
    return names


NAMES: dict[str, Any] = _names()
"""The names that expressions may use, besides Python's `abs`, `float` and `round`."""


def plain(row: Primitive) -> tuple[str, dict[str, Any]]:
    """Return the row's expression on floats, and the functions that it names.

    Examples
    --------
    >>> from difflab.primitives import digamma, sin
    >>> plain(sin)[0], plain(digamma)[0]
    ('sin({0})', 'of_digamma({0})')
    """
    template = row.python
    if not template or row.inexact:
        operands = ", ".join(f"{{{index}}}" for index in range(row.arity or 0))
        return f"of_{row.name}({operands})", {f"of_{row.name}": single(row)}
    words = set(re.findall(r"[A-Za-z_]\w*", template))
    return template, {word: NAMES[word] for word in words & NAMES.keys()}


def guarded(row: Primitive) -> tuple[str, dict[str, Any]]:
    """Return an expression with NumPy's nan and inf instead of errors, and the functions it names.

    Examples
    --------
    >>> from difflab.primitives import add, log
    >>> guarded(add)[0], guarded(log)[0]
    ('{0} + {1}', 'safe_log({0})')
    >>> guarded(log)[1]["safe_log"](0.0)
    -inf
    """
    template, names = plain(row)
    if not _CALL.search(template) or template.startswith("of_"):
        return template, names
    letters = "abc"[: row.arity]
    source = f"lambda {', '.join(letters)}: {template.format(*letters)}"
    raw = eval(source, dict(names))  # noqa: S307 - built from the table's templates only
    operands = ", ".join(f"{{{index}}}" for index in range(len(letters)))
    return f"safe_{row.name}({operands})", {f"safe_{row.name}": _safe(raw, single(row))}


def _safe(raw: Callable[..., float], kernel: Callable[..., float]) -> Callable[..., float]:
    def call(*args: float) -> float:
        try:
            return raw(*args)
        except (ArithmeticError, ValueError):
            return kernel(*args)

    return call


def single(row: Primitive) -> Callable[..., float]:
    """Return the row's kernel as a function of Python floats.

    Examples
    --------
    >>> from difflab.primitives import divide
    >>> single(divide)(1.0, 0.0)
    inf
    """
    kernel = row.computer(np)

    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return kernel(*map(np.float64, args)).item()

    return call
