"""Sequences of a million small records as columns of integers.

A record is a template, which many share, and a few integers. Objects of a million records would
take ten times the memory, and the garbage collector would visit them again and again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import chain
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Entry = TypeVar("Entry")
_SMALL = 32_768
"""Entries from which a sequence is columns only."""
_CHUNK = 4096
"""Entries of columns that are split, or made anew, at a time."""


class Records(Sequence[Entry], Generic[Entry]):
    """An append-only sequence of records; entries of a long one are made anew when they are read.

    Parameters
    ----------
    split : callable
        Returns the template and the integers of an entry.
    join : callable
        Returns the entry of a template and a tuple of integers.

    Attributes
    ----------
    kinds, ends, integers : array
        For each record the index of its template, and where its integers end; they begin where
        those of the record before it end.

    Examples
    --------
    >>> pairs = Records(lambda pair: (pair[0], pair[1:]), lambda name, integers: (name, *integers))
    >>> pairs.append(("a", 1, 2))
    >>> pairs.append(("a", 3))
    >>> pairs, pairs[1], pairs.ends.tolist(), pairs.firsts
    ([('a', 1, 2), ('a', 3)], ('a', 3), [0, 2, 3], [('a', 1, 2)])
    """

    def __init__(
        self,
        split: Callable[[Entry], tuple[Hashable, Sequence[int]]],
        join: Callable[[Any, tuple[int, ...]], Entry],
    ) -> None:
        self.split = split
        self.join = join
        self._kind_of: dict[Any, int] = {}
        self._templates: list[Any] = []
        self._firsts: list[int] = []
        self._kinds, self._ends, self._integers = array("i"), array("q", [0]), array("q")
        self._recent: list[Entry] = []
        self._before = 0  # entries before the recent ones: in columns only
        self._most = _SMALL

    def append(self, entry: Entry) -> None:
        """Append an entry."""
        self._recent.append(entry)
        if len(self._recent) >= self._most:
            self._settle()
            self._recent.clear()
            self._before, self._most = len(self._kinds), _CHUNK

    def _settle(self) -> None:
        """Add the recent entries to the columns."""
        for entry in self._recent[len(self._kinds) - self._before :]:
            template, integers = self.split(entry)
            kind = self._kind_of.setdefault(template, len(self._firsts))
            if kind == len(self._firsts):
                self._templates.append(template)
                self._firsts.append(len(self._kinds))
            self._kinds.append(kind)
            self._integers.extend(integers)
            self._ends.append(len(self._integers))

    @property
    def kinds(self) -> array[int]:
        """For each record the index of its template."""
        self._settle()
        return self._kinds

    @property
    def ends(self) -> array[int]:
        """Where the integers of each record begin, and where they all end."""
        self._settle()
        return self._ends

    @property
    def integers(self) -> array[int]:
        """The integers of all records."""
        self._settle()
        return self._integers

    def adopt(
        self,
        templates: Sequence[Any],
        kinds: array[int],
        ends: NDArray[np.int64],
        integers: NDArray[np.int64],
    ) -> None:
        """Fill an empty sequence with columns."""
        self._templates = list(templates)
        self._kind_of = {template: kind for kind, template in enumerate(templates)}
        self._firsts = list(map(kinds.index, range(len(templates))))
        self._kinds = array("i", kinds)
        self._ends, self._integers = array("q", ends.tobytes()), array("q", integers.tobytes())
        if len(kinds) < _SMALL:
            self._recent = list(self._between(0, len(kinds)))
        else:
            self._before = len(kinds)

    @property
    def firsts(self) -> list[Entry]:
        """The first entry of each template."""
        self._settle()
        return list(map(self.__getitem__, self._firsts))

    @property
    def samples(self) -> list[Entry]:
        """A few entries, the first of each template among them."""
        firsts = [self[first] for first in self._firsts if first < self._before]
        return [*firsts, *self._recent]

    def __len__(self) -> int:
        return self._before + len(self._recent)

    def __getitem__(self, index: Any) -> Any:  # an entry, or a list of them
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                return [self[place] for place in range(start, stop, step)]
            if start >= self._before:
                return self._recent[start - self._before : stop - self._before]
            self._settle()
            return list(self._between(start, stop))
        place = range(len(self))[index]
        if place >= self._before:
            return self._recent[place - self._before]
        integers = self._integers[self._ends[place] : self._ends[place + 1]]
        return self.join(self._templates[self._kinds[place]], tuple(integers))

    def __iter__(self) -> Iterator[Entry]:
        return chain(self._between(0, self._before), self._recent)

    def _between(self, start: int, stop: int) -> Iterator[Entry]:
        join, templates = self.join, self._templates
        for begin in range(start, stop, _CHUNK):
            until = min(begin + _CHUNK, stop)
            ends = self._ends[begin : until + 1].tolist()
            first = last = ends[0]
            integers = tuple(self._integers[first : ends[-1]])
            for kind, end in zip(self._kinds[begin:until], ends[1:], strict=True):
                yield join(templates[kind], integers[last - first : end - first])
                last = end

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __repr__(self) -> str:
        return repr(list(self))
