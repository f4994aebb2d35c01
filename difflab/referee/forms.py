"""A function as steps that can be re-evaluated in part; scalar steps if possible.

With scalar steps, a moved input affects only a few steps, even if the function is written with
array operations. A function with an operation that has no scalar form, or with too many scalar
steps, has one step for each node of its graph.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.execute.lower.schedule import Schedule, ScheduledStep, unrolled
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, FIRST_ROW, Number, Shape
from difflab.graph.repetition import element_indices

MOST_STEPS = 300_000  # scalar steps


class ProgramOutput(NamedTuple):
    """The flattened outputs that a value provides, and its shape in the output."""

    rows: Sequence[int]
    shape: Shape


@dataclass(frozen=True)
class RefereeProgram:
    """Steps in topological order; every value has a slot and is a scalar or an array.

    Attributes
    ----------
    size : int
        The number of values.
    steps : dict of int to ScheduledStep
        How to compute each value that is neither an input nor a constant.
    constants : dict of int to (number, str or None)
        The constants, with their names if they have one.
    inputs : list of (int, int)
        For each packed input its slot, and its position in that value; -1 if the input is the
        whole value.
    outputs : dict of int to list of ProgramOutput
        The values that are outputs.
    elements : dict of int to int
        The values that select one element of an input, and its position.
    shapes : sequence of tuple
        The shape of each value; empty if all values are scalars.
    """

    size: int
    steps: dict[int, ScheduledStep]
    constants: dict[int, tuple[Number, str | None]]
    inputs: list[tuple[int, int]]
    outputs: dict[int, list[ProgramOutput]] = field(default_factory=dict)
    elements: dict[int, int] = field(default_factory=dict)
    shapes: Sequence[Shape] = ()

    @cached_property
    def users(self) -> list[list[int]]:
        """The values that use each value."""
        users: list[list[int]] = [[] for _ in range(self.size)]
        for slot, step in self.steps.items():
            for arg in step.args:
                users[arg].append(slot)
        return users

    def reach(self, moved: Sequence[int]) -> list[int]:
        """Return the steps that depend on the packed inputs `moved`, in topological order."""
        users, reached = self.users, set[int]()
        for position in moved:
            slot, within = self.inputs[position]
            elements = self.elements
            reached.update(
                [
                    user
                    for user in users[slot]
                    if within < 0 or elements.get(user, -1) in (-1, within)
                ]
            )
        front = list(reached)
        while front:
            for user in users[front.pop()]:
                if user not in reached:
                    reached.add(user)
                    front.append(user)
        return sorted(reached)


def referee_program(function: Function) -> RefereeProgram:
    """Return the steps of a function, scalar steps if possible.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x: [4]; sum(sin(x)*x)")
    >>> steps = referee_program(f)
    >>> len(steps.steps), len(steps.reach([0]))
    (11, 4)
    """
    try:
        return _by_scalars(function)
    except UnsupportedError:
        return by_nodes(function)


def by_nodes(function: Function) -> RefereeProgram:
    """Return a step for each node of the graph."""
    graph = function.graph
    program = RefereeProgram(
        len(graph),
        {step.node: step for step in _steps(function)},
        {node: (graph.constants[node][0], graph.constants[node][1]) for node in graph.constants},
        [
            (node, position if shape else -1)
            for node, shape in zip(function.input_nodes, function.input_shapes, strict=True)
            for position in range(math.prod(shape))
        ],
        shapes=[graph.shape(node) for node in range(len(graph))],
    )
    inputs = set(function.input_nodes)
    elements = element_indices(graph).tolist()
    program.elements.update(
        (node, elements[node])
        for node, step in program.steps.items()
        if elements[node] >= 0 and inputs.issuperset(step.args)
    )
    start = 0
    for node, shape in zip(function.outputs, function.output_shapes, strict=True):
        size = math.prod(shape)
        program.outputs.setdefault(node, []).append(
            ProgramOutput(range(start, start + size), shape)
        )
        start += size
    return program


def _by_scalars(function: Function) -> RefereeProgram:
    """Return the scalar steps; constants stay exact instead of being rounded to float64."""
    graph = function.graph
    schedule = Schedule(
        function,
        _steps(function),
        {node: (graph.constants[node][0], graph.constants[node][1]) for node in graph.constants},
        list(function.outputs),
    )
    program = unrolled(schedule, MOST_STEPS)
    slots = [step.node for step in program.steps] + list(program.known)
    scalars = RefereeProgram(
        max([function.n - 1, *slots]) + 1,
        {step.node: step for step in program.steps},
        {slot: _constant(value) for slot, value in program.known.items()},
        [(position, -1) for position in range(function.n)],
    )
    cells = [cell for output in program.outputs for cell in output.ravel().tolist()]
    for row, cell in enumerate(cells):
        scalars.outputs.setdefault(cell, []).append(ProgramOutput([row], ()))
    return scalars


def _steps(function: Function) -> list[ScheduledStep]:
    graph = function.graph
    params = [dict(entry) for entry in graph.param_table]
    ids = graph.param_ids.tolist()
    rows: Sequence[Primitive] = graph.primitives
    return [
        ScheduledStep(node, rows[opcode - FIRST_ROW], tuple(args), params[ids[node]])
        for node, (opcode, args) in enumerate(graph.rows())
        if opcode >= FIRST_ROW and opcode != CONSTANT
    ]


def _constant(value: Any) -> tuple[Number, str | None]:
    """Return a constant of the program; an integer is exact."""
    if isinstance(value, tuple):
        return value
    number = float(value)
    return (int(number) if np.isfinite(number) and number == int(number) else number), None
