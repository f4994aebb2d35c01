"""Running a study: the cases that a store lacks are judged, timed and written, one by one.

On a Dask cluster they are judged in parallel and timed alone on a core of its machine. A worker of
the resource ``judging`` compares one case at a time. A machine has one worker of the resource
``timing``, which owns a core: no other worker of this study runs there. Its cases are timed one
after the other, the methods of each in turns with the yardstick. The process that runs the study
is the only one that writes the store, so that a lost worker costs what it was computing.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from time import sleep
from typing import Any

from difflab.core.optional import require
from difflab.core.progress import Progress
from difflab.errors import InputError
from difflab.lab import engine
from difflab.lab.engine import POLL, Left, Work, unclaimed
from difflab.lab.environment import environment
from difflab.lab.record import Outcome, Status
from difflab.lab.store import Owner, Record
from difflab.lab.study.cases import THIS, StudyCase, StudyStore
from difflab.lab.study.judging import (
    JudgedCase,
    Source,
    Times,
    judged,
    keys,
    records,
    sources,
    timed,
    to_time,
)
from difflab.lab.study.study import Study
from difflab.lab.study.versions import other_sources, records_of_version


@dataclass(frozen=True)
class Plan:
    """A study with the keys of all its records, and their provenance."""

    study: Study
    works: Sequence[Work[StudyCase]]
    sources: Mapping[str, Mapping[str, Source]]

    @property
    def keys(self) -> set[str]:
        """The keys of all records."""
        return {key for work in self.works for key in work.keys.values()}

    def records(self, case: StudyCase, wanted: Mapping[str, str]) -> list[Record]:
        """Compute the records `wanted` of a case, a mapping of methods to keys."""
        if case.version != THIS:
            interpreter, provenance = self.study.versions[case.version], self.sources[case.version]
            return records_of_version(self.study.name, case, interpreter, wanted, provenance)
        result = judged(case, [*wanted])
        names = to_time(case, result)
        return self.made(case, result, timed(case, names) if names else {}, wanted)

    def made(
        self,
        case: StudyCase,
        result: JudgedCase,
        times: Mapping[str, Times],
        wanted: Mapping[str, str],
    ) -> list[Record]:
        """Return the records `wanted` of a case that was judged and timed."""
        provenance = self.sources[case.version]
        return records(self.study.name, case, result, times, wanted, provenance)


def plan(study: Study, here: Mapping[str, Source] | None = None) -> Plan:
    """Return the plan of a study; `here` is the source of its records, if not this process's."""
    provenance: dict[str, Mapping[str, Source]] = {THIS: here or sources(study.cases)}
    for name, interpreter in study.versions.items():
        if any(case.version == name for case in study.cases):
            provenance[name] = other_sources(name, interpreter, study.cases)
    works = [
        Work(case, case.key, case.label, keys(case, provenance[case.version]))
        for case in study.cases
    ]
    return Plan(study, works, provenance)


def run(
    store: StudyStore,
    planned: Plan,
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
) -> None:
    """Compute the records of a plan that the store lacks, in this process.

    Parameters
    ----------
    store : StudyStore
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


# --- on a Dask cluster ------------------------------------------------------------------------

_LOST = Outcome(Status.FAILED, "the workers that compared it died, one after the other")

_JUDGING, _TIMING = {"judging": 1}, {"timing": 1}
_LOSSES = 10  # workers that may die with one case before it is given up
_HERE = "127.0.0.1"
_SILENT = 50  # logging.CRITICAL: progress is the study's own
_SCHEDULER = {"dashboard_address": None, "host": _HERE, "allowed_failures": _LOSSES}
_START = 120.0  # seconds for the workers to start
CORES = "DIFFLAB_STUDY_CORES"
"""The environment variable that names the cores of a worker, as 0,2."""


@contextmanager
def opened(workers: int | None, scheduler: str | None) -> Iterator[Cluster]:
    """Start a local cluster of processes, or connect to a running one.

    Parameters
    ----------
    workers : int or None
        Processes that judge. One more times, with a core of its own where there are several.
    scheduler : str or None
        The address of a scheduler. Its workers were started with ``--resources judging=1`` or,
        one on each machine, ``--resources timing=1``.

    Raises
    ------
    InputError
        The scheduler does not answer, or has no workers with these resources.
    MissingDependencyError
        Dask's package distributed is not installed.
    """
    distributed = require("distributed", extra="dask")
    if workers is not None and scheduler is not None:
        raise InputError("a local cluster and a scheduler were both named", hint="leave one out")
    if scheduler is None:
        specification = _local(distributed, workers or 1)
        with (
            distributed.SpecCluster(
                scheduler={"cls": distributed.Scheduler, "options": _SCHEDULER},
                workers=specification,
                silence_logs=_SILENT,
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            client.wait_for_workers(len(specification), timeout=_START)
            yield Cluster(client, distributed)
        return
    try:
        client = distributed.Client(scheduler, timeout=10, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"no scheduler answers at {scheduler!r}: {error}", hint="start one: dask scheduler"
        ) from error
    with client:
        yield Cluster(client, distributed)


def _local(distributed: Any, workers: int) -> dict[str, Any]:
    """Return the workers of a local cluster: the last core is that of the timing worker."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    alone, shared = cores[-1:], cores[:-1] or cores
    kinds = {f"judging-{k}": (_JUDGING, shared) for k in range(workers)}
    kinds["timing"] = (_TIMING, alone)
    return {
        name: {
            "cls": distributed.Nanny,
            "options": {
                "nthreads": 1,
                "resources": resources,
                "preload": [__name__],
                "env": {CORES: ",".join(map(str, cores))},
                "host": _HERE,
                "silence_logs": _SILENT,
            },
        }
        for name, (resources, cores) in kinds.items()
    }


def dask_setup(worker: Any) -> None:
    """Pin a worker to its cores, where the system can do that, and leave Ctrl-C to the study.

    The environment is read before, since its number of threads is that of the machine: it
    belongs to the key of a record, which does not depend on who computes it.
    """
    environment()
    cores = os.environ.get(CORES, "")
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, map(int, cores.split(",")))
    with suppress(ValueError):  # only the main thread may set a signal handler
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@dataclass
class Cluster:
    """A connected cluster.

    Attributes
    ----------
    client : distributed.Client
        The connection.
    distributed : module
        Dask's package.
    """

    client: Any
    distributed: Any

    def sources(self, cases: Sequence[StudyCase]) -> Mapping[str, Source]:
        """Return the provenance of the cluster's records, by method.

        Raises
        ------
        InputError
            The workers have other versions than this process or than each other, other processors,
            or not the resources for judging and timing.
        """
        details = self.client.scheduler_info()["workers"]
        for kind in (_JUDGING, _TIMING):
            if not any(kind.items() <= worker["resources"].items() for worker in details.values()):
                (name,) = kind
                raise InputError(
                    f"no worker of the cluster has the resource {name!r}",
                    hint=f"dask worker ADDRESS --nthreads 1 --resources {name}=1",
                )
        here = sources(cases)
        for address, provenance in self.client.run(sources, cases).items():
            for method, source in provenance.items():
                for column, value in source.items():
                    if value != here[method][column]:
                        raise InputError(
                            f"the worker {address} has another {column} ({value}) than this "
                            f"process ({here[method][column]}): their records would differ",
                            hint="give all machines the same environment and processor",
                        )
        return here

    def run(
        self,
        store: StudyStore,
        planned: Plan,
        progress: Progress | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        """Compute the records of a plan that the store lacks, on the cluster.

        The arguments are those of `difflab.lab.study.run.run`.
        """
        left = Left(store, planned.works, progress)
        most = 2 * len(self.client.scheduler_info()["workers"])
        with store.owner() as owner:
            flow = _Flow(self, store, owner, planned)
            for work, missing in unclaimed(store, owner, planned.works, notify, flow.idle):
                left(work.label)
                flow.begin(work, missing)
                while flow.underway >= most:
                    flow.step()
            while flow.underway:
                left(flow.next_label)
                flow.step()
        left()


_State = tuple[Work[StudyCase], Mapping[str, str], JudgedCase | None]


class _Flow:
    """Cases on their way: judged, then timed, then written."""

    def __init__(self, cluster: Cluster, store: StudyStore, owner: Owner, planned: Plan) -> None:
        self._cluster = cluster
        self._store = store
        self._owner = owner
        self._planned = planned
        self._completed = cluster.distributed.as_completed(loop=cluster.client.loop)
        self._cases: dict[str, _State] = {}

    @property
    def underway(self) -> int:
        """The number of cases that are judged or timed."""
        return len(self._cases)

    @property
    def next_label(self) -> str:
        """The label of the case that was begun first."""
        work, _, _ = next(iter(self._cases.values()))
        return work.label

    def idle(self) -> None:
        """Collect results while other processes compute the remaining cases."""
        if self.underway:
            self.step()
        else:
            sleep(POLL)

    def begin(self, work: Work[StudyCase], missing: Mapping[str, str]) -> None:
        """Send a case to be judged; another version of difflab runs in this process."""
        if work.subject.version != THIS:
            self._store.add(self._owner, work.name, self._planned.records(work.subject, missing))
            return
        self._send(judged, (work.subject, [*missing]), _JUDGING, (work, missing, None))

    def step(self) -> None:
        """Wait for one result; pass it on to be timed, or write it."""
        future = next(self._completed)
        work, missing, result = self._cases.pop(future.key)
        times: Mapping[str, Times] = {}
        if result is None:
            result = self._result(future, JudgedCase(None, _LOST))
            names = to_time(work.subject, result)
            if names:
                self._send(timed, (work.subject, names), _TIMING, (work, missing, result))
                return
        else:
            times = self._result(future, times)
        records = self._planned.made(work.subject, result, times, missing)
        self._store.add(self._owner, work.name, records)

    def _result(self, future: Any, lost: Any) -> Any:
        """Return the result of a future, or `lost` if its case has ended too many workers."""
        try:
            return future.result()
        except self._cluster.distributed.scheduler.KilledWorker:
            return lost
        except (CancelledError, OSError) as error:
            raise InputError(
                f"the cluster was lost: {error}",
                hint="the records are kept; run the same command again",
            ) from error

    def _send(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        resources: Mapping[str, int],
        state: _State,
    ) -> None:
        future = self._cluster.client.submit(function, *arguments, resources=resources, pure=False)
        self._cases[future.key] = state
        self._completed.add(future)
