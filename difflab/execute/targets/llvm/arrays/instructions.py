"""The instructions of machine code for arrays: operations on all points of a loop nest.

A view is a way to read an operand: an offset, and a stride along each axis of the nest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from difflab.errors import ConsistencyError
from difflab.execute.targets.llvm.arrays.strides import sizes
from difflab.execute.targets.llvm.fourier import Transform
from difflab.execute.targets.llvm.matrix_loops import MatrixLoop
from difflab.graph.ir import Shape

if TYPE_CHECKING:
    from difflab.execute.targets.llvm.arrays.subprograms import Subprograms


COPY, GATHER, SCATTER = "copy", "gather", "scatter"
RECURRENCES = {"cumsum": "add", "cumprod": "multiply", "linear_recurrence": ""}
"""How the rows that accumulate along the last axis of a nest join a term to the value before."""


class Ref(NamedTuple):
    """Elements of a value: the offset of the first, and strides along the axes of a nest."""

    root: int
    offset: int
    strides: tuple[int, ...]

    def reach(self, domain: Shape) -> tuple[int, int]:
        """Return the first and the last index that a nest of at least one point accesses.

        Examples
        --------
        >>> Ref(0, 5, (3, -1)).reach((2, 4))
        (2, 8)
        """
        low = high = self.offset
        for size, step in zip(domain, self.strides, strict=bool(domain)):
            end = (size - 1) * step
            if end < 0:
                low += end
            else:
                high += end
        return low, high


class Lookup(NamedTuple):
    """An axis of a nest, of several points, whose positions in an array lie in a table.

    Attributes
    ----------
    axis : int
        The axis.
    size : int
        What all positions are less than.
    """

    axis: int
    size: int

    def reached(self, domain: Shape) -> Shape:
        """Return the nest along which the array is accessed at the most."""
        return (*domain[: self.axis], self.size, *domain[self.axis + 1 :])


class Instruction(NamedTuple):
    """One operation on every point of a nest.

    Attributes
    ----------
    name : str
        The operation, as in `SPELLINGS`, or `COPY`.
    domain : tuple of int
        The sizes of the nest.
    out : Ref
        Where results go.
    args : tuple of Ref
        What is read.
    into : str
        How a result is accumulated into its destination: ``"add"``, ``"maximum"``,
        ``"minimum"``; empty where it is stored.
    truth : bool
        Whether the result is a truth value.
    control : Subprograms or None
        What a control instruction calls; its operands are whole contiguous values.
    lookup : Lookup or None
        What a `GATHER` looks up to read its first operand, and a `SCATTER` to add to its result;
        the last operand is the table.
    library : Transform, MatrixLoop or None
        What is called of a library; its operands are whole contiguous values.
    """

    name: str
    domain: Shape
    out: Ref
    args: tuple[Ref, ...]
    into: str = ""
    truth: bool = False
    control: Subprograms | None = None
    lookup: Lookup | None = None
    library: Transform | MatrixLoop | None = None

    @property
    def alone(self) -> bool:
        """Whether it shares no nest with others."""
        called = self.control is not None or self.library is not None
        return called or self.name == SCATTER or self.name in RECURRENCES

    @property
    def work(self) -> int:
        """The scalar operations, of a loop whose steps are not known those of one step."""
        if self.library is not None:
            return self.library.work
        return math.prod(self.domain) if self.control is None else self.control.work

    def along(self, slot: int) -> Shape:
        """Return the nest along which the result, slot 0, or an operand is accessed."""
        if self.name in RECURRENCES and slot == 2:  # coefficients: none for the first term
            return (*self.domain[:-1], self.domain[-1] - 1)
        indexed = self.lookup is not None and slot == (self.name == GATHER)
        return self.lookup.reached(self.domain) if self.lookup and indexed else self.domain

    def accesses(self) -> list[tuple[Ref, Shape]]:
        """Return the result and the operands, each with the nest that it is accessed along."""
        refs = (self.out, *self.args)
        if self.library is not None:
            counts: tuple[int, ...] = self.library.counts
        elif self.control is not None:
            counts = (self.control.size, *sizes(self.control.control.input_shapes))
        elif self.lookup is None and self.name not in RECURRENCES:
            return [(ref, self.domain) for ref in refs]
        else:
            return [(ref, self.along(slot)) for slot, ref in enumerate(refs)]
        whole = zip(refs, counts, strict=True)
        return [(ref._replace(strides=(1,)), (count,)) for ref, count in whole]


@dataclass
class Instructions:
    """What is computed, in order.

    Attributes
    ----------
    inputs : int
        The number of inputs, which are the values 0, 1, ….
    code : list of Instruction
        The operations.
    sizes : dict of int to int
        The number of elements of each value.
    known : dict of int to int
        Values that depend on no input: where they begin in `constants`.
    constants : list of float
        Their numbers.
    outputs : list of Ref
        The results, a step for each of their axes.
    truths : set of int
        The values that are truth values, kept as 0 and 1.
    """

    inputs: int
    code: list[Instruction] = field(default_factory=list)
    sizes: dict[int, int] = field(default_factory=dict)
    known: dict[int, int] = field(default_factory=dict)
    constants: list[float] = field(default_factory=list)
    outputs: list[Ref] = field(default_factory=list)
    truths: set[int] = field(default_factory=set)

    def add(self, step: Instruction) -> None:
        """Append an instruction, all of whose reads and writes lie inside their values."""
        for ref, domain in step.accesses():
            self.check(ref, domain, step.name)
        self.code.append(step)

    def check(self, ref: Ref, domain: Shape, what: str) -> None:
        """Raise `ConsistencyError` if a nest accesses an index outside of a value.

        Examples
        --------
        >>> Instructions(1, sizes={0: 6}).check(Ref(0, 1, (3, 1)), (2, 3), "copy")
        Traceback (most recent call last):
            ...
        difflab.errors.ConsistencyError: copy over (2, 3) accesses indices 1 to 6 of 6 elements
        """
        if 0 in domain:
            return
        low, high = ref.reach(domain)
        if low < 0 or high >= self.sizes[ref.root]:
            raise ConsistencyError(
                f"{what} over {domain} accesses indices {low} to {high} "
                f"of {self.sizes[ref.root]} elements"
            )
