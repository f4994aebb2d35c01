"""Loop nests of the rows that move elements, sum or multiply: stated once, for every emitter.

A result begins as zeros where nests accumulate into it, or leave elements out; that of a sum in
order as -0, to which its first term is added without rounding or change of sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive
from difflab.lower.nests import (
    COPY,
    GATHER,
    IN_ORDER,
    SCATTER,
    Instruction,
    Lookup,
    Ref,
    View,
)
from difflab.primitives import (
    broadcast,
    concatenate,
    diag,
    diagonal,
    index,
    matmul,
    pack,
    put,
    reshape,
    scatter,
    stop_gradient,
    sum_,
    sum_in_order,
    take,
    transpose,
)

# --- the forms of nests --------------------------------------------------------------------------


def copy(target: View, source: View, into: str = "") -> Instruction:
    """Return the nest that copies an array, or accumulates it."""
    read = source.broadcast(target.shape).ref
    return Instruction(COPY, target.shape, target.ref, (read,), into)


def joined(out: View, parts: Sequence[View], axis: int) -> Iterator[Instruction]:
    """Copy parts one after the other along an axis."""
    start = 0
    for part in parts:
        size = part.shape[axis]
        yield copy(out.stretch(axis, start, 1, size), part)
        start += size


def packed(root: int, parts: Sequence[View]) -> Iterator[Instruction]:
    """Copy the elements of all parts one after the other."""
    start = 0
    for part in parts:
        size = math.prod(part.shape)
        source = part.reshaped((size,)) or part
        yield copy(View.whole(root, source.shape, start), source)
        start += size


def placed(
    out: View, parts: Sequence[View], keys: Sequence[Any], into: str = ""
) -> Iterator[Instruction]:
    """Copy each part to the elements that its key selects, or accumulate it there."""
    for part, key in zip(parts, keys, strict=True):
        yield copy(out.indexed(key), part, into)


def looked_up(name: str, out: View, x: View, axis: int, table: int) -> Instruction:
    """Return the nest of a `GATHER` or a `SCATTER` along an axis, at the indices of a table."""
    axis %= len(x.shape)
    domain, whole = (x, out) if name == SCATTER else (out, x)
    strides = tuple([int(other == axis) for other in range(len(domain.shape))])
    args = (x.ref, Ref(table, 0, strides))
    lookup = Lookup(axis, whole.shape[axis])
    into = "add" if name == SCATTER else ""
    return Instruction(name, domain.shape, out.ref, args, into, lookup=lookup)


def reduced(name: str, out: View, x: View, axes: Sequence[int]) -> Instruction:
    """Return the nest that accumulates an array along axes."""
    rank = len(x.shape)
    gone = {axis % rank for axis in axes}
    kept = tuple([1 if axis in gone else size for axis, size in enumerate(x.shape)])
    target = View.whole(out.ref.root, kept).broadcast(x.shape)
    return Instruction(COPY, x.shape, target.ref, (x.ref,), name)


def product(out: View, a: View, b: View) -> Instruction:
    """Return the nest of a product of matrices, vectors or stacks of them.

    Examples
    --------
    >>> step = product(View.whole(2, (4, 5)), View.whole(0, (4, 3)), View.whole(1, (3, 5)))
    >>> step.domain, step.out.strides, step.args[0].strides, step.args[1].strides
    ((4, 3, 5), (5, 0, 1), (3, 1, 0), (0, 5, 1))
    """
    rows, columns = len(a.shape) > 1, len(b.shape) > 1
    left = a.inserted(len(a.shape)) if columns else a
    right = b.inserted(len(b.shape) - 1 - columns) if rows else b
    domain = np.broadcast_shapes(left.shape, right.shape)
    sums = out.inserted(len(out.shape) - columns).broadcast(domain)
    args = (left.broadcast(domain).ref, right.broadcast(domain).ref)
    return Instruction("multiply", domain, sums.ref, args, "add")


def recurrence(name: str, out: View, terms: View, *coefficients: View, axis: int) -> Instruction:
    """Return the nest of a recurrence along an axis, which becomes the innermost.

    Examples
    --------
    >>> step = recurrence("cumsum", View.whole(1, (2, 3)), View.whole(0, (2, 3)), axis=-2)
    >>> step.domain, step.out.strides
    ((3, 2), (1, 3))
    """
    args = (terms.ref, *[view.ref for view in coefficients])
    return Instruction(name, terms.shape, out.ref, args).innermost(axis % len(terms.shape))


# --- rows ----------------------------------------------------------------------------------------

_Nests = Callable[..., Iterator[Instruction] | Sequence[Instruction]]


def _in_order(
    out: View, *operands: View, places: Sequence[Any], length: int
) -> Iterator[Instruction]:
    """Add up parts whose terms alternate; those of other parts are copied in their order before."""
    *parts, terms = operands
    rounds = _alternating(places, length)
    if rounds is None:
        yield from placed(terms, parts, [(Ellipsis, place) for place in places])
        parts, rounds = [terms], [([0], 0, length)]
    sums = out.inserted(len(out.shape))
    for numbers, first, count in rounds:
        domain = (*out.shape, count)
        args = [
            parts[number].stretch(-1, first, 1, count).broadcast(domain).ref for number in numbers
        ]
        yield Instruction(IN_ORDER, domain, sums.broadcast(domain).ref, tuple(args), "add")


def _alternating(places: Sequence[Any], length: int) -> list[tuple[list[int], int, int]] | None:
    """Return the order of a sum's terms as rounds, each adding one term of some parts.

    A list of parts, the first of their terms and the number of rounds follow each other; None if
    the terms of the parts do not alternate.

    Examples
    --------
    >>> _alternating([(0, 1, 1), (1, 6, 2), (2, 6, 2)], 6)
    [([0], 0, 1), ([1, 2], 0, 2), ([1], 2, 1)]
    >>> _alternating([(0, 2, 1), (3, 1, -1)], 4) is None
    True
    """
    ranges = [range(length)[slice(*place)] for place in places]
    order = sorted(range(len(places)), key=lambda number: ranges[number].start)
    rounds, begin = [], 0
    while order:
        step = max(ranges[order[0]].step, 1)
        numbers, order = order[:step], order[step:]
        total = sum(len(ranges[number]) for number in numbers)
        whole = range(begin, begin + total)
        if [ranges[number] for number in numbers] != [whole[k::step] for k in range(step)]:
            return None
        count, more = divmod(total, step)
        rounds += [(numbers, 0, count), (numbers[:more], count, 1)]
        begin += total
    return [each for each in rounds if each[0] and each[2]]


_ROWS: Mapping[Primitive, _Nests] = {
    broadcast: lambda out, x, **_: [copy(out, x)],
    concatenate: lambda out, *parts, axis, rank: joined(out, parts, axis),
    diag: lambda out, x: [copy(out.diagonal(), x)],
    diagonal: lambda out, x: [copy(out, x.diagonal())],
    index: lambda out, x, *, key, rank: [copy(out, x.indexed(key))],
    matmul: lambda out, a, b, *, ranks: [product(out, a, b)],
    pack: lambda out, *parts, ranks: packed(out.ref.root, parts),
    put: lambda out, x, table, *, axis, **_: [looked_up(SCATTER, out, x, axis, table.ref.root)],
    reshape: lambda out, x, **_: packed(out.ref.root, [x]),
    scatter: lambda out, *parts, keys, shape: placed(out, parts, keys, "add"),
    stop_gradient: lambda out, x: packed(out.ref.root, [x]),
    sum_: lambda out, x, *, axes, rank: [reduced("add", out, x, axes)],
    sum_in_order: _in_order,
    take: lambda out, x, table, *, axis, **_: [looked_up(GATHER, out, x, axis, table.ref.root)],
    transpose: lambda out, x, *, axes: [copy(out, x.transposed(axes))],
}
"""The nests of each row, of its result, its operands and its parameters.

The last operand of `put` and `take` is the table of indices; that of `sum_in_order` is memory for
the terms of each sum, side by side, where they do not alternate.
"""
LOWERED = _ROWS.keys()
"""The rows that have nests."""


def nests(
    row: Primitive, params: Mapping[str, Any], out: View, operands: Sequence[View]
) -> list[Instruction]:
    """Return the nests of a row of `LOWERED`.

    Examples
    --------
    >>> x, out = View.whole(0, (2, 3)), View.whole(1, (3, 2))
    >>> nests(transpose, {"axes": (-1, -2)}, out, [x])[0].args
    (Ref(root=0, offset=0, strides=(1, 3)),)
    """
    return list(_ROWS[row](out, *operands, **params))
