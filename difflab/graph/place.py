"""Errors that point at the line of the user's Python code. May import `core`, `errors`."""

from __future__ import annotations

from typing import TypeVar

from difflab.core.place import python_place
from difflab.errors import InputError

__all__ = ["at_users_line"]

Error = TypeVar("Error", bound=InputError)


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
