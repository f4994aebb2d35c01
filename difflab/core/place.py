"""Where the user's Python code is: the place that an error about a traced value points at.

May import `errors`.
"""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

from difflab.errors import InputError

__all__ = ["Place", "Spot", "at_users_line", "python_place", "python_spot"]

Error = TypeVar("Error", bound=InputError)

OWN = "difflab"
LANGUAGE = "difflab.language"


class Place(NamedTuple):
    """A line of Python: where it is, its text, and the part of it that runs."""

    where: str
    text: str
    span: tuple[int, int]


class Spot(NamedTuple):
    """A place as the interpreter knows it, quick to take; `read` looks the line up."""

    code: CodeType
    instruction: int
    line: int
    module: dict[str, Any]

    def read(self) -> Place | None:
        """Return the place; None where the source is not at hand."""
        return _place(*self)


def python_spot() -> Spot | None:
    """Return the innermost place outside of difflab; None below the parser, which has its own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(LANGUAGE):
            return None
        if module.partition(".")[0] not in (OWN, "numpy"):
            return Spot(frame.f_code, frame.f_lasti, frame.f_lineno, frame.f_globals)
        frame = frame.f_back
    return None


def python_place() -> Place | None:
    """Return the place of `python_spot`, read."""
    spot = python_spot()
    return None if spot is None else spot.read()


def at_users_line(kind: type[Error], message: str, hint: str | None = None) -> Error:
    r"""Return an error of a kind that names the innermost line outside the package.

    Examples
    --------
    >>> from difflab.errors import TraceError
    >>> names = {"__name__": "model", "error": at_users_line, "kind": TraceError}
    >>> exec(compile("found = error(kind, 'a branch')", "model.py", "exec"), names)
    >>> names["found"].message
    'a branch'
    """
    place = python_place()
    if place is None:
        return kind(message, hint=hint)
    return kind(f"{message} ({place.where})", text=place.text, span=place.span, hint=hint)


def _place(code: CodeType, instruction: int, line: int, module: dict[str, Any]) -> Place | None:
    """Return the line that is run, and the columns of the call in it."""
    text = linecache.getline(code.co_filename, line, module).rstrip("\n")
    if not text.strip():
        return None
    _, last, start, end = list(code.co_positions())[instruction // 2]
    if start is None or end is None or last != line:
        start, end = len(text) - len(text.lstrip()), len(text)
    # Columns are counted in bytes of UTF-8.
    before = len(text.encode()[:start].decode(errors="ignore"))
    behind = len(text.encode()[:end].decode(errors="ignore"))
    margin = len(text) - len(text.lstrip())
    where = f"{Path(code.co_filename).name}, line {line}"
    return Place(where, text.strip(), (before - margin, behind - margin))
