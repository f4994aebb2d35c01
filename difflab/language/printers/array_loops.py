"""Structural operations and matrix products as loops over flat arrays.

Every one is a nest of loops that copies or adds elements, or products of two, whose indices in the
flat, row-major arrays are affine in the loop counters: an offset and a stride per loop. For
arbitrary indices, a counter is first looked up in a table of indices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from difflab.core.primitive import Primitive
from difflab.graph.ir import Shape
from difflab.language.placing import IndexKey
from difflab.primitives import (
    broadcast,
    concatenate,
    constant_array,
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
from difflab.primitives.movement import indices

if TYPE_CHECKING:
    from difflab.language.printers.straight import StraightLinePrinter


LOOPED = frozenset(
    {broadcast, concatenate, constant_array, diag, diagonal, index, matmul, pack, put, reshape}
    | {scatter, stop_gradient, sum_, sum_in_order, take, transpose}
)
"""The primitives that become loops or constant arrays."""


@dataclass(frozen=True, slots=True)
class Move:
    """``out[target] (+)= argument[source]`` for all counters.

    Attributes
    ----------
    argument : int
        Position of the argument that is read.
    sizes : tuple of int
        The number of iterations of each loop.
    target, source : (int, tuple of int)
        Offset and strides of the element written and of the element read.
    adds : bool
        Whether elements are added to the target.
    table : (int, tuple of int) or None
        A loop, and the indices that replace its counter: in the target if elements are added,
        otherwise in the source.
    """

    argument: int
    sizes: Shape
    target: tuple[int, Shape]
    source: tuple[int, Shape]
    adds: bool = False
    table: tuple[int, Shape] | None = None


def moves(
    row: Primitive, params: dict[str, Any], shapes: Sequence[Shape], shape: Shape
) -> list[Move]:
    """Return the loops that compute a structural operation or a sum.

    Parameters
    ----------
    row : Primitive
        One of `LOOPED` that has arguments, other than `sum_in_order` and `matmul`.
    params : dict
        The node's static parameters.
    shapes, shape : tuple of int
        The shapes of the arguments and of the result.
    """
    if row is index:
        sizes, place_read = _chosen(params["key"], shapes[0])
        return [Move(0, sizes, (0, _strides(sizes)), place_read)]
    if row is scatter:
        result = []
        for argument, key in enumerate(params["keys"]):
            sizes, place_written = _chosen(key, shape)
            result.append(Move(argument, sizes, place_written, (0, _strides(sizes)), adds=True))
        return result
    if row is broadcast:
        return [Move(0, shape, (0, _strides(shape)), (0, _stretched(shapes[0], (), shape)))]
    if row is sum_:
        return [_summed(params["axes"], shapes[0], shape)]
    if row is transpose:
        strides = _strides(shapes[0])
        turned = tuple(strides[axis] for axis in params["axes"])
        return [Move(0, shape, (0, _strides(shape)), (0, turned))]
    if row is diag or row is diagonal:
        return [_diagonal(row, shapes[0], shape)]
    if row is take or row is put:
        return [_looked_up(row, params, shapes[0], shape)]
    if row is concatenate:
        return _joined(params["axis"], shapes, shape)
    result, start = [], 0
    for argument, part in enumerate(shapes):
        size = math.prod(part)
        result.append(Move(argument, (size,), (start, (1,)), (0, (1,))))
        start += size
    return result


@dataclass(frozen=True, slots=True)
class Product:
    """``out[target] += left[at_left] * right[at_right]`` for all counters.

    Attributes
    ----------
    sizes : tuple of int
        The number of iterations of each loop; the innermost adds up.
    target, left, right : (int, tuple of int)
        Offset and strides of the elements.
    """

    sizes: Shape
    target: tuple[int, Shape]
    left: tuple[int, Shape]
    right: tuple[int, Shape]


def product(shapes: Sequence[Shape], shape: Shape) -> Product:
    """Return the loops of a product of matrices, vectors or stacks of matrices.

    Examples
    --------
    >>> product([(4, 3), (3, 5)], (4, 5))
    Product(sizes=(4, 5, 3), target=(0, (5, 1, 0)), left=(0, (3, 0, 1)), right=(0, (0, 1, 5)))
    >>> product([(3,), (3,)], ())
    Product(sizes=(3,), target=(0, (0,)), left=(0, (1,)), right=(0, (1,)))
    """
    a, b = shapes
    rows, columns = len(a) > 1, len(b) > 1
    stacked = shape[: len(shape) - rows - columns]
    own = a[len(a) - 1 - rows :], b[len(b) - 1 - columns :]
    left, right = _strides(own[0]), _strides(own[1])
    return Product(
        (*shape, a[-1]),
        (0, (*_strides(shape), 0)),
        (0, (*_stretched(a, own[0], stacked), *left[:rows], *(0,) * columns, left[-1])),
        (0, (*_stretched(b, own[1], stacked), *(0,) * rows, *right[1:], right[0])),
    )


def _stretched(shape: Shape, own: Shape, stacked: Shape) -> Shape:
    """Return the strides of the axes in front of a matrix, broadcast to those of the product."""
    lead = shape[: len(shape) - len(own)]
    strides = [
        0 if size == 1 else stride for size, stride in zip(lead, _strides(shape), strict=False)
    ]
    return (0,) * (len(stacked) - len(lead)) + tuple(strides)


def terms(params: dict[str, Any], shapes: Sequence[Shape]) -> list[Move]:
    """Return the loops that gather the terms of ordered sums, the terms of each sum contiguous."""
    length = params["length"]
    entries = []
    for argument, (shape, key) in enumerate(zip(shapes, params["places"], strict=True)):
        places = range(*slice(*key).indices(length))
        lead = _strides((*shape[:-1], length))[:-1]
        target = (places.start, (*lead, places.step))
        entries.append(Move(argument, shape, target, (0, _strides(shape))))
    return entries


def _diagonal(row: Primitive, shape: Shape, result: Shape) -> Move:
    """Copy between vectors and the diagonals of square matrices."""
    short, wide = (shape, result) if row is diag else (result, shape)
    *lead, along, across = _strides(wide)
    on = (0, (*lead, along + across))
    plain = (0, _strides(short))
    return Move(0, short, on, plain) if row is diag else Move(0, short, plain, on)


def _looked_up(row: Primitive, params: dict[str, Any], shape: Shape, result: Shape) -> Move:
    """Take the elements at given indices along an axis, or add elements at these."""
    sizes = result if row is take else shape
    axis = params["axis"] + len(shape)
    table = (axis, tuple(indices(params["places"]).tolist()))
    return Move(0, sizes, (0, _strides(result)), (0, _strides(shape)), row is put, table)


def _joined(axis: int, shapes: Sequence[Shape], result: Shape) -> list[Move]:
    """Copy the parts one after the other along an axis."""
    joined_moves, start, strides = [], 0, _strides(result)
    for argument, shape in enumerate(shapes):
        joined_moves.append(Move(argument, shape, (start, strides), (0, _strides(shape))))
        start += shape[axis] * strides[axis]
    return joined_moves


def _summed(axes: Sequence[int], shape: Shape, result: Shape) -> Move:
    kept = iter(_strides(result))
    rank = len(shape)
    target = tuple(0 if axis - rank in axes else next(kept) for axis in range(rank))
    return Move(0, shape, (0, target), (0, _strides(shape)), adds=True)


def _strides(shape: Shape) -> Shape:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _chosen(key: IndexKey, shape: Shape) -> tuple[Shape, tuple[int, Shape]]:
    """Return the shape that a key selects, and the offset and strides of its elements."""
    offset, sizes, strides = 0, [], []
    for entry, size, stride in zip(key, shape, _strides(shape), strict=True):
        if isinstance(entry, int):
            offset += entry * stride
        else:
            chosen = range(*slice(*entry).indices(size))
            offset += chosen.start * stride
            sizes.append(len(chosen))
            strides.append(chosen.step * stride)
    return tuple(sizes), (offset, tuple(strides))


def flat_index(affine: tuple[int, Shape], counters: Sequence[str]) -> str:
    """Return the index as an expression in the counters.

    What is added comes first, so that no intermediate result is negative.

    Examples
    --------
    >>> flat_index((2, (3, -1)), ["i0", "i1"]), flat_index((0, ()), []), flat_index((0, (-1,)), "i")
    ('3*i0 + 2 - i1', '0', '0 - i')
    """
    offset, strides = affine
    added: list[str] = []
    removed: list[str] = []
    for stride, counter in zip(strides, counters, strict=True):
        if stride:
            factor = "" if abs(stride) == 1 else f"{abs(stride)}*"
            (removed if stride < 0 else added).append(factor + counter)
    if offset or not added:
        (removed if offset < 0 else added).append(str(abs(offset)))
    return " - ".join([" + ".join(added), *removed])


def elementwise(printer: StraightLinePrinter, node: int, row: Primitive, size: int) -> None:
    """Write the loop of an operation on each element."""
    name = printer.result_name(node)
    printer.add(printer.array(name, size, truths=row.boolean))
    value = printer.computed_at(node, "i")
    printer.loops([("i", size)], printer.element(name, "i"), "=", value)
    printer.names[node] = name


def moved(
    printer: StraightLinePrinter, name: str, move: Move, child: int, *, total: bool = False
) -> None:
    """Write the loops that move elements into an array, or add all to a number."""
    single = len(move.sizes) == 1
    counters = ["i" if single else f"i{axis}" for axis in range(len(move.sizes))]
    read = written = counters
    if move.table is not None:
        axis, places = move.table
        table = printer.tabulated([str(number + printer.base) for number in places], places=True)
        indices = [printer.element(table, c) if k == axis else c for k, c in enumerate(counters)]
        read, written = (counters, indices) if move.adds else (indices, counters)
    loops = list(zip(counters, move.sizes, strict=True))
    target = name if total else printer.at(name, move.target, written)
    sign = "+=" if move.adds else "="
    if printer.graph.shape(child):
        value = printer.at_place(child, printer.place(move.source, read), sign)
    else:
        value = printer.expression(child)
        if move.sizes == (1,):
            loops, target = [], printer.element(name, move.target[0])
    printer.loops(loops, target, sign, value)


def ordered_sums(
    printer: StraightLinePrinter,
    node: int,
    children: Sequence[int],
    shapes: Sequence[Shape],
    shape: Shape,
) -> None:
    """Write sums that add their terms in order."""
    params, count = printer.graph.params(node), math.prod(shape)
    length = params["length"]
    if count == 1 and not shape and len(children) == 1 and shapes[0]:  # all terms, in order
        total = printer.result_name(node)
        printer.carry(total, printer.number(0.0, None), None)
        term = printer.at_place(children[0], "i", "+=")
        printer.loops([("i", length)], total, "+=", term)
        printer.names[node] = total
        return
    name = printer.fresh.numbered("t")
    printer.filled(terms(params, shapes), children, count * length, name)
    total = printer.result_name(node)
    printer.lines.append(printer.indent + printer.array(total, count))
    if count == 1:
        term = printer.element(name, "i")
        printer.loops([("i", length)], printer.element(total, 0), "+=", term)
    else:
        loops = [("i0", count), ("i1", length)]
        term = printer.at(name, (0, (length, 1)), ["i0", "i1"])
        printer.loops(loops, printer.element(total, "i0"), "+=", term)
    printer.names[node] = total if shape else printer.element(total, 0)


def product_of_arrays(
    printer: StraightLinePrinter,
    node: int,
    children: Sequence[int],
    shapes: Sequence[Shape],
    shape: Shape,
) -> None:
    """Write a product of matrices or vectors."""
    loops, name = product(shapes, shape), printer.result_name(node)
    counters = [f"i{axis}" for axis in range(len(loops.sizes))]
    if shape:
        printer.add(printer.array(name, math.prod(shape)))
    else:
        printer.carry(name, printer.number(0.0, None), None)
    left, right = (
        printer.at(printer.names[child], affine, counters)
        for child, affine in zip(children, (loops.left, loops.right), strict=True)
    )
    target = printer.at(name, loops.target, counters) if shape else name
    printer.loops(list(zip(counters, loops.sizes, strict=True)), target, "+=", f"{left} * {right}")
    printer.names[node] = name
