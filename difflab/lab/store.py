"""The file in which measurements are kept, so that they resume: SQLite, a transaction a result.

The file is in SQLite's write-ahead-log mode: a process that is killed at any moment loses what it
was computing and nothing else. Several processes may run studies into one file at the same time.
Each claims a case before it computes it; a claim belongs to a file that its process keeps locked,
and lapses with the lock, which the operating system releases however the process ends.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from glob import escape as glob_escape
from hashlib import sha256
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from difflab.core.strict_json import dumps, long_integers
from difflab.errors import InputError
from difflab.lab.alone import lapsed, locked_file

_VERSION = 2
_APPLICATION = 0x64664C62  # "dfLb", in the header of the file
_WAIT = 60.0  # seconds for which another process may keep the file locked
_MARKS = 500  # keys in one statement

_KINDS: Mapping[type, str] = {str: "TEXT", int: "INTEGER", float: "REAL"}
_CLAIMS = "claims (work TEXT PRIMARY KEY, owner TEXT NOT NULL)"
PARTIAL: Mapping[str, type] = {"key": str, "content": str}
"""The columns of a file that is kept until the result of one run is written."""

Record = dict[str, Any]
"""One record, by the names of the columns."""


@dataclass(frozen=True)
class Owner:
    """A process that claims works: the name of the file that it keeps locked."""

    name: str


class Store:
    """An open file of records.

    Parameters
    ----------
    path : Path or None
        The file; None to keep the records in memory.
    columns : mapping of str to type
        The columns of a record: `str`, `int` or `float`. The column ``key`` identifies it. A file
        that lacks some of them, of an earlier version, receives them.
    new : bool
        Whether it is created if absent.
    alone : bool
        Whether no other process opens it, so that nothing need be claimed.

    Raises
    ------
    InputError
        The file cannot be opened, or is none of difflab's, or is of a later version of difflab.
    """

    what = "the file of a study"

    def __init__(
        self,
        path: Path | None,
        columns: Mapping[str, type],
        *,
        new: bool = False,
        alone: bool = False,
    ) -> None:
        self.path = path or Path(":memory:")
        self.columns = columns
        self._alone = alone
        if path is None:
            name, new = "file::memory:", True
        else:
            if not new and not path.is_file():
                raise InputError(f"there is no file {str(path)!r}", hint="difflab study FILE.toml")
            if not path.parent.is_dir():
                raise InputError(f"the folder {str(path.parent)!r} does not exist")
            name = f"{path.absolute().as_uri()}?mode={'rwc' if new else 'rw'}"
        with self._faults():
            self._open = sqlite3.connect(name, uri=True, timeout=_WAIT, isolation_level=None)
            self._open.row_factory = sqlite3.Row
        try:
            with self._faults():
                self._begin(new)
        except BaseException:
            self._open.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, new: bool) -> None:
        application = self._one("PRAGMA application_id")
        version = self._one("PRAGMA user_version")
        empty = self._one("SELECT count(*) FROM sqlite_master") == 0
        if application != _APPLICATION and not (new and empty):
            raise InputError(f"{str(self.path)!r} is not {self.what}")
        if version > _VERSION:
            raise InputError(
                f"{str(self.path)!r} was written by a later version of difflab (schema {version})",
                hint="pip install --upgrade difflab",
            )
        # What one process alone writes is lost with the machine only, which costs measuring again.
        self._open.execute(f"PRAGMA synchronous={'NORMAL' if self._alone else 'FULL'}")
        if empty:
            self._open.execute("PRAGMA journal_mode=WAL")
        if empty or version < _VERSION or self._absent():
            with self._transaction():
                self._make_tables()

    def _make_tables(self) -> None:
        """Create the tables, and the columns that a file of an earlier version lacks."""
        kinds = {name: _KINDS[kind] for name, kind in self.columns.items()}
        listed = ", ".join(f'"{name}" {kind}' for name, kind in kinds.items())
        for table in (f'records ({listed}, PRIMARY KEY ("key"))', _CLAIMS):
            self._open.execute(f"CREATE TABLE IF NOT EXISTS {table} WITHOUT ROWID")
        for name in self._absent():
            self._open.execute(f'ALTER TABLE records ADD COLUMN "{name}" {kinds[name]}')
        self._open.execute(f"PRAGMA application_id={_APPLICATION}")
        self._open.execute(f"PRAGMA user_version={_VERSION}")

    def _absent(self) -> list[str]:
        have = {row["name"] for row in self._open.execute("PRAGMA table_info(records)")}
        return [name for name in self.columns if name not in have]

    def _one(self, statement: str) -> Any:
        return self._open.execute(statement).fetchone()[0]

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Convert SQLite's errors to `InputError`."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise InputError(f"cannot use {str(self.path)!r} as {self.what}: {error}") from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._faults():
            self._open.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._open.execute("ROLLBACK")
            raise
        with self._faults():
            self._open.execute("COMMIT")

    # --- records --------------------------------------------------------------------------------

    def records(self) -> list[Record]:
        """Return all records, in the order of their dates if they have dates."""
        order = '"date", "key"' if "date" in self.columns else '"key"'
        with self._faults():
            rows = self._open.execute(f"SELECT * FROM records ORDER BY {order}").fetchall()
        return [{name: row[name] for name in self.columns} for row in rows]

    def known(self, keys: Collection[str]) -> set[str]:
        """Return those of `keys` that have a record."""
        listed = list(keys)
        finished: set[str] = set()
        with self._faults():
            for first in range(0, len(listed), _MARKS):
                part = listed[first : first + _MARKS]
                marks = ", ".join("?" * len(part))
                done = self._open.execute(f"SELECT key FROM records WHERE key IN ({marks})", part)
                finished.update(row["key"] for row in done)
        return finished

    def copy(self, path: Path) -> None:
        """Write a copy of the file, without its log and its claims, to a path that is free."""
        with self._faults():
            self._open.execute("VACUUM INTO ?", (str(path),))
            with sqlite3.connect(path) as other:
                other.execute("DELETE FROM claims")
            other.close()

    # --- claims ---------------------------------------------------------------------------------

    @contextmanager
    def owner(self) -> Iterator[Owner]:
        """Claim works within this context, as one owner; afterwards its claims have lapsed."""
        if self._alone:
            yield Owner("")
            return
        name = uuid4().hex[:12]
        path = self._lock_path(name)
        try:
            with locked_file(path):
                yield Owner(name)
        finally:
            with suppress(InputError, sqlite3.ProgrammingError), self._transaction():
                self._open.execute("DELETE FROM claims WHERE owner = ?", (name,))
            for left in self.path.parent.glob(f"{glob_escape(self._lock_path('').name)}*"):
                lapsed(left)

    def claim(self, owner: Owner, work: str, keys: Iterable[str]) -> list[str] | None:
        """Claim a work and return those of its `keys` without a record; None if another has it.

        A work that has all its records is not claimed: the list is empty.
        """
        listed = list(keys)
        with nullcontext() if self._alone else self._transaction():
            known = self.known(listed)
            missing = [key for key in listed if key not in known]
            if self._alone or not missing:
                return missing
            held = self._open.execute("SELECT owner FROM claims WHERE work = ?", (work,)).fetchone()
            if held is not None and held["owner"] != owner.name and self._lives(held["owner"]):
                return None
            self._open.execute("REPLACE INTO claims VALUES (?, ?)", (work, owner.name))
        return missing

    def add(self, owner: Owner, work: str, records: Sequence[Record]) -> None:
        """Write the records of a claimed work, and end the claim, in one transaction."""
        names = ", ".join(f'"{name}"' for name in self.columns)
        marks = ", ".join("?" * len(self.columns))
        with self._transaction():
            self._open.executemany(
                f"INSERT OR IGNORE INTO records ({names}) VALUES ({marks})",
                [tuple(record[name] for name in self.columns) for record in records],
            )
            self._open.execute(
                "DELETE FROM claims WHERE work = ? AND owner = ?", (work, owner.name)
            )

    def _lock_path(self, owner: str) -> Path:
        return self.path.with_name(f"{self.path.name}.run-{owner}")

    def _lives(self, owner: str) -> bool:
        """Whether the process of an owner runs."""
        return not lapsed(self._lock_path(owner))


class _Partial(Store):
    what = "the finished part of a measurement"


@contextmanager
def kept(
    path: Path | None, notify: Callable[[str], None] | None = None, shown: Path | None = None
) -> Iterator[Store]:
    """Open the records that one run keeps in a file until its result is written.

    Another process that uses the file is waited for. At the end the file is removed; it stays if
    an exception is raised, and the next run goes on from it.

    Parameters
    ----------
    path : Path or None
        The file; None to keep the records in memory.
    notify : callable, optional
        Called with one line of text if this waits, or starts again a file that it cannot read.
    shown : Path, optional
        The file that is named while this waits; by default `path`.

    Raises
    ------
    InputError
        The file cannot be written, or is another's.
    """
    if path is None:
        with _Partial(None, PARTIAL, alone=True) as store:
            yield store
        return
    lock = path.with_name(f"{path.name}.lock")
    with locked_file(lock, notify, shown or path):
        try:
            with _continued(path, notify) as store:
                yield store
            path.unlink(missing_ok=True)
        finally:
            with suppress(OSError):  # some systems keep a file that is open
                lock.unlink()


def _continued(path: Path, notify: Callable[[str], None] | None) -> _Partial:
    """Open a partial file; one that an earlier version wrote, or a full disk cut, starts again."""
    existed = path.is_file()
    try:
        return _Partial(path, PARTIAL, new=True, alone=True)
    except InputError:
        if not existed:
            raise
    (notify or (lambda _: None))(f"{path} cannot be continued: started again")
    try:
        path.unlink()
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    return _Partial(path, PARTIAL, new=True, alone=True)


def partial_of(destination: Path | None) -> Path | None:
    """Return the file that is kept until `destination` is written; None for a pipe or a device.

    Examples
    --------
    >>> partial_of(Path("out.json")).name
    'out.json.partial'
    """
    if destination is None or (destination.exists() and not destination.is_file()):
        return None
    return destination.with_name(f"{destination.name}.partial")


def packed_json(value: Any) -> str:
    """Return a value of JSON's types as one line of strict JSON."""
    return dumps(value, None)


def unpacked_json(text: str) -> Any:
    """Return the value that `packed_json` wrote, with integers of any length."""
    with long_integers():
        return json.loads(text)


def digest(record: Any) -> str:
    """Return a hash of a record of JSON's types that does not depend on the order of its names.

    Examples
    --------
    >>> digest({"a": 1, "b": 0.1}) == digest({"b": 0.1, "a": 1})
    True
    """
    text = json.dumps(record, sort_keys=True, allow_nan=False)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]
