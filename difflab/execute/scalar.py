"""Each row on Python's floats: the template that spells it, and the function behind the name.

Most rows have a template over `math` in the table. Where the plain template differs from NumPy
at nan or in the tails, and for companions, which have none, it is stated here; a row that
`math` does not know calls its kernel. Plain templates raise where NumPy gives nan or inf; the
guarded ones never raise.
May import `core` and NumPy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive

__all__ = ["guarded", "plain", "single"]

# {0} and {1} written twice are named first, so nothing is computed twice.
_TEMPLATES = {
    "absolute": "fabs({0})",
    "ceil": "copysign(float(ceil({0})), {0})",
    "clip": "clip({0}, {1}, {2})",
    "dacosh": "1.0 / (sqrt({0} - 1.0) * sqrt({0} + 1.0))",
    "dasin": "1.0 / sqrt((1.0 - {0}) * (1.0 + {0}))",
    "datan2": "({0} / hypot({0}, {1}) / hypot({0}, {1}))",
    "datanh": "dlog((1.0 - {0}) * (1.0 + {0}))",
    "derf": f"({2 / math.sqrt(math.pi)!r} * exp(-({{0}} * {{0}})))",
    "dhypot": "({0} / (hypot({0}, {1}) or 1.0))",
    "dlog": "(1.0 / {0} if {0} >= 0.0 else nan)",
    "dpower": "(0.0 if {1} == 0.0 else {1} * pow({0}, {1} - 1.0))",
    "dpower_exponent": "(0.0 if {0} == 0.0 and {1} > 0.0 else pow({0}, {1}) * log({0}))",
    "dsigmoid": "dsigmoid({0})",
    "floor": "copysign(float(floor({0})), {0})",
    "heaviside": "({0} if {0} != {0} else 0.5 if {0} == 0.0 else 1.0 if {0} > 0.0 else 0.0)",
    "maximum": "({0} if {0} > {1} or {0} != {0} else {1})",
    "minimum": "({0} if {0} < {1} or {0} != {0} else {1})",
    "relu": "({0} if {0} > 0.0 or {0} != {0} else 0.0)",
    "round": "copysign(float(round({0})), {0})",
    "sigmoid": "sigmoid({0})",
    "sign": "({0} if {0} != {0} or {0} == 0.0 else 1.0 if {0} > 0.0 else -1.0)",
    "softplus": "softplus({0})",
}
# Here `math` and SciPy differ by more than four units in the last place.
_KERNELS = frozenset({"erfc", "gamma", "loggamma"})
_CALL = re.compile(r"[A-Za-z_]\w*\(|/|%")


def _clip(x: float, low: float, high: float) -> float:
    y = x if x > low or x != x else low
    return y if y < high or y != y else high


def _dlog(x: float) -> float:
    return 1.0 / x if x >= 0.0 else math.nan


def _sigmoid(x: float) -> float:
    decay = math.exp(x if x < 0.0 else -x)
    return (decay if x < 0.0 else 1.0) / (1.0 + decay)


def _dsigmoid(x: float) -> float:
    return _sigmoid(x) * _sigmoid(-x)


def _softplus(x: float) -> float:
    return (x if x > 0.0 else 0.0) + math.log1p(math.exp(-x if x > 0.0 else x))


NAMES: dict[str, Any] = {
    **{name: getattr(math, name) for name in dir(math) if not name.startswith("_")},
    "clip": _clip,
    "dlog": _dlog,
    "dsigmoid": _dsigmoid,
    "sigmoid": _sigmoid,
    "softplus": _softplus,
}
"""What the plain templates may name, besides Python's `abs`, `float`, `max`, `min`, `round`."""


def plain(row: Primitive) -> tuple[str, dict[str, Any]]:
    """Return the row's template on floats, and what it names.

    Examples
    --------
    >>> from difflab.primitives import digamma, sin
    >>> plain(sin)[0], plain(digamma)[0]
    ('sin({0})', 'of_digamma({0})')
    """
    template = _TEMPLATES.get(row.name, row.python)
    if not template or row.name in _KERNELS:
        places = ", ".join(f"{{{place}}}" for place in range(row.arity or 0))
        return f"of_{row.name}({places})", {f"of_{row.name}": single(row)}
    words = set(re.findall(r"[A-Za-z_]\w*", template))
    return template, {word: NAMES[word] for word in words & NAMES.keys()}


def guarded(row: Primitive) -> tuple[str, dict[str, Any]]:
    """Return the row's template that gives nan and inf as NumPy does, and what it names.

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
    raw = eval(source, dict(names))  # noqa: S307 - made of the table's templates alone
    places = ", ".join(f"{{{place}}}" for place in range(len(letters)))
    return f"safe_{row.name}({places})", {f"safe_{row.name}": _safe(raw, single(row))}


def _safe(raw: Callable[..., float], kernel: Callable[..., float]) -> Callable[..., float]:
    def call(*args: float) -> float:
        try:
            return raw(*args)
        except (ArithmeticError, ValueError):
            return kernel(*args)

    return call


def single(row: Primitive) -> Callable[..., float]:
    """Return the row's kernel on Python's floats.

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
