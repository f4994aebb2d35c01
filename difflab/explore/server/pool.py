"""Processes with limits: one for each request, a few at a time."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from multiprocessing.connection import Connection
from threading import Lock
from time import monotonic
from typing import Any

from difflab.core.wording import bytes_text
from difflab.core.worker import limit_memory

WAITING = 400
"""Most requests that wait for a process."""
LOOK = 0.25
"""Seconds between two looks at a process that says nothing."""
ALONE = 10.0
"""Seconds after its time limit at which a process ends itself."""

CLOSED = {"stopped": "the server was stopped"}

Work = Callable[[Any, Callable[[dict[str, Any]], None]], None]
Left = Callable[[], Awaitable[bool]]


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
    closing : callable
        Called now and then; all work is stopped when it returns true.
    """

    def __init__(
        self,
        processes: int,
        seconds: float,
        memory: int,
        closing: Callable[[], bool] = lambda: False,
    ) -> None:
        self.seconds, self.memory, self.closing = seconds, memory, closing
        start_methods = multiprocessing.get_all_start_methods()
        self._context: Any = multiprocessing.get_context(
            "forkserver" if "forkserver" in start_methods else "spawn"
        )
        if "forkserver" in start_methods:
            self._context.set_forkserver_preload(["difflab.explore.server.app"])
        self._idle = asyncio.Semaphore(processes)
        self._waiting = 0

    async def results(
        self, work: Work, request: Any, left: Left | None = None
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yield the messages of `work`; ``{"stopped": …}`` says why it was stopped.

        Parameters
        ----------
        work, request
            What is run, and its argument.
        left : callable, optional
            Awaited now and then; the work is stopped when it returns true.
        """
        if self._waiting >= WAITING:
            yield {"stopped": "the server is busy; try again in a moment"}
            return
        self._waiting += 1
        try:
            await self._idle.acquire()
        finally:
            self._waiting -= 1
        if self.closing():
            self._idle.release()
            yield CLOSED
            return
        owned = OwnedProcess(self._context, work, request, self.memory, self.seconds)
        try:
            await asyncio.to_thread(owned.start)
            async with aclosing(self._messages(owned.receiver, left)) as messages:
                async for message in messages:
                    yield message
        finally:
            owned.end()  # at once: after a cancellation nothing can be awaited
            self._idle.release()

    async def _messages(
        self, receiver: Connection, left: Left | None
    ) -> AsyncGenerator[dict[str, Any]]:
        end = monotonic() + self.seconds
        while True:
            while not await asyncio.to_thread(receiver.poll, LOOK):
                if monotonic() > end:
                    yield {"stopped": f"this takes longer than {self.seconds:g} s"}
                    return
                if left is not None and await left():
                    return
                if self.closing():
                    yield CLOSED
                    return
            try:
                message = receiver.recv()
            except (EOFError, OSError):
                yield {"stopped": _out_of_memory(self.memory)}
                return
            if message is None:
                return
            yield message


class OwnedProcess:
    """A process that ends with its owner, also if that ends while a thread starts the process.

    Parameters
    ----------
    context : multiprocessing context
    work, request, memory, seconds
        What is run, its argument, the bytes that it may allocate, and its time.
    """

    def __init__(self, context: Any, work: Work, request: Any, memory: int, seconds: float) -> None:
        self.receiver, self._sender = context.Pipe(duplex=False)
        arguments = self._sender, work, request, memory, seconds
        # The interpreter ends a daemon at its own exit; others it waits for.
        self._process = context.Process(target=_perform, args=arguments, daemon=True)
        self._lock = Lock()
        self._started = self._ended = False

    def start(self) -> None:
        """Start the process; if `end` was called meanwhile, stop it again."""
        try:
            self._process.start()
        finally:
            self._sender.close()
        with self._lock:
            self._started = True
            if not self._ended:
                return
        _stop(self._process)

    def end(self) -> None:
        """Stop the process, or let the thread do so that is about to start it."""
        self.receiver.close()
        with self._lock:
            self._ended = True
            if not self._started:
                return
        _stop(self._process)


def _out_of_memory(memory: int) -> str:
    return f"this needs more than {bytes_text(memory)} of memory"


def _perform(sender: Connection, work: Work, request: Any, memory: int, seconds: float) -> None:
    """Do the work in this process and those that it starts, which end together."""
    if hasattr(os, "setsid"):
        os.setsid()
    if hasattr(signal, "setitimer"):  # in case that the server is killed
        signal.setitimer(signal.ITIMER_REAL, seconds + ALONE)
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
