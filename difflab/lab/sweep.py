"""Sweeps that resume: rows measured one by one, appended to a CSV file, never measured twice.

May import the standard library and `difflab.errors`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from difflab.errors import InputError, printable

__all__ = ["Cell", "Layout", "Progress", "Row", "Task", "load", "run"]

Cell = str | int | float | None
Row = dict[str, Cell]
Kind = type[str] | type[int] | type[float]
_FORMULA = ("=", "+", "-", "@")


@dataclass(frozen=True)
class Layout:
    """The columns of a sweep's file.

    Parameters
    ----------
    columns : mapping of str to type
        Name and type (`str`, `int` or `float`) of every column, in the order of the file.
    key : tuple of str
        The columns that say what was measured, settings included: a row whose key is in the
        file already is not measured again.
    """

    columns: Mapping[str, Kind]
    key: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """One row to measure: its key, and the call that gives the rest of the row."""

    key: Mapping[str, Cell]
    measure: Callable[[], Mapping[str, Cell]]

    @property
    def label(self) -> str:
        """What is measured, for people."""
        known = (f"{name}={value}" for name, value in self.key.items() if value not in (None, ""))
        return " ".join(known)


class Progress(Protocol):
    """Is told before every row how many are done, how many there are, and which is next."""

    def __call__(self, done: int, total: int, label: str) -> None:
        """Show it."""


def run(
    path: Path, layout: Layout, tasks: Iterable[Task], progress: Progress | None = None
) -> list[Row]:
    """Measure what the file at `path` does not hold yet, and return the rows of all tasks.

    A row reaches the file before the next is begun, so an interruption loses at most the row
    that is being measured. A last line cut short by a killed process is dropped. Rows of other
    keys stay in the file and are not returned.

    Parameters
    ----------
    path : pathlib.Path
        The CSV file; it and its folder are made when absent.
    layout : Layout
        The columns and the key.
    tasks : iterable of Task
        What to measure, in the order wanted.
    progress : Progress, optional
        Told before every row.

    Returns
    -------
    list of dict
        One row a task, in the tasks' order, keys as the tasks gave them.

    Raises
    ------
    difflab.errors.InputError
        The file cannot be written, or is not a table of this layout.

    Examples
    --------
    >>> import tempfile
    >>> layout = Layout({"n": int, "square": int}, key=("n",))
    >>> tasks = [Task({"n": n}, lambda n=n: {"square": n * n}) for n in (2, 3)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run(Path(folder) / "squares.csv", layout, tasks)
    [{'n': 2, 'square': 4}, {'n': 3, 'square': 9}]
    """
    listed = list(tasks)
    known = {_identity(row, layout): row for row in load(path, layout)}
    rows: list[Row] = []
    with _open(path, layout) as file:
        for number, task in enumerate(listed):
            identity = _identity(task.key, layout)
            if identity not in known:
                if progress is not None:
                    progress(number, len(listed), task.label)
                known[identity] = {**task.key, **task.measure()}
                _append(file, known[identity], layout)
            row = {**known[identity], **task.key}
            rows.append({name: row.get(name) for name in layout.columns})
    if progress is not None:
        progress(len(listed), len(listed), "")
    return rows


def load(path: Path, layout: Layout) -> list[Row]:
    """Return the rows in the file, typed; an absent file has none.

    Text comes back as it was written: control characters as escapes, and a quotation mark
    before what a spreadsheet would take for a formula.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            text = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise _unusable(path, layout) from error
    whole = text[: text.rfind("\n") + 1]
    lines = list(csv.reader(io.StringIO(whole)))
    if not lines:
        return []
    if lines[0] != list(layout.columns):
        raise _unusable(path, layout)
    try:
        return [_typed(line, layout) for line in lines[1:]]
    except ValueError as error:
        raise _unusable(path, layout) from error


def _unusable(path: Path, layout: Layout) -> InputError:
    columns = ", ".join(layout.columns)
    return InputError(
        f"{path} is not a table with the columns {columns}",
        hint="move it away, or choose another folder with -o",
    )


def _typed(line: Sequence[str], layout: Layout) -> Row:
    if len(line) != len(layout.columns):
        raise ValueError("a row of another length")
    return {
        name: None if text == "" and kind is not str else kind(text)
        for (name, kind), text in zip(layout.columns.items(), line, strict=True)
    }


def _identity(row: Mapping[str, Cell], layout: Layout) -> tuple[str, ...]:
    """Return the key as it stands in the file, so that what is read equals what was written."""
    return tuple(_written(row.get(name), layout.columns[name]) for name in layout.key)


def _written(value: Cell, kind: Kind) -> str:
    if value is None:
        return ""
    if kind is not str:
        return repr(kind(value))
    text = printable(str(value))
    # A row that was read carries its quotation mark already and does not get a second.
    return f"'{text}" if text.startswith(_FORMULA) else text


def _open(path: Path, layout: Layout) -> io.TextIOWrapper:
    """Open the file for appending: a cut last line dropped, the heading in place."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as raw:
            raw.seek(0)
            content = raw.read()
            end = content.rfind(b"\n") + 1
            raw.truncate(end)
        file = path.open("a", encoding="utf-8", newline="")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    if end == 0:
        _write(file, list(layout.columns))
    return file


def _append(file: io.TextIOWrapper, row: Mapping[str, Cell], layout: Layout) -> None:
    _write(file, [_written(row.get(name), kind) for name, kind in layout.columns.items()])


def _write(file: io.TextIOWrapper, cells: Sequence[str]) -> None:
    """Write one line in one piece and hand it to the operating system."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    file.write(line.getvalue())
    file.flush()
