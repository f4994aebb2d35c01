"""Sums in order and products of arrays as loops of printed code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from difflab.graph.ir import Shape
from difflab.language.printers.array_loops import product, terms

if TYPE_CHECKING:
    from difflab.language.printers.straight import StraightLinePrinter

__all__ = ["ordered_sums", "product_of_arrays"]


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
    printer.lines.append(printer.indent + printer.array(name, math.prod(shape)))
    left, right = (
        printer.at(printer.names[child], affine, counters)
        for child, affine in zip(children, (loops.left, loops.right), strict=True)
    )
    target = printer.at(name, loops.target, counters)
    printer.loops(list(zip(counters, loops.sizes, strict=True)), target, "+=", f"{left} * {right}")
    printer.names[node] = name if shape else printer.element(name, 0)
