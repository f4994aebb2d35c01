"""`rolled`: a function of many scalars that are computed alike, as operations on vectors."""

from __future__ import annotations

from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW
from difflab.graph.repetition.chains import chains
from difflab.graph.repetition.classes import classes
from difflab.graph.repetition.writing import write

__all__ = ["LEAST_LANES", "LEAST_NODES", "rolled"]

LEAST_NODES = 2000
"""The fewest nodes for which repetition is searched: smaller graphs are fast enough, and are
differentiated and written as formulas of numbers."""

LEAST_LANES = 16
"""Operations that one operation on vectors must replace on average."""


def rolled(function: Function, least: int = LEAST_NODES) -> Function:
    r"""Return a function with its repetition as operations on vectors.

    Operations of one kind on scalars that are computed alike become one operation on vectors,
    and a long sum becomes one operation that adds its terms in their order. Every scalar is
    computed as before, from the same scalars, so values are bitwise identical.

    Parameters
    ----------
    function : Function
        What is computed, however it was written: text, a traced loop, a derivative.
    least : int
        Smaller graphs stay as they are.

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
    if len(graph) < least:
        return function
    sums = chains(graph, function.outputs)
    found = classes(function, sums, LEAST_LANES)
    if found is None:
        return function
    result = write(function, found, sums)
    enough = _operations(result) * LEAST_LANES <= _operations(function)
    return result if enough else function


def _operations(function: Function) -> int:
    return int((function.graph.opcode >= FIRST_ROW).sum())
