"""Work that is done beside a program's calls, so that none of them waits for it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_TURN = threading.RLock()
"""Held by the thread that works: one at a time, and none while the process is copied by a fork."""
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


def _after_fork() -> None:
    """Forget threads, which a copy of the process has not."""
    _STARTED.clear()
    _TURN.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_TURN.release, after_in_child=_after_fork
    )
