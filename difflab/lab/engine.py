"""The one engine of measurements: the works that a store lacks are computed and kept, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any, Generic, TypeVar

from difflab.core.progress import Progress
from difflab.lab.store import Owner, Record, Store

POLL = 0.5  # seconds between two looks at works that another process has claimed
_FEW = 1000  # keys that are looked for at every report


Subject = TypeVar("Subject")


@dataclass(frozen=True)
class Work(Generic[Subject]):
    """Unit of work: a case of a study, a row of a benchmark, a block of points.

    Attributes
    ----------
    subject : object
        What it is.
    name : str
        The name by which a process claims it.
    label : str
        A readable description.
    keys : mapping of str to str
        The keys of its records, each by a name among the records of the work.
    """

    subject: Subject
    name: str
    label: str
    keys: Mapping[str, str]


class Left:
    """Progress over works, with a label that says when they end.

    The end is estimated from the records that have been added since, by whichever process.
    """

    def __init__(self, store: Store, works: Sequence[Work[Any]], progress: Progress | None) -> None:
        self._store = store
        self._missing = {key for work in works for key in work.keys.values()}
        self._total = len(self._missing)
        self._progress = progress
        self._began = monotonic()
        self._before = self._counted()

    def _counted(self) -> int:
        """Return the number of records that the store has."""
        self._missing -= self._store.known(self._missing)
        self._looked = monotonic()
        return self._total - len(self._missing)

    def __call__(self, label: str = "") -> None:
        """Report that `label` is next; without one, that this is the end."""
        if self._progress is None:
            return
        done, total = self._total - len(self._missing), self._total
        # To look for thousands of keys takes milliseconds: once a second, not once a row.
        if not label or len(self._missing) <= _FEW or monotonic() - self._looked > 1:
            done = self._counted()
        added = done - self._before
        seconds = (monotonic() - self._began) * (total - done) / added if added else 0.0
        if seconds >= 1:
            label = f"{_duration(seconds)} left: {label}"
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
    works: Sequence[Work[Subject]],
    notify: Callable[[str], None] | None = None,
    idle: Callable[[], None] = lambda: sleep(POLL),
) -> Iterator[tuple[Work[Subject], dict[str, str]]]:
    """Claim and yield the works of which records are missing, with the missing keys.

    Those that another process has claimed come last: each is claimed when that process ends
    without it, and `idle` is called until then.
    """
    pending, notified = list(works), False
    while pending:
        others = []
        for work in pending:
            missing = store.claim(owner, work.name, work.keys.values())
            if missing is None:
                others.append(work)
            elif missing:
                yield work, {name: key for name, key in work.keys.items() if key in missing}
        if others and len(others) == len(pending):
            if notify is not None and not notified:
                notify("another process computes the rest; waiting for it (Ctrl-C to stop)")
                notified = True
            idle()
        pending = others


def run(
    store: Store,
    works: Sequence[Work[Subject]],
    make: Callable[[Work[Subject], Mapping[str, str]], Callable[[], Sequence[Record]]],
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
    *,
    ahead: int = 0,
) -> None:
    """Compute the records of works that the store lacks.

    The records of a work are written before the next one is begun, or `ahead` works later, so that
    an interruption costs what is being computed.

    Parameters
    ----------
    store : Store
        Where the records are kept. Other processes may compute into it at the same time.
    works : sequence of Work
        In the order in which they are computed.
    make : callable
        Called with a work and the keys that are missing; returns a callable that returns, or waits
        for, their records.
    progress : Progress, optional
        Called as ``progress(done, total, label)`` before each work.
    notify : callable, optional
        Called with one line of text if this waits for another process.
    ahead : int
        How many works are begun before the first one is waited for.
    """
    left = Left(store, works, progress)
    waiting: deque[tuple[Work[Subject], Callable[[], Sequence[Record]]]] = deque()
    with store.owner() as owner:

        def keep(most: int) -> None:
            while len(waiting) > most:
                work, records = waiting.popleft()
                store.add(owner, work.name, records())

        for work, missing in unclaimed(store, owner, works, notify):
            left(work.label)
            waiting.append((work, make(work, missing)))
            keep(ahead)
        if waiting:
            left("the last results")
        keep(0)
    left()
