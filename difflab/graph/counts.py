"""The size of a function: as a tree, as a graph, in operations, in the memory of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.primitive import Primitive
from difflab.core.wording import count as shortened
from difflab.errors import UnsupportedError
from difflab.graph.checks import require_function
from difflab.graph.control import Loop, WhileLoop, WhileLoopVjp
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW, Graph
from difflab.primitives import stop_gradient

LONG = 100_000
"""Operations of a loop from which Python takes a tenth of a second."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The size of a function; nodes that only move data are not counted.

    An operation on arrays is one node of any size, in all counts but `arithmetic`. So a function
    of many scalars has far fewer `operations` once its terms are computed as vectors, as in
    large derivatives, but the same `arithmetic`.

    A loop is a node and its step, once, in `tree` and `dag`; in `operations` and `arithmetic` the
    step counts for each iteration, so that they are those of the unrolled loop. Both functions of a
    `cond` count, and one iteration of a `while_loop`, whose number of iterations is not known.

    Attributes
    ----------
    tree : int
        Nodes when every shared subexpression is written out, exact however large.
    dag : int
        Distinct nodes: operations, inputs and constants.
    operations : int
        Distinct operations.
    arithmetic : int
        Scalar operations that these require: n for an elementwise operation on n elements,
        n - 1 for a sum of n, the products and sums of a matrix product, 5 n log₂ n for a Fourier
        transform of n complex numbers and half of it for one of real numbers, and the additions
        where parts of arrays overlap. Other operations on whole arrays, such as a solver, count
        one for each element of the operands or of the result, whichever are more.
    """

    tree: int
    dag: int
    operations: int
    arithmetic: int

    def __repr__(self) -> str:
        # Python refuses to write out integers of more digits than sys.get_int_max_str_digits().
        tree = f"{self.tree}" if self.tree < 10**100 else f"about {shortened(self.tree)}"
        rest = f"dag={self.dag}, operations={self.operations}, arithmetic={self.arithmetic}"
        return f"Counts(tree={tree}, {rest})"


def count(function: Function) -> Counts:
    """Count the nodes of a function without building its tree.

    A tree's size follows from its parts: ``tree(y) = 1 + Σ tree(aᵢ)``, one addition of exact
    integers per edge of the graph.

    Parameters
    ----------
    function : Function
        The function to measure.

    Returns
    -------
    Counts
        The exact sizes.

    Examples
    --------
    >>> import difflab as dl
    >>> count(dl.parse("y = x*x; z = y*y; z*z"))
    Counts(tree=15, dag=4, operations=3, arithmetic=3)
    >>> count(dl.parse("W: [4, 3]; x: [3]; tanh(W @ x)"))
    Counts(tree=4, dag=4, operations=2, arithmetic=24)
    >>> count(dl.trace(lambda x: dl.fori_loop(0, 100, lambda i, y: y * x, 1.0), 2.0))
    Counts(tree=10, dag=10, operations=200, arithmetic=200)
    """
    require_function(function, "count")
    cache = function.derived_cache
    if "counts" not in cache:  # functions inside each other are counted once, not at every level
        used = _used(function)
        counted = used & ~function.graph.structural_rows()
        within = {node: _within(row) for node, row in _holders(function.graph, used)}
        trees = {node: inner.tree for node, inner in within.items()}
        cache["counts"] = Counts(
            tree=_tree(function, counted.tolist(), trees),
            dag=int(counted.sum()) + sum(inner.dag for inner in within.values()),
            operations=operation_count(function),
            arithmetic=_arithmetic(function.graph, used),
        )
    counts: Counts = cache["counts"]
    return counts


def operation_count(function: Function) -> int:
    """Return the distinct operations of a function alone; see `Counts`."""
    cache = function.derived_cache
    if "operations" not in cache:
        graph, used = function.graph, _used(function)
        counted = used & ~graph.structural_rows() & (graph.opcode >= FIRST_ROW)
        holders = _holders(graph, used)
        within = ((_turns(row), row.holds.functions) for _, row in holders)
        inside = sum(iterations * sum(map(operation_count, inner)) for iterations, inner in within)
        cache["operations"] = int(np.count_nonzero(counted)) - len(holders) + inside
    operations: int = cache["operations"]
    return operations


TREE_LIMIT = 1_000_000
"""Maximum number of tree nodes; SymPy needs ten microseconds or more for each."""


def check_tree_size(function: Function, title: str) -> None:
    """Raise `UnsupportedError` if a library that shares no subexpressions needs too many nodes.

    Array operations are expanded element by element; the largest array bounds the factor.
    """
    tree = count(function).tree * max(map(math.prod, function.graph.shape_table), default=1)
    if tree > TREE_LIMIT:
        raise UnsupportedError(
            f"written out as a tree for {title} it has {shortened(tree)} nodes; "
            f"the limit is {TREE_LIMIT:,}"
        )


def may_be_long(row: Primitive) -> bool:
    """Return whether a primitive is a loop of many, or of unknown, iterations."""
    held = row.holds
    if isinstance(held, Loop):
        return held.steps * operation_count(held.body) >= LONG
    return isinstance(held, WhileLoop | WhileLoopVjp)


def node_arithmetic(graph: Graph, node: int) -> int:
    """Return the scalar operations that one operation requires; see `Counts`."""
    row = graph.primitive(node)
    if row is None:
        return 0
    return _of_arrays(graph, node) if row.shape is not None else math.prod(graph.shape(node))


def _holders(graph: Graph, used: NDArray[np.bool_]) -> list[tuple[int, Primitive]]:
    """Return the nodes that hold functions: loops and branches."""
    holds = graph.matching(lambda row: row.holds is not None)
    nodes = np.flatnonzero(used & holds).tolist() if holds.any() else []
    return [(node, row) for node in nodes if (row := graph.primitive(node)) is not None]


def _turns(row: Primitive) -> int:
    """Return how often a loop takes its step, if that is known; 1 for other rows."""
    steps: int = getattr(row.holds, "steps", 1)
    return steps


def _within(row: Primitive) -> Counts:
    """Return the sizes of the functions that a row holds, added up."""
    counts = [count(inner) for inner in row.holds.functions]
    return Counts(
        sum(each.tree for each in counts), sum(each.dag for each in counts),
        sum(each.operations for each in counts), sum(each.arithmetic for each in counts),
    )  # fmt: skip


def _used(function: Function) -> NDArray[np.bool_]:
    """Mark the nodes that others, or the outputs, are made of."""
    used = np.zeros(len(function.graph), dtype=np.bool_)
    used[function.graph.args] = True
    used[list(function.outputs)] = True
    return used


def _arithmetic(graph: Graph, used: NDArray[np.bool_]) -> int:
    """Add up the scalar operations; nodes with equal shapes require equally many."""
    sizes = np.array([math.prod(shape) for shape in graph.shape_table])
    elementwise = graph.matching(lambda row: row.shape is None)
    total = int(sizes[graph.shape_ids[used & elementwise]].sum())
    operations: dict[Any, int] = {}
    for node in np.flatnonzero(used & ~elementwise & (graph.opcode >= FIRST_ROW)).tolist():
        args = graph.args[graph.starts[node] : graph.starts[node + 1]]
        key = (graph.opcode[node], graph.param_ids[node], graph.shape_ids[args].tobytes())
        if key not in operations:
            operations[key] = _of_arrays(graph, node)
        total += operations[key]
    return total


def _of_arrays(graph: Graph, node: int) -> int:
    """Return the scalar operations that one operation on arrays requires."""
    row = graph.primitive(node)
    assert row is not None
    if row.holds is not None:
        return _turns(row) * _within(row).arithmetic
    shapes = [graph.shape(arg) for arg in graph.arguments(node)]
    operands, result = sum(map(math.prod, shapes)), math.prod(graph.shape(node))
    if row.arithmetic is not None:
        return row.arithmetic(tuple(shapes), **graph.params(node))
    return 0 if row.structural else max(operands - result, result)


def _tree(function: Function, counted: list[bool], within: Mapping[int, int]) -> int:
    """Add up the sizes of all outputs' trees; sizes are dropped after their last use.

    `within` are the sizes of the functions that nodes hold.
    """
    graph = function.graph
    dying = graph.last_uses()
    dying[np.array(function.outputs)] = -1
    last = dying.tolist()
    sizes = [0] * len(graph)
    for node, (_, args) in enumerate(graph.rows()):
        size = within.get(node, 0) + (1 if counted[node] else 0)
        for arg in args:
            size += sizes[arg]
        for arg in args:
            if last[arg] == node:
                sizes[arg] = 0
        sizes[node] = size
    return sum(sizes[node] for node in function.outputs)


def peak_bytes(function: Function) -> int:
    """Return the most bytes that an evaluation at one point holds beside its inputs.

    Values are released after their last use, and results are held until the end. Temporary
    memory inside NumPy's functions is not included.

    Examples
    --------
    >>> import difflab as dl
    >>> peak_bytes(dl.parse("x: [1000]; sin(cos(exp(x)))"))
    16000
    """
    graph = function.graph
    owner, last = list(range(len(graph))), graph.last_uses().tolist()
    rows = list(graph.rows())
    shares = graph.matching(lambda row: row.view or row is stop_gradient).tolist()
    for node, (_, args) in enumerate(rows):
        if shares[node]:
            owner[node] = owner[args[0]]
    for node in function.outputs:
        last[node] = len(graph)
    for node in range(len(graph)):
        last[owner[node]] = max(last[owner[node]], last[node])
    held: dict[int, int] = {}
    ending: dict[int, list[int]] = {}
    alive = peak = 0
    for node, (opcode, _) in enumerate(rows):
        if opcode < FIRST_ROW:
            continue
        row = graph.primitives[opcode - FIRST_ROW]
        if not shares[node]:
            held[node] = (1 if row.boolean else 8) * math.prod(graph.shape(node))
            during = row.workspace() if row.workspace is not None else 0
            peak = max(peak, alive + during, alive + held[node])
            alive += held[node]
            ending.setdefault(max(last[node], node), []).append(node)
        alive -= sum(held.pop(ended) for ended in ending.pop(node, ()))
    return peak
