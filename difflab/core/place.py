"""Source locations of operations, in a program's text or in the user's Python code."""

from __future__ import annotations

import linecache
import sys
import sysconfig
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

from difflab.errors import InputError

Error = TypeVar("Error", bound=InputError)

OWN = "difflab"
PACKAGE = Path(__file__).parents[1]
LANGUAGE = "difflab.language"
MODULES = 4096
"""Size of the cache that maps modules to their owners."""


@dataclass(frozen=True)
class SourceLocation:
    """The location of an operation: a span of a program's text, or a line of Python.

    Attributes
    ----------
    text : str or None
        The text of the program, or the line of Python.
    span : (int, int) or None
        The operation's part of it.
    where : str
        The file and the line, for Python.
    """

    text: str | None = None
    span: tuple[int, int] | None = None
    where: str = ""

    def __str__(self) -> str:
        if self.where:
            return self.where
        if self.text is None or self.span is None:
            return ""
        start = self.span[0]
        column = start - self.text.rfind("\n", 0, start)
        line = self.text.count("\n", 0, start) + 1
        return f"line {line}, column {column}" if "\n" in self.text else f"column {column}"

    @property
    def part(self) -> str:
        """The source text of the operation; empty if unknown."""
        return "" if self.text is None or self.span is None else self.text[slice(*self.span)]

    def marked(self, message: str) -> str:
        """Return a message with the source line under it and a caret at the operation."""
        return InputError(message, text=self.text, span=self.span).render()

    def error(self, kind: type[Error], message: str, hint: str | None = None) -> Error:
        """Return an error of type `kind` that names the location."""
        if self.where:
            message = f"{message} ({self.where})"
        return kind(message, text=self.text, span=self.span, hint=hint)


NOWHERE = SourceLocation()
"""An unknown location."""


class FramePosition(NamedTuple):
    """A position in Python code, cheap to record; `read` looks up the source line."""

    code: CodeType
    instruction: int
    line: int
    module: dict[str, Any]

    def read(self) -> SourceLocation:
        """Return the location, which is empty if the source is unavailable."""
        return _place(*self)


def python_frame(inside: int = 1) -> FrameType | None:
    """Return the innermost frame outside of difflab; None below the parser.

    So many frames, counted from this one, are known to be of difflab.
    """
    frame: FrameType | None = sys._getframe(inside)
    while frame is not None:
        owner = _package_of(frame.f_globals.get("__name__", ""))
        if owner is None:
            return frame
        if owner == LANGUAGE:
            return None
        frame = frame.f_back
    return None


def is_users(frame: FrameType) -> bool:
    """Whether a frame executes the user's code, not that of the package."""
    return _package_of(frame.f_globals.get("__name__", "")) is None


@lru_cache(MODULES)
def _package_of(module: str) -> str | None:
    """Return the package that owns a module; None for user code."""
    if module.startswith(LANGUAGE):
        return LANGUAGE
    package = module.partition(".")[0]
    return package if package in (OWN, "numpy") else None


@lru_cache(MODULES)
def owner(file: str | None) -> str:
    """Return whose a file is: "user", "installed" (a package), "standard" or "difflab".

    Code that was typed in has no file, and is the user's.

    Examples
    --------
    >>> owner(None), owner("<stdin>"), owner("<frozen abc>"), owner(__file__)
    ('user', 'user', 'standard', 'difflab')
    """
    if file is None or (file.startswith("<") and not file.startswith("<frozen")):
        return "user"
    path = Path(file)
    if path.is_relative_to(PACKAGE):
        return "difflab"
    if any(folder in path.parts for folder in ("site-packages", "dist-packages")):
        return "installed"
    built_in = file == "" or file.startswith("<frozen")
    standard = built_in or path.is_relative_to(sysconfig.get_path("stdlib"))
    return "standard" if standard else "user"


def frame_position(frame: FrameType) -> FramePosition:
    """Return the position that a frame is executing."""
    return FramePosition(frame.f_code, frame.f_lasti, frame.f_lineno, frame.f_globals)


def user_position() -> FramePosition | None:
    """Return the innermost position outside of difflab."""
    frame = python_frame()
    return None if frame is None else frame_position(frame)


def user_location() -> SourceLocation:
    """Return the location of `user_position`."""
    spot = user_position()
    return NOWHERE if spot is None else spot.read()


def at_users_line(kind: type[Error], message: str, hint: str | None = None) -> Error:
    r"""Return an error of type `kind` that names the innermost line outside the package.

    Examples
    --------
    >>> from difflab.errors import TraceError
    >>> names = {"__name__": "model", "error": at_users_line, "kind": TraceError}
    >>> exec(compile("raised = error(kind, 'a branch')", "<model>", "exec"), names)
    >>> names["raised"].message
    'a branch'
    """
    return user_location().error(kind, message, hint)


def _place(code: CodeType, instruction: int, line: int, module: dict[str, Any]) -> SourceLocation:
    """Return the executed line, and the columns of the call in it."""
    text = linecache.getline(code.co_filename, line, module).rstrip("\n")
    if not text.strip():
        return NOWHERE
    _, last, start, end = list(code.co_positions())[instruction // 2]
    if start is None or end is None or last != line:
        start, end = len(text) - len(text.lstrip()), len(text)
    # Columns are counted in bytes of UTF-8.
    before = len(text.encode()[:start].decode(errors="ignore"))
    behind = len(text.encode()[:end].decode(errors="ignore"))
    margin = len(text) - len(text.lstrip())
    where = f"{Path(code.co_filename).name}, line {line}"
    return SourceLocation(text.strip(), (before - margin, behind - margin), where)
