"""Source locations of a graph's column `spans`: spans of a text, and positions in Python code.

A location is an integer: ``start << 32 | end`` is a span of the text, -1 is unknown, and lower
values number the positions in Python code that created nodes. A million nodes created in one loop
share the few positions of its body.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from difflab.core.place import FramePosition, SourceLocation, frame_position, python_frame
from difflab.graph.calls import INSIDE, Calls, TracedCall

NOWHERE = -1
FIRST = -2
"""The first position in Python code; the next ones are lower."""


def packed(span: tuple[int, int]) -> int:
    """Return a span of the text as an integer."""
    return span[0] << 32 | span[1]


class SourceMap:
    """A text, and positions in Python code; graphs derived from one another share it.

    Examples
    --------
    >>> str(SourceMap("1 + log(x)").place(packed((4, 10))))
    'column 5'
    """

    __slots__ = ("_calls", "_numbers", "_spots", "text")

    def __init__(self, text: str | None = None) -> None:
        self.text = text
        self._spots: list[FramePosition | SourceLocation] = []
        self._calls: dict[int, TracedCall] = {}
        self._numbers: dict[Any, int] = {}

    @property
    def keys(self) -> tuple[Any, ...]:
        """The keys of the positions in Python code, in order."""
        return tuple(self._numbers)

    def here(self, calls: Calls | None = None) -> int:
        """Return the current position in the user's Python code, one for each of the `calls`."""
        frame = python_frame(INSIDE)
        if frame is None:
            return NOWHERE
        call = None if calls is None else calls.here(frame)
        # The spot and the call that are kept hold the objects, so that no others get their ids.
        key: Any = (id(frame.f_code), frame.f_lasti)
        if call is not None:
            key = (*key, id(call))
        return self._numbers.get(key) or self._number(key, frame_position(frame), call)

    def at(self, spot: FramePosition | SourceLocation, call: TracedCall | None = None) -> int:
        """Return the integer of a position recorded elsewhere."""
        key: Any = spot if isinstance(spot, SourceLocation) else (id(spot.code), spot.instruction)
        if call is not None:
            key = (key, id(call)) if isinstance(spot, SourceLocation) else (*key, id(call))
        return self._numbers.get(key) or self._number(key, spot, call)

    def call(self, number: int) -> TracedCall | None:
        """Return the call that an integer was recorded in; None in the traced function itself."""
        return self._calls.get(number)

    def place(self, number: int) -> SourceLocation:
        """Return the location of an integer; empty if unknown."""
        if number >= 0:
            return SourceLocation(self.text, (number >> 32, number & 0xFFFFFFFF))
        if number > FIRST:
            return SourceLocation()
        spot = self._spots[FIRST - number]
        return spot.read() if isinstance(spot, FramePosition) else spot

    def adopted(self, other: SourceMap, numbers: list[int], otherwise: int) -> list[int]:
        """Convert locations of another source to locations of this one.

        Spans of another text become `otherwise`; positions outside of all calls join its call.
        """
        if other is self:
            return numbers
        spots, call = other._spots, self.call(otherwise)
        renumbered = {
            n: self.at(spots[FIRST - n], other.call(n) or call) for n in set(numbers) if n <= FIRST
        }
        return [renumbered.get(number, otherwise) for number in numbers]

    def _number(
        self, key: Any, spot: FramePosition | SourceLocation, call: TracedCall | None
    ) -> int:
        number = self._numbers[key] = FIRST - len(self._spots)
        self._spots.append(spot)
        if call is not None:
            self._calls[number] = call
        return number

    def __reduce__(self) -> tuple[Callable[..., SourceMap], tuple[Any, ...]]:
        # Code that runs cannot be pickled; the lines can.
        spots = [self.place(FIRST - number) for number in range(len(self._spots))]
        return _restored, (self.text, spots, self._calls)


def _restored(
    text: str | None, locations: list[SourceLocation], calls: dict[int, TracedCall]
) -> SourceMap:
    source = SourceMap(text)
    source._spots += locations
    source._calls = calls
    return source
