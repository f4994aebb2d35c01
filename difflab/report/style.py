"""Formatting of numbers, times and sizes, and the colours of families and outcomes."""

from __future__ import annotations

import math
from typing import NamedTuple

from difflab.core.wording import joined
from difflab.errors import printable

__all__ = [
    "ABSENT",
    "FAMILIES",
    "OUTCOMES",
    "PLAIN",
    "FamilyStyle",
    "clean",
    "count",
    "error",
    "exact",
    "pretty",
    "seconds",
    "shorten",
]

ABSENT = "–"


class FamilyStyle(NamedTuple):
    """The style of a family of methods: colour and marker in figures, colour in terminals."""

    colour: str
    marker: str
    terminal: str


# The palette of Okabe and Ito, distinct under the common forms of colour blindness. Every family
# also has its own marker, so that no information depends on colour alone.
FAMILIES = {
    "symbolic": FamilyStyle("#CC79A7", "D", "magenta"),
    "numeric": FamilyStyle("#D55E00", "^", "yellow"),
    "automatic": FamilyStyle("#0072B2", "o", "blue"),
}
PLAIN = FamilyStyle("#777777", "s", "")

# The terminal style of each outcome of a method.
OUTCOMES = {
    "agree": "green",
    "disagree": "bold red",
    "convention": "cyan",
    "inconclusive": "yellow",
    "unsupported": "dim",
    "timeout": "yellow",
    "failed": "red",
}

_PLAIN_DIGITS = 5
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def clean(text: str) -> str:
    r"""Return `text` on one line, with control characters escaped.

    Examples
    --------
    >>> clean("a = 1\n a*x  # \x1b[2J")
    'a = 1; a*x  # \\x1b[2J'
    """
    return printable(joined(text))


def shorten(text: str, width: int) -> str:
    """Return `text` in at most `width` characters: whole, or its beginning and end.

    Examples
    --------
    >>> shorten("abcdefghijkl", 9)
    'abcd … kl'
    """
    if len(text) <= width:
        return text
    tail = max((width - 3) // 3, 0)
    return text[: width - 3 - tail] + " … " + text[len(text) - tail :]


def _trimmed(mantissa: str) -> str:
    """Return ``1.7e+06`` as ``1.7e6``."""
    head, _, exponent = mantissa.partition("e")
    return f"{head}e{int(exponent)}"


def error(value: float | None) -> str:
    """Return an error as a short text.

    Examples
    --------
    >>> error(0.0), error(0.5), error(3.14159e-12), error(123456.0), error(None)
    ('0', '0.5', '3.1e-12', '1.2e5', '–')
    """
    if value is None:
        return ABSENT
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    return f"{value:.3g}" if 0.01 <= abs(value) < 1000 else _trimmed(f"{value:.1e}")


def count(value: int | None) -> str:
    """Return an integer of any size in at most six characters.

    Examples
    --------
    >>> count(1719), count(12_345_678), count(7**5000)
    ('1719', '1.2e7', '1e4225')
    """
    if value is None:
        return ABSENT
    if abs(value) < 10**_PLAIN_DIGITS:
        return str(value)
    if abs(value) < 10**300:
        return _trimmed(f"{float(value):.1e}")
    return f"1e{int(value.bit_length() * math.log10(2))}"


def seconds(value: float | None) -> str:
    """Return a time with three digits and its unit.

    Examples
    --------
    >>> seconds(2.7e-7), seconds(0.0123456), seconds(75.0), seconds(0.0009999)
    ('270 ns', '12.3 ms', '75.0 s', '1.00 ms')
    """
    if value is None or not math.isfinite(value):
        return ABSENT
    for scale, unit in _UNITS:
        amount = value / scale
        if amount >= 0.9995 or unit == "ns":
            decimals = 0 if amount >= 99.95 else 1 if amount >= 9.995 else 2
            return f"{amount:.{decimals}f} {unit}"
    return ABSENT


def exact(value: float) -> str:
    """Return a number with all its digits, integers without a decimal point.

    Examples
    --------
    >>> exact(11.652071455223084), exact(5.0), exact(1e300)
    ('11.652071455223084', '5', '1e+300')
    """
    text = repr(float(value))
    return text.removesuffix(".0")


def pretty(value: float) -> str:
    """Return a number with six digits."""
    return f"{value:.6g}"
