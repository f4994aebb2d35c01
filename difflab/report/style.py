"""One-line texts, and the styles of families, outcomes and other kinds of cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from difflab.core.wording import joined
from difflab.errors import printable

SHOWN_EXPRESSION = 280
"""The characters of a formula that a report shows."""


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

STYLES: Mapping[str, str] = {
    **{name: family.terminal for name, family in FAMILIES.items()},
    "agree": "green",
    "disagree": "bold red",
    "convention": "cyan",
    "declared": "cyan",
    "inconclusive": "yellow",
    "unsupported": "dim",
    "timeout": "yellow",
    "failed": "red",
    "label": "bold",
    "note": "dim",
    "installed": "green",
    "missing": "dim",
    "broken": "red",
    "absent": "yellow",
}
"""The style of each kind of cell on the terminal."""


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
