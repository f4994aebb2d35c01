"""Values that leave a call of a function or a layer, which the printed program names by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from difflab.graph.calls import TracedCall, call_name
from difflab.language.printers.view import PrintedGraph

__all__ = ["call_results"]


def call_results(view: PrintedGraph) -> dict[int, str]:
    """Return the nodes whose values leave the call that computes them, with the names of the calls.

    A call of one operation has no name, nor has a value that is an output and nothing else.
    """
    graph = view.graph
    calls: list[TracedCall | None] = [
        graph.source.call(span) if uses and not view.leaf(node) else None
        for node, (span, uses) in enumerate(zip(graph.spans.tolist(), view.uses, strict=True))
    ]
    sizes = Counter(call for each in calls if each is not None for call in each.path)
    around = {call: frozenset(call.path) for call in set(calls) if call is not None}
    leaving = {
        argument
        for node, arguments in enumerate(view.children)
        if view.uses[node]
        for argument in arguments
        if _leaves(calls[argument], calls[node], around)
    }
    return {
        node: call_name(call)
        for node in sorted(leaving)
        if (call := calls[node]) is not None and sizes[call] > 1
    }


def _leaves(
    call: TracedCall | None,
    user: TracedCall | None,
    around: Mapping[TracedCall, frozenset[TracedCall]],
) -> bool:
    """Whether a value of a call is used outside of it, by an operation of another call or none."""
    return call is not None and (user is None or call not in around[user])
