"""Processes with limits: work that is slow, greedy or broken is stopped, with the reason."""

import asyncio
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from difflab.explore.server import pool
from difflab.explore.server.pool import OwnedProcess, Pool

Send = Callable[[dict[str, Any]], None]
Started = Callable[[], set[Any]]
GIGABYTE = 1 << 30


@pytest.fixture
def started() -> Started:
    """The processes that a test has started and not ended; peers of others have left their own."""
    before = set(multiprocessing.active_children())
    return lambda: set(multiprocessing.active_children()) - before


def counting(request: int, send: Send) -> None:
    for number in range(request):
        send({"number": number})


def sleeping(request: float, send: Send) -> None:
    send({"asleep": os.getpid()})
    time.sleep(request)


def greedy(request: int, send: Send) -> None:
    send({"length": len(bytearray(request))})


def killed(request: None, send: Send) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def collected(pool: Pool, work: Any, request: Any) -> list[dict[str, Any]]:
    return [message async for message in pool.results(work, request)]


def results(work: Any, request: Any) -> list[dict[str, Any]]:
    async def main() -> list[dict[str, Any]]:
        return await collected(Pool(2, 600.0, GIGABYTE), work, request)

    return asyncio.run(main())


def test_messages_arrive_in_order() -> None:
    assert [message["number"] for message in results(counting, 5)] == list(range(5))


def test_slow_work_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(pool, "monotonic", lambda: now)

    async def main() -> list[dict[str, Any]]:
        nonlocal now
        found = []
        async for message in Pool(2, 10.0, GIGABYTE).results(sleeping, 600.0):
            found.append(message)
            now += 10.5
        return found

    first, last = asyncio.run(main())
    assert last == {"stopped": "this takes longer than 10 s"}
    with pytest.raises(ProcessLookupError):
        os.kill(first["asleep"], 0)


def test_memory_is_limited() -> None:
    assert results(greedy, 1000) == [{"length": 1000}]
    assert results(greedy, 8 * GIGABYTE) == [{"stopped": "this needs more than 1 GiB of memory"}]


def test_a_process_that_is_killed_is_noticed() -> None:
    (message,) = results(killed, None)
    assert "memory" in message["stopped"]


def test_what_waits_gets_its_turn() -> None:
    async def main() -> list[list[dict[str, Any]]]:
        two = Pool(2, 600.0, GIGABYTE)
        return await asyncio.gather(*(collected(two, counting, 2) for _ in range(6)))

    assert asyncio.run(main()) == [[{"number": 0}, {"number": 1}]] * 6


# --- every process has an owner ------------------------------------------------------------------


def test_whoever_leaves_leaves_nothing(rng: np.random.Generator, started: Started) -> None:
    delays = rng.uniform(0.0, 0.4, 60).tolist()
    delays[:10] = [0.0] * 10
    places = Pool(3, 600.0, GIGABYTE)

    async def left(delay: float) -> None:
        task = asyncio.create_task(collected(places, sleeping, 600.0))
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def main() -> list[dict[str, Any]]:
        await asyncio.gather(*map(left, delays))
        return await collected(places, counting, 1)  # all have released their place

    assert asyncio.run(main()) == [{"number": 0}]
    assert not started()


def test_a_process_whose_owner_left_while_it_started_is_stopped(
    monkeypatch: pytest.MonkeyPatch, started: Started
) -> None:
    context = multiprocessing.get_context("spawn")
    owned = OwnedProcess(context, sleeping, 600.0, GIGABYTE, 600.0)
    process = owned._process
    start, begun, go = type(process).start, Event(), Event()

    def slow(process: Any) -> None:
        begun.set()
        go.wait()
        start(process)

    monkeypatch.setattr(type(process), "start", slow)
    thread = Thread(target=owned.start)
    thread.start()
    begun.wait()
    owned.end()
    go.set()
    thread.join()
    assert not started()
    with pytest.raises(ValueError, match="closed"):
        process.is_alive()


def test_work_is_stopped_when_nobody_listens() -> None:
    found: list[dict[str, Any]] = []

    async def left() -> bool:
        return bool(found)

    async def main() -> None:
        async for message in Pool(1, 600.0, GIGABYTE).results(sleeping, 600.0, left):
            found.append(message)  # noqa: PERF401 - `left` reads it

    asyncio.run(main())
    (message,) = found
    with pytest.raises(ProcessLookupError):
        os.kill(message["asleep"], 0)


def test_what_runs_and_what_waits_ends_when_the_server_closes(started: Started) -> None:
    running = Pool(1, 600.0, GIGABYTE, closing=lambda: True)

    async def main() -> list[list[dict[str, Any]]]:
        return await asyncio.gather(*(collected(running, sleeping, 600.0) for _ in range(3)))

    assert asyncio.run(main()) == [[pool.CLOSED]] * 3
    assert not started()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no alarm on this system")
def test_a_process_ends_itself_after_its_time() -> None:
    context = multiprocessing.get_context("spawn")
    owned = OwnedProcess(context, sleeping, 600.0, GIGABYTE, 1.0 - pool.ALONE)
    owned.start()
    process = owned._process
    process.join(300)
    assert process.exitcode == -signal.SIGALRM
    owned.end()
