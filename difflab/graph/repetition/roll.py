"""`rolled`: a function of many scalars that are computed alike, as operations on vectors."""

from __future__ import annotations

import numpy as np

from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW, Graph
from difflab.graph.repetition.chains import chains
from difflab.graph.repetition.classes import classes
from difflab.graph.repetition.writing import write
from difflab.primitives import add, subtract

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
        What is computed, however it was written: text, a traced loop, a derivative.
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
    if len(graph) < least or _kinds(graph) * LEAST_LANES > len(graph):
        return function
    sums = chains(graph, function.outputs)
    found = classes(function, sums, LEAST_LANES)
    if found is None:
        return function
    result = write(function, found, sums)
    enough = _operations(result) * LEAST_LANES <= _operations(function)
    return result if enough else function


def _kinds(graph: Graph) -> int:
    """Return a lower bound of the number of classes: of one class are also the arguments' rows.

    It takes a tenth of the time of the search. Additions may be inside a long sum, which is one.
    """
    counted = graph.matching(lambda row: row.shape is None and row not in (add, subtract))
    nodes = (counted & graph.scalars()).nonzero()[0]
    opcodes, sizes = graph.opcode.astype(np.int64), np.diff(graph.starts)[nodes]
    kinds = opcodes[nodes]
    for position in range(min(int(sizes.max(initial=0)), 2)):
        places = np.where(sizes > position, graph.starts[nodes] + position, 0)
        kinds = kinds * (len(graph.primitives) + FIRST_ROW) + opcodes[graph.args[places]]
    return len(set(kinds.tolist()))


def _operations(function: Function) -> int:
    return int((function.graph.opcode >= FIRST_ROW).sum())
