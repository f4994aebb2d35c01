"""Calls of functions and layers, while code is traced: which call each operation belongs to."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import FrameType

from difflab.core.place import is_users

INSIDE = 4
"""Frames between a search for the user's and the caller of what appends a node."""
DEEPEST = 32
"""Nesting depth above which calls count as part of their callers."""
MOST = 10_000
"""Calls of one trace above which further calls count as part of their callers."""
LAYERS = "difflab.nn"
"""The package of layers."""
MODULES = ("__call__", "forward")
"""Methods that go by the name of their class."""


@dataclass(frozen=True, eq=False)
class TracedCall:
    """One call of a function within the traced code.

    Attributes
    ----------
    name : str
        The function, or the class of a layer that is called.
    caller : TracedCall or None
        The call that it was made in; None in the traced function itself.
    of_layer : bool
        Whether a layer of difflab is called, whose operations are at the user's line of the call.
    """

    name: str
    caller: TracedCall | None
    of_layer: bool = False

    @property
    def path(self) -> tuple[TracedCall, ...]:
        """The calls that lead here, outermost first."""
        path = [self]
        while (caller := path[-1].caller) is not None:
            path.append(caller)
        return tuple(reversed(path))


def call_name(call: TracedCall | None) -> str:
    """Return the names of a call and of those around it, ``cell › gate``; empty for none.

    Examples
    --------
    >>> call_name(TracedCall("gate", TracedCall("cell", None)))
    'cell › gate'
    """
    return "" if call is None else " › ".join(each.name for each in call.path)


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
        self._known: dict[int, tuple[FrameType, TracedCall | None, int]] = {}

    def here(self, frame: FrameType) -> TracedCall | None:
        """Return the call that is executed: that of the user's `frame`, or of a layer in it."""
        inner: FrameType | None = sys._getframe(INSIDE)
        while inner is not None and inner is not frame:
            if _is_layer(inner):
                return self.of(inner)
            inner = inner.f_back
        return self.of(frame)

    def of(self, frame: FrameType) -> TracedCall | None:
        """Return the call that a frame executes; None in the traced function itself."""
        entry = self._known.get(id(frame))
        return entry[1] if entry is not None else self._entered(frame)

    def _entered(self, frame: FrameType) -> TracedCall | None:
        """Register a new frame and its callers."""
        frames: list[FrameType] = []
        call, depth = None, -1
        step: FrameType | None = frame
        while step is not None and step is not self._base:
            entry = self._known.get(id(step))
            if entry is not None:
                call, depth = entry[1:]
                break
            if is_users(step) or _is_layer(step):
                frames.append(step)
            step = step.f_back
        for entered in reversed(frames):
            if depth < 0:
                depth = 0  # the traced function
            elif not entered.f_code.co_name.startswith("<") and depth < DEEPEST:
                if len(self._known) >= MOST:
                    return call
                call = TracedCall(_name(entered), call, _is_layer(entered))
                depth += 1
            if len(self._known) < MOST:
                self._known[id(entered)] = entered, call, depth
        return call


def _is_layer(frame: FrameType) -> bool:
    """Whether a frame executes a layer of difflab."""
    if frame.f_code.co_name != "forward":
        return False
    module: str = frame.f_globals.get("__name__", "")
    return module.startswith(LAYERS)


def _name(frame: FrameType) -> str:
    if _is_layer(frame):
        return type(frame.f_locals["self"]).__name__
    *owners, name = frame.f_code.co_qualname.rpartition("<locals>.")[2].split(".")
    return owners[-1] if owners and name in MODULES else name
