"""Calling array programs at one point.

The buffers that operations write into, the views of them and all that depends on no input are
prepared, so that a call does nothing but the work: it checks its arguments, runs the operations
with an output each, and allocates its results. A space, which is one set of buffers, serves one
call at a time; calls of several threads have a space each.
May import `arrays` siblings, `record`, `schedule`, `graph` and NumPy.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from difflab.execute.arrays.layout import Layout
from difflab.execute.arrays.lowering import lowered
from difflab.execute.arrays.source import Writer, compiled
from difflab.execute.record import FLOAT
from difflab.execute.schedule import Schedule
from difflab.graph.pytree import Structure

__all__ = ["ArrayTarget"]


class ArrayTarget:
    """A function of arrays as Python source over NumPy.

    Parameters
    ----------
    schedule : Schedule
        What is computed.

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
        self.program = lowered(schedule)
        self.layout = Layout(self.program)
        self.writer = Writer(self.layout)
        self._spaces: list[_Space] = []

    @property
    def source(self) -> str:
        """The code of one point."""
        return self.writer.source

    @cached_property
    def _make(self) -> Callable[..., Callable[..., tuple[Any, ...]]]:
        return self.writer.factory()

    def space(self) -> _Space:
        """Return buffers of their own, and the code bound to them."""
        cells = self.layout.cells()
        run = self._make([cells[number] for number in self.writer.taken])
        # NumPy's error state is a context variable: entering a context that ignores errors
        # takes a twentieth of the time of np.errstate.
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        return context.run, run

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Return the outputs for one float64 value per input, at one point."""
        given = [
            value if shape else float(value)
            for value, shape in zip(values, self.program.input_shapes, strict=True)
        ]
        space = self._spaces.pop() if self._spaces else self.space()
        results = space[0](space[1], *given)
        self._spaces.append(space)
        return list(results)

    def entry(self, structure: Structure | None) -> tuple[str, Callable[..., Any]]:
        """Return source and code of a method that takes arrays at once, the rest to `general`."""
        shapes = self.program.input_shapes
        names = [f"a{number}" for number in range(len(shapes))]
        checks = [
            f"{name}.__class__ is ndarray and {name}.dtype is float64 and {name}.shape == {shape}"
            if shape
            else f"{name}.__class__ is float"
            for name, shape in zip(names, shapes, strict=True)
        ]
        results = [f"r{number}" for number in range(len(self.program.outputs))]
        given = "".join(f"{name}=None, " for name in names)
        slash = "/, " if names else ""
        source = "\n".join(
            [
                f"def call(self, {given}{slash}*rest, **named):",
                f"    if {' and '.join([*checks, 'not rest and not named'])}:",
                "        try:",
                "            space = spaces.pop()",
                "        except IndexError:",
                "            space = make()",
                f"        {', '.join(results)}, = space[0](space[1], {', '.join(names)})",
                "        spaces.append(space)",
                f"        return {_grouped(structure, results)}",
                f"    return self.general(({''.join(f'{name}, ' for name in names)}*rest), named)",
            ]
        )
        scope = {
            "ndarray": np.ndarray,
            "float64": FLOAT,
            "spaces": self._spaces,
            "make": self.space,
        }
        return source, compiled(source, scope)["call"]


_Space = tuple[Callable[..., Any], Callable[..., Any]]


def _grouped(structure: Structure | None, results: Sequence[str]) -> str:
    """Return the expression that groups the results as a call of the function does."""
    if structure is None:
        return results[0] if len(results) == 1 else f"({', '.join(results)})"
    if any(token[0] not in ("leaf", "none", tuple, list) for token in structure.tokens):
        return f"self.function.returned(({', '.join(results)},))"
    built: list[str] = []
    remaining = iter(reversed(results))
    for token in reversed(structure.tokens):
        if token[0] == "leaf":
            built.append(next(remaining))
        elif token[0] == "none":
            built.append("None")
        else:
            inner = "".join(f"{built.pop()}, " for _ in range(token[1]))
            built.append(f"({inner})" if token[0] is tuple else f"[{inner}]")
    return built[0]
