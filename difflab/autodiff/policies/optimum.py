"""The fewest operations that are computed again when the kept values have some bytes at most.

Exact, by dynamic programming over the values from the last to the first (the problem of Jain et
al., *Checkmate*, MLSys 2020, for one recomputation): a value that is needed is kept, or computed
again, which needs its arguments. Two choices that leave the same values needed differ in bytes and
operations alone, and one that is worse in both is dropped. In a chain few values are needed at a
time, and the number of choices stays small.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from difflab.autodiff.policies.policy import Policy, is_kept, kept_bytes, recorded, values_read
from difflab.errors import InputError
from difflab.graph.counts import node_arithmetic
from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW

MOST = 100_000
"""Choices beside each other, beyond which a graph is too large."""

_Kept = tuple[int, "_Kept"] | None
_Front = list[tuple[int, int, _Kept]]
"""Bytes, operations and the kept nodes: increasing in the first, decreasing in the second."""


class Choice(NamedTuple):
    """A choice of values that no other one beats in both bytes and operations.

    Attributes
    ----------
    bytes : int
        Of the kept values.
    operations : int
        That are computed again.
    nodes : tuple of int
        The kept nodes of the function.
    """

    bytes: int
    operations: int
    nodes: tuple[int, ...]


def optimal(*, bytes: int) -> Policy:  # the unit is the name
    """Return the policy that keeps at most some bytes, so that the least is computed again.

    The least number of scalar operations; every value is computed again once at most. It is the
    exact optimum, which is found for chains and small graphs.

    Parameters
    ----------
    bytes : int
        The most bytes of all kept values of one call together.

    Raises
    ------
    InputError
        The number is negative. By the checkpointed call: its graph has too many choices.

    References
    ----------
    P. Jain et al., *Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization*,
    MLSys 2020.

    Examples
    --------
    Of two values of equal size the product is kept, since its computation takes longest:

    >>> import numpy as np
    >>> import difflab as dl
    >>> layer = lambda W, x: np.sum(np.exp(np.sin(W @ x)))
    >>> W, x = np.ones((50, 100)), np.ones(100)
    >>> dl.policies.account(dl.policies.optimal(bytes=400), layer, W, x)
    Account(bytes=400, operations=100, values=('matmul',))
    """
    if isinstance(bytes, bool) or not isinstance(bytes, int) or bytes < 0:
        raise InputError(f"optimal keeps a whole number of bytes from 0, not {bytes!r}")

    def choose(function: Function) -> tuple[int, ...]:
        return _choices(function, bytes)[-1].nodes

    return Policy(f"optimal(bytes={bytes})", choose)


def front(function: Any, *args: Any) -> list[Choice]:
    """Return every optimal choice, from no bytes to no operation that is computed again.

    Parameters
    ----------
    function : callable or Function
        The function to checkpoint.
    *args : tree
        Its arguments, which give the shapes.

    Raises
    ------
    InputError
        Its graph has too many choices.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x: [10]; sum(exp(sin(x*x)))")
    >>> for choice in dl.policies.front(f):
    ...     print(choice.bytes, choice.operations)
    0 30
    80 10
    160 0
    """
    return _choices(recorded(function, args), None)


def _choices(function: Function, limit: int | None) -> list[Choice]:
    """Return the optimal choices up to a number of bytes."""
    graph = function.graph
    read = frozenset(values_read(function))
    fronts: dict[frozenset[int], _Front] = {frozenset(): [(0, 0, None)]}
    for node in range(len(graph) - 1, -1, -1):
        if graph.opcode[node] < FIRST_ROW or not (node in read or any(node in k for k in fronts)):
            continue
        size = kept_bytes(function, node) if is_kept(graph, node) else None
        operations = node_arithmetic(graph, node)
        args = {a for a in graph.arguments(node) if graph.opcode[a] >= FIRST_ROW and a not in read}
        candidates: dict[frozenset[int], _Front] = {}
        for needed, entries in fronts.items():
            if node not in read and node not in needed:
                candidates.setdefault(needed, []).extend(entries)
                continue
            left = needed - {node}
            again = [(b, cost + operations, kept) for b, cost, kept in entries]
            candidates.setdefault(left | args, []).extend(again)
            if size is not None:
                more = [(b + size, cost, (node, kept)) for b, cost, kept in entries]
                candidates.setdefault(left, []).extend(more)
        fronts = {needed: _best(entries, limit) for needed, entries in candidates.items()}
        _require_few(fronts)
    (entries,) = fronts.values()
    return [Choice(b, cost, tuple(_nodes(kept))) for b, cost, kept in entries]


def _best(entries: _Front, limit: int | None) -> _Front:
    """Return the choices that none beats, in order of bytes."""
    best: _Front = []
    for entry in sorted(entries, key=lambda entry: entry[:2]):
        if limit is not None and entry[0] > limit:
            break
        if not best or entry[1] < best[-1][1]:
            best.append(entry)
    return best


def _nodes(kept: _Kept) -> Iterator[int]:
    while kept is not None:
        node, kept = kept
        yield node


def _require_few(fronts: dict[frozenset[int], _Front]) -> None:
    if sum(map(len, fronts.values())) > MOST:
        raise InputError(
            "the function has too many choices of kept values for the exact optimum",
            hint="checkpoint its parts one by one, or use dl.policies.save_only or dots",
        )
