"""The one engine of measurements: the works that a store lacks are computed and kept, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from time import monotonic, sleep
from typing import NamedTuple, Protocol, TypeVar

from difflab.lab.store import Owner, Record, Store

__all__ = ["POLL", "Done", "Left", "Pending", "Progress", "Work", "run", "unclaimed"]

POLL = 0.5  # seconds between two looks at works that another process has claimed


class Progress(Protocol):
    """Callback ``progress(done, total, label)``, called before every row."""

    def __call__(self, done: int, total: int, label: str) -> None:
        """Report that `done` of `total` rows are measured and `label` is next."""


class Work(Protocol):
    """What is computed at once: a case of a study, a row of a benchmark, a block of points."""

    @property
    def name(self) -> str:
        """The name by which a process claims it."""

    @property
    def label(self) -> str:
        """A readable description."""

    @property
    def record_keys(self) -> Collection[str]:
        """The keys of its records."""


class Pending(Protocol):
    """Records that may still be computed by another process."""

    def done(self) -> bool:
        """Whether `result` returns at once."""

    def result(self) -> Sequence[Record]:
        """Wait for the records, and return them."""


class Done(NamedTuple):
    """Records that are computed."""

    records: Sequence[Record]

    def done(self) -> bool:
        """Return True."""
        return True

    def result(self) -> Sequence[Record]:
        """Return the records."""
        return self.records


AnyWork = TypeVar("AnyWork", bound=Work)


class Left:
    """Progress over works, with a label that says when they end.

    The end is estimated from the records that have been added since, by whichever process.
    """

    def __init__(self, store: Store, works: Sequence[Work], progress: Progress | None) -> None:
        self._store = store
        self._keys = {key for work in works for key in work.record_keys}
        self._progress = progress
        self._began = monotonic()
        self._before = self.done()

    def done(self) -> int:
        """Return the number of records that the store has."""
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
    works: Sequence[AnyWork],
    notify: Callable[[str], None] | None = None,
    idle: Callable[[], None] = lambda: sleep(POLL),
) -> Iterator[tuple[AnyWork, list[str]]]:
    """Claim and yield the works of which records are missing, with the missing keys.

    Those that another process has claimed come last: each is claimed when that process ends
    without it, and `idle` is called until then.
    """
    pending, notified = list(works), False
    while pending:
        others = []
        for work in pending:
            missing = store.claim(owner, work.name, work.record_keys)
            if missing is None:
                others.append(work)
            elif missing:
                yield work, missing
        if others and len(others) == len(pending):
            if notify is not None and not notified:
                notify("another process computes the rest; waiting for it (Ctrl-C to stop)")
                notified = True
            idle()
        pending = others


def run(
    store: Store,
    works: Sequence[AnyWork],
    make: Callable[[AnyWork, Sequence[str]], Pending],
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
    *,
    ahead: int = 0,
) -> None:
    """Compute the records of works that the store lacks.

    The records of a work are written before further ones are computed, unless they are pending, so
    that an interruption costs what is being computed.

    Parameters
    ----------
    store : Store
        Where the records are kept. Other processes may compute into it at the same time.
    works : sequence of Work
        In the order in which they are computed.
    make : callable
        Called with a work and the keys that are missing; returns their records.
    progress : Progress, optional
        Called as ``progress(done, total, label)`` before each work.
    notify : callable, optional
        Called with one line of text if this waits for another process.
    ahead : int
        How many works may be pending while the next one is begun.
    """
    left = Left(store, works, progress)
    waiting: deque[tuple[AnyWork, Pending]] = deque()
    with store.owner() as owner:

        def keep() -> None:
            work, pending = waiting.popleft()
            store.add(owner, work.name, pending.result())

        for work, missing in unclaimed(store, owner, works, notify):
            left(work.label)
            waiting.append((work, make(work, missing)))
            while waiting and (waiting[0][1].done() or len(waiting) > ahead):
                keep()
        while waiting:
            left(waiting[0][0].label)
            keep()
    left()
