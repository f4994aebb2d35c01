"""`balanced`: long sums as trees, so that each term is a few additions from the total."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from difflab.core.primitive import Primitive
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.ir import Params
from difflab.graph.repetition.chains import chains
from difflab.graph.rewrite import Args
from difflab.graph.rewritten import rewritten
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

    def written(
        builder: Builder, node: int, row: Primitive, args: Args, params: Params
    ) -> int | None:
        return _tree(builder, args, sums.negated[node].tolist()) if node in sums.terms else None

    builder, outside = Builder(function.graph.source), np.flatnonzero(~sums.inside).tolist()
    return rewritten(function, written, builder, nodes=outside, operands=sums.terms)


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
