"""Elementwise operations, moves of elements, sums and products as loops of printed code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from difflab.core.primitive import Primitive
from difflab.graph.ir import Shape
from difflab.language.printers.array_loops import Move, product, terms

if TYPE_CHECKING:
    from difflab.language.printers.straight import StraightLinePrinter

__all__ = ["elementwise", "moved", "ordered_sums", "product_of_arrays"]


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
        found = [printer.element(table, c) if k == axis else c for k, c in enumerate(counters)]
        read, written = (counters, found) if move.adds else (found, counters)
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
