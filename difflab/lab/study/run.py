"""Running a study: the cases that a store lacks are judged, timed and written, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic, sleep

from difflab.lab.study.cases import THIS, Case
from difflab.lab.study.judging import Judged, Source, judged, keys, records, sources, to_time
from difflab.lab.study.store import Owner, Record, Store
from difflab.lab.study.study import Study
from difflab.lab.study.timing import Times, timed
from difflab.lab.study.versions import other_sources, records_of_version
from difflab.lab.sweep import Progress

__all__ = ["POLL", "Left", "Plan", "Work", "plan", "run", "unclaimed"]

POLL = 0.5  # seconds between two looks at cases that another process has claimed


@dataclass(frozen=True)
class Work:
    """A case with the keys of its records, by the name of the method."""

    case: Case
    keys: Mapping[str, str]


@dataclass(frozen=True)
class Plan:
    """A study with the keys of all its records, and what produces them."""

    study: Study
    works: Sequence[Work]
    sources: Mapping[str, Mapping[str, Source]]

    @property
    def keys(self) -> set[str]:
        """The keys of all records."""
        return {key for work in self.works for key in work.keys.values()}

    def records(self, work: Work, missing: Sequence[str]) -> list[Record]:
        """Compute the records of a case whose keys are `missing`."""
        wanted = {name: key for name, key in work.keys.items() if key in missing}
        case, known = work.case, self.sources[work.case.version]
        if case.version != THIS:
            interpreter = self.study.versions[case.version]
            return records_of_version(self.study.name, case, interpreter, wanted, known)
        found = judged(case, [*wanted])
        names = to_time(case, found)
        return self.made(work, found, timed(case, names) if names else {}, missing)

    def made(
        self, work: Work, found: Judged, times: Mapping[str, Times], missing: Sequence[str]
    ) -> list[Record]:
        """Return the records, whose keys are `missing`, of a case that was judged and timed."""
        wanted = {name: key for name, key in work.keys.items() if key in missing}
        known = self.sources[work.case.version]
        return records(self.study.name, work.case, found, times, wanted, known)


def plan(study: Study, here: Mapping[str, Source] | None = None) -> Plan:
    """Return the plan of a study; `here` is what produces its records, if not this process."""
    known: dict[str, Mapping[str, Source]] = {THIS: here or sources(study.cases)}
    for name, interpreter in study.versions.items():
        if any(case.version == name for case in study.cases):
            known[name] = other_sources(name, interpreter, study.cases)
    works = [Work(case, keys(case, known[case.version])) for case in study.cases]
    return Plan(study, works, known)


class Left:
    """What is left of a study, and when it ends: `progress` with a label that says so.

    The end is estimated from the records that have been added since, by whichever process.
    """

    def __init__(self, store: Store, plan: Plan, progress: Progress | None) -> None:
        self._store = store
        self._keys = plan.keys
        self._progress = progress
        self._began = monotonic()
        self._before = self.done()

    def done(self) -> int:
        """Return the number of records of the plan that the store has."""
        return len(self._store.known(self._keys))

    def __call__(self, label: str = "") -> None:
        """Report that `label` is next."""
        if self._progress is None:
            return
        done, total = self.done(), len(self._keys)
        added = done - self._before
        if added and done < total:
            label = (
                f"{_duration((monotonic() - self._began) / added * (total - done))} left: {label}"
            )
        self._progress(done, total, label)


def _duration(seconds: float) -> str:
    """Return a duration to the minute, or in seconds below two minutes.

    Examples
    --------
    >>> _duration(75), _duration(600), _duration(9000)
    ('75 s', '10 min', '2 h 30 min')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def unclaimed(
    store: Store,
    owner: Owner,
    works: Sequence[Work],
    notify: Callable[[str], None] = lambda _: None,
    idle: Callable[[], None] = lambda: sleep(POLL),
) -> Iterator[tuple[Work, list[str]]]:
    """Claim and yield the cases of which records are missing, with the missing keys.

    Those that another process has claimed come last: each is claimed when that process ends
    without it, and `idle` is called until then.
    """
    pending, notified = list(works), False
    while pending:
        others = []
        for work in pending:
            missing = store.claim(owner, work.case.key, work.keys.values())
            if missing is None:
                others.append(work)
            elif missing:
                yield work, missing
        if others and len(others) == len(pending):
            if not notified:
                notify("another process computes the rest; waiting for it (Ctrl-C to stop)")
                notified = True
            idle()
        pending = others


def run(
    store: Store,
    planned: Plan,
    progress: Progress | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> None:
    """Compute the records of a plan that the store lacks, in this process.

    Parameters
    ----------
    store : Store
        The file. Other processes may run the same or another study into it at the same time.
    planned : Plan
        The study.
    progress : Progress, optional
        Called as ``progress(done, total, label)`` before each case.
    notify : callable, optional
        Called with one line of text if this waits for another process.
    """
    left = Left(store, planned, progress)
    with store.owner() as owner:
        for work, missing in unclaimed(store, owner, planned.works, notify):
            left(work.case.label)
            store.add(owner, work.case.key, planned.records(work, missing))
    left()
