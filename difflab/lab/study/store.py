"""The SQLite file of a study: one row a record, one transaction a result.

The file is in SQLite's write-ahead-log mode: a process that is killed at any moment loses what it
was computing and nothing else. Several processes may run studies into one file at the same time.
Each claims a case before it computes it; a claim belongs to a file that its process keeps locked,
and lapses with the lock, which the operating system releases however the process ends.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from glob import escape as glob_escape
from pathlib import Path
from typing import Any
from uuid import uuid4

from difflab.core.strict_json import dumps, long_integers
from difflab.errors import InputError
from difflab.lab.alone import lapsed, locked_file
from difflab.lab.provenance import MACHINE
from difflab.lab.record import STORED

__all__ = ["COLUMNS", "Owner", "Record", "Store"]

_VERSION = 2
_APPLICATION = 0x64664C62  # "dfLb", in the header of the file
_WAIT = 60.0  # seconds for which another process may keep the file locked

COLUMNS: Mapping[str, type] = {
    "key": str,
    "identity": str,
    "study": str,
    "formula": str,
    "text": str,
    "family": str,
    "size": int,
    "point": str,
    "order": int,
    "target": str,
    "version": str,
    "method": str,
    "status": str,
    "message": str,
    "verdict": str,
    **{each.name: each.stored or str for each in STORED if not each.cost},
    "tree": str,
    "dag": str,
    **{each.name: each.stored or str for each in STORED if each.cost},
    **MACHINE,
    "timeout": float,
    "repeats": int,
    "date": str,
    "m": int,
    "over": str,
    "points": int,
    "blocks": str,
    "comparison": str,
}
"""The columns of a record. `tree` and `dag` are exact integers of any length, as text; `point`,
`over` (a domain, with its scale and seed), `blocks` (the samples) and `comparison` (of the schema
``difflab.comparison/3``, or ``difflab.domain/2`` over a domain) are JSON."""

_KINDS = {str: "TEXT", int: "INTEGER", float: "REAL"}
_TABLES = f"""
CREATE TABLE IF NOT EXISTS records (
  {", ".join(f'"{name}" {_KINDS[kind]}' for name, kind in COLUMNS.items())}, PRIMARY KEY ("key")
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claims (work TEXT PRIMARY KEY, owner TEXT NOT NULL) WITHOUT ROWID;
"""

Record = dict[str, Any]
"""One row, by the names of `COLUMNS`."""


@dataclass(frozen=True)
class Owner:
    """A process that claims cases: the name of the file that it keeps locked."""

    name: str


class Store:
    """An open file of records.

    Parameters
    ----------
    path : Path
        The file.
    new : bool
        Whether it is created if absent.

    Raises
    ------
    InputError
        The file cannot be opened, or is not a study's, or is of a later version of difflab.
    """

    def __init__(self, path: Path, *, new: bool = False) -> None:
        self.path = path
        if not new and not path.is_file():
            raise InputError(f"there is no file {str(path)!r}", hint="difflab study FILE.toml")
        if not path.parent.is_dir():
            raise InputError(f"the folder {str(path.parent)!r} does not exist")
        with self._faults():
            mode = "rwc" if new else "rw"
            self._open = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode={mode}",
                uri=True,
                timeout=_WAIT,
                isolation_level=None,
            )
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

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, new: bool) -> None:
        application = self._one("PRAGMA application_id")
        version = self._one("PRAGMA user_version")
        empty = self._one("SELECT count(*) FROM sqlite_master") == 0
        if application != _APPLICATION and not (new and empty):
            raise InputError(f"{str(self.path)!r} is not the file of a study")
        if version > _VERSION:
            raise InputError(
                f"{str(self.path)!r} was written by a later version of difflab (schema {version})",
                hint="pip install --upgrade difflab",
            )
        self._open.execute("PRAGMA synchronous=FULL")
        if not empty:
            self._upgrade(version)
        if empty:
            self._open.execute("PRAGMA journal_mode=WAL")
            with self._transaction():
                for statement in filter(str.strip, _TABLES.split(";")):
                    self._open.execute(statement)
                self._open.execute(f"PRAGMA application_id={_APPLICATION}")
                self._open.execute(f"PRAGMA user_version={_VERSION}")

    def _upgrade(self, version: int) -> None:
        """Add the columns that a file of an earlier version of difflab lacks."""
        if version == _VERSION and not self._absent():
            return
        with self._transaction():
            for name in self._absent():  # another process may have added some since
                kind = _KINDS[COLUMNS[name]]
                self._open.execute(f'ALTER TABLE records ADD COLUMN "{name}" {kind}')
            self._open.execute(f"PRAGMA user_version={_VERSION}")

    def _absent(self) -> list[str]:
        have = {row["name"] for row in self._open.execute("PRAGMA table_info(records)")}
        return [name for name in COLUMNS if name not in have]

    def _one(self, statement: str) -> Any:
        return self._open.execute(statement).fetchone()[0]

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Turn SQLite's errors into `InputError`."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise InputError(
                f"cannot use {str(self.path)!r} as the file of a study: {error}"
            ) from error

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
        """Return all records in the order of their dates; `comparison` and `blocks` as values."""
        with self._faults():
            rows = self._open.execute('SELECT * FROM records ORDER BY "date", "key"').fetchall()
        return [{name: row[name] for name in COLUMNS} for row in rows]

    def known(self, keys: Collection[str]) -> set[str]:
        """Return those of `keys` that have a record."""
        with self._faults():
            found = self._open.execute("SELECT key FROM records").fetchall()
        return {row["key"] for row in found}.intersection(keys)

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
        """Claim cases within this context, as one owner; afterwards its claims have lapsed."""
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
        """Claim a case and return those of its `keys` without a record; None if another has it.

        A case that has all its records is not claimed: the list is empty.
        """
        with self._transaction():
            marks = ", ".join("?" * len(listed := list(keys)))
            done = self._open.execute(f"SELECT key FROM records WHERE key IN ({marks})", listed)
            known = {row["key"] for row in done}
            missing = [key for key in listed if key not in known]
            if not missing:
                return []
            held = self._open.execute("SELECT owner FROM claims WHERE work = ?", (work,)).fetchone()
            if held is not None and held["owner"] != owner.name and self._lives(held["owner"]):
                return None
            self._open.execute("REPLACE INTO claims VALUES (?, ?)", (work, owner.name))
        return missing

    def add(self, owner: Owner, work: str, records: Sequence[Record]) -> None:
        """Write the records of a claimed case, and end the claim, in one transaction."""
        names = ", ".join(f'"{name}"' for name in COLUMNS)
        marks = ", ".join("?" * len(COLUMNS))
        with self._transaction():
            self._open.executemany(
                f"INSERT OR IGNORE INTO records ({names}) VALUES ({marks})",
                [tuple(record[name] for name in COLUMNS) for record in records],
            )
            self._open.execute(
                "DELETE FROM claims WHERE work = ? AND owner = ?", (work, owner.name)
            )

    def _lock_path(self, owner: str) -> Path:
        return self.path.with_name(f"{self.path.name}.run-{owner}")

    def _lives(self, owner: str) -> bool:
        """Whether the process of an owner runs."""
        return not lapsed(self._lock_path(owner))


def packed_json(value: Any) -> str:
    """Return a value of JSON's types as one line of strict JSON."""
    return dumps(value, None)


def unpacked_json(text: str) -> Any:
    """Return the value that `packed_json` wrote, with integers of any length."""
    with long_integers():
        return json.loads(text)
