"""Threads that share turns: an error or an interruption ends all of them."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from difflab.execute.workers import share_turns

MAIN = threading.main_thread()


def test_turns_are_taken_once_by_the_threads_together() -> None:
    taken: list[tuple[int, bool]] = []
    both = threading.Barrier(2)

    def work(turns: Iterator[int]) -> None:
        both.wait(600)
        taken.extend((turn, threading.current_thread() is MAIN) for turn in turns)

    share_turns(work, range(1000), 2)
    assert sorted(turn for turn, _ in taken) == list(range(1000))


@pytest.mark.parametrize("failing", ["this thread", "another thread"])
def test_a_failure_stops_the_work_of_other_threads(failing: str) -> None:
    stopped, left = threading.Event(), threading.Event()
    both = threading.Barrier(2)

    def work(turns: Iterator[int]) -> None:
        next(turns)
        both.wait(600)
        if (threading.current_thread() is MAIN) == (failing == "this thread"):
            raise ZeroDivisionError(failing)
        assert stopped.wait(600)
        assert list(turns) == []
        left.set()

    with pytest.raises(ZeroDivisionError, match=failing):
        share_turns(work, range(1000), 2, stopped.set)
    assert left.is_set()


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_an_interruption_while_this_thread_waits_stops_the_others() -> None:
    stopped, seen = threading.Event(), list[bool]()

    def work(turns: Iterator[int]) -> None:
        if threading.current_thread() is not MAIN:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            seen.append(stopped.wait(600))

    with pytest.raises(KeyboardInterrupt):
        share_turns(work, range(2), 2, stopped.set)
    assert seen == [True]


def test_an_interruption_while_threads_are_started_stops_those_that_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped, seen = threading.Event(), queue.SimpleQueue[bool]()
    submit = ThreadPoolExecutor.submit

    def interrupted(*args: Any) -> None:
        submit(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        share_turns(lambda turns: seen.put(stopped.wait(600)), range(2), 2, stopped.set)
    assert seen.get(timeout=600)


def test_shared_work_shares_nothing_further() -> None:
    threads: set[int] = set()

    def inner(turns: Iterator[int]) -> None:
        threads.update(threading.get_ident() for _ in turns)

    def outer(turns: Iterator[int]) -> None:
        for _ in turns:
            share_turns(inner, range(100), 8)

    share_turns(outer, range(4), 2)
    assert len(threads) <= 2
