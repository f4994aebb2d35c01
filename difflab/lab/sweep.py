"""Resumable sweeps: rows are measured one by one and appended to a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from difflab.core.table import csv_text, guarded
from difflab.errors import InputError, printable
from difflab.lab.alone import locked_file
from difflab.lab.environment import now

__all__ = ["Cell", "CellType", "Progress", "SweepLayout", "SweepRow", "Task", "load", "run"]

Cell = str | int | float | None
SweepRow = dict[str, Cell]
CellType = type[str] | type[int] | type[float]
_SHOWN = 40  # characters of one part of a label
_LONGEST_FIELD = 2**31 - 1  # of a CSV file; Python's own limit is 131,072


@dataclass(frozen=True)
class SweepLayout:
    """The columns of a sweep's file.

    Parameters
    ----------
    columns : mapping of str to type
        Name and type (`str`, `int` or `float`) of every column, in the order of the file. A
        column ``date`` receives the time at which a row was finished.
    key : tuple of str
        The columns that identify what is measured.
    source : tuple of str
        The columns that identify what produced the row: versions, machine, settings. A row whose
        key and source are already in the file is not measured again.
    """

    columns: Mapping[str, CellType]
    key: tuple[str, ...]
    source: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """One row to measure: its key, the call that returns the rest of the row, and its source."""

    key: Mapping[str, Cell]
    measure: Callable[[], Mapping[str, Cell]]
    source: Mapping[str, Cell] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """A readable description of the row; long texts are truncated."""
        known = (f"{name}={value}" for name, value in self.key.items() if value not in (None, ""))
        return " ".join(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…" for text in known)


class Progress(Protocol):
    """Callback ``progress(done, total, label)``, called before every row."""

    def __call__(self, done: int, total: int, label: str) -> None:
        """Report that `done` of `total` rows are measured and `label` is next."""


def run(
    path: Path,
    layout: SweepLayout,
    tasks: Iterable[Task],
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
) -> list[SweepRow]:
    """Measure the rows that the file at `path` does not contain, and return the rows of all tasks.

    A row is written before the next one is started, so an interruption loses at most the row
    that is being measured. An incomplete last line of a killed process is dropped. Rows of other
    keys or sources stay in the file and are not returned. One process at a time writes a file;
    another waits, and then uses the rows that were measured. A file of the same key and other
    columns, as written by an earlier difflab, is copied aside and started again, since its rows do
    not state what produced them.

    Parameters
    ----------
    path : pathlib.Path
        The CSV file; it and its folder are created if absent.
    layout : SweepLayout
        The columns and the key.
    tasks : iterable of Task
        The rows to measure, in order.
    progress : Progress, optional
        Called as ``progress(done, total, label)`` before every row.
    notify : callable, optional
        Called with one line of text if this waits for another process or copies a file aside.

    Returns
    -------
    list of dict
        One row for each task, in the order of the tasks.

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
    with locked_file(path, notify) as file:
        table = _SweepFile(file, path, layout)
        known = {_identity(row, layout): row for row in table.begun(notify)}
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

    Text is returned as it was written: control characters are escaped, and a quotation mark
    precedes text that a spreadsheet would interpret as a formula.

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
    """The open, locked file of a sweep."""

    def __init__(self, file: io.FileIO, path: Path, layout: SweepLayout) -> None:
        self._file = file
        self._path = path
        self._layout = layout

    def begun(self, notify: Callable[[str], None] | None) -> list[SweepRow]:
        """Return the existing rows; drop an incomplete last line and write a missing heading."""
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
            if notify is not None:
                notify(
                    f"{self._path} does not have the columns of this version of difflab: copied "
                    f"to {aside} and started again"
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
        """Append a row, unbuffered."""
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
        """Write one line, without buffering."""
        line = csv_text([cells]).encode("utf-8")
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
    """Return the cells of all complete lines."""
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
        hint="move the file, or choose another folder with -o",
    )


def _typed(line: Sequence[str], layout: SweepLayout) -> SweepRow:
    if len(line) != len(layout.columns):
        raise ValueError("wrong number of cells")
    return {
        name: None if text == "" and kind is not str else kind(text)
        for (name, kind), text in zip(layout.columns.items(), line, strict=True)
    }


def _identity(row: Mapping[str, Cell], layout: SweepLayout) -> tuple[str, ...]:
    """Return key and source as they are written in the file, so that both can be compared."""
    names = (*layout.key, *layout.source)
    return tuple(_written(row.get(name), layout.columns[name]) for name in names)


def _absent(value: Cell, kind: CellType) -> Cell:
    """Return a value as it is read from a file: an absent text is empty."""
    return "" if value is None and kind is str else value


def _written(value: Cell, kind: CellType) -> str:
    if value is None:
        return ""
    if kind is not str:
        return repr(kind(value))
    # A text that was read already has its quotation mark and gets no second one.
    return guarded(printable(str(value)))
