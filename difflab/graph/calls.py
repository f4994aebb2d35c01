"""Calls of the user's functions, while code is traced: which call each operation belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType

from difflab.core.place import is_users

__all__ = ["Call", "Calls"]

DEEPEST = 32
"""Nesting above which calls are not told from their callers."""
MOST = 10_000
"""Calls of one trace above which further calls are not told from their callers."""
MODULES = ("__call__", "forward")
"""Methods that go by the name of their class."""


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a function within the traced code.

    Attributes
    ----------
    name : str
        The function, or the class of a layer that is called.
    caller : Call or None
        The call that it was made in; None in the traced function itself.
    """

    name: str
    caller: Call | None

    @property
    def path(self) -> tuple[Call, ...]:
        """The calls that lead here, outermost first."""
        found = [self]
        while (caller := found[-1].caller) is not None:
            found.append(caller)
        return tuple(reversed(found))


class Calls:
    """The calls made since a trace began.

    A frame is kept as long as the trace, since its id would be reused: calls on one line of a loop
    differ in nothing else.

    Parameters
    ----------
    base : FrameType
        The frame that began the trace.
    """

    __slots__ = ("_base", "_known")

    def __init__(self, base: FrameType) -> None:
        self._base = base
        self._known: dict[int, tuple[FrameType, Call | None, int]] = {}

    def of(self, frame: FrameType) -> Call | None:
        """Return the call that a frame executes; None in the traced function itself."""
        known = self._known.get(id(frame))
        return known[1] if known is not None else self._entered(frame)

    def _entered(self, frame: FrameType) -> Call | None:
        """Register a new frame and its callers."""
        frames: list[FrameType] = []
        call, depth = None, -1
        step: FrameType | None = frame
        while step is not None and step is not self._base:
            known = self._known.get(id(step))
            if known is not None:
                call, depth = known[1:]
                break
            if is_users(step):
                frames.append(step)
            step = step.f_back
        for entered in reversed(frames):
            if depth < 0:
                depth = 0  # the traced function
            elif not entered.f_code.co_name.startswith("<") and depth < DEEPEST:
                if len(self._known) >= MOST:
                    return call
                call, depth = Call(_name(entered), call), depth + 1
            if len(self._known) < MOST:
                self._known[id(entered)] = entered, call, depth
        return call


def _name(frame: FrameType) -> str:
    *owners, name = frame.f_code.co_qualname.rpartition("<locals>.")[2].split(".")
    return owners[-1] if owners and name in MODULES else name
