"""Structural operations and matrix products as loops over flat arrays.

Every one is a nest of loops that copies or adds elements, or products of two, whose indices in the
flat, row-major arrays are affine in the loop counters: an offset and a stride per loop. For
arbitrary indices, a counter is first looked up in a table of indices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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


# --- one function for each row, of its parameters, the shapes of its arguments and its own -------

Params = dict[str, Any]
Shapes = Sequence[Shape]


def _read(params: Params, shapes: Shapes, shape: Shape) -> Iterator[Move]:
    sizes, place = _chosen(params["key"], shapes[0])
    yield Move(0, sizes, (0, _strides(sizes)), place)


def _written(params: Params, shapes: Shapes, shape: Shape) -> Iterator[Move]:
    for argument, key in enumerate(params["keys"]):
        sizes, place = _chosen(key, shape)
        yield Move(argument, sizes, place, (0, _strides(sizes)), adds=True)


def _spread(params: Params, shapes: Shapes, shape: Shape) -> Iterator[Move]:
    yield Move(0, shape, (0, _strides(shape)), (0, _stretched(shapes[0], (), shape)))


def _summed(params: Params, shapes: Shapes, shape: Shape) -> Iterator[Move]:
    kept, rank = iter(_strides(shape)), len(shapes[0])
    target = tuple(0 if axis - rank in params["axes"] else next(kept) for axis in range(rank))
    yield Move(0, shapes[0], (0, target), (0, _strides(shapes[0])), adds=True)


def _turned(params: Params, shapes: Shapes, shape: Shape) -> Iterator[Move]:
    strides = _strides(shapes[0])
    turned = tuple(strides[axis] for axis in params["axes"])
    yield Move(0, shape, (0, _strides(shape)), (0, turned))


def _on_diagonal(wide: Shape) -> tuple[int, Shape]:
    *lead, along, across = _strides(wide)
    return 0, (*lead, along + across)


def _to_diagonal(params: Params, shapes: Shapes, shape: Shape) -> Iterator[Move]:
    yield Move(0, shapes[0], _on_diagonal(shape), (0, _strides(shapes[0])))


def _of_diagonal(params: Params, shapes: Shapes, shape: Shape) -> Iterator[Move]:
    yield Move(0, shape, (0, _strides(shape)), _on_diagonal(shapes[0]))


def _looked_up(
    params: Params, shapes: Shapes, shape: Shape, *, adds: bool = False
) -> Iterator[Move]:
    """Take the elements at given indices along an axis, or add elements at these."""
    sizes = shapes[0] if adds else shape
    table = (params["axis"] + len(shapes[0]), tuple(indices(params["places"]).tolist()))
    yield Move(0, sizes, (0, _strides(shape)), (0, _strides(shapes[0])), adds, table)


def _joined(params: Params, shapes: Shapes, shape: Shape) -> Iterator[Move]:
    """Copy the parts one after the other along an axis."""
    axis, start, strides = params["axis"], 0, _strides(shape)
    for argument, part in enumerate(shapes):
        yield Move(argument, part, (start, strides), (0, _strides(part)))
        start += part[axis] * strides[axis]


def _in_sequence(params: Params, shapes: Shapes, shape: Shape) -> Iterator[Move]:
    """Copy all elements of the arguments one after the other."""
    start = 0
    for argument, part in enumerate(shapes):
        size = math.prod(part)
        yield Move(argument, (size,), (start, (1,)), (0, (1,)))
        start += size


_MOVES: Mapping[Primitive, Callable[[Params, Shapes, Shape], Iterator[Move]]] = {
    broadcast: _spread,
    concatenate: _joined,
    diag: _to_diagonal,
    diagonal: _of_diagonal,
    index: _read,
    pack: _in_sequence,
    put: partial(_looked_up, adds=True),
    reshape: _in_sequence,
    scatter: _written,
    stop_gradient: _in_sequence,
    sum_: _summed,
    take: _looked_up,
    transpose: _turned,
}
LOOPED = _MOVES.keys() | {constant_array, matmul, sum_in_order}
"""The primitives that become loops or constant arrays."""


def moves(row: Primitive, params: Params, shapes: Shapes, shape: Shape) -> list[Move]:
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
    return list(_MOVES[row](params, shapes, shape))


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
