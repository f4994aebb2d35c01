"""The places that values take in turn, by how long each is needed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

__all__ = ["assign_slots", "memory_roots"]

SlotKind = TypeVar("SlotKind", bound=Hashable)


def assign_slots(
    writes: Sequence[int],
    reads: Sequence[Sequence[int]],
    kinds: Sequence[SlotKind],
    in_place: Sequence[bool],
    kept: frozenset[int],
) -> dict[int, tuple[SlotKind, int]]:
    """Give values places that are used again when what they held is no longer needed.

    Parameters
    ----------
    writes : sequence of int
        The value that each operation gives.
    reads : sequence of sequences of int
        The values that it takes.
    kinds : sequence
        Values share a place only with others of their kind.
    in_place : sequence of bool
        Whether the operation may write over what it reads last.
    kept : frozenset of int
        The values that have places of their own.

    Returns
    -------
    dict of int to (kind, int)
        The place of each value that is not in `kept`.

    Examples
    --------
    >>> assign_slots([3, 4, 5], [[0, 1], [3, 2], [4, 3]], "fff", [True] * 3, frozenset())
    {3: ('f', 0), 4: ('f', 1), 5: ('f', 0)}
    """
    last: dict[int, int] = {}
    for place, values in enumerate(reads):
        for value in values:
            last[value] = place
    free: dict[SlotKind, list[int]] = {}
    made: dict[SlotKind, int] = {}
    slots: dict[int, tuple[SlotKind, int]] = {}
    for place, (value, taken, kind) in enumerate(zip(writes, reads, kinds, strict=True)):
        dying = [slots[v] for v in dict.fromkeys(taken) if last[v] == place and v in slots]
        if in_place[place]:
            _release(free, dying)
        if value not in kept:
            spare = free.setdefault(kind, [])
            if not spare:
                spare.append(made.get(kind, 0))
                made[kind] = spare[0] + 1
            slots[value] = (kind, spare.pop())
            if value not in last:
                dying.append(slots[value])
        if not in_place[place]:
            _release(free, dying)
        elif value not in last and value in slots:
            _release(free, [slots[value]])
    return slots


def _release(free: dict[SlotKind, list[int]], places: Sequence[tuple[SlotKind, int]]) -> None:
    for kind, slot in places:
        free.setdefault(kind, []).append(slot)


def memory_roots(values: Sequence[int], roots: Mapping[int, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the values whose memory some values lie in: their own, where `roots` has no other.

    Examples
    --------
    >>> memory_roots([5, 6, 7], {6: (3, 5), 7: ()})
    (5, 3)
    """
    return tuple(dict.fromkeys([root for value in values for root in roots.get(value, (value,))]))
