"""Running a study: the cases that a store lacks are judged, timed and written, one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from difflab.lab import engine
from difflab.lab.engine import Progress
from difflab.lab.study.cases import THIS, Case
from difflab.lab.study.judging import Judged, Source, judged, keys, records, sources, to_time
from difflab.lab.study.store import Record, Store
from difflab.lab.study.study import Study
from difflab.lab.study.timing import Times, timed
from difflab.lab.study.versions import other_sources, records_of_version

__all__ = ["Plan", "Work", "plan", "run"]


@dataclass(frozen=True)
class Work:
    """A case with the keys of its records, by the name of the method."""

    case: Case
    keys: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name by which the case is claimed."""
        return self.case.key

    @property
    def label(self) -> str:
        """A readable description of the case."""
        return self.case.label

    @property
    def record_keys(self) -> list[str]:
        """The keys of its records."""
        return [*self.keys.values()]


@dataclass(frozen=True)
class Plan:
    """A study with the keys of all its records, and what produces them."""

    study: Study
    works: Sequence[Work]
    sources: Mapping[str, Mapping[str, Source]]

    @property
    def keys(self) -> set[str]:
        """The keys of all records."""
        return {key for work in self.works for key in work.record_keys}

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
        lambda work, missing: engine.Done(planned.records(work, missing)),
        progress,
        notify,
    )
