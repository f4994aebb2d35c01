"""Long sums: ``t₁ + t₂ - t₃ + …`` as one list of terms, and as trees of additions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from difflab.graph.ir import Graph
from difflab.primitives import add, subtract

SHORTEST = 32
"""The fewest additions of a long sum; shorter sums may be repeated themselves."""

Nodes = NDArray[np.int64]
Truths = NDArray[np.bool_]


@dataclass(frozen=True)
class Chains:
    """The long sums of a graph.

    Attributes
    ----------
    terms, negated : dict of int to array
        For the last node of each sum its terms, and whether each is subtracted.
    inside : (nodes,) array of bool
        The partial sums, which have no other use.
    """

    terms: dict[int, Nodes]
    negated: dict[int, Truths]
    inside: Truths


def chains(graph: Graph, outputs: Sequence[int]) -> Chains:
    """Find the long sums of scalars.

    A partial sum continues in the only node that uses it: as the left operand of ``+`` and
    ``-``, or the right one of ``+``, which in floating point is the same.
    """
    sums = np.flatnonzero(graph.scalars() & graph.applies(add, subtract))
    inside = np.zeros(len(graph), dtype=np.bool_)
    result = Chains({}, {}, inside)
    if len(sums) < SHORTEST:
        return result
    left, right = graph.args[graph.starts[sums]], graph.args[graph.starts[sums] + 1]
    minus = graph.applies(subtract)[sums]
    uses = np.bincount(graph.args, minlength=len(graph))
    uses[list(outputs)] += 2
    single = np.zeros(len(graph), dtype=np.bool_)
    single[sums] = uses[sums] == 1
    by_left = single[left]
    by_right = ~by_left & single[right] & ~minus
    last = _last(len(graph), sums, np.where(by_left, left, np.where(by_right, right, -1)))
    order = np.argsort(last, kind="stable")  # sum after sum, each in the order of its nodes
    ends, firsts, lengths = np.unique(last[order], return_index=True, return_counts=True)
    for end, first, length in zip(ends.tolist(), firsts.tolist(), lengths.tolist(), strict=True):
        if length >= SHORTEST:
            links = order[first : first + length]
            start = links[:1]
            others = np.where(by_left[links], right[links], left[links])[1:]
            result.terms[end] = np.concatenate([left[start], right[start], others])
            result.negated[end] = np.concatenate([[False], minus[links]])
            inside[sums[links]] = True
            inside[end] = False
    return result


def _last(size: int, sums: Nodes, below: NDArray[np.int32]) -> Nodes:
    """Return for each sum the last node of its chain, by doubling the stride of a look ahead."""
    ahead = np.arange(size)
    continued = below >= 0
    ahead[below[continued]] = sums[continued]
    last = ahead[sums]
    while True:
        ahead[sums] = last
        further = ahead[last]
        if np.array_equal(further, last):
            return last
        last = further
