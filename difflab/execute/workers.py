"""Threads that share the blocks of a batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from threading import local
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["available", "share_out", "share_turns"]

_pools: dict[int, ThreadPoolExecutor] = {}
_thread = local()  # its `shares` is true while the thread runs shared work


def available() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def share_out(work: Callable[[], None], threads: int) -> None:
    """Run `work` on this thread and on ``threads - 1`` others, until all have returned.

    Work that is part of shared work runs on its own thread only.

    Examples
    --------
    >>> done = []
    >>> share_out(lambda: done.append(1), 3)
    >>> done
    [1, 1, 1]
    """
    if threads <= 1 or getattr(_thread, "shares", False):
        work()
        return
    pool = _pools.get(threads)
    if pool is None:
        from concurrent.futures import ThreadPoolExecutor

        pool = _pools.setdefault(threads, ThreadPoolExecutor(threads - 1, "difflab"))
    others = [pool.submit(_shared, work) for _ in range(threads - 1)]
    try:
        _shared(work)
    finally:
        for other in others:
            other.result()


def share_turns(work: Callable[[Iterator[int]], None], turns: Iterable[int], threads: int) -> None:
    """Run `work` on threads, each with an iterator; every turn is returned by one of them.

    An error on one thread ends the iterators of the others.

    Examples
    --------
    >>> done = []
    >>> share_turns(lambda turns: done.extend(turns), range(100), 2)
    >>> sorted(done) == list(range(100))
    True
    """
    pending = iter(turns)
    stopped: list[bool] = []

    def own() -> Iterator[int]:
        for turn in pending:
            if stopped:
                return
            yield turn

    def run() -> None:
        try:
            work(own())
        except BaseException:
            stopped.append(True)
            raise

    share_out(run, threads)


def _shared(work: Callable[[], None]) -> None:
    """Run work that other threads run as well."""
    _thread.shares = True
    try:
        work()
    finally:
        _thread.shares = False


if hasattr(os, "register_at_fork"):
    # A forked process has the pools but none of their threads.
    os.register_at_fork(after_in_child=_pools.clear)
