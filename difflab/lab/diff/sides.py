"""The records on one side of a difference: of a store, a saved comparison, or a folder of those."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from difflab.core.files import open_regular, reason
from difflab.core.strict_json import strict
from difflab.errors import InputError
from difflab.lab.diff.times import Blocks
from difflab.lab.record import Comparison, MethodRow, Status
from difflab.lab.saved import from_dict, from_json
from difflab.lab.store import digest
from difflab.lab.study.cases import THIS, Case
from difflab.lab.study.domains import rows_over
from difflab.lab.study.store import Record, Store, unpacked_json

STORE_IN_SITE = "study.db"
"""The name of the copy of a store in the site that reports it."""


@dataclass(frozen=True, eq=False)
class Measured:
    """One record: a method on one function at one point.

    Attributes
    ----------
    label, method : str
        What was differentiated, and how.
    row : MethodRow
        The result.
    blocks : sequence
        The samples; see `difflab.lab.diff.times`.
    cpu : str
        The processor.
    """

    label: str
    method: str
    row: MethodRow
    blocks: Blocks = ()
    cpu: str = ""


Side = dict[tuple[str, str], Measured]
"""The records by what was differentiated (a hash) and the method."""


def load(name: str) -> Side:
    """Return the records of a file or a folder.

    Parameters
    ----------
    name : str
        A store, or ``STORE:VERSION`` for the records of one of its versions; a comparison saved as
        JSON; a folder of those; or the folder of a study's site. A store that has several records
        of one method, such as those of two commits, gives the latest.

    Raises
    ------
    InputError
        It cannot be read.
    """
    path, version = Path(name), None
    if not path.exists() and ":" in name:
        before, _, version = name.rpartition(":")
        path = Path(before)
    if not path.exists():
        raise InputError(f"there is no file {name!r}")
    if path.is_dir():
        if (path / STORE_IN_SITE).is_file():
            return _of_store(path / STORE_IN_SITE, version)
        files = sorted(path.glob("*.json"))
        if not files:
            raise InputError(f"there is neither a study nor a saved comparison in {name!r}")
        return {key: found for file in files for key, found in _of_file(file).items()}
    return _of_store(path, version) if _is_database(path) else _of_file(path)


def _is_database(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return file.read(15) == b"SQLite format 3"
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {reason(error)}") from error


def _of_store(path: Path, version: str | None) -> Side:
    with Store(path) as store:
        records = store.records()
    wanted = [r for r in records if version is None or r["version"] == version]
    names = list(dict.fromkeys(record["version"] for record in records))
    if version is None and len(names) > 1:
        raise InputError(
            f"{str(path)!r} has the records of several versions",
            hint=f"name one: {', '.join(f'{path}:{name}' for name in names)}",
        )
    if not wanted:
        raise InputError(
            f"{str(path)!r} has no record" + (f" of the version {version!r}" if version else ""),
            hint=f"its versions are {', '.join(names)}" if names else "run the study first",
        )
    return {(record["identity"], record["method"]): _of_record(record) for record in wanted}


def _of_record(record: Record) -> Measured:
    """Return a record of a store; one without a comparison has only its status and message."""
    case = Case.of_record(record, version=THIS)
    plain = case.family or case.domain is not None
    label = case.label if plain else f"{case.label} at {_short(case.point)}"
    if record["comparison"] is not None and case.domain is not None:
        row = rows_over(unpacked_json(record["comparison"]))[record["method"]]
    elif record["comparison"] is None:
        from difflab.methods.protocol import Family

        row = MethodRow(
            name=record["method"],
            family=Family.AUTOMATIC,
            status=Status(record["status"]),
            message=record["message"],
        )
    else:
        (row,) = from_dict(unpacked_json(record["comparison"])).methods
    blocks = unpacked_json(record["blocks"])
    return Measured(label, record["method"], row, blocks, record["cpu"] or "")


def _short(point: Mapping[str, Any]) -> str:
    """Return a point in short."""
    shown = ", ".join(f"{name}={value}" for name, value in point.items())
    return shown if len(shown) <= 60 else f"{shown[:60]}…"


def _of_file(path: Path) -> Side:
    try:
        with open_regular(path) as file:
            comparison = from_json(file.read().decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {str(path)!r}: {error}") from error
    except InputError as error:
        raise InputError(f"{str(path)!r} is no comparison: {error.message}") from error
    return dict(_of_comparison(comparison))


def _of_comparison(comparison: Comparison) -> Iterator[tuple[tuple[str, str], Measured]]:
    environment = comparison.environment
    target = str(environment.get("target") or "auto")
    point = strict(comparison.point)
    case = Case(
        comparison.expression.text,
        point,
        (),
        formula=comparison.expression.text,
        order=comparison.order,
        target=target,
        version=THIS,
    )
    label = f"{case.label} at {_short(point)}"
    for row in comparison.methods:
        blocks: Blocks = [([*row.samples], [])] if row.samples else []
        measured = Measured(label, row.name, row, blocks, str(environment.get("cpu")))
        yield (digest(case.what), row.name), measured
