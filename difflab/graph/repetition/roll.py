"""Functions with their repetition as operations on vectors, of one input, or with trees of sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from difflab.core.primitive import Primitive
from difflab.graph.builder import Builder
from difflab.graph.function import Function, inline
from difflab.graph.ir import FIRST_ROW, Graph, Params, packed_slices
from difflab.graph.repetition.chains import SHORTEST, chains
from difflab.graph.repetition.classes import classes
from difflab.graph.repetition.writing import write
from difflab.graph.rewrite import Args
from difflab.graph.rewritten import rewritten
from difflab.primitives import add, index, negative, reshape

LEAST_NODES = 256
"""The fewest nodes for which repetition is searched: smaller graphs are differentiated and compiled
as fast as repetition is found, and are read as formulas of numbers."""

LEAST_OF_NUMBERS = 2000
"""The same where no input is an array: such numbers must first be packed into vectors, which costs
batches more than it saves."""

LEAST_LANES = 16
"""Operations that one operation on vectors must replace on average."""


def rolled(function: Function, least: int | None = None) -> Function:
    r"""Return a function with its repetition as operations on vectors.

    Operations of one kind on scalars that are computed alike become one operation on vectors,
    and a long sum becomes one operation that adds its terms in their order. Every scalar is
    computed as before, from the same scalars, so values are bitwise identical.

    Parameters
    ----------
    function : Function
        The function to roll, whatever its source: text, a traced loop, a derivative.
    least : int, optional
        Graphs of fewer nodes stay as they are; by default `LEAST_NODES`, or `LEAST_OF_NUMBERS`
        where no input is an array.

    Returns
    -------
    Function
        The same inputs and outputs. It is `function` itself where that is small, or where an
        operation on vectors would not replace at least `LEAST_LANES` of its own.

    Examples
    --------
    >>> import difflab as dl
    >>> terms = " + ".join(f"(x[{i}] - x[{i + 1}])^2" for i in range(999))
    >>> f = dl.parse(f"x: [1000]\n{terms}")
    >>> len(f.graph), len(rolled(f).graph)
    (3998, 7)
    """
    graph = function.graph
    if least is None:
        least = LEAST_NODES if any(function.input_shapes) else LEAST_OF_NUMBERS
    if len(graph) < least or _varied(graph):
        return function
    sums = chains(graph, function.outputs)
    lane_classes = classes(function, sums, LEAST_LANES)
    if lane_classes is None:
        return function
    result = write(function, lane_classes, sums)
    enough = _operations(result) * LEAST_LANES <= _operations(function)
    return result if enough else function


def _varied(graph: Graph) -> bool:
    """Whether the first nodes are of so many kinds that the classes hold too few nodes on average.

    Nodes of one class apply one row to arguments of the same rows. The search takes far longer.
    Additions may be inside a long sum, which is one node.
    """
    opcodes, starts = graph.opcode[:LEAST_NODES].tolist(), graph.starts[: LEAST_NODES + 1].tolist()
    args = graph.args[: starts[-1]].tolist()
    counted = [
        False,
        False,
        *[row.shape is None and len(row.signs) < 2 for row in graph.primitives],
    ]
    kinds, most = set(), len(graph) // LEAST_LANES
    for opcode, start, end in zip(opcodes, starts, starts[1:], strict=False):
        if counted[opcode]:
            kinds.add((opcode, opcodes[args[start]], opcodes[args[end - 1]]))
            if len(kinds) > most:
                return True
    return False


def _operations(function: Function) -> int:
    return int((function.graph.opcode >= FIRST_ROW).sum())


def flattened(function: Function) -> Function:
    """Return the function of the vector of all inputs, flattened in order.

    Examples
    --------
    >>> import difflab as dl
    >>> f = flattened(dl.parse("x1*x2 + x3"))
    >>> f.input_shapes, float(f([2.0, 3.0, 4.0]))
    (((3,),), 10.0)
    """
    builder = Builder(function.graph.source)
    point = builder.input("point", (function.n,))
    inputs = []
    for shape, piece in zip(
        function.input_shapes, packed_slices(function.input_shapes), strict=True
    ):
        key = ((piece.start, piece.stop, 1),) if shape else (piece.start,)
        part = builder.emit(index, (point,), (("key", key), ("rank", 1)))
        if len(shape) > 1:
            part = builder.emit(reshape, (part,), (("rank", 1), ("shape", shape)))
        inputs.append(part)
    outputs = inline(function, builder, inputs)
    names, structure = function.output_names, function.structure
    return Function.build(builder, [point], outputs, names, structure)


def balanced(function: Function) -> Function:
    """Return a function whose long scalar sums are pairwise summations.

    In a sum of n terms that is added from the first to the last, most terms are n additions away
    from the total, and all of these are computed again when the term changes; in a tree it is
    log₂ n. Values differ by rounding, as those of any other order do.

    Returns
    -------
    Function
        The same inputs and outputs; `function` itself where no sum is long.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse(" + ".join(f"x{i}^2" for i in range(64)))
    >>> balanced(f).values(range(64)) == f.values(range(64))
    array([ True])
    """
    if len(function.graph) <= SHORTEST:
        return function
    sums = chains(function.graph, function.outputs)
    if not sums.terms:
        return function

    def written(
        builder: Builder, node: int, row: Primitive, args: Args, params: Params
    ) -> int | None:
        return _tree(builder, args, sums.negated[node].tolist()) if node in sums.terms else None

    builder, outside = Builder(function.graph.source), np.flatnonzero(~sums.inside).tolist()
    return rewritten(function, written, builder, nodes=outside, operands=sums.terms)


def _tree(builder: Builder, terms: Sequence[int], negated: Sequence[bool]) -> int:
    """Add terms up in pairs."""
    level = [
        builder.emit(negative, (term,)) if minus else term
        for term, minus in zip(terms, negated, strict=True)
    ]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        level = [builder.emit(add, pair) for pair in pairs] + level[len(level) // 2 * 2 :]
    return level[0]
