"""What a Python function can read besides its arguments, and whether it has changed.

It is found by a search (`search.py`), without running anything, in the function and in every
function that it can call: a superset of what a run reads, except for tensors, whose reads are
noted while the function is traced. Tensors are guarded by identity and version, arrays and buffers
by their elements, everything else by identity or, if it is plain, by value. What cannot be watched
is named, see `unwatched.py`.

Code of the standard library and of installed packages is assumed to be constant, except for the
variables of enclosing functions: ``functools.partial(f, 2)`` and ``dl.grad(f)`` are searched for
the user's functions in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from operator import is_
from typing import NamedTuple

from difflab.execute.jit.search import ABSENT, Search, content_of
from difflab.execute.jit.tokens import parts_of

__all__ = ["Change", "Reads"]


class Change(NamedTuple):
    """A value that a function can read and that is no longer what it was.

    Attributes
    ----------
    message : str
        What changed: ``global rate is 0.2, was 0.1``.
    where : str
        The file and the line that reads it.
    """

    message: str
    where: str


class Reads:
    """The state that a function can read, as it is when this is made.

    Parameters
    ----------
    search : Search
        Of the function and of other objects.

    Examples
    --------
    >>> names = {"rate": 0.1}
    >>> exec("def step(x): return x - rate * x", names)
    >>> roots = [("step", names["step"])]
    >>> reads = Reads(Search(roots))
    >>> names["rate"] = 0.2
    >>> reads.unchanged(), reads.change(Search(roots)).message
    (False, 'global rate is 0.2, was 0.1')
    """

    def __init__(self, search: Search) -> None:
        self._read: set[int] | None = None  # the ids of the tensors that a run has read
        self._adopt(search)

    def _adopt(self, search: Search) -> None:
        self._found = search.found
        self._entries = search.entries
        self._attributes = search.attributes
        self._cells = search.cells
        self._containers = search.containers
        self._arrays = search.arrays
        self._results = search.results
        self._sizes = search.sizes
        self._tensors = [
            entry for entry in search.tensors if self._read is None or id(entry[1]) in self._read
        ]
        self.unwatched = search.unwatched

    def unchanged(self) -> bool:
        """Whether nothing was replaced; False may also mean replaced by an equal value."""
        for mapping, key, value in self._entries:
            if mapping.get(key, ABSENT) is not value:
                return False
        for owner, name, value in self._attributes:
            if getattr(owner, name, ABSENT) is not value:
                return False
        for cell, value in self._cells:
            if content_of(cell) is not value:
                return False
        for container, children in self._containers:
            parts = parts_of(container)
            if len(parts) != len(children) or not all(map(is_, parts, children)):
                return False
        return self._contents_unchanged()

    def _contents_unchanged(self) -> bool:
        for scope, size in self._sizes:
            if len(scope) != size:
                return False
        for read, value in self._results:
            if read() is not value:
                return False
        for token_of, value, token in self._arrays:
            if token_of(value) != token:
                return False
        return not self.is_over()

    def is_over(self) -> bool:
        """Whether a tensor was changed in place: its version never comes back."""
        for _, tensor, version in self._tensors:  # noqa: SIM110 - faster than any()
            if tensor.__difflab_version__() != version:
                return True
        return False

    @contextmanager
    def of_tensors(self) -> Iterator[None]:
        """Note which tensors a run reads: the others may change."""
        read = self._read = set[int]()
        ends = [
            tensor.__difflab_noted__(partial(read.add, id(tensor)))
            for _, tensor, _ in self._tensors
        ]
        try:
            yield
        finally:
            for end in ends:
                end()
            self._tensors = [
                entry
                for entry in self._tensors
                if id(entry[1]) in read or entry[1].__difflab_version__() != entry[2]
            ]

    def change(self, search: Search) -> Change | None:
        """Return the first value that differs from what a search finds; None if all are equal."""
        for path, now in search.found.items():
            before = self._found.get(path)
            if before is None or before.token != now.token:
                was = "" if before is None or before.shown == now.shown else f", was {before.shown}"
                changed = f"is {now.shown}{was}" if was else "has changed"
                return Change(f"{path} {changed}", now.where)
        for path, before in self._found.items():
            if path not in search.found:
                return Change(f"{path} is no longer read", before.where)
        for path, tensor, version in self._tensors:
            if tensor.__difflab_version__() != version:
                return Change(f"{path} was changed in place", self._found[path].where)
        self._adopt(search)
        return None
