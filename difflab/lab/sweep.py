"""Resumable sweeps: rows are measured one by one and appended to a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import count
from pathlib import Path

import numpy as np

from difflab.core.progress import Progress
from difflab.core.system import open_regular, write_whole
from difflab.core.table import csv_text, guarded
from difflab.errors import InputError, MethodTimeout, printable
from difflab.lab import engine
from difflab.lab.engine import Work
from difflab.lab.environment import now
from difflab.lab.record import Status, outcome
from difflab.lab.store import Record, digest, kept, packed_json, partial_of, unpacked_json

Cell = str | int | float | None
SweepRow = dict[str, Cell]
Row = SweepRow
"""The columns that a measurement gives."""
Rows = Callable[[], Mapping[str, Mapping[str, Cell]]]
"""A measurement of several rows by their names."""
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
        texts = (f"{name}={value}" for name, value in self.key.items() if value not in (None, ""))
        return " ".join(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…" for text in texts)


def trial(
    key: Mapping[str, Cell],
    measure: Callable[[], Mapping[str, Cell]],
    source: Mapping[str, Cell],
    *,
    timeouts: dict[str, str] | None = None,
    name: str = "",
    size: str = "",
    **cells: Cell,
) -> Task:
    """Return the task of a measurement that may fail: its row then states why.

    Parameters
    ----------
    key, source : mapping
        As of `Task`.
    measure : callable
        Returns the rest of the row.
    timeouts : dict, optional
        The message of every name that timed out, after which nothing larger is tried; extended
        when the task is measured.
    name, size : str
        What is measured, and at which size, for `timeouts`.
    **known
        Columns of the row, whatever happens.

    Examples
    --------
    >>> trial({"n": 2}, lambda: {"half": 1 / 0}, {}, unit="s").measure()["message"]
    'ZeroDivisionError: division by zero'
    """
    late = {} if timeouts is None else timeouts

    def row() -> SweepRow:
        if name in late:
            return {**cells, "status": Status.TIMEOUT, "message": late[name]}
        try:
            with np.errstate(all="ignore"):
                return {**cells, **measure()}
        except (Exception, SystemExit) as error:  # another package's method may fail in any way
            if isinstance(error, MethodTimeout):
                late[name] = f"not tried: {size} it was {error}"
            return {**cells, **outcome(error)._asdict()}

    return Task(key, row, source)


def together(
    key: Mapping[str, Cell],
    sources: Mapping[str, Mapping[str, Cell]],
    measure: Rows,
    column: str = "method",
) -> Iterator[Task]:
    """Yield a task for every name of `sources`; the first one that runs measures all.

    The name is in the `column` of the key.

    Examples
    --------
    >>> tasks = together({"n": 2}, {"a": {}, "b": {}}, lambda: {"a": {"x": 1}, "b": {"x": 2}})
    >>> [{**task.key, **task.measure()} for task in tasks]
    [{'n': 2, 'method': 'a', 'x': 1}, {'n': 2, 'method': 'b', 'x': 2}]
    """
    measured = cache(measure)
    for name, source in sources.items():
        yield Task({**key, column: name}, partial(_part, measured, name), source)


def _part(measured: Rows, name: str) -> Mapping[str, Cell]:
    return measured()[name]


def run(
    path: Path | None,
    layout: SweepLayout,
    tasks: Iterable[Task],
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
    *,
    resume: Path | None = None,
) -> list[SweepRow]:
    """Measure the rows that the file at `path` does not contain, and return the rows of all tasks.

    A row is kept before the next one is started, so an interruption loses at most the row that is
    being measured. Rows of other keys or sources stay in the file and are not returned. One
    process at a time uses a file; another waits, and then uses the rows that were measured. A file
    of the same key and other columns, as written by an earlier difflab, is copied aside and started
    again, since its rows do not state what produced them.

    Parameters
    ----------
    path : pathlib.Path or None
        The CSV file; its folder is created if absent. None to write none.
    layout : SweepLayout
        The columns and the key.
    tasks : iterable of Task
        The rows to measure, in order.
    progress : Progress, optional
        Called as ``progress(done, total, label)`` before every row.
    notify : callable, optional
        Called with one line of text if this waits for another process or copies a file aside.
    resume : pathlib.Path, optional
        The file that keeps the rows until they are written; by default beside `path`.

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
    measured: dict[str, SweepRow] = {}
    works = []
    for task in tasks:
        name = _name(_line({**task.key, **task.source}, layout), layout)
        works.append(Work(task, name, task.label, {"": name}))

    def measure(task: Task, name: str) -> list[Record]:
        measured[name] = {**task.key, **task.source, **task.measure(), "date": now()}
        return [_record(name, _line(measured[name], layout))]

    with kept(resume or partial_of(path), notify, path) as store:
        earlier = {} if path is None else _earlier(path, layout, notify)
        with store.owner() as owner:
            store.add(owner, "", [_record(name, line) for name, line in earlier.items()])
        try:
            engine.run(
                store,
                works,
                lambda work, _: partial(measure, work.subject, work.name),
                progress,
                notify,
            )
        finally:
            contents = {row["key"]: unpacked_json(row["content"]) for row in store.records()}
            if path is not None:
                names = [*earlier, *(work.name for work in works), *contents]
                lines = [contents[name] for name in dict.fromkeys(names) if name in contents]
                write_whole({path: _written_lines(lines, layout)})
    rows = [measured.get(work.name) or _typed(contents[work.name], layout) for work in works]
    return [
        _complete({**row, **work.subject.key, **work.subject.source}, layout)
        for row, work in zip(rows, works, strict=True)
    ]


def number(row: SweepRow, name: str) -> float | None:
    """Return a cell that is a number; None where there is none.

    Examples
    --------
    >>> number({"steps": 3, "error": None}, "steps"), number({"error": None}, "error")
    (3.0, None)
    """
    value = row.get(name)
    return float(value) if isinstance(value, int | float) else None


def to_csv(rows: Iterable[SweepRow], layout: SweepLayout) -> bytes:
    """Return rows as the file that has them."""
    return _written_lines([_line(row, layout) for row in rows], layout)


def _written_lines(lines: Iterable[Sequence[str]], layout: SweepLayout) -> bytes:
    return csv_text([[*layout.columns], *lines]).encode("utf-8")


def load(path: Path, layout: SweepLayout) -> list[SweepRow]:
    """Return the rows in the file, typed; an absent file has none.

    Text is returned as it was written: control characters are escaped, and a quotation mark
    precedes text that a spreadsheet would interpret as a formula.

    Raises
    ------
    difflab.errors.InputError
        The file cannot be read, or is not a table of this layout.
    """
    lines = _lines(_content(path), path, layout)
    if lines and lines[0] != list(layout.columns):
        raise _unusable(path, layout)
    return _rows(lines[1:], path, layout)


def _earlier(
    path: Path, layout: SweepLayout, notify: Callable[[str], None] | None
) -> dict[str, list[str]]:
    """Return the lines of an earlier run by name; a file of other columns is copied aside."""
    content = _content(path)
    lines = _lines(content, path, layout)
    if not lines or lines[0] == list(layout.columns):
        _rows(lines[1:], path, layout)
        return {_name(line, layout): line for line in lines[1:]}
    if not set(layout.key) <= set(lines[0]):
        raise _unusable(path, layout)
    aside = _copied(path, content)
    if notify is not None:
        notify(
            f"{path} does not have the columns of this version of difflab: copied to {aside} and "
            "started again"
        )
    return {}


def _content(path: Path) -> bytes:
    """Return the content of a file; that of an absent file is empty."""
    try:
        with open_regular(path) as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def _copied(path: Path, content: bytes) -> Path:
    """Write `content` to a new file beside `path`, and return its path."""
    names = (path.with_name(f"{path.stem}-earlier-{k}{path.suffix}") for k in count(1))
    aside = next(name for name in names if not name.exists())
    write_whole({aside: content})
    return aside


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


def _name(line: Sequence[str], layout: SweepLayout) -> str:
    """Return a hash of key and source, as they are written in the file."""
    cells = dict(zip(layout.columns, line, strict=True))
    return digest([cells[name] for name in (*layout.key, *layout.source)])


def _record(name: str, line: Sequence[str]) -> Record:
    return {"key": name, "content": packed_json(line)}


def _complete(row: SweepRow, layout: SweepLayout) -> SweepRow:
    """Return all columns of a row as they are read from a file: an absent text is empty."""
    return {
        name: "" if row.get(name) is None and kind is str else row.get(name)
        for name, kind in layout.columns.items()
    }


def _line(row: Mapping[str, Cell], layout: SweepLayout) -> list[str]:
    return [_written(row.get(name), kind) for name, kind in layout.columns.items()]


def _written(value: Cell, kind: CellType) -> str:
    if value is None:
        return ""
    if kind is not str:
        return repr(kind(value))
    # A text that was read already has its quotation mark and gets no second one.
    return guarded(printable(str(value)))
