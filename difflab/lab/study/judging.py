"""Judging the methods of a case, and the records that this and the times make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from difflab.core.progress import silent
from difflab.lab.compare import compare
from difflab.lab.environment import now
from difflab.lab.measure import FIRST_CALL
from difflab.lab.options import CompareOptions, chosen
from difflab.lab.outcomes import Outcome, outcome
from difflab.lab.provenance import MACHINE, source
from difflab.lab.record import STORED, Comparison, MethodRow, Status
from difflab.lab.store import digest
from difflab.lab.study.cases import Case
from difflab.lab.study.domains import judged_over, rows_over, single_over
from difflab.lab.study.store import Record, packed_json
from difflab.lab.study.timing import Times
from difflab.lab.sweep import Cell

Source = Mapping[str, Cell]


@dataclass(frozen=True)
class Judged:
    """The comparison of a case, not timed; or the reason why there is none.

    Attributes
    ----------
    comparison : Comparison or None
        At a point.
    failure : Outcome or None
        Why there is none.
    domain : mapping or None
        The comparison over a domain, of the schema ``difflab.domain/3``.
    """

    comparison: Comparison | None
    failure: Outcome | None = None
    domain: Mapping[str, Any] | None = None


def sources(cases: Sequence[Case]) -> dict[str, Source]:
    """Return the provenance of records by method: versions, code, processor, packages."""
    from difflab.methods.registry import select

    names = dict.fromkeys(name for case in cases for name in case.methods)
    methods = select([*names]) if names else []
    return {method.name: source(method) for method in methods}


def keys(case: Case, known: Mapping[str, Source]) -> dict[str, str]:
    """Return the key of the record of each method of a case, by the method's name.

    It is a hash of what is differentiated, the settings, and what produces the record.
    """
    return {
        name: digest({"case": case.key, "method": name, "source": dict(known[name])})
        for name in case.methods
    }


def judged(case: Case, names: Sequence[str]) -> Judged:
    """Compare the methods `names` of a case, without times.

    Whatever goes wrong with a whole comparison, such as too little memory, is a result.
    """
    try:
        if case.domain is not None:
            return Judged(None, domain=judged_over(case, case.domain, names))
        stated = chosen(vars(case), CompareOptions)
        options: Any = {**stated, "methods": names, "timing": False, "progress": silent}
        return Judged(compare(case.text, case.point, often=case.repeats > 0, **options))
    except Exception as error:  # packages and problems of others may raise anything
        return Judged(None, outcome(error))


def to_time(case: Case, found: Judged) -> list[str]:
    """Return the methods of a case whose calls are timed: those that returned a derivative."""
    if found.comparison is None or not case.repeats:
        return []
    return [row.name for row in found.comparison.methods if row.status is Status.OK]


def records(
    study: str,
    case: Case,
    found: Judged,
    times: Mapping[str, Times],
    wanted: Mapping[str, str],
    known: Mapping[str, Source],
) -> list[Record]:
    """Return the records of the methods `wanted`, a mapping of names to keys."""
    rows = {} if found.comparison is None else {row.name: row for row in found.comparison.methods}
    rows |= {} if found.domain is None else rows_over(found.domain)
    shared = {**case.record(), "study": study, "date": now()}
    made = []
    for name, key in wanted.items():
        row = rows.get(name)
        comparison = found.comparison
        if row is not None and name in times:
            row = _with_times(row, times[name])
        single = None
        if comparison is not None and row is not None:
            single = packed_json(replace(comparison, methods=(row,)).to_dict())
        elif found.domain is not None:
            single = packed_json(single_over(found.domain, name))
        made.append(
            {
                "key": key,
                **shared,
                "method": name,
                **_figures(row, found.failure),
                "blocks": packed_json(times[name].blocks if name in times else []),
                "comparison": single,
                **{column: known[name][column] for column in MACHINE},
            }
        )
    return made


def _with_times(row: MethodRow, times: Times) -> MethodRow:
    calls = tuple(seconds for block in times.blocks for seconds in block[0])
    return replace(
        row,
        message="; ".join(filter(None, (row.message, FIRST_CALL * times.first))),
        prepare_seconds=min(times.prepare, default=None),
        prepare_samples=tuple(times.prepare),
        call_seconds=min(calls, default=None),
        samples=calls,
        peak_bytes=times.peak_bytes,
    )


def _figures(row: MethodRow | None, failure: Outcome | None) -> Record:
    """Return the columns of a method's result; inf and nan are kept by SQLite as inf and NULL."""
    if row is None:
        failure = failure or Outcome(Status.FAILED, "the comparison has no row of this method")
        return {
            **dict.fromkeys(column.name for column in STORED),
            "status": str(failure.status),
            "message": failure.message,
            "tree": None,
            "dag": None,
        }
    size = row.size
    return {
        **row.stored(),
        "status": str(row.status),
        "tree": None if size is None or size.tree is None else _digits(size.tree),
        "dag": None if size is None or size.dag is None else _digits(size.dag),
    }


def _digits(number: int) -> str:
    """Return an integer of any length as text."""
    return packed_json(number)
