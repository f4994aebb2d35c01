"""The stop-watch and the memory meter, for this process and for a method's own process.

May import the standard library.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from itertools import repeat
from time import perf_counter

__all__ = ["elapsed", "peak_of"]


def elapsed(call: Callable[[], object], repeats: int) -> float:
    """Return the seconds that `repeats` calls take, with garbage collection held back."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        start = perf_counter()
        for _ in repeat(None, repeats):
            call()
        return perf_counter() - start
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
