"""Sequences of a million small records as columns of integers.

A record is a template, which many share, and a few integers. Objects of a million records would
take ten times the memory, and the garbage collector would visit them again and again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Entry = TypeVar("Entry")
_CHUNK = 4096
"""Records whose integers are read at a time by an iteration."""


class Records(Sequence[Entry], Generic[Entry]):
    """An append-only sequence of records; its entries are made anew whenever they are read.

    Parameters
    ----------
    split : callable
        Returns the template and the integers of an entry.
    join : callable
        Returns the entry of a template and a tuple of integers.

    Attributes
    ----------
    templates : list
        The templates that occur.
    kinds, ends, integers : array
        For each record the index of its template, and where its integers end; they begin where
        those of the record before it end.

    Examples
    --------
    >>> pairs = Records(lambda pair: (pair[0], pair[1:]), lambda name, integers: (name, *integers))
    >>> pairs.append(("a", 1, 2))
    >>> pairs.append(("a", 3))
    >>> pairs, pairs[1], len(pairs.templates)
    ([('a', 1, 2), ('a', 3)], ('a', 3), 1)
    """

    def __init__(
        self,
        split: Callable[[Entry], tuple[Hashable, Sequence[int]]],
        join: Callable[[Any, tuple[int, ...]], Entry],
    ) -> None:
        self.split = split
        self.join = join
        self.templates: list[Any] = []
        self.kinds = array("i")
        self.ends = array("q", [0])
        self.integers = array("q")
        self._kind_of: dict[Any, int] = {}

    def append(self, entry: Entry) -> None:
        """Append an entry."""
        self.add(*self.split(entry))

    def add(self, template: Hashable, integers: Sequence[int]) -> None:
        """Append the entry of a template and some integers."""
        kind = self._kind_of.get(template)
        if kind is None:
            kind = self._kind_of[template] = len(self.templates)
            self.templates.append(template)
        self.kinds.append(kind)
        self.integers.extend(integers)
        self.ends.append(len(self.integers))

    def adopt(
        self, templates: Sequence[Any], kinds: Any, ends: NDArray[np.int64], integers: Any
    ) -> None:
        """Fill an empty sequence with columns."""
        self.templates = list(templates)
        self._kind_of = {template: kind for kind, template in enumerate(templates)}
        self.kinds = array("i", kinds)
        self.ends = array("q", ends.tobytes())
        self.integers = array("q", integers.tobytes())

    @property
    def samples(self) -> list[Entry]:
        """The first entry of each template."""
        return list(map(self.__getitem__, np.unique(self.kinds, return_index=True)[1].tolist()))

    def __len__(self) -> int:
        return len(self.kinds)

    def __getitem__(self, index: Any) -> Any:  # an entry, or a list of them
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return list(self._between(start, stop))
            return [self[place] for place in range(start, stop, step)]
        place = range(len(self))[index]
        integers = self.integers[self.ends[place] : self.ends[place + 1]]
        return self.join(self.templates[self.kinds[place]], tuple(integers))

    def __iter__(self) -> Iterator[Entry]:
        return self._between(0, len(self))

    def _between(self, start: int, stop: int) -> Iterator[Entry]:
        join, templates = self.join, self.templates
        for begin in range(start, stop, _CHUNK):
            until = min(begin + _CHUNK, stop)
            ends = self.ends[begin : until + 1].tolist()
            first = last = ends[0]
            integers = tuple(self.integers[first : ends[-1]])
            for kind, end in zip(self.kinds[begin:until], ends[1:], strict=True):
                yield join(templates[kind], integers[last - first : end - first])
                last = end

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __repr__(self) -> str:
        return repr(list(self))
