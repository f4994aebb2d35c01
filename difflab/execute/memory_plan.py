"""The planned memory of a call of a compiled function."""

from __future__ import annotations

from dataclasses import dataclass

from difflab.core.wording import counted


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The memory of one call, planned in advance.

    Attributes
    ----------
    values : int
        The number of arrays computed, results included.
    buffers : tuple of int
        The bytes of each buffer that these arrays share.
    spaces : int
        The number of sets of these buffers in use at a time: one per thread.
    results : int
        The bytes of the results, which every call allocates.
    others : int
        The bytes of arrays allocated by operations that cannot write into a buffer.

    Examples
    --------
    >>> import difflab as dl
    >>> fast = dl.compile(dl.parse("sin(cos(exp(x)))*y"), target="numpy", threads=1)
    >>> print(fast.memory_plan(1_000_000))
    4 arrays in 1 buffer of 258,072 bytes and 8,000,000 bytes of results: at most 8,258,072 bytes
    """

    values: int
    buffers: tuple[int, ...]
    spaces: int
    results: int
    others: int = 0

    @property
    def peak_bytes(self) -> int:
        """The most bytes held at a time, inputs excluded."""
        return sum(self.buffers) * self.spaces + self.others + self.results

    def __str__(self) -> str:
        held = f"{counted(len(self.buffers), 'buffer')} of {sum(self.buffers):,} bytes"
        if self.spaces > 1:
            held += f" in each of {self.spaces} threads"
        if self.others:
            held += f", {self.others:,} bytes outside of buffers"
        return (
            f"{counted(self.values, 'array')} in {held} and {self.results:,} bytes of results: "
            f"at most {self.peak_bytes:,} bytes"
        )
