"""A method's own process, which answers requests and can be stopped whatever it is doing.

`Worker` is the parent's end of the pipe and `serve` the child's. The child is a new Python process
that imports one module; unlike `multiprocessing`'s, it never runs the caller's script again, so
that scripts need no ``if __name__ == "__main__"``. It exits with its parent: one of its threads
reads the pipe, and end of file ends the process. Only the parent receives Ctrl-C.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from time import monotonic
from typing import Any, BinaryIO, Protocol, Self

from difflab.errors import DifflabError, MethodTimeout, UnsupportedError, described

STARTING = 60.0  # seconds after which a process that does not answer is considered not started
STACK_BYTES = 256 << 20  # virtual; for libraries that recurse where difflab would not
RECURSION = 50_000
_CLOSING = 5.0  # seconds between the end of the pipe and the exit of the process
_GONE = ("gone", None)


class ReportProgress(Protocol):
    """Callable that reports the progress of a request to the parent."""

    def __call__(self, progress: str) -> None:
        """Send `progress`."""


Handlers = dict[str, Callable[..., Any]]


class WorkerDied(DifflabError):
    """The process ended unexpectedly; the message says how."""


class UnsentError(DifflabError):
    """A request that cannot be pickled: it was not sent, and the process waits for another."""


# Exceptions are sent as text: unpickling another package's class would import it here.
_RAISED: dict[str, type[DifflabError]] = {
    "unsupported": UnsupportedError,
    "timeout": MethodTimeout,
    "failed": DifflabError,
}


class Worker:
    """A process that imports `module` and answers requests, one at a time.

    Parameters
    ----------
    module : str
        A module with ``handlers(report, *arguments) -> dict``, a mapping from names of requests
        to callables. Only the child imports it.
    *arguments : str
        Further arguments of `handlers`.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        command = f"from {__name__} import serve; serve{(module, *arguments)!r}"
        self._process = Popen(
            [sys.executable, "-P", "-c", command],
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env=_environment(),
            start_new_session=True,
        )
        self._replies: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._lock = threading.Lock()
        self._ready = False
        self._owner = os.getpid()
        # Nothing here may refer to `self`, or the finalizer would keep it alive.
        listener = threading.Thread(
            target=_listen, args=(self._process.stdout, self._replies.put), daemon=True
        )
        listener.start()
        self._stop = weakref.finalize(self, _stop, self._owner, self._process, listener)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.stop()

    @property
    def alive(self) -> bool:
        """Whether requests can be sent; a copy of this object in a forked process is not alive."""
        mine = self._owner == os.getpid()
        return mine and self._stop.alive and self._process.poll() is None

    def stop(self) -> None:
        """End the process, whatever it is doing, and wait until it is gone."""
        self._stop()

    def request(
        self, name: str, *arguments: Any, timeout: float, limit: float | None = None
    ) -> Any:
        """Send the request `name` and return the answer.

        Parameters
        ----------
        name : str
            A key of the module's `handlers`.
        *arguments : object
            Arguments of the request, which are pickled.
        timeout : float
            Seconds until the process is stopped, not counting its start.
        limit : float, optional
            The limit stated in messages, if `timeout` is only the rest of it.

        Raises
        ------
        MethodTimeout
            It took longer than `timeout` seconds, or exceeded its memory limit; the process is
            stopped, and the message states its progress.
        WorkerDied
            The process ended.
        DifflabError
            The request raised an exception.
        """
        with self._lock:
            try:
                return self._exchange(name, arguments, timeout, limit or timeout)
            except BaseException as error:
                answered = isinstance(error, DifflabError)
                if not answered or isinstance(error, MethodTimeout | WorkerDied):
                    self.stop()  # its late answer must not be mistaken for the next request's
                raise

    def wait(self) -> None:
        """Wait until the process has started, `STARTING` seconds at most.

        Raises
        ------
        MethodTimeout
            It has not started; it is stopped.
        WorkerDied, DifflabError
            It ended, or its module cannot be imported.
        """
        if self._ready:
            return
        try:
            self._receive(STARTING, f"its process did not start in {STARTING:g} s")
        except BaseException:
            self.stop()
            raise
        self._ready = True

    def _exchange(self, name: str, arguments: tuple[Any, ...], timeout: float, limit: float) -> Any:
        self.wait()
        assert self._process.stdin is not None
        try:
            message = pickle.dumps((name, arguments), pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # pickling a user's object may raise anything
            raise UnsentError(f"it cannot be sent to a process: {_describe(error)}") from error
        try:
            self._process.stdin.write(message)
            self._process.stdin.flush()
        except OSError:
            raise self._died() from None
        return self._receive(timeout, f"stopped after {limit:g} s")

    def _receive(self, timeout: float, verdict: str) -> Any:
        """Wait for an answer and return it; keep the last progress report for error messages."""
        deadline = monotonic() + timeout
        progress = ""
        while True:
            try:
                kind, content = self._replies.get(timeout=max(deadline - monotonic(), 0.0))
            except Empty:
                stopped = MethodTimeout(_with_progress(verdict, progress))
                stopped.progress = progress
                raise stopped from None
            if kind == "done":
                return content
            if kind == "progress":
                progress = content
            elif kind == "memory":
                raise MethodTimeout(_with_progress("stopped at its memory limit", progress))
            elif kind in _RAISED:
                raise _RAISED[kind](content)
            else:
                raise self._died(progress)

    def _died(self, progress: str = "") -> WorkerDied:
        try:
            code = self._process.wait(_CLOSING)
        except (
            TimeoutExpired
        ):  # it closed the pipe, or wrote something other than an answer into it
            self.stop()
            return WorkerDied(_with_progress("its process did not answer", progress))
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return WorkerDied(_with_progress(f"its process ended {how}", progress))


class RestartedWorker:
    """A worker that is started when it is needed, and again after its process has ended.

    Parameters
    ----------
    module, *arguments : str
        As of `Worker`.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        self._command = (module, *arguments)
        self._worker: Worker | None = None

    def running(self) -> Worker:
        """Return the worker, started if its process does not run."""
        if self._worker is None or not self._worker.alive:
            self._worker = Worker(*self._command)
        return self._worker

    def request(self, name: str, *arguments: Any, timeout: float) -> Any:
        """Send a request and return the answer, as `Worker.request`."""
        return self.running().request(name, *arguments, timeout=timeout)

    def stop(self) -> None:
        """End the process; the next request starts another."""
        if self._worker is not None:
            self._worker.stop()


def _with_progress(verdict: str, progress: str) -> str:
    return f"{verdict}; {progress}" if progress else verdict


def _environment() -> dict[str, str]:
    """Return this process's environment, with its module path and one thread for BLAS."""
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    return {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}


def _listen(stream: BinaryIO, put: Callable[[tuple[str, Any]], None]) -> None:
    """Forward every message until the other end closes, or sends an invalid message."""
    with suppress(Exception):
        while True:
            put(pickle.load(stream))  # noqa: S301 - the other end is our own process
    put(_GONE)


def _stop(owner: int, process: Popen[bytes], listener: threading.Thread) -> None:
    if os.getpid() != owner:  # a forked copy of this object: the process is not its own
        return
    if process.poll() is None:
        _kill(process)
    process.wait()
    listener.join(_CLOSING)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def _kill(process: Popen[bytes]) -> None:
    """Kill a process and its children, which would hold its pipe open."""
    if hasattr(os, "killpg"):
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)  # it leads a session of its own
            return
    process.kill()


def serve(module: str, *arguments: str) -> None:
    """Answer requests with the handlers of `module` until the parent exits."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries must not reach the pipe
    requests: SimpleQueue[tuple[str, Any]] = SimpleQueue()

    def put(message: tuple[str, Any]) -> None:
        if message is _GONE:
            os._exit(0)  # in the middle of whatever is being computed
        requests.put(message)

    threading.Thread(target=_listen, args=(sys.stdin.buffer, put), daemon=True).start()
    sys.setrecursionlimit(RECURSION)
    sys.set_int_max_str_digits(0)  # the time limit bounds the conversion of long integers
    threading.stack_size(STACK_BYTES)
    worker = threading.Thread(target=_answer_all, args=(module, arguments, requests.get, replies))
    worker.start()
    worker.join()


def _answer_all(
    module: str,
    arguments: tuple[str, ...],
    get: Callable[[], tuple[str, Any]],
    replies: BinaryIO,
) -> None:
    def send(kind: str, content: Any) -> None:
        pickle.dump((kind, content), replies, pickle.HIGHEST_PROTOCOL)
        replies.flush()

    gc.disable()  # modules are no garbage, and would be searched several times while they load
    try:
        loaded: Any = import_module(module)
        handlers: Handlers = loaded.handlers(lambda text: send("progress", text), *arguments)
    except Exception as error:
        send("failed", f"its process did not start: {_describe(error)}")
        return
    gc.freeze()
    gc.enable()
    send("done", None)
    while True:
        name, request_arguments = get()
        try:
            answer = handlers[name](*request_arguments)
        except MemoryError:
            send("memory", None)
            return
        except UnsupportedError as error:
            send("unsupported", str(error))
        except MethodTimeout as error:
            send("timeout", str(error))
        except DifflabError as error:
            send("failed", str(error))
        except (Exception, SystemExit) as error:
            send("failed", _describe(error))
        else:
            send("done", answer)


def _describe(error: BaseException) -> str:
    return described(error)[:500]


def limit_memory(allowance: int) -> None:
    """Limit this process to `allowance` more bytes than it has mapped, if supported."""
    try:
        import resource
    except ImportError:  # Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = _mapped_bytes() + allowance
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _mapped_bytes() -> int:
    """Return the address space in use; the limit counts it, not the memory touched."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
