"""Processes with limits: one for each request, a few at a time."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from time import monotonic
from typing import Any

from difflab.core.quantities import bytes_text
from difflab.core.worker import limit_memory

__all__ = ["Pool"]

WAITING = 400
"""Most requests that wait for a process."""
LOOK = 0.25
"""Seconds between two looks at a process that says nothing."""

Work = Callable[[Any, Callable[[dict[str, Any]], None]], None]


class Pool:
    """Runs work in processes that are stopped at a limit.

    Parameters
    ----------
    processes : int
        How many run at the same time.
    seconds : float
        The time of one.
    memory : int
        The bytes that one may allocate.
    """

    def __init__(self, processes: int, seconds: float, memory: int) -> None:
        self.seconds, self.memory = seconds, memory
        known = multiprocessing.get_all_start_methods()
        self._context: Any = multiprocessing.get_context(
            "forkserver" if "forkserver" in known else "spawn"
        )
        if "forkserver" in known:
            self._context.set_forkserver_preload(["difflab.explore.server.work"])
        self._places = asyncio.Semaphore(processes)
        self._waiting = 0

    async def results(self, work: Work, request: Any) -> AsyncIterator[dict[str, Any]]:
        """Yield what `work` sends; ``{"stopped": …}`` says why it was stopped."""
        if self._waiting >= WAITING:
            yield {"stopped": "the server is busy; try again in a moment"}
            return
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
        try:
            async for message in self._run(work, request):
                yield message
        finally:
            self._places.release()

    async def _run(self, work: Work, request: Any) -> AsyncIterator[dict[str, Any]]:
        receiver, sender = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_perform, args=(sender, work, request, self.memory))
        await asyncio.to_thread(process.start)
        sender.close()
        end = monotonic() + self.seconds
        try:
            while True:
                while not await asyncio.to_thread(receiver.poll, LOOK):
                    if monotonic() > end:
                        yield {"stopped": f"this takes longer than {self.seconds:g} s"}
                        return
                try:
                    message = receiver.recv()
                except (EOFError, OSError):
                    yield {"stopped": _out_of_memory(self.memory)}
                    return
                if message is None:
                    return
                yield message
        finally:
            _stop(process)  # at once: after a cancellation nothing can be awaited
            receiver.close()


def _out_of_memory(memory: int) -> str:
    return f"this needs more than {bytes_text(memory)} of memory"


def _perform(sender: Connection, work: Work, request: Any, memory: int) -> None:
    """Do the work in this process and those that it starts, which end together."""
    if hasattr(os, "setsid"):
        os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limit_memory(memory)
    with suppress(BrokenPipeError):  # the server has stopped
        try:
            work(request, sender.send)
        except MemoryError:
            sender.send({"stopped": _out_of_memory(memory)})
        sender.send(None)


def _stop(process: Any) -> None:
    """End a process and those that it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()
    process.close()
