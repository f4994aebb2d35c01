"""Time and peak memory: limits of methods, and measurements in any process."""

from __future__ import annotations

import gc
import os
import re
import tracemalloc
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any, TypeVar

from difflab.errors import MethodTimeout, UnsupportedError

PATIENCE = 4.0
"""Factor by which an estimate may exceed a time limit; beyond it the work is not started."""

WAITED = "/proc/thread-self/schedstat"
"""Linux file with the nanoseconds that this thread has run, and has waited for a processor."""

TOGETHER = 2e-5
"""Maximum seconds between reading time and wait; otherwise both are read again."""
TRIES = 5


class Deadline:
    """A time limit that elapses only inside of ``with``.

    Examples
    --------
    >>> with Deadline(3600) as deadline:
    ...     3000 < deadline.remaining() <= 3600
    True
    >>> Deadline(0).check()
    Traceback (most recent call last):
        ...
    difflab.errors.MethodTimeout: stopped after 0 s
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._left = seconds
        self._began: float | None = None

    def __enter__(self) -> Deadline:
        self._began = monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._left = self.remaining()
        self._began = None

    def remaining(self) -> float:
        """Return the remaining seconds, 0 once the limit is reached."""
        spent = 0.0 if self._began is None else monotonic() - self._began
        return max(self._left - spent, 0.0)

    def check(self) -> None:
        """Raise `MethodTimeout` if the limit is reached."""
        if self.remaining() == 0:
            raise MethodTimeout(f"stopped after {self.seconds:g} s")


@dataclass(frozen=True)
class LoopCall:
    """A call at one point as a loop contains it that calls a million times, for timing.

    Attributes
    ----------
    form : str
        The call as its users write it, such as ``fast(x, out=result)``; empty for the usual one.
    run : callable
        The call without arguments.
    around : callable
        Returns the context of the whole loop, such as the precision of a package.

    Examples
    --------
    >>> LoopCall("abs(x)", lambda: abs(-2.0))()
    2.0
    """

    form: str
    run: Callable[[], Any]
    around: Callable[[], AbstractContextManager[Any]] = nullcontext

    def __call__(self) -> Any:
        """Return the result of the call."""
        with self.around():
            return self.run()


def in_loop(prepared: Any, x: Any) -> LoopCall:
    """Return the fastest call of a prepared derivative at a point.

    That is its method `in_loop`, if it has one, else the derivative itself, called at the point.

    Examples
    --------
    >>> in_loop(abs, -2.0)()
    2.0
    """
    own = getattr(prepared, "in_loop", None)
    call: LoopCall = LoopCall("", lambda: prepared(x)) if own is None else own(x)
    return call


class Stopwatch:
    """Stopwatch that excludes the time in which this thread waited for a processor.

    On a busy machine waiting dominates, and it is unrelated to the measured code. On systems
    other than Linux, which do not report it, waiting is included.

    Examples
    --------
    >>> with Stopwatch() as watch:
    ...     watch.seconds() >= 0
    True
    """

    def __enter__(self) -> Stopwatch:
        """Start the stopwatch."""
        try:
            self._file = os.open(WAITED, os.O_RDONLY)
        except OSError:  # a system that does not report waiting
            self._file = -1
        for _ in range(TRIES):
            early, waited, self._start = perf_counter(), self._waited(), perf_counter()
            if self._start - early < TOGETHER:
                break
        self._start -= waited
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)

    def seconds(self) -> float:
        """Return the seconds since the start; 0 if the system's two clocks say less."""
        for _ in range(TRIES):
            now, waited, late = perf_counter(), self._waited(), perf_counter()
            if late - now < TOGETHER:
                break
        return max(now - waited - self._start, 0.0)

    def _waited(self) -> float:
        if self._file < 0:
            return 0.0
        return int(os.pread(self._file, 100, 0).split()[1]) * 1e-9


def elapsed(call: Callable[[], object], repeats: int) -> float:
    """Return the seconds that `repeats` calls take, with garbage collection disabled."""
    collecting = gc.isenabled()
    gc.disable()
    run, around = (call.run, call.around) if isinstance(call, LoopCall) else (call, nullcontext)
    try:
        with around(), Stopwatch() as watch:
            for _ in repeat(None, repeats):
                run()
            return watch.seconds()
    finally:
        if collecting:
            gc.enable()


def peak_of(call: Callable[[], object]) -> int:
    """Return the bytes that `call` allocates at its peak, NumPy's arrays included.

    Examples
    --------
    >>> import numpy as np
    >>> 8_000_000 <= peak_of(lambda: np.ones(1_000_000)) < 8_100_000
    True
    """
    already = tracemalloc.is_tracing()
    if not already:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        call()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        if not already:
            tracemalloc.stop()
    return max(peak - before, 0)


FREED_AT_ONCE = {"MALLOC_MMAP_THRESHOLD_": "65536"}
"""The environment in which glibc returns freed arrays to the system: resident memory is held."""
T = TypeVar("T")


def resident_peak(call: Callable[[], T]) -> tuple[int, T]:
    """Return the bytes by which resident memory grows at most during a call, and its result.

    Raises
    ------
    UnsupportedError
        The system is not Linux, which counts and resets the peak.
    """
    marks = Path("/proc/self/clear_refs")
    if not marks.exists():
        raise UnsupportedError("the peak of resident memory is reset by Linux only")
    marks.write_text("5", encoding="ascii")  # VmHWM is VmRSS again
    before = _status("VmRSS")
    result = call()
    return _status("VmHWM") - before, result


def _status(field: str) -> int:
    """Return a size of this process in bytes."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    match = re.search(rf"^{field}:\s+(\d+) kB", text, re.MULTILINE)
    assert match is not None
    return 1024 * int(match[1])
