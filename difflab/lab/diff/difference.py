"""Changes from one set of records to another, and which of them are worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median
from typing import Any

from difflab.core.strict_json import dumps, strict
from difflab.lab.diff.sides import LEVEL, Measured, Side, TimeChange, spread, time_change

SCHEMA = "difflab.diff/1"


_OUTCOMES = (
    *("agree", "convention", "declared", "inconclusive", "unsupported", "timeout", "failed"),
    "disagree",
)
"""Verdicts and statuses, the best first."""


class Kind(StrEnum):
    """A kind of change, the worst first."""

    WRONG = "wrong"
    VERDICT = "worse verdict"
    LESS_ACCURATE = "less accurate"
    SLOWER = "slower"
    GONE = "gone"
    NEW = "new"
    BETTER = "better verdict"
    MORE_ACCURATE = "more accurate"
    FASTER = "faster"

    @property
    def worse(self) -> bool:
        """Whether a change of this kind is a regression."""
        return self not in (Kind.NEW, Kind.BETTER, Kind.MORE_ACCURATE, Kind.FASTER)


@dataclass(frozen=True)
class Change:
    """One change of one record.

    Attributes
    ----------
    kind : Kind
    label, method : str
        The record: what was differentiated, and the method.
    old, new : str, float or None
        Verdicts, errors in ULP, seconds of a call.
    ratio : float or None
        New time over old time; from the samples, not from `old` and `new`.
    """

    kind: Kind
    label: str
    method: str
    old: str | float | None = None
    new: str | float | None = None
    ratio: float | None = None


@dataclass(frozen=True)
class Difference:
    """All changes, the worst first.

    Attributes
    ----------
    changes : tuple of Change
    compared : int
        Records that both sides have.
    timed : int
        Those of them whose times were compared.
    smallest_slowdown : float or None
        The ratio of new to old time from which a record is slower, the median of those; noise
        hides what is less. None if no times were compared.
    untimed : mapping
        Why times of the other compared records were not compared, and of how many.
    """

    changes: tuple[Change, ...]
    compared: int
    timed: int
    smallest_slowdown: float | None = None
    untimed: Mapping[str, int] = field(default_factory=dict)

    @property
    def worse(self) -> bool:
        """Whether anything is worse: wrong, less accurate, slower, gone, of another verdict."""
        return any(change.kind.worse for change in self.changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the schema ``difflab.diff/1``: strict JSON, non-finite numbers as strings."""
        return {
            "schema": SCHEMA,
            "worse": self.worse,
            "compared": self.compared,
            "timed": self.timed,
            "smallest_slowdown": self.smallest_slowdown,
            "untimed": dict(self.untimed),
            "changes": [
                {**strict(change), "kind": str(change.kind), "worse": change.kind.worse}
                for change in self.changes
            ],
        }

    def to_json(self) -> str:
        """Return `to_dict` as text."""
        return dumps(self.to_dict())


def difference(old: Side, new: Side) -> Difference:
    """Return the changes.

    A record is *wrong* if its verdict became ``disagree``, *less accurate* if its error in ULP grew
    at all, *slower* if the test of `difflab.lab.diff.sides` finds so. The level of the tests is
    shared among all records (Bonferroni), so that a false alarm of any of them is less likely than
    one per cent, and a change has to exceed the noise that most records show.

    Examples
    --------
    >>> difference({}, {}).worse
    False
    """
    both = [(old[key], new[key]) for key in old if key in new]
    changes = [change for pair in both for change in _results(*pair)]
    compared = [(pair, _time(*pair)) for pair in both]
    times = [(pair, change) for pair, change in compared if isinstance(change, TimeChange)]
    untimed = Counter(change for _, change in compared if isinstance(change, str))
    noise = spread([change for _, change in times])
    level = LEVEL / max(len(times), 1)
    smallest = [change.smallest(level, noise) for _, change in times]
    for (before, after), change in times:
        slower = change.slower(noise) < level
        if slower or change.faster(noise) < level:
            kind = Kind.SLOWER if slower else Kind.FASTER
            seconds = before.row.call_seconds, after.row.call_seconds
            changes.append(Change(kind, after.label, after.method, *seconds, change.ratio))
    changes += [
        Change(Kind.GONE, record.label, record.method, record.row.outcome)
        for key, record in old.items()
        if key not in new
    ]
    changes += [
        Change(Kind.NEW, record.label, record.method, None, record.row.outcome)
        for key, record in new.items()
        if key not in old
    ]
    kinds = list(Kind)
    changes.sort(key=lambda change: (kinds.index(change.kind), -(change.ratio or 0)))
    hidden = median(smallest) if smallest else None
    return Difference(tuple(changes), len(both), len(times), hidden, dict(untimed.most_common()))


def _results(old: Measured, new: Measured) -> Iterator[Change]:
    """Yield the change of the verdict and that of the error."""
    before, after = old.row.outcome, new.row.outcome
    if before != after:
        kind = Kind.VERDICT if _OUTCOMES.index(after) > _OUTCOMES.index(before) else Kind.BETTER
        kind = Kind.WRONG if after == "disagree" else kind
        yield Change(kind, new.label, new.method, before, after)
    first, second = old.row.ulps, new.row.ulps
    if first is not None and second is not None and first != second:
        kind = Kind.LESS_ACCURATE if second > first else Kind.MORE_ACCURATE
        yield Change(kind, new.label, new.method, first, second)


def _time(old: Measured, new: Measured) -> TimeChange | str:
    """Return the change of the time, or why there is none."""
    if not old.blocks or not new.blocks:
        which = "OLD" if new.blocks else "NEW" if old.blocks else "OLD and NEW"
        return f"no times in {which}"
    if old.cpu != new.cpu:
        return f"other processors: {old.cpu or 'unknown'} and {new.cpu or 'unknown'}"
    return time_change(old.blocks, new.blocks) or "too few undisturbed samples"
