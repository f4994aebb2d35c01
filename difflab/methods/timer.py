"""The stop-watch and the memory meter, for this process and for a method's own process."""

from __future__ import annotations

import gc
import os
import tracemalloc
from collections.abc import Callable
from itertools import repeat
from time import perf_counter

__all__ = ["Stopwatch", "elapsed", "peak_of"]

WAITED = "/proc/thread-self/schedstat"
"""Where Linux says how many nanoseconds this thread has run, and has waited for a processor."""

TOGETHER = 1e-4
"""Seconds within which time and waiting are read, or are read again: no wait lies between."""
TRIES = 5


class Stopwatch:
    """Measures seconds, without those in which this thread waited while others had the processor.

    On a busy machine these are most of them, and they say nothing of what is measured. Where the
    system does not tell them, as on everything but Linux, they are counted in.

    Examples
    --------
    >>> with Stopwatch() as watch:
    ...     watch.seconds() >= 0
    True
    """

    def __enter__(self) -> Stopwatch:
        """Start."""
        try:
            self._file = os.open(WAITED, os.O_RDONLY)
        except OSError:  # another system, or one that does not tell
            self._file = -1
        for _ in range(TRIES):
            early, waited, self._start = perf_counter(), self._waited(), perf_counter()
            if self._start - early < TOGETHER:
                break
        self._start -= waited
        return self

    def __exit__(self, *exception: object) -> None:
        """Give the file back."""
        if self._file >= 0:
            os.close(self._file)

    def seconds(self) -> float:
        """Return the seconds since the start."""
        for _ in range(TRIES):
            now, waited, late = perf_counter(), self._waited(), perf_counter()
            if late - now < TOGETHER:
                break
        return now - waited - self._start

    def _waited(self) -> float:
        if self._file < 0:
            return 0.0
        return int(os.pread(self._file, 100, 0).split()[1]) * 1e-9


def elapsed(call: Callable[[], object], repeats: int) -> float:
    """Return the seconds that `repeats` calls take, with garbage collection held back."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        with Stopwatch() as watch:
            for _ in repeat(None, repeats):
                call()
            return watch.seconds()
    finally:
        if collecting:
            gc.enable()


def peak_of(call: Callable[[], object]) -> int:
    """Return the bytes that `call` allocates at its peak, NumPy's arrays among them.

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
