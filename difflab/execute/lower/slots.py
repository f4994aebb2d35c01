"""Assignment of values to reusable slots, by liveness."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

SlotKind = TypeVar("SlotKind", bound=Hashable)


def assign_slots(
    writes: Sequence[int],
    reads: Sequence[Sequence[int]],
    kinds: Sequence[SlotKind],
    in_place: Sequence[bool],
    kept: frozenset[int],
) -> dict[int, tuple[SlotKind, int]]:
    """Assign values to slots, which are reused once the value in them is no longer needed.

    Parameters
    ----------
    writes : sequence of int
        The value that each operation computes.
    reads : sequence of sequences of int
        The values that it reads.
    kinds : sequence
        The kind of each value; only values of one kind share a slot.
    in_place : sequence of bool
        Whether the operation may overwrite a value that it is the last to read.
    kept : frozenset of int
        The values that get no slot.

    Returns
    -------
    dict of int to (kind, int)
        The slot of each value that is not in `kept`.

    Examples
    --------
    >>> assign_slots([3, 4, 5], [[0, 1], [3, 2], [4, 3]], "fff", [True] * 3, frozenset())
    {3: ('f', 0), 4: ('f', 1), 5: ('f', 0)}
    """
    last: dict[int, int] = {}
    for index, values in enumerate(reads):
        for value in values:
            last[value] = index
    free: dict[SlotKind, list[int]] = {}
    made: dict[SlotKind, int] = {}
    slots: dict[int, tuple[SlotKind, int]] = {}
    for index, (value, read, kind) in enumerate(zip(writes, reads, kinds, strict=True)):
        dying = [slots[v] for v in dict.fromkeys(read) if last[v] == index and v in slots]
        if in_place[index]:
            _release(free, dying)
        if value not in kept:
            spare = free.setdefault(kind, [])
            if not spare:
                spare.append(made.get(kind, 0))
                made[kind] = spare[0] + 1
            slots[value] = (kind, spare.pop())
            if value not in last:
                dying.append(slots[value])
        if not in_place[index]:
            _release(free, dying)
        elif value not in last and value in slots:
            _release(free, [slots[value]])
    return slots


def _release(free: dict[SlotKind, list[int]], slots: Sequence[tuple[SlotKind, int]]) -> None:
    for kind, slot in slots:
        free.setdefault(kind, []).append(slot)


def memory_roots(values: Sequence[int], roots: Mapping[int, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the values that own the memory of `values`: those in `roots`, or the values.

    Examples
    --------
    >>> memory_roots([5, 6, 7], {6: (3, 5), 7: ()})
    (5, 3)
    """
    return tuple(dict.fromkeys([root for value in values for root in roots.get(value, (value,))]))
