"""Threads that share the blocks of a batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from threading import local
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor


_pools: dict[int, ThreadPoolExecutor] = {}
_thread = local()  # its `shares` is true while the thread runs shared work


def available() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def share_turns(
    work: Callable[[Iterator[int]], None],
    turns: Iterable[int],
    threads: int,
    stop: Callable[[], None] = lambda: None,
) -> None:
    """Run `work` on threads, each with an iterator; every turn is returned by one of them.

    Work that is part of shared work runs on its own thread only. If one thread fails, or this one
    is interrupted, also while it waits for the others, the iterators end and `stop` is called,
    which ends turns that would not end by themselves: a thread that runs on keeps the process.

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
        _thread.shares = True
        try:
            work(own())
        except BaseException:
            stop_all()
            raise
        finally:
            _thread.shares = False

    def stop_all() -> None:
        stopped.append(True)
        stop()

    if threads <= 1 or getattr(_thread, "shares", False):
        work(pending)
    else:
        _run_on_all(run, threads, stop_all)


def _run_on_all(run: Callable[[], None], threads: int, stop: Callable[[], None]) -> None:
    """Run code on this thread and on ``threads - 1`` others, until all have returned."""
    from concurrent.futures import ThreadPoolExecutor, wait

    others: list[Future[None]] = []
    try:
        pool = _pools.get(threads)
        if pool is None:
            pool = _pools.setdefault(threads, ThreadPoolExecutor(threads - 1, "difflab"))
        others.extend(pool.submit(run) for _ in range(threads - 1))
        run()
        for other in others:
            other.result()
    except BaseException:
        stop()
        wait(others)
        raise


if hasattr(os, "register_at_fork"):
    # A forked process has the pools but none of their threads.
    os.register_at_fork(after_in_child=_pools.clear)
