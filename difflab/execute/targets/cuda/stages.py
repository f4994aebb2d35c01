"""Division of a schedule into stages: groups of operations fused into a kernel, and CuPy calls.

Elementwise operations on arrays of one shape fuse, even if other operations are between them in
the schedule, unless one depends on the other through a CuPy call. So every value has a level: the
minimum number of stages that must run first. A group is split into pieces if it has more
operations or parameters than a kernel should have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.execute.lower.ops import NumpyProgram
from difflab.execute.lower.record import as_ufuncs, spelled_form
from difflab.execute.lower.schedule import ScalarProgram, Schedule, ScheduledStep
from difflab.execute.targets.cuda.writer import SPELLINGS
from difflab.graph.ir import Shape

MOST_OPERATIONS = 500
"""Operations in a kernel: compile time grows faster than linearly."""
PARAMETER_BYTES = 4000  # of the 4096 that every device supports
READ_BYTES, WRITE_BYTES = 32, 8
_COPIES = 32  # output elements that a kernel writes one value to


class Write(NamedTuple):
    """Where a kernel writes a value: ``(output, element)``, or a new array if `cell` is None.

    `truth` is whether truth values are stored.
    """

    value: int
    cell: tuple[int, int] | None
    truth: bool


class Fused(NamedTuple):
    """A kernel: the values it reads, and those it writes in the order of the code's outputs."""

    code: NumpyProgram
    reads: tuple[int, ...]
    writes: tuple[Write, ...]


@dataclass
class Stages:
    """The stages, in order of execution.

    Attributes
    ----------
    numbers : bool
        Whether every value is a vector of points: the values 0, 1, … are then the flattened
        inputs, and an output is an array of values. Otherwise every value is an array.
    inputs : tuple of int
        The values of the inputs.
    known : dict of int to number
        The values that are constants.
    outputs : list of array of int
        The values of each output.
    truths : list of bool
        Whether each output holds truth values.
    steps : list of Fused or ScheduledStep
        The stages; CuPy computes a step.
    dying : list of tuple of int
        For each stage the values that no later stage reads.
    """

    numbers: bool
    inputs: tuple[int, ...]
    known: dict[int, Any]
    outputs: list[Any]
    truths: list[bool] = field(default_factory=list)
    steps: list[Fused | ScheduledStep] = field(default_factory=list)
    dying: list[tuple[int, ...]] = field(default_factory=list)


def staged(steps: Schedule | ScalarProgram) -> Stages:
    """Return the stages of a program on vectors of points, or else of a schedule on arrays.

    Examples
    --------
    >>> import difflab as dl
    >>> schedule = Schedule.of(dl.parse("W: [4, 3]; x: [3]; sum(relu(2*W@sin(x)) + 1)"))
    >>> for stage in staged(schedule).steps:
    ...     print(stage.row.name if isinstance(stage, ScheduledStep) else
    ...           [op.name for op in stage.code.ops])
    ['multiply']
    ['sin']
    matmul
    ['maximum', 'add']
    sum
    """
    scalar = isinstance(steps, ScalarProgram)
    stages = Stages(scalar, tuple(steps.sources), steps.known, steps.places)
    _Stager(stages, steps.steps, steps.shape).fill()
    return stages


class _Stager:
    """Finds levels, groups and their pieces."""

    def __init__(
        self, stages: Stages, steps: Sequence[ScheduledStep], shape: Callable[[int], Shape]
    ) -> None:
        self.stages = stages
        self.steps = steps
        self.shape = shape
        self.truths: set[int] = {v for v, known in stages.known.items() if isinstance(known, bool)}
        self.fuses: dict[tuple[Primitive, tuple[str, ...]], bool] = {}
        self.places: dict[int, list[tuple[int, int]]] = {}

    def fill(self) -> None:
        """Fill the stages."""
        stages = self.stages
        if stages.numbers:
            for output, values in enumerate(stages.outputs):
                for cell, value in enumerate(values.ravel().tolist()):
                    self.places.setdefault(value, []).append((output, cell))
        pieces = [piece for group in self._groups() for piece in self._pieces(group)]
        needed = self._needed(pieces)
        kernels = [number for number, piece in enumerate(pieces) if not self._is_call(piece[0])]
        drafts: list[ScheduledStep | Fused] = []
        for number, piece in enumerate(pieces):
            last = number == kernels[-1] if kernels else False
            if self._is_call(piece[0]):
                drafts.append(piece[0])
                if piece[0].row.boolean:
                    self.truths.add(piece[0].node)
            else:
                drafts.append(self._draft(piece, needed, last))
        drafts += self._copies()
        for values in stages.outputs:
            flat = values.ravel().tolist()
            stages.truths.append(bool(flat) and self.truths.issuperset(flat))
        stages.steps += [s if isinstance(s, ScheduledStep) else self._typed(s) for s in drafts]
        self._find_last_uses()

    def _needed(self, pieces: Sequence[Sequence[ScheduledStep]]) -> set[int]:
        """Return the values that are needed outside of the piece that computes them."""
        home = {step.node: number for number, piece in enumerate(pieces) for step in piece}
        needed = {
            arg
            for number, piece in enumerate(pieces)
            for step in piece
            for arg in step.args
            if home.get(arg, number) != number
        }
        if not self.stages.numbers:
            needed.update(int(node) for node in self.stages.outputs)
        return needed

    def _draft(self, piece: Sequence[ScheduledStep], needed: set[int], last: bool) -> Fused:
        """Return a piece as a kernel; `_typed` sets the types of its outputs later.

        The last kernel also writes the output elements that are inputs or constants.
        """
        writes: list[Write] = []
        for step in piece:
            cells = self.places.pop(step.node, [])
            if cells[_COPIES:]:
                self.places[step.node] = cells[_COPIES:]
            writes += [Write(step.node, cell, False) for cell in cells[:_COPIES]]
            if not cells and step.node in needed:
                writes.append(Write(step.node, None, False))
        if last:
            space = (PARAMETER_BYTES - self._parameters(piece)) // (READ_BYTES + WRITE_BYTES)
            writes += self._pass_through(max(space, 0))
        return self._lowered(piece, writes)

    def _pass_through(self, most: int) -> list[Write]:
        """Return writes of at most `most` output elements that are inputs or constants."""
        unchanged = self.stages.known.keys() | set(self.stages.inputs)
        writes: list[Write] = []
        for value in [value for value in self.places if value in unchanged]:
            cells = self.places.pop(value)
            passed = cells[: most - len(writes)]
            writes += [Write(value, cell, False) for cell in passed]
            if len(passed) < len(cells):
                self.places[value] = cells[len(passed) :]
        return writes

    def _lowered(self, piece: Sequence[ScheduledStep], writes: Sequence[Write]) -> Fused:
        """Return a piece as a kernel, whose values are renumbered from the ones it reads."""
        known = self.stages.known
        made = {step.node: step for step in piece}
        used = [arg for step in piece for arg in step.args] + [write.value for write in writes]
        reads = tuple(dict.fromkeys(v for v in used if v not in made and v not in known))
        numbers = {value: number for number, value in enumerate(reads)}
        for value in (*made, *(v for v in dict.fromkeys(used) if v in known)):
            numbers[value] = len(numbers)
        program = ScalarProgram(len(reads))
        program.known.update({numbers[v]: known[v] for v in used if v in known})
        for node, row, args, params in piece:
            program.steps.append(
                ScheduledStep(numbers[node], row, tuple(numbers[a] for a in args), params)
            )
        program.outputs.append(np.array([numbers[write.value] for write in writes], dtype=int))
        truths = {numbers[value] for value in reads if value in self.truths}
        code = as_ufuncs(program, SPELLINGS, truths)
        for write, value in zip(writes, code.outputs, strict=True):
            if value in code.truths:
                self.truths.add(write.value)
        return Fused(code, reads, tuple(writes))

    def _typed(self, fused: Fused) -> Fused:
        """Set which outputs of a kernel are stored as truth values."""
        writes = [
            Write(value, cell, self.stages.truths[cell[0]] if cell else value in self.truths)
            for value, cell, _ in fused.writes
        ]
        return fused._replace(writes=tuple(writes))

    def _copies(self) -> list[Fused]:
        """Return the kernels that write the remaining output elements."""
        left = [Write(value, cell, False) for value, cells in self.places.items() for cell in cells]
        size = PARAMETER_BYTES // (READ_BYTES + WRITE_BYTES)
        return [self._lowered((), left[k : k + size]) for k in range(0, len(left), size)]

    def _find_last_uses(self) -> None:
        """Set the stage after which each value is dead."""
        stages = self.stages
        last: dict[int, int] = {}
        for number, stage in enumerate(stages.steps):
            for value in stage.args if isinstance(stage, ScheduledStep) else stage.reads:
                last[value] = number
        kept = set() if stages.numbers else {int(node) for node in stages.outputs}
        dying: list[list[int]] = [[] for _ in stages.steps]
        for value, number in last.items():
            if value not in kept and value not in stages.known:
                dying[number].append(value)
        stages.dying += [tuple(values) for values in dying]

    def _is_call(self, step: ScheduledStep) -> bool:
        """Return whether CuPy computes a step, because no kernel can."""
        row = step.row
        if row.shape is not None:
            return True
        known = self.stages.known
        kinds = tuple([repr(known[arg]) if arg in known else "number" for arg in step.args])
        if (row, kinds) not in self.fuses:
            try:
                spelled_form(row, kinds, SPELLINGS)
            except UnsupportedError:
                self.fuses[row, kinds] = False
            else:
                self.fuses[row, kinds] = True
        return not self.fuses[row, kinds]

    def _groups(self) -> Iterator[list[ScheduledStep]]:
        """Yield CuPy calls and groups of steps that fuse, in a valid order of execution."""
        levels: dict[int, int] = {}
        fused: set[int] = set()
        groups: dict[tuple[int, bool, Any], list[ScheduledStep]] = {}
        for step in self.steps:
            call = self._is_call(step)
            shape = self.shape(step.node)
            level = 0
            for arg in step.args:
                level = max(level, levels.get(arg, 0) + (call and arg in fused))
            levels[step.node] = level
            if not call:
                fused.add(step.node)
            groups.setdefault((level, not call, step.node if call else shape), []).append(step)
        for key in sorted(groups, key=lambda key: key[:2]):
            yield groups[key]

    def _pieces(self, group: list[ScheduledStep]) -> Iterator[list[ScheduledStep]]:
        """Split a group where a kernel would have too many operations or parameters."""
        waiting = [group[k : k + MOST_OPERATIONS] for k in range(0, len(group), MOST_OPERATIONS)]
        waiting.reverse()
        while waiting:
            piece = waiting.pop()
            if len(piece) == 1 or self._parameters(piece) <= PARAMETER_BYTES:
                yield piece
            else:
                half = len(piece) // 2
                waiting += [piece[half:], piece[:half]]

    def _parameters(self, piece: Sequence[ScheduledStep]) -> int:
        """Return the bytes of parameters of a kernel that writes every value."""
        made = {step.node for step in piece}
        reads = {arg for step in piece for arg in step.args} - made - self.stages.known.keys()
        writes = sum(max(len(self.places.get(node, ())), 1) for node in made)
        return READ_BYTES * len(reads) + WRITE_BYTES * writes
