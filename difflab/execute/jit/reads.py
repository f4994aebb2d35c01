"""The values that a Python function can read besides its arguments, and their changes.

They are found by a search (`search.py`), without running anything, in the function and in every
function that it can call: a superset of the values that a run reads, except for tensors, whose
reads are recorded while the function is traced. Tensors are guarded by identity and version, arrays
and buffers by their elements, everything else by identity or, if it is plain, by value. Values that
cannot be watched are named, see `tokens.py`.

Code of the standard library and of installed packages is assumed to be constant, except for the
variables of enclosing functions: ``functools.partial(f, 2)`` and ``dl.grad(f)`` are searched for
the user's functions in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from keyword import iskeyword
from operator import is_
from types import MappingProxyType
from typing import Any, NamedTuple

from difflab.execute.jit.search import ABSENT, Search, content_of

Compare = Callable[..., None]
"""Adds a test, with the values that its places stand for."""
_FEW = 4
"""Parts of a container that code of its own compares, instead of a loop in C over all."""


class Change(NamedTuple):
    """A change of a value that a function can read.

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
        self._values = search.values
        self.unwatched = search.unwatched
        self._tensors = [
            entry for entry in search.tensors if self._read is None or id(entry[1]) in self._read
        ]
        self._arrays = search.arrays
        self._results = search.results
        self._same = _comparison(search)

    def unchanged(self) -> bool:
        """Whether nothing was replaced; False may also mean replaced by an equal value."""
        if not self._same():
            return False
        for get, value in self._results:
            if get() is not value:
                return False
        for token_of, value, token in self._arrays:
            if token_of(value) != token:
                return False
        return not self._tensors or not self.is_over()

    def is_over(self) -> bool:
        """Whether a tensor was modified in place: no version occurs twice."""
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
        """Return the first difference from the values of a search; None if all are equal."""
        for path, now in search.values.items():
            before = self._values.get(path)
            if before is None or before.token != now.token:
                was = "" if before is None or before.shown == now.shown else f", was {before.shown}"
                changed = f"is {now.shown}{was}" if was else "has changed"
                return Change(f"{path} {changed}", now.where)
        for path, before in self._values.items():
            if path not in search.values:
                return Change(f"{path} is no longer read", before.where)
        for path, tensor, version in self._tensors:
            if tensor.__difflab_version__() != version:
                return Change(f"{path} was changed in place", self._values[path].where)
        self._adopt(search)
        return None


def _comparison(search: Search) -> Callable[[], bool]:
    """Return generated code that compares the values that a search has found by identity.

    Every call of compiled code runs it; for few values, loops cost more than the comparisons.
    """
    scope: dict[str, Any] = {"ABSENT": ABSENT, "content_of": content_of}
    lines: list[str] = []

    def compare(test: str, *values: Any) -> None:
        names = [f"v{len(scope)}_{index}" for index in range(len(values))]
        scope.update(zip(names, values, strict=True))
        lines.append(f"        if {test.format(*names)}: return False")

    for mapping, key, value in search.entries:
        direct = value is not ABSENT and type(mapping) in (dict, MappingProxyType)
        read = "{0}[{1}]" if direct else "{0}.get({1}, ABSENT)"
        compare(f"{read} is not {{2}}", mapping, key, value)
    for owner, name, value in search.attributes:
        direct = value is not ABSENT and name.isidentifier() and not iskeyword(name)
        read = f"{{0}}.{name}" if direct else "getattr({0}, {1}, ABSENT)"
        compare(f"{read} is not {{2}}", owner, name, value)
    for cell, value in search.cells:
        read = "content_of({0})" if value is ABSENT else "{0}.cell_contents"
        compare(f"{read} is not {{1}}", cell, value)
    for names, size in search.sizes:
        compare("len({0}) != {1}", names, size)
    _compare_parts(search.containers, compare)
    # Values that existed are read directly, several times faster than with a default.
    lines.append("    except (KeyError, AttributeError, ValueError): return False")
    source = "\n".join(["def same():", "    try:", "        pass", *lines, "    return True"])
    exec(compile(source, "<difflab.jit>", "exec", dont_inherit=True), scope)  # noqa: S102 - holds only names made here
    same: Callable[[], bool] = scope["same"]
    return same


def _compare_parts(containers: list[tuple[Any, Any, list[Any]]], compare: Compare) -> None:
    """Compare the items of containers: in straight-line code if few, which is faster than loops."""
    many = []
    for entry in containers:
        _, one, parts = entry
        if type(one) is list and len(parts) <= _FEW:
            compare("len({0}) != {1}", one, len(parts))
            for index, value in enumerate(parts):
                compare("{0}[{1}] is not {2}", one, index, value)
            continue
        keys, values = parts[: len(parts) // 2], parts[len(parts) // 2 :]
        if type(one) is dict and len(keys) <= _FEW and all(type(key) is str for key in keys):
            compare("(*{0},) != {1}", one, (*keys,))
            for key, value in zip(keys, values, strict=True):
                compare("{0}[{1}] is not {2}", one, key, value)
        else:
            many.append(entry)
    if many:
        compare("not {0}()", _Parts(many).unchanged)


class _Parts:
    """The items of containers, compared by identity, for lists and dicts in loops that run in C."""

    def __init__(self, containers: list[tuple[Any, Any, list[Any]]]) -> None:
        dicts = [(one, parts) for _, one, parts in containers if type(one) is dict]
        lists = [(one, parts) for _, one, parts in containers if type(one) is list]
        self._others = [entry for entry in containers if type(entry[1]) not in (dict, list)]
        self._dicts, self._lists = [one for one, _ in dicts], [one for one, _ in lists]
        self._keys = [part for _, parts in dicts for part in parts[: len(parts) // 2]]
        self._values = [part for _, parts in dicts for part in parts[len(parts) // 2 :]]
        self._parts = [part for _, parts in lists for part in parts]
        # The lengths are compared first, so that the parts of one are not those of another.
        self._sized = [*self._dicts, *self._lists]
        self._sizes = [len(parts) // 2 for _, parts in dicts] + [len(parts) for _, parts in lists]

    def unchanged(self) -> bool:
        """Whether every item is still the same object."""
        for parts_of, one, before in self._others:
            parts = parts_of(one)
            if len(parts) != len(before) or not all(map(is_, parts, before)):
                return False
        return (
            [*map(len, self._sized)] == self._sizes
            and all(map(is_, chain.from_iterable(self._dicts), self._keys))
            and all(map(is_, chain.from_iterable(map(dict.values, self._dicts)), self._values))
            and all(map(is_, chain.from_iterable(self._lists), self._parts))
        )
