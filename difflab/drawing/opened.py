"""What a picture or a trace of a function opens, from the names that were given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from difflab.drawing.compositions import openable
from difflab.errors import InputError

if TYPE_CHECKING:
    from difflab.graph.function import Function

__all__ = ["ALL", "opened"]

ALL = "all"
"""What opens everything."""
NONE = "none"
"""What closes everything."""


def opened(function: Function, names: str | Iterable[str]) -> frozenset[str]:
    """Return the names that are opened: none, `ALL`, or those of something that opens.

    Raises
    ------
    InputError
        Nothing has one of the names, or `ALL` or ``"none"`` is not the only one.

    Examples
    --------
    >>> from difflab.language import parse
    >>> f = parse("x: [3]; sum(layer_norm(x))")
    >>> opened(f, "layer_norm"), opened(f, "none")
    (frozenset({'layer_norm'}), frozenset())
    """
    asked = frozenset([names] if isinstance(names, str) else names)
    known = openable(function)
    for name in sorted(asked - {ALL, NONE} - known):
        raise InputError(
            f"nothing in the graph that can be opened is called {name!r}",
            hint=f"choose from {', '.join([ALL, NONE, *sorted(known)])}",
        )
    if len(asked) > 1 and asked & {ALL, NONE}:
        raise InputError(
            f"{', '.join(sorted(asked))} cannot be opened together",
            hint=f"give names, or {ALL!r}, or {NONE!r}",
        )
    return asked - {NONE}
