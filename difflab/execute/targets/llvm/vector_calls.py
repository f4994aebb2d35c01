"""Groups of independent calls of one function, which one call of a vector function computes.

The operations of a window are sorted by the largest number of such calls on a path to them. Calls
of one function that have this number in common do not depend on one another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from difflab.execute.lower.ops import Op
from difflab.execute.targets.llvm.functions import Functions
from difflab.execute.targets.llvm.spelling import SPELLINGS

LEAST = 20_000
"""Operations below which calls stay single: the functions of the C library are more accurate than
vector functions, and short code gains little."""
WINDOW = 8_000
"""Operations that are sorted at a time, so that the values between them stay in the cache."""


def grouped_calls(ops: Sequence[Op], functions: Functions, width: int) -> list[list[Op]]:
    """Return operations in order: groups of up to `width` calls, and groups of one operation."""
    arities = {op.name: len(op.reads) for op in ops}
    names = {
        name
        for name, arity in arities.items()
        if SPELLINGS[name].function and functions.vector(SPELLINGS[name].function, arity, width)
    }
    if not names or len(ops) < LEAST:
        return [[op] for op in ops]
    return [
        group
        for start in range(0, len(ops), WINDOW)
        for group in _by_level(ops[start : start + WINDOW], names, width)
    ]


def _by_level(ops: Sequence[Op], names: set[str], width: int) -> Iterator[list[Op]]:
    """Yield the operations of a window, with calls of the functions `names` in groups."""
    levels: dict[int, int] = {}
    others: dict[int, list[Op]] = defaultdict(list)
    calls: dict[int, dict[str, list[Op]]] = defaultdict(lambda: defaultdict(list))
    for op in ops:
        level, name = max([levels.get(read, 0) for read in op.reads]), op.name
        if name in names:
            calls[level][name].append(op)
        else:
            others[level].append(op)
        levels[op.number] = level + (name in names)
    for level in range(max(levels.values()) + 1):
        yield from ([op] for op in others[level])
        for same in calls[level].values():
            yield from (same[start : start + width] for start in range(0, len(same), width))
