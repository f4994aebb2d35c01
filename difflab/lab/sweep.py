"""Sweeps that resume: rows measured one by one, appended to a CSV file, never measured twice."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from difflab.errors import InputError, printable
from difflab.lab.alone import locked_file
from difflab.lab.environment import now

__all__ = ["Cell", "CellType", "SweepLayout", "Progress", "SweepRow", "Task", "load", "run"]

Cell = str | int | float | None
SweepRow = dict[str, Cell]
CellType = type[str] | type[int] | type[float]
_FORMULA = ("=", "+", "-", "@")
_SHOWN = 40  # characters of one part of a label
_LONGEST_FIELD = 2**31 - 1  # of a CSV file; Python's own limit is 131,072


@dataclass(frozen=True)
class SweepLayout:
    """The columns of a sweep's file.

    Parameters
    ----------
    columns : mapping of str to type
        Name and type (`str`, `int` or `float`) of every column, in the order of the file. A
        column ``date`` gets the time at which a row was finished.
    key : tuple of str
        The columns that say what is measured.
    source : tuple of str
        The columns that say what produced the row: versions, machine, settings. A row whose key
        and source are in the file already is not measured again.
    """

    columns: Mapping[str, CellType]
    key: tuple[str, ...]
    source: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """One row to measure: its key, the call that gives the rest of the row, and its source."""

    key: Mapping[str, Cell]
    measure: Callable[[], Mapping[str, Cell]]
    source: Mapping[str, Cell] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What is measured, for people; long texts are cut."""
        known = (f"{name}={value}" for name, value in self.key.items() if value not in (None, ""))
        return " ".join(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…" for text in known)


class Progress(Protocol):
    """Is told before every row how many are done, how many there are, and which is next."""

    def __call__(self, done: int, total: int, label: str) -> None:
        """Show it."""


def run(
    path: Path,
    layout: SweepLayout,
    tasks: Iterable[Task],
    progress: Progress | None = None,
    tell: Callable[[str], None] | None = None,
) -> list[SweepRow]:
    """Measure what the file at `path` does not hold yet, and return the rows of all tasks.

    A row reaches the file before the next is begun, so an interruption loses at most the row
    that is being measured. A last line cut short by a killed process is dropped. Rows of other
    keys or sources stay in the file and are not returned. One process at a time writes a file:
    another waits, and then finds what has been measured. A file of the same key and other
    columns, such as an earlier difflab wrote, is copied aside and begun anew, since its rows do
    not say what produced them.

    Parameters
    ----------
    path : pathlib.Path
        The CSV file; it and its folder are made when absent.
    layout : SweepLayout
        The columns and the key.
    tasks : iterable of Task
        What to measure, in the order wanted.
    progress : Progress, optional
        Told before every row.
    tell : callable, optional
        Called with a line of text where this waits for another process, or copies a file aside.

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
    >>> layout = SweepLayout({"n": int, "square": int}, key=("n",))
    >>> tasks = [Task({"n": n}, lambda n=n: {"square": n * n}) for n in (2, 3)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run(Path(folder) / "squares.csv", layout, tasks)
    [{'n': 2, 'square': 4}, {'n': 3, 'square': 9}]
    """
    listed, columns = list(tasks), layout.columns
    rows: list[SweepRow] = []
    with locked_file(path, tell) as file:
        table = _SweepFile(file, path, layout)
        known = {_identity(row, layout): row for row in table.begun(tell)}
        for number, task in enumerate(listed):
            own = {**task.key, **task.source}
            identity = _identity(own, layout)
            if identity not in known:
                if progress is not None:
                    progress(number, len(listed), task.label)
                found = {**own, **task.measure()}
                known[identity] = {**found, "date": now()}
                table.append(known[identity])
            row = {**known[identity], **own}
            rows.append({name: _absent(row.get(name), kind) for name, kind in columns.items()})
    if progress is not None:
        progress(len(listed), len(listed), "")
    return rows


def load(path: Path, layout: SweepLayout) -> list[SweepRow]:
    """Return the rows in the file, typed; an absent file has none.

    Text comes back as it was written: control characters as escapes, and a quotation mark
    before what a spreadsheet would take for a formula.

    Raises
    ------
    difflab.errors.InputError
        The file cannot be read, or is not a table of this layout.
    """
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    lines = _lines(content, path, layout)
    if lines and lines[0] != list(layout.columns):
        raise _unusable(path, layout)
    return _rows(lines[1:], path, layout)


class _SweepFile:
    """A file that is open and ours: what it holds, and its end."""

    def __init__(self, file: io.FileIO, path: Path, layout: SweepLayout) -> None:
        self._file = file
        self._path = path
        self._layout = layout

    def begun(self, tell: Callable[[str], None] | None) -> list[SweepRow]:
        """Return the rows that are there; a cut last line is dropped, the heading in place."""
        self._file.seek(0)
        content = self._file.readall()
        columns = list(self._layout.columns)
        lines = _lines(content, self._path, self._layout)
        rows: list[SweepRow] = []
        kept = content.rfind(b"\n") + 1
        if lines and lines[0] != columns:
            if not set(self._layout.key) <= set(lines[0]):
                raise _unusable(self._path, self._layout)
            aside = self._copied(content)
            if tell is not None:
                tell(
                    f"{self._path} has other columns than this version of difflab writes: copied "
                    f"to {aside} and begun anew"
                )
            kept = 0
        elif lines:
            rows = _rows(lines[1:], self._path, self._layout)
        with _writing(self._path):
            self._file.truncate(kept)
        if kept == 0:
            self._write(columns)
        return rows

    def append(self, row: Mapping[str, Cell]) -> None:
        """Add a row, and hand it to the operating system."""
        columns = self._layout.columns.items()
        self._write([_written(row.get(name), kind) for name, kind in columns])

    def _copied(self, content: bytes) -> Path:
        """Write `content` to a new file beside this one, and return its path."""
        number = 1
        while True:
            aside = self._path.with_name(f"{self._path.stem}-earlier-{number}{self._path.suffix}")
            with _writing(aside):
                try:
                    with aside.open("xb") as file:
                        file.write(content)
                    return aside
                except FileExistsError:
                    number += 1

    def _write(self, cells: Sequence[str]) -> None:
        """Write one line in one piece."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(cells)
        line = text.getvalue().encode("utf-8")
        with _writing(self._path):
            while line:
                line = line[self._file.write(line) :]


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def _lines(content: bytes, path: Path, layout: SweepLayout) -> list[list[str]]:
    """Return the cells of all whole lines."""
    limit = csv.field_size_limit(_LONGEST_FIELD)
    try:
        text = content[: content.rfind(b"\n") + 1].decode("utf-8")
        return list(csv.reader(io.StringIO(text, newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise _unusable(path, layout) from error
    finally:
        csv.field_size_limit(limit)


def _rows(lines: Sequence[Sequence[str]], path: Path, layout: SweepLayout) -> list[SweepRow]:
    try:
        return [_typed(line, layout) for line in lines]
    except ValueError as error:
        raise _unusable(path, layout) from error


def _unusable(path: Path, layout: SweepLayout) -> InputError:
    columns = ", ".join(layout.columns)
    return InputError(
        f"{path} is not a table with the columns {columns}",
        hint="move it away, or choose another folder with -o",
    )


def _typed(line: Sequence[str], layout: SweepLayout) -> SweepRow:
    if len(line) != len(layout.columns):
        raise ValueError("a row of another length")
    return {
        name: None if text == "" and kind is not str else kind(text)
        for (name, kind), text in zip(layout.columns.items(), line, strict=True)
    }


def _identity(row: Mapping[str, Cell], layout: SweepLayout) -> tuple[str, ...]:
    """Return key and source as they stand in the file: what is read equals what was written."""
    names = (*layout.key, *layout.source)
    return tuple(_written(row.get(name), layout.columns[name]) for name in names)


def _absent(value: Cell, kind: CellType) -> Cell:
    """Return a value as a file has it: no text is an empty one."""
    return "" if value is None and kind is str else value


def _written(value: Cell, kind: CellType) -> str:
    if value is None:
        return ""
    if kind is not str:
        return repr(kind(value))
    text = printable(str(value))
    # A row that was read carries its quotation mark already and does not get a second.
    return f"'{text}" if text.startswith(_FORMULA) else text
