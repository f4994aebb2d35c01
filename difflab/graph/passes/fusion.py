"""Fusion groups: elementwise operations that one loop over the elements can compute.

Two operations may share a loop when they have the same shape and nothing that needs a whole
array lies between them. The number of such barriers on the longest path from the inputs is an
operation's level; connected operations of one shape and level are a group, and no path leaves a
group and returns to it.
"""

from __future__ import annotations

import numpy as np

from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW


def fusion_groups(function: Function) -> list[list[int]]:
    """Return the groups of elementwise operations, each in order; in the order of their first.

    Parameters
    ----------
    function : Function
        The function; one node of a group alone is a group, too.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x: [9]; m = sum(exp(2*x)); sum(sin(m*x))")
    >>> [[f.graph.primitive(node).name for node in group] for group in fusion_groups(f)]
    [['multiply', 'exp'], ['multiply', 'sin']]
    """
    graph = function.graph
    fusible = graph.matching(lambda row: row.shape is None)  # the elementwise operations
    levels, joined = [0] * len(graph), list(range(len(graph)))
    shapes = graph.shape_ids.tolist()
    for node, (opcode, args) in enumerate(graph.rows()):
        if opcode < FIRST_ROW:
            continue
        below = max((levels[arg] + (not fusible[arg]) for arg in args), default=0)
        # An operation of another shape ends a loop as well.
        turned = any(fusible[arg] and shapes[arg] != shapes[node] for arg in args)
        levels[node] = below + turned
        if fusible[node]:
            for arg in args:
                if fusible[arg] and levels[arg] == levels[node] and shapes[arg] == shapes[node]:
                    joined[_first(joined, node)] = _first(joined, arg)
    groups: dict[int, list[int]] = {}
    for node in np.flatnonzero(fusible).tolist():
        groups.setdefault(_first(joined, node), []).append(node)
    return list(groups.values())


def _first(joined: list[int], node: int) -> int:
    """Return the representative of the group of `node`, and shorten the path to it."""
    while joined[node] != node:
        joined[node] = joined[joined[node]]
        node = joined[node]
    return node
