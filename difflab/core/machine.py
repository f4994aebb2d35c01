"""Available memory, checked before large allocations.

A size is checked in advance, because the system grants more memory than it has
and kills a process that uses it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from difflab.core.quantities import bytes_text
from difflab.errors import ResourceError

SMALL = 1 << 28
"""Allocations up to this many bytes are not checked."""

_GROUP = Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Return the bytes this process can still allocate; None if the system does not report it."""
    return min(_bounds(), default=None)


def require_memory(needed: int, what: str, hint: str | None = None) -> None:
    """Raise `ResourceError` if `needed` bytes exceed the available memory.

    Parameters
    ----------
    needed : int
        Bytes that are about to be allocated.
    what : str
        What allocates them, as the subject of a sentence.
    hint : str, optional
        What to do instead.

    Examples
    --------
    >>> require_memory(10**18, "a point of 10^17 numbers")
    Traceback (most recent call last):
        ...
    difflab.errors.ResourceError: a point of 10^17 numbers takes 888.2 PiB of memory, and ...
    """
    if needed <= SMALL:
        return
    free = available_memory()
    if free is not None and needed > free:
        raise ResourceError(
            f"{what} takes {bytes_text(needed)} of memory, and {bytes_text(free)} are free",
            hint=hint,
        )


def _bounds() -> Iterator[int]:
    """Yield every bound on what can still be allocated: of the system, the cgroup, the process."""
    with suppress(OSError, ValueError, StopIteration, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        yield next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) << 10
    with suppress(OSError, ValueError):
        limit = (_GROUP / "memory.max").read_text(encoding="ascii").strip()
        used = (_GROUP / "memory.current").read_text(encoding="ascii").strip()
        if limit != "max":
            # The page cache counts as used, but is reclaimed when memory is short.
            facts = dict(line.split() for line in (_GROUP / "memory.stat").open(encoding="ascii"))
            yield max(int(limit) - int(used) + int(facts.get("inactive_file", 0)), 0)
    with suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        limit_here, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit_here != resource.RLIM_INFINITY:
            mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            yield max(limit_here - mapped * os.sysconf("SC_PAGE_SIZE"), 0)
