"""Threads: those that share the blocks of a batch, and one for work beside the calls."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# --- the blocks of a batch -----------------------------------------------------------------------

_pools: dict[int, ThreadPoolExecutor] = {}
_thread = threading.local()  # its `shares` is true while the thread runs shared work


def available() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def share_turns(
    work: Callable[[Iterator[int]], None],
    indices: Iterable[int],
    threads: int,
    stop: Callable[[], None] = lambda: None,
) -> None:
    """Run `work` on threads, each with an iterator; one of them returns each iteration's index.

    Work that is part of shared work runs on its own thread only. If one thread fails, or this one
    is interrupted, also while it waits for the others, the iterators end and `stop` is called,
    which ends iterations that would not end by themselves: a running thread keeps the process.

    Examples
    --------
    >>> done = []
    >>> share_turns(lambda turns: done.extend(turns), range(100), 2)
    >>> sorted(done) == list(range(100))
    True
    """
    pending = iter(indices)
    stopped: list[bool] = []

    def own() -> Iterator[int]:
        for index in pending:
            if stopped:
                return
            yield index

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


# --- work beside the calls, so that none of them waits for it ------------------------------------

_TURN = threading.RLock()
"""Held by the thread that works: one at a time, and none while the process is copied by a fork."""
PLANNING = threading.RLock()
"""Held by the thread that plans a function, while another thread may call it; by no copy."""
_STARTED: list[threading.Thread] = []
_SECONDS = 2e-4
"""Seconds after which threads of Python take turns during the work, instead of 5 ms.

Calls wait for the interpreter less long, and the work, which gives it away at each file that it
reads and each call of LLVM, ends several times sooner.
"""


def begin(work: Callable[[], object]) -> None:
    """Do work in a thread, which an interpreter that exits waits for; nothing if it has none left.

    Whatever the work raises is dropped: calls go on without it.
    """

    def turn() -> None:
        try:
            with _TURN, _short_turns():
                work()
        except Exception:  # a broken library, or no memory: nobody waits for this
            pass
        finally:
            _STARTED.remove(thread)

    thread = threading.Thread(target=turn, name="difflab")
    _STARTED.append(thread)
    try:
        thread.start()
    except RuntimeError:  # the interpreter exits, or has no threads
        _STARTED.remove(thread)


@contextmanager
def _short_turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _SECONDS))
    during = sys.getswitchinterval()
    try:
        yield
    finally:
        if sys.getswitchinterval() == during:  # else the program has set it meanwhile
            sys.setswitchinterval(before)


def finish() -> None:
    """Wait until all work that was begun is done."""
    for thread in _STARTED.copy():
        if thread is not threading.current_thread():
            thread.join()


def _before_fork() -> None:
    finish()  # a copy of a process with threads may hang in locks of other libraries
    _TURN.acquire()
    PLANNING.acquire()


def _released() -> None:
    PLANNING.release()
    _TURN.release()


def _after_fork() -> None:
    """Forget threads, which a copy of the process has not, and the pools of them."""
    _pools.clear()
    _STARTED.clear()
    _released()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_released, after_in_child=_after_fork)
