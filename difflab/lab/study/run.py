"""Running a study: the cases that a store lacks are judged, timed and written, one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from difflab.core.progress import Progress
from difflab.lab import engine
from difflab.lab.engine import Work
from difflab.lab.study.cases import THIS, Case
from difflab.lab.study.judging import Judged, Source, judged, keys, records, sources, to_time
from difflab.lab.study.store import Record, Store
from difflab.lab.study.study import Study
from difflab.lab.study.timing import Times, timed
from difflab.lab.study.versions import other_sources, records_of_version


@dataclass(frozen=True)
class Plan:
    """A study with the keys of all its records, and their provenance."""

    study: Study
    works: Sequence[Work[Case]]
    sources: Mapping[str, Mapping[str, Source]]

    @property
    def keys(self) -> set[str]:
        """The keys of all records."""
        return {key for work in self.works for key in work.keys.values()}

    def records(self, case: Case, wanted: Mapping[str, str]) -> list[Record]:
        """Compute the records `wanted` of a case, a mapping of methods to keys."""
        if case.version != THIS:
            interpreter, known = self.study.versions[case.version], self.sources[case.version]
            return records_of_version(self.study.name, case, interpreter, wanted, known)
        found = judged(case, [*wanted])
        names = to_time(case, found)
        return self.made(case, found, timed(case, names) if names else {}, wanted)

    def made(
        self, case: Case, found: Judged, times: Mapping[str, Times], wanted: Mapping[str, str]
    ) -> list[Record]:
        """Return the records `wanted` of a case that was judged and timed."""
        known = self.sources[case.version]
        return records(self.study.name, case, found, times, wanted, known)


def plan(study: Study, here: Mapping[str, Source] | None = None) -> Plan:
    """Return the plan of a study; `here` is the source of its records, if not this process's."""
    known: dict[str, Mapping[str, Source]] = {THIS: here or sources(study.cases)}
    for name, interpreter in study.versions.items():
        if any(case.version == name for case in study.cases):
            known[name] = other_sources(name, interpreter, study.cases)
    works = [
        Work(case, case.key, case.label, keys(case, known[case.version])) for case in study.cases
    ]
    return Plan(study, works, known)


def run(
    store: Store,
    planned: Plan,
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
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
    engine.run(
        store,
        planned.works,
        lambda work, missing: partial(planned.records, work.subject, missing),
        progress,
        notify,
    )
