"""`balanced`: long sums as trees, so that each term is a few additions from the total."""

from __future__ import annotations

from collections.abc import Sequence

from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, FIRST_ROW, INPUT
from difflab.graph.repetition.chains import Chains, chains
from difflab.primitives import add, negative

__all__ = ["balanced"]


def balanced(function: Function) -> Function:
    """Return a function whose long sums of numbers add in pairs, and pairs of pairs.

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
    sums = chains(function.graph, function.outputs)
    if not sums.terms:
        return function
    return _balanced(function, sums)


def _balanced(function: Function, sums: Chains) -> Function:
    graph, builder = function.graph, Builder(function.graph.source)
    copied = [0] * len(graph)
    params = graph.param_ids.tolist()
    for node, (opcode, args) in enumerate(graph.rows()):
        if sums.inside[node]:
            continue
        if node in sums.terms:
            signs = sums.negated[node].tolist()
            terms = [copied[term] for term in sums.terms[node].tolist()]
            copied[node] = _tree(builder, terms, signs)
        elif opcode == INPUT:
            name, shape = graph.input_name(node), graph.shape(node)
            copied[node] = builder.input(name, shape, graph.span(node))
        elif opcode == CONSTANT:
            copied[node] = builder.constant(*graph.constants[node], graph.span(node))
        else:
            row = graph.primitives[opcode - FIRST_ROW]
            given = [copied[arg] for arg in args]
            copied[node] = builder.emit(
                row, given, graph.param_table[params[node]], graph.span(node)
            )
    inputs = [copied[node] for node in function.input_nodes]
    outputs = [copied[node] for node in function.outputs]
    names, structure = function.output_names, function.structure
    return Function.build(builder, inputs, outputs, names, structure)


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
