"""Calls of array programs at one point.

The buffers that operations write into, their views and all constants are prepared in advance. A
call only checks its arguments, runs the operations and allocates its results. A workspace, which
is one set of buffers, serves one call at a time; concurrent calls use one workspace each.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from difflab.execute.lower.arrays.layout import BufferLayout
from difflab.execute.lower.arrays.lowering import lowered
from difflab.execute.lower.arrays.point import PointTarget, Workspace
from difflab.execute.lower.arrays.source import SourceWriter
from difflab.execute.lower.schedule import Schedule
from difflab.execute.memory_plan import MemoryPlan


class ArrayTarget(PointTarget):
    """A function of arrays as Python source over NumPy.

    Parameters
    ----------
    schedule : Schedule
        The schedule to compile.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.trace(lambda W, x: np.sum(np.maximum(x @ W, 0.0)), np.ones((3, 2)), np.ones(3))
    >>> target = ArrayTarget(Schedule.of(f))
    >>> print(target.source)
    def point(a0, a1):
        a1.dot(a0, c2)
        maximum(c2, c3_2, out=c2)
        v5 = add.reduce(c2, None)
        return (float(v5),)
    >>> target([np.ones((3, 2)), np.ones(3)])
    [6.0]
    """

    def __init__(self, schedule: Schedule) -> None:
        program = lowered(schedule)
        super().__init__(program.input_shapes, len(program.outputs))
        self.layout = BufferLayout(program)
        self.writer = SourceWriter(self.layout)

    def memory_plan(self) -> MemoryPlan:
        """Return the memory of a call."""
        return self.layout.memory_plan()

    @property
    def source(self) -> str:
        """The code of one point."""
        return self.writer.source

    @cached_property
    def _make(self) -> Callable[..., Callable[..., tuple[Any, ...]]]:
        return self.writer.factory()

    def workspace(self) -> Workspace:
        """Return new buffers, and the code bound to them."""
        make = self._make  # before the buffers: compiling the code needs memory that it then frees
        cells = self.layout.cells()
        run = make([cells[number] for number in self.writer.prepared])
        # NumPy's error state is a context variable: entering a context that ignores errors
        # takes a twentieth of the time of np.errstate.
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        return context.run, run
