"""A method's own process: one that answers requests and can be stopped whatever it is doing.

`Worker` is this process's end of the pipe and `serve` the other's. The child is a plain Python
that imports one module; unlike `multiprocessing`'s, it never runs the caller's script again, so
that scripts need no ``if __name__ == "__main__"``. It dies with its parent: a thread of it reads
the pipe, whose end is the end. Ctrl-C reaches the parent alone. May import `difflab.errors`.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from subprocess import DEVNULL, PIPE, Popen
from time import monotonic
from typing import Any, BinaryIO, Protocol

from difflab.errors import DifflabError, MethodTimeout, printable

__all__ = ["Handlers", "Tell", "Worker", "WorkerDied", "limit_memory", "serve"]

STARTING = 60.0  # seconds until a process that does not answer counts as not started
STACK_BYTES = 256 << 20  # virtual; for libraries that recurse where difflab would not
RECURSION = 50_000
_GONE = ("gone", None)


class Tell(Protocol):
    """Tells the parent how far a request has come."""

    def __call__(self, progress: str) -> None:
        """Tell."""


Handlers = dict[str, Callable[..., Any]]


class WorkerDied(DifflabError):
    """The process ended by itself; the message says how."""


class Worker:
    """A process that imports `module` and answers requests, one at a time.

    Parameters
    ----------
    module : str
        A module with ``handlers(tell) -> dict`` of the requests' names and their callables.
        It is imported there, not here.
    """

    def __init__(self, module: str) -> None:
        command = f"from difflab.methods.process import serve; serve({module!r})"
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

    @property
    def alive(self) -> bool:
        """Whether requests can be sent; a copy of this object in a forked process is not alive."""
        mine = self._owner == os.getpid()
        return mine and self._stop.alive and self._process.poll() is None

    def stop(self) -> None:
        """End the process, whatever it is doing, and wait until it is gone."""
        self._stop()

    def request(self, name: str, *arguments: Any, timeout: float) -> Any:
        """Ask for `name` and return its answer.

        Raises
        ------
        MethodTimeout
            It took longer than `timeout` seconds, or more memory than it was allowed; the
            process is stopped, and the message says how far it had come.
        WorkerDied
            The process ended.
        DifflabError
            What the request raised.
        """
        with self._lock:
            try:
                return self._exchange(name, arguments, timeout)
            except BaseException as error:
                answered = isinstance(error, DifflabError)
                if not answered or isinstance(error, MethodTimeout | WorkerDied):
                    self.stop()  # its late answer must not be taken for the next request's
                raise

    def _exchange(self, name: str, arguments: tuple[Any, ...], timeout: float) -> Any:
        if not self._ready:
            self._receive(STARTING, "its process did not start")
            self._ready = True
        assert self._process.stdin is not None
        try:
            pickle.dump((name, arguments), self._process.stdin, pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
        except OSError:
            raise self._died() from None
        return self._receive(timeout, f"stopped after {timeout:g} s")

    def _receive(self, timeout: float, verdict: str) -> Any:
        """Wait for an answer and return it; keep what is told on the way."""
        deadline = monotonic() + timeout
        progress = ""
        while True:
            try:
                kind, content = self._replies.get(timeout=max(deadline - monotonic(), 0.0))
            except Empty:
                raise MethodTimeout(_with_progress(verdict, progress)) from None
            if kind == "done":
                return content
            if kind == "progress":
                progress = content
            elif kind == "memory":
                raise MethodTimeout(_with_progress("stopped at its memory limit", progress))
            elif kind == "failed":
                raise content
            else:
                raise self._died(progress)

    def _died(self, progress: str = "") -> WorkerDied:
        code = self._process.wait()
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return WorkerDied(_with_progress(f"its process ended {how}", progress))


def _with_progress(verdict: str, progress: str) -> str:
    return f"{verdict}; {progress}" if progress else verdict


def _environment() -> dict[str, str]:
    """Return this process's environment, with its module path and one thread for BLAS."""
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    return {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}


def _listen(stream: BinaryIO, put: Callable[[tuple[str, Any]], None]) -> None:
    """Hand every message on until the other end is gone."""
    with suppress(EOFError, OSError, ValueError, pickle.UnpicklingError):
        while True:
            put(pickle.load(stream))  # noqa: S301 - the other end is our own process
    put(_GONE)


def _stop(owner: int, process: Popen[bytes], listener: threading.Thread) -> None:
    if os.getpid() != owner:  # a forked copy of this object: the process is not its own
        return
    if process.poll() is None:
        process.kill()
    process.wait()
    listener.join()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def serve(module: str) -> None:
    """Answer requests with the handlers of `module` until the parent is gone."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not reach the pipe
    requests: SimpleQueue[tuple[str, Any]] = SimpleQueue()

    def put(message: tuple[str, Any]) -> None:
        if message is _GONE:
            os._exit(0)  # in the middle of whatever is being computed
        requests.put(message)

    threading.Thread(target=_listen, args=(sys.stdin.buffer, put), daemon=True).start()
    sys.setrecursionlimit(RECURSION)
    sys.set_int_max_str_digits(0)  # long integers are the time limit's business
    threading.stack_size(STACK_BYTES)
    worker = threading.Thread(target=_answer_all, args=(module, requests.get, replies))
    worker.start()
    worker.join()


def _answer_all(module: str, get: Callable[[], tuple[str, Any]], replies: BinaryIO) -> None:
    def send(kind: str, content: Any) -> None:
        pickle.dump((kind, content), replies, pickle.HIGHEST_PROTOCOL)
        replies.flush()

    try:
        handlers: Handlers = import_module(module).handlers(lambda text: send("progress", text))
    except Exception as error:
        send("failed", DifflabError(f"its process did not start: {_describe(error)}"))
        return
    send("done", None)
    while True:
        name, arguments = get()
        try:
            answer = handlers[name](*arguments)
        except MemoryError:
            send("memory", None)
            return
        except DifflabError as error:
            send("failed", error)
        except Exception as error:
            send("failed", DifflabError(_describe(error)))
        else:
            send("done", answer)


def _describe(error: Exception) -> str:
    return printable(f"{type(error).__name__}: {error}")[:500]


def limit_memory(allowance: int) -> None:
    """Let this process take `allowance` bytes more than it has, where the system can say so."""
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
