"""The values that a function's reverse sweep reads, and the sweep from kept values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from difflab.autodiff.engine.argnums import part_of, pulled, read_until
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW, INPUT, Graph
from difflab.graph.rewritten import selected


def is_kept(graph: Graph, node: int) -> bool:
    """Whether a node's value can be kept; data movement and truth values cannot."""
    row = graph.primitive(node)
    return row is not None and not row.structural and not row.boolean


def with_values(function: Function, nodes: Sequence[int]) -> Function:
    """Return the function with the values of nodes as further outputs."""
    names = [f"kept{k + 1}" for k in range(len(nodes))]
    outputs = [*function.outputs, *nodes]
    return selected(function, outputs, [*function.output_names, *names])


def values_read(function: Function) -> list[int]:
    """Return the values that can be kept and that the reverse sweep reads, in order.

    Instead of what only moves data, or of truth values, what these are computed from is read.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x: [3]; h = sin(x); sum(exp(h) * h[0])")
    >>> [f.graph.primitive(node).name for node in values_read(f)]
    ['sin', 'exp']
    """
    graph = function.graph
    nodes = np.flatnonzero(graph.opcode >= FIRST_ROW).tolist()
    whole = with_values(function, nodes)
    count, sources = len(function.outputs), tuple(range(len(function.inputs)))
    pull = pulled(whole, sources, tuple(range(count)), joins=True)
    number_of = dict(zip(pull.outputs[count:], nodes, strict=False))
    back = pull.outputs[len(whole.outputs) :]
    marks = read_until(pull.graph, back, list(number_of))
    reads = pull.graph.args[np.repeat(marks, np.diff(pull.graph.starts))].tolist()
    waiting = [number_of[node] for node in {*reads, *back} if node in number_of]
    found: set[int] = set()
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if is_kept(graph, node):
            found.add(node)
            continue
        new = {arg for arg in graph.arguments(node) if graph.opcode[arg] >= FIRST_ROW} - seen
        seen |= new
        waiting += new
    return sorted(found)


def backward_from(
    whole: Function, results: int, sources: Sequence[int], reached: Sequence[int]
) -> Function:
    """Return the cotangents of some inputs, from values that were kept.

    Parameters
    ----------
    whole : Function
        Its first `results` outputs are results, the others values that were kept.
    results : int
        How many.
    sources : sequence of int
        The inputs whose cotangents are returned.
    reached : sequence of int
        The outputs that have cotangents.

    Returns
    -------
    Function
        Its inputs are those of `whole`, the kept values, and the cotangents.
    """
    count, inputs = len(whole.outputs), len(whole.inputs)
    pull = pulled(whole, tuple(sources), tuple(reached), joins=True)
    given, back = pull.input_nodes, pull.outputs[count:]
    kept = pull.outputs[results:count]
    names = {node: f"x{k + 1}" for k, node in enumerate(given[:inputs])}
    names |= {node: f"kept{k + 1}" for k, node in enumerate(kept)}
    names |= {node: f"bar{k + 1}" for k, node in enumerate(given[inputs:])}
    marks = read_until(pull.graph, back, kept) & (pull.graph.opcode != INPUT)
    return part_of(pull, names, marks, back, pull.output_names[count:])
