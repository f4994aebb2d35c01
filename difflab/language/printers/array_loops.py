"""Loop nests over flat, row-major arrays, as they are printed.

A nest copies or adds elements, or products of two, at indices that are affine in the loop counters:
an offset and a stride per loop. For arbitrary indices, a counter is first looked up in a table of
indices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from difflab.core.primitive import Primitive
from difflab.graph.ir import Shape
from difflab.language.printers.expressions import ANYTHING, ATOM
from difflab.lower.nests import COPY, IN_ORDER, SCATTER, Instruction, Ref, View, require_inside
from difflab.lower.rows import LOWERED, nests
from difflab.primitives import constant_array, matmul, put, sum_, sum_in_order, take
from difflab.primitives.movement import indices

if TYPE_CHECKING:
    from difflab.language.printers.straight import StraightLinePrinter

LOOPED = LOWERED | {constant_array}
"""The primitives that become loops or constant arrays."""
_BESIDE = -1
"""The value of the nests of a row that is no argument: a table of indices, or terms of sums."""


def flat_index(affine: tuple[int, Shape], counters: Sequence[str]) -> str:
    """Return the index as an expression in the counters.

    Terms that are added come first, so that no intermediate result is negative.

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


def lowered(printer: StraightLinePrinter, node: int, row: Primitive) -> None:
    """Write the nests of a row."""
    children, shape = printer.view.children[node], printer.graph.shape(node)
    params = printer.graph.params(node)
    operands = [View.whole(k, printer.graph.shape(child)) for k, child in enumerate(children)]
    if row in (put, take):
        operands.append(View.whole(_BESIDE, indices(params["places"]).shape))
    elif row is sum_in_order:
        operands.append(View.whole(_BESIDE, (*shape, params["length"])))
    out = View.whole(len(children), shape)
    steps = nests(row, params, out, operands)
    sizes = {view.ref.root: math.prod(view.shape) for view in (out, *operands)}
    for step in steps:
        require_inside(step, sizes)
    total, terms = not shape and row in (sum_, sum_in_order, matmul), ""
    kind = steps[-1].name if steps else ""
    if kind == "multiply":  # the innermost loop adds up
        steps = [steps[0].innermost(len(steps[0].domain) - len(operands[1].shape[-2:]))]
    elif kind == IN_ORDER and steps[0].name == COPY:
        *copies, last = steps
        terms, steps = printer.fresh.numbered("t"), [last]
        printer.add(printer.array(terms, math.prod(operands[-1].shape)))
        for step in copies:
            _written(printer, node, step, terms)
    name = printer.result_name(node)
    if total:
        printer.carry(name, printer.number(0.0, None), None)
    else:
        printer.add(printer.array(name, math.prod(shape)))
    for step in steps:
        _written(printer, node, step, name, total=total, terms=terms)
    printer.names[node] = name if shape or total else printer.element(name, 0)


def _written(
    printer: StraightLinePrinter,
    node: int,
    step: Instruction,
    name: str,
    *,
    total: bool = False,
    terms: str = "",
) -> None:
    """Write a nest that fills an array, or adds all to a number; nothing for one without points."""
    if 0 in step.domain:
        return  # some compilers refuse its table of indices
    children, single = printer.view.children[node], len(step.domain) == 1
    counters = [f"i{axis}" for axis in range(len(step.domain))]
    if single and step.name != "multiply":
        counters = ["i"]
    read = written = counters
    if step.lookup is not None:
        positions = indices(printer.graph.params(node)["places"]).tolist()
        table = printer.tabulated([str(index + printer.base) for index in positions], places=True)
        looked_up = list(counters)
        looked_up[step.lookup.axis] = printer.element(table, counters[step.lookup.axis])
        read, written = (counters, looked_up) if step.name == SCATTER else (looked_up, counters)
    loops = list(zip(counters, step.domain, strict=True))
    target = name if total else printer.at(name, _affine(step.out), written)
    several = step.name == IN_ORDER and len(step.args) > 1
    sign = "+=" if step.into and not several else "="
    need = ATOM if several else printer.added if step.into else ANYTHING
    factors = []
    for ref in step.args[:1] if step.lookup is not None else step.args:
        if ref.root == _BESIDE:
            factors.append(printer.at(terms, _affine(ref), read))
        elif printer.graph.shape(children[ref.root]):
            index = printer.place(_affine(ref), read)
            factors.append(printer.at_place(children[ref.root], index, need))
        else:
            factors.append(printer.expression(children[ref.root]))
            if step.domain == (1,):
                loops, target = [], printer.element(name, step.out.offset)
    value = " + ".join([target, *factors]) if several else " * ".join(factors)
    printer.loops(loops, target, sign, value)


def _affine(ref: Ref) -> tuple[int, Shape]:
    return ref.offset, ref.strides
