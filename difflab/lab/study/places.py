"""Line numbers of the keys of a TOML file, which `tomllib` does not report."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from difflab.core.place import SourceLocation
from difflab.errors import InputError

KeyPath = tuple[str | int, ...]
"""A key and the tables around it; a number is the index of a table of an array."""


class KeyPlaces:
    r"""Finds the text of each key of a valid TOML document.

    Examples
    --------
    >>> places = KeyPlaces('name = "a"\n[[grid]]\nsizes = [\n 1,\n]\n')
    >>> print(places.error(("grid", 0, "sizes"), "no size is even"))
    grid[0].sizes: no size is even
    line 3: sizes = [
            ^~~~~
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._spans = dict(_spans(text))

    def error(self, path: KeyPath, message: str, hint: str | None = None) -> InputError:
        """Return the error of a key, with its name and line.

        A key that does not stand in the document has the place of the table around it.
        """
        known = (*path, 0) if (*path, 0) in self._spans else path  # an array of tables
        while known and known not in self._spans:
            known = known[:-1]
        message = f"{_name(path)}: {message}" if path else message
        if not known:
            return InputError(message, hint=hint)
        return SourceLocation(self._text, self._spans[known]).error(InputError, message, hint)


def _name(path: KeyPath) -> str:
    """Return a key as ``grid[0].sizes``."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).lstrip(".")


def _spans(text: str) -> Iterator[tuple[KeyPath, tuple[int, int]]]:
    """Yield the path and the span of every key.

    A statement ends at the first line at which it is valid by itself: a value that continues on
    the next line, or a text that looks like a key, is never taken for a statement.
    """
    table: KeyPath = ()
    counts: dict[KeyPath, int] = {}
    start, statement = 0, ""
    for line in text.splitlines(keepends=True):
        statement += line
        try:
            found = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        begun = statement.lstrip()
        place = start + len(statement) - len(begun)
        if begun.startswith("["):
            table = _entered(found, counts)
            yield table, (place, place + len(begun.splitlines()[0].rstrip()))
        else:
            end = place + len(begun.partition("=")[0].rstrip())
            for path in _keys(found):
                yield (*table, *path), (place, end)
        start, statement = start + len(statement), ""


def _entered(found: Mapping[str, Any], counts: dict[KeyPath, int]) -> KeyPath:
    """Return the path of the table that a header such as ``[[grid]]`` begins."""
    path: KeyPath = ()
    while found:
        ((name, inner),) = found.items()
        path = (*path, name)
        if isinstance(inner, list):
            counts[path] = counts.get(path, -1) + 1
            path, inner = (*path, counts[path]), inner[0]
        elif path in counts:
            path = (*path, counts[path])
        found = inner
    return path


def _keys(found: Mapping[str, Any]) -> Iterator[KeyPath]:
    """Yield the paths of all keys of a statement, those of inline tables included."""
    pending: list[tuple[KeyPath, Mapping[str, Any]]] = [((), found)]
    while pending:
        path, table = pending.pop()
        for name, inner in table.items():
            yield (*path, name)
            if isinstance(inner, Mapping):
                pending.append(((*path, name), inner))
