"""Loop nests: operations on all points of a domain, whose operands are strided views of values.

An operand is an offset, and a stride along each axis of the nest. Machine code, printed code and
unrolling are written from these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from difflab.errors import ConsistencyError
from difflab.graph.ir import Shape
from difflab.lower.records import Records

# --- shapes and strides --------------------------------------------------------------------------


def contiguous(shape: Shape) -> tuple[int, ...]:
    """Return the strides of a contiguous array."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def in_order(strides: Sequence[int], shape: Shape) -> bool:
    """Whether elements are contiguous, in row-major order.

    Examples
    --------
    >>> in_order((3, 1), (2, 3)), in_order((6, 1), (2, 3)), in_order((6, 1), (1, 3))
    (True, False, True)
    """
    steps = zip(strides, contiguous(shape), shape, strict=True)
    return all(own == step for own, step, size in steps if size != 1)


def squeezed(shape: Shape) -> Shape:
    """Return a shape without its axes of size 1.

    Examples
    --------
    >>> squeezed((3, 1, 2))
    (3, 2)
    """
    return tuple([size for size in shape if size != 1])


# --- operands ------------------------------------------------------------------------------------


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


class View(NamedTuple):
    """An array whose elements are those of a value: `ref` has a stride along each of its axes.

    Offsets and strides are computed from the arguments alone: NumPy returns a copy for some keys,
    whose address would be meaningless.
    """

    ref: Ref
    shape: Shape

    @classmethod
    def whole(cls, root: int, shape: Shape, start: int = 0) -> View:
        """Return the contiguous elements of a value from `start` on."""
        return cls(Ref(root, start, contiguous(shape)), shape)

    def _of(self, offset: int, strides: Sequence[int], shape: Sequence[int]) -> View:
        root, start, _ = self.ref
        return View(Ref(root, start + offset, tuple(strides)), tuple(shape))

    def broadcast(self, shape: Shape) -> View:
        """Return the array as it is read along a nest that it is broadcast to.

        Raises
        ------
        ConsistencyError
            It cannot be broadcast.

        Examples
        --------
        >>> View.whole(0, (3, 1)).broadcast((2, 3, 4)).ref.strides
        (0, 1, 0)
        """
        if shape == self.shape:
            return self
        missing = len(shape) - len(self.shape)
        axes = [*zip(self.shape, shape[max(missing, 0) :], self.ref.strides, strict=False)]
        if missing < 0 or any(size not in (1, n) for size, n, _ in axes):
            raise ConsistencyError(
                f"an operand of shape {self.shape} cannot be broadcast to {shape}"
            )
        strides = [0 if size == 1 else step for size, _, step in axes]
        return self._of(0, [0] * missing + strides, shape)

    def transposed(self, axes: Sequence[int]) -> View:
        """Return the array with its axes in another order."""
        strides = self.ref.strides
        return self._of(0, [strides[axis] for axis in axes], [self.shape[axis] for axis in axes])

    def inserted(self, axis: int) -> View:
        """Return the array with one more axis, of one point."""
        strides, shape = self.ref.strides, self.shape
        return self._of(0, (*strides[:axis], 0, *strides[axis:]), (*shape[:axis], 1, *shape[axis:]))

    def stretch(self, axis: int, start: int, step: int, count: int) -> View:
        """Return evenly spaced elements along an axis.

        Examples
        --------
        >>> View.whole(0, (4, 3)).stretch(0, 3, -2, 2)
        View(ref=Ref(root=0, offset=9, strides=(-6, 1)), shape=(2, 3))
        """
        strides, shape = [*self.ref.strides], [*self.shape]
        first = start * strides[axis]
        strides[axis], shape[axis] = strides[axis] * step, count
        return self._of(first, strides, shape)

    def indexed(self, key: Sequence[Any]) -> View:
        """Return the elements that a key selects, in which a tuple stands for a slice.

        Raises
        ------
        ConsistencyError
            The key is out of bounds.

        Examples
        --------
        >>> View.whole(0, (4, 3)).indexed(((1, 4, 1), (0, 3, 2)))
        View(ref=Ref(root=0, offset=3, strides=(3, 2)), shape=(3, 2))
        """
        shape = self.shape
        axes = iter(zip(shape, self.ref.strides, strict=True))
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
                indices = range(size)[slice(*entry)]
                offset += indices.start * step if indices else 0
                picked.append((len(indices), indices.step * step))
            else:
                size, step = next(axes)
                if not -size <= entry < size:
                    raise ConsistencyError(f"index {entry} is outside an axis of {size}")
                offset += entry % size * step
        return self._of(offset, [step for _, step in picked], [size for size, _ in picked])

    def diagonal(self) -> View:
        """Return the diagonals of square matrices.

        Examples
        --------
        >>> View.whole(0, (2, 3, 3)).diagonal()
        View(ref=Ref(root=0, offset=0, strides=(9, 4)), shape=(2, 3))
        """
        *lead, along, across = self.ref.strides
        return self._of(0, [*lead, along + across], self.shape[:-1])

    def reshaped(self, wanted: Shape) -> View | None:
        """Return the elements in another shape; None if they have to be copied for it.

        Examples
        --------
        >>> View.whole(0, (4, 3)).reshaped((2, 2, 3)).ref.strides
        (6, 3, 1)
        >>> View.whole(0, (3, 4)).transposed((1, 0)).reshaped((12,)) is None
        True
        """
        if 0 in wanted:
            return self._of(0, contiguous(wanted), wanted)
        left = [(n, s) for n, s in zip(self.shape, self.ref.strides, strict=True) if n != 1]
        strides: list[int] = []
        size, step = 1, 1  # elements of an evenly spaced stretch that are not assigned yet
        for n in reversed(wanted):
            if n == 1:
                strides.append(step)
                continue
            if size == 1 and left:
                size, step = left.pop()
            while size % n and left and left[-1][1] == size * step:
                size *= left.pop()[0]
            if size % n:
                return None
            strides.append(step)
            size, step = size // n, step * n
        return self._of(0, strides[::-1], wanted)


# --- instructions --------------------------------------------------------------------------------

COPY, GATHER, SCATTER, IN_ORDER = "copy", "gather", "scatter", "sum_in_order"
RECURRENCES = {"cumsum": "add", "cumprod": "multiply", "linear_recurrence": ""}
"""How the rows that accumulate along the last axis of a nest join a term to the value before."""


class Called(Protocol):
    """A function that is called on whole contiguous values."""

    @property
    def counts(self) -> tuple[int, ...]:
        """The elements of the result and of the operands."""

    @property
    def work(self) -> int:
        """The scalar operations, up to a factor; of one step where the steps are not known."""


class Lookup(NamedTuple):
    """An axis of a nest, of several points, whose positions in an array lie in a table.

    Attributes
    ----------
    axis : int
        The axis.
    size : int
        The size of that axis of the array.
    """

    axis: int
    size: int


class Instruction(NamedTuple):
    """One operation on every point of a nest.

    Attributes
    ----------
    name : str
        A universal function of NumPy, one of `RECURRENCES`, `COPY`, `GATHER`, `SCATTER` or
        `IN_ORDER`, which adds its operands to the result one after the other, point by point in
        ascending order; or the row that is called.
    domain : tuple of int
        The sizes of the nest.
    out : Ref
        Where results go.
    args : tuple of Ref
        The operands.
    into : str
        How a result is accumulated into its destination: ``"add"``, ``"maximum"``,
        ``"minimum"``; empty where it is stored.
    truth : bool
        Whether the result is a truth value.
    lookup : Lookup or None
        The lookup of a `GATHER` in its first operand, or of a `SCATTER` in its result;
        the last operand is the table.
    called : Called or None
        The called function; its operands are whole contiguous values.
    """

    name: str
    domain: Shape
    out: Ref
    args: tuple[Ref, ...]
    into: str = ""
    truth: bool = False
    lookup: Lookup | None = None
    called: Called | None = None

    @property
    def alone(self) -> bool:
        """Whether it shares no nest with others."""
        return self.called is not None or self.name == SCATTER or self.name in RECURRENCES

    @property
    def work(self) -> int:
        """The scalar operations, of a loop whose steps are not known those of one step."""
        return math.prod(self.domain) if self.called is None else self.called.work

    def along(self, slot: int) -> Shape:
        """Return the nest along which the result, slot 0, or an operand is accessed."""
        if self.name in RECURRENCES and slot == 2:  # coefficients: none for the first term
            return (*self.domain[:-1], self.domain[-1] - 1)
        if self.lookup is None or slot != (self.name == GATHER):
            return self.domain
        axis, size = self.lookup  # the positions lie anywhere along it
        return (*self.domain[:axis], size, *self.domain[axis + 1 :])

    def accesses(self) -> list[tuple[Ref, Shape]]:
        """Return the result and the operands, each with the nest that it is accessed along."""
        refs = (self.out, *self.args)
        if self.called is not None:
            whole = zip(refs, self.called.counts, strict=True)
            return [(ref._replace(strides=(1,)), (count,)) for ref, count in whole]
        if self.lookup is None and self.name not in RECURRENCES:
            return [(ref, self.domain) for ref in refs]
        return [(ref, self.along(slot)) for slot, ref in enumerate(refs)]

    def innermost(self, axis: int) -> Instruction:
        """Return the same nest with another axis as the innermost."""
        order = [*range(axis), *range(axis + 1, len(self.domain)), axis]
        domain = tuple([self.domain[entry] for entry in order])
        out, *args = [
            ref._replace(strides=tuple([ref.strides[entry] for entry in order]))
            for ref in (self.out, *self.args)
        ]
        return self._replace(domain=domain, out=out, args=tuple(args))


def require_inside(step: Instruction, sizes: Mapping[int, int]) -> None:
    """Raise `ConsistencyError` if a nest accesses an index outside of a value.

    Parameters
    ----------
    step : Instruction
        The nest.
    sizes : mapping of int to int
        The number of elements of each value.

    Examples
    --------
    >>> read, out = Ref(0, 1, (3, 1)), Ref(1, 0, (3, 1))
    >>> require_inside(Instruction(COPY, (2, 3), out, (read,)), {0: 6, 1: 6})
    Traceback (most recent call last):
        ...
    difflab.errors.ConsistencyError: copy over (2, 3) accesses indices 1 to 6 of 6 elements
    """
    for ref, domain in step.accesses():
        require_bounds(ref, domain, sizes[ref.root], step.name)


def require_bounds(ref: Ref, domain: Shape, size: int, what: str) -> None:
    """Raise `ConsistencyError` if elements along a nest lie outside of a value of a size."""
    if 0 in domain:
        return
    low, high = ref.reach(domain)
    if low < 0 or high >= size:
        raise ConsistencyError(
            f"{what} over {domain} accesses indices {low} to {high} of {size} elements"
        )


class Refs(NamedTuple):
    """The values that an operand reads in several iterations, and its offsets there."""

    roots: NDArray[np.int64]
    offsets: NDArray[np.int64]


_NO_REFS = Refs(*np.empty((2, 0), np.int64))


class _Sizes(dict[int, int]):
    """The number of elements of each value; those without an entry are scalars."""

    def __missing__(self, root: int) -> int:
        return 1


def _split(step: Instruction) -> tuple[Any, list[int]]:
    """Return an instruction without its values and offsets, and these."""
    name, domain, out, args, *rest = step
    refs = (out, *args)
    strides = tuple([ref.strides for ref in refs])
    return (name, domain, *rest, strides), [entry for ref in refs for entry in ref[:2]]


def _joined(template: Any, integers: tuple[int, ...]) -> Instruction:
    name, domain, *rest, strides = template
    out, *args = map(Ref, integers[::2], integers[1::2], strides)
    return Instruction(name, domain, out, tuple(args), *rest)


@dataclass
class Instructions:
    """Nests in their order, and the values that they read and write.

    Attributes
    ----------
    inputs : int
        The number of inputs, which are the values 0, 1, ….
    code : sequence of Instruction
        The operations.
    sizes : dict of int to int
        The number of elements of each value that is no scalar.
    known : dict of int to int
        Values that depend on no input: where they begin in `constants`.
    constants : list of float
        Their elements.
    outputs : list of Ref
        The results, a step for each of their axes.
    truths : set of int
        The values that are truth values, kept as 0 and 1.
    """

    inputs: int
    code: Records[Instruction] = field(default_factory=partial(Records, _split, _joined))
    sizes: dict[int, int] = field(default_factory=_Sizes)
    known: dict[int, int] = field(default_factory=dict)
    constants: list[float] = field(default_factory=list)
    outputs: list[Ref] = field(default_factory=list)
    truths: set[int] = field(default_factory=set)

    def add(self, step: Instruction) -> None:
        """Append an instruction, all of whose reads and writes lie inside their values."""
        require_inside(step, self.sizes)
        self.code.append(step._replace(truth=True) if step.out.root in self.truths else step)

    def refs(self, places: range, slot: int) -> Refs:
        """Return the result, slot 0, or an operand of instructions that differ in these only."""
        if not places:  # outside of loops
            return _NO_REFS
        ends, integers = (
            np.frombuffer(column, np.int64) for column in (self.code.ends, self.code.integers)
        )
        starts = ends[places.start : places.stop : places.step] + 2 * slot
        return Refs(integers[starts], integers[starts + 1])
