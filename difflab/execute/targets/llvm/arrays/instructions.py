"""The instructions of machine code for arrays: operations on all points of a loop nest.

An operand is read as a view of a value: an offset, and a stride along each axis of the nest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from difflab.errors import ConsistencyError
from difflab.execute.lower.ops import ViewSpec
from difflab.execute.targets.llvm.libraries import MatrixLoop, Transform
from difflab.graph.ir import Shape

if TYPE_CHECKING:
    from difflab.execute.targets.llvm.arrays.control import Subprograms


# --- strides of arrays and of their views --------------------------------------------------------


def contiguous(shape: Shape) -> tuple[int, ...]:
    """Return the strides of a contiguous array."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def in_order(strides: Sequence[int], shape: Shape) -> bool:
    """Whether elements lie side by side, in the order of a contiguous array.

    Examples
    --------
    >>> in_order((3, 1), (2, 3)), in_order((6, 1), (2, 3)), in_order((6, 1), (1, 3))
    (True, False, True)
    """
    steps = zip(strides, contiguous(shape), shape, strict=True)
    return all(own == step for own, step, size in steps if size != 1)


def seen(
    shape: Shape, strides: Sequence[int], view: ViewSpec
) -> tuple[int, tuple[int, ...], Shape]:
    """Return the offset, strides and shape of a view.

    Computed from the key alone: NumPy returns a copy for some keys, whose address would be
    meaningless.

    Raises
    ------
    ConsistencyError
        The key is out of bounds.

    Examples
    --------
    >>> seen((4, 3), (3, 1), ("index", ((1, 4, 1), (0, 3, 2))))
    (3, (3, 2), (3, 2))
    >>> seen((4, 3), (3, 1), ("index", (2, 1))), seen((4, 3), (3, 1), ("transpose", (1, 0)))
    ((7, (), ()), (0, (1, 3), (3, 4)))
    """
    name, detail = view
    if name == "transpose":
        turned = tuple([shape[axis] for axis in detail])
        return 0, tuple([strides[axis] for axis in detail]), turned
    if name != "index":
        raise ConsistencyError(f"a view '{name}' has no strides")
    return _indexed(shape, strides, detail)


def _indexed(
    shape: Shape, strides: Sequence[int], key: Sequence[Any]
) -> tuple[int, tuple[int, ...], Shape]:
    """Return the offset, strides and shape of the elements that a key selects."""
    axes = iter(zip(shape, strides, strict=True))
    named = sum(entry is not None and entry is not Ellipsis for entry in key)
    if named > len(shape):
        raise ConsistencyError(f"{named} indices for the shape {shape}")
    whole = len(shape) - named  # the axes that an ellipsis stands for, at the end without one
    offset, picked = 0, list[tuple[int, int]]()
    for entry in (*key, *([] if Ellipsis in key else [Ellipsis])):
        if entry is None:
            picked.append((1, 0))
        elif entry is Ellipsis:
            picked += [next(axes) for _ in range(whole)]
        elif isinstance(entry, tuple):
            size, step = next(axes)
            places = range(size)[slice(*entry)]
            offset += places.start * step if places else 0
            picked.append((len(places), places.step * step))
        else:
            size, step = next(axes)
            if not -size <= entry < size:
                raise ConsistencyError(f"index {entry} is outside an axis of {size}")
            offset += entry % size * step
    return offset, tuple([step for _, step in picked]), tuple([size for size, _ in picked])


def reshaped(shape: Shape, strides: Sequence[int], wanted: Shape) -> tuple[int, ...] | None:
    """Return the strides of a reshaped view; None if elements have to be copied.

    Examples
    --------
    >>> reshaped((4, 3), (3, 1), (2, 2, 3)), reshaped((4, 3), (1, 4), (12,))
    ((6, 3, 1), None)
    """
    if 0 in wanted:
        return contiguous(wanted)
    left = [(n, step) for n, step in zip(shape, strides, strict=True) if n != 1]
    found: list[int] = []
    size, step = 1, 1  # numbers of a stretch of evenly spaced ones that are not given out yet
    for n in reversed(wanted):
        if n == 1:
            found.append(0)
            continue
        if size == 1 and left:
            size, step = left.pop()
        while size % n and left and left[-1][1] == size * step:
            size *= left.pop()[0]
        if size % n:
            return None
        found.append(step)
        size, step = size // n, step * n
    return tuple(reversed(found))


def runs(places: NDArray[np.intp]) -> Iterator[tuple[int, int, int, int]]:
    """Yield indices as evenly spaced runs: ``(start, first index, step, count)``."""
    steps = np.diff(places)
    changes = np.flatnonzero(np.diff(steps)) + 1
    start, size = 0, len(places)
    while start < size:
        change = np.searchsorted(changes, start, "right")
        stop = int(changes[change]) + 1 if change < len(changes) else size
        step = int(steps[start]) if start + 1 < size else 0
        yield start, int(places[start]), step, stop - start
        start = stop


def squeezed(shape: Shape) -> Shape:
    """Return a shape without its axes of size 1.

    Examples
    --------
    >>> squeezed((3, 1, 2))
    (3, 2)
    """
    return tuple([size for size in shape if size != 1])


def sizes(shapes: Sequence[Shape]) -> list[int]:
    """Return the number of elements of each shape."""
    return [math.prod(shape) for shape in shapes]


# --- instructions --------------------------------------------------------------------------------

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

    def squeezed(self, domain: Shape) -> Ref:
        """Return the elements with strides along the axes of more than one point only."""
        strides = zip(self.strides, domain, strict=True)
        return self._replace(strides=tuple([step for step, size in strides if size != 1]))


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
