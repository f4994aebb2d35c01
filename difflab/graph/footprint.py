"""The memory that the evaluation of a function holds, from the graph alone."""

from __future__ import annotations

import math

from difflab.graph.function import Function
from difflab.graph.ir import FIRST_ROW
from difflab.primitives import stop_gradient


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
