"""The first line of Python code at which a trace parts from a run on plain arrays.

The code is run twice, line by line: on traced values, whose nodes are then computed at the point,
and on plain arrays. Both pass the same lines as long as they are the same computation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from difflab.core.place import FramePosition, SourceLocation, frame_position, is_users, owner
from difflab.core.wording import significant
from difflab.graph.node import Node
from difflab.graph.point_values import PointValues
from difflab.graph.pytree import flatten, is_container

MOST_LINES = 20_000
"""Lines after which the search ends."""
_SAME = 1e-9
"""Relative difference of two values of a variable that rounding explains."""


@dataclass(frozen=True)
class Parting:
    """Where a trace and its code part.

    Attributes
    ----------
    site : SourceLocation
        The line.
    text : str
        The difference after it.
    """

    site: SourceLocation
    text: str


class _Line(NamedTuple):
    """A line that was executed, and the variables after it."""

    code: CodeType
    number: int
    spot: FramePosition
    variables: dict[str, Any]


def first_parting(
    trace: Callable[[], Any], run: Callable[[], Any], inputs: Sequence[Any]
) -> Parting | None:
    """Return the first line at which a trace and a run of the same code part.

    Parameters
    ----------
    trace, run : callable
        Run the code on traced values, and on plain ones.
    inputs : sequence
        The values of the inputs of the trace, in order.

    Returns
    -------
    Parting or None
        None where no variable of a line differs.
    """
    try:
        traced, plain = _lines(trace), _lines(run)
    except Exception:  # the code may fail in a second run, and then has no line to report
        return None
    values = _Values(inputs)
    for index, (one, other) in enumerate(zip(traced, plain, strict=False)):
        if (one.code, one.number) != (other.code, other.number):
            before = traced[index - 1].spot if index else one.spot
            return Parting(_whole(before), "the code goes on at another line than its trace")
        for name, value in other.variables.items():
            if name in one.variables:
                pair = values.differing(one.variables[name], value)
                if pair is not None:
                    return Parting(_whole(other.spot), _told(name, *pair))
    return None


def _lines(call: Callable[[], Any]) -> list[_Line]:
    """Run a call and return the lines of user code that it executes, with the variables after."""
    lines: list[_Line] = []
    current: dict[FrameType, FramePosition] = {}

    def watch(frame: FrameType, event: str, arg: Any) -> Any:
        if not _is_users_code(frame) or len(lines) >= MOST_LINES:
            return None
        if event not in ("line", "return"):
            return watch
        last = current.pop(frame, None)
        if last is not None:
            variables = {name: _kept(value) for name, value in frame.f_locals.items()}
            if event == "return":
                variables["the result"] = _kept(arg)
            lines.append(_Line(last.code, last.line, last, variables))
        if event == "line":
            current[frame] = frame_position(frame)
        return watch

    tracer = sys.gettrace()
    sys.settrace(watch)
    try:
        call()
    finally:
        sys.settrace(tracer)
    return lines


def _is_users_code(frame: FrameType) -> bool:
    """Whether a frame executes code of the user, not of a package or the standard library."""
    return is_users(frame) and is_users_file(frame.f_code.co_filename)


def is_users_file(file: str) -> bool:
    """Whether a file is the user's; code made by another, as a dataclass's constructor, is not."""
    return owner(file) == "user" and not file.startswith("<string")


def _kept(value: Any) -> list[Any]:
    """Return a snapshot of a variable: nodes by their id, arrays as copies."""
    leaves = flatten(value)[0] if is_container(value) else [value]
    return [_leaf(leaf) for leaf in leaves[:64]]


def _leaf(leaf: Any) -> Any:
    if isinstance(leaf, Node):
        return (leaf.builder, leaf.id)
    if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fiub":
        return leaf.copy()
    return leaf if isinstance(leaf, int | float | np.number | np.bool_) else None


class _Values:
    """The values of traced variables at the point."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        self.inputs = list(inputs)
        self.by_builder: dict[int, PointValues] = {}

    def differing(self, traced: list[Any], plain: list[Any]) -> tuple[Any, Any] | None:
        """Return the first two elements of a variable that differ, the code's first."""
        if len(traced) != len(plain):
            return None
        for one, other in zip(traced, plain, strict=True):
            value = self._of(one) if isinstance(one, tuple) else one
            if value is None or other is None or isinstance(other, tuple):
                continue
            for pair in _apart(np.asarray(other), np.asarray(value)):
                return pair
        return None

    def _of(self, leaf: tuple[Any, int]) -> Any:
        """Return the value of a node of the outermost trace; None for other nodes."""
        builder, node = leaf
        if id(builder) not in self.by_builder:
            if self.by_builder:
                return None
            own = list(builder.names)[: len(self.inputs)]
            inputs = dict(zip(own, self.inputs, strict=True))
            inputs |= getattr(builder, "captured", {})
            self.by_builder[id(builder)] = PointValues(inputs)
        return self.by_builder[id(builder)].of(builder, node)


def _apart(code: Any, trace: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the elements that differ beyond rounding."""
    if code.shape != trace.shape:
        yield code, trace
        return
    one, other = code.astype(np.float64).ravel(), trace.astype(np.float64).ravel()
    with np.errstate(all="ignore"):
        bound = _SAME * np.fmax(np.abs(one), np.abs(other))
        same = (np.abs(one - other) <= bound) | (one == other) | (np.isnan(one) & np.isnan(other))
    for index in np.flatnonzero(~same)[:1]:
        yield one[index], other[index]


def _told(name: str, code: Any, trace: Any) -> str:
    if np.ndim(code) or np.ndim(trace):
        return f"{name} has the shape {code.shape} in the code and {trace.shape} in the graph"
    shown = name if name == "the result" else f"`{name}`"
    return f"{shown} is {significant(code)} in the code and {significant(trace)} in the graph"


def _whole(spot: FramePosition) -> SourceLocation:
    """Return the location of a whole line."""
    site = spot.read()
    return replace(site, span=(0, len(site.text))) if site.text else site
