"""The passes that keep every value: folding, identities, common subexpressions, dead nodes.

They do nothing of their own. Folding and identities are those of `difflab.graph.identities`,
which derivatives are simplified with as they are written; a `Builder` has each computation
once; freezing drops what no output needs.
"""

from __future__ import annotations

from difflab.core.primitive import Primitive
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.identities import folded
from difflab.graph.ir import Params
from difflab.graph.rewrite import Args
from difflab.graph.rewritten import rewritten, selected


def _folding(builder: Builder, node: int, row: Primitive, args: Args, params: Params) -> int | None:
    return folded(builder, row, args) if args and not params else None


def _simplest(
    builder: Builder, node: int, row: Primitive, args: Args, params: Params
) -> int | None:
    if row.degrees and any(builder.number(arg) == 0 for arg in args):
        return None
    return builder.emit_simplified(row, args, params)


def fold(function: Function) -> Function:
    """Fold operations on constants, with NumPy's values.

    Examples
    --------
    >>> import difflab as dl
    >>> fold(dl.parse("x + 2*3")) == dl.parse("x + 6")
    True
    """
    return rewritten(function, _folding)


def simplify(function: Function) -> Function:
    """Apply the identities that are exact in floating point.

    Not the one by which 0 annihilates: 0·x is nan where x is not finite.

    Examples
    --------
    >>> import difflab as dl
    >>> simplify(dl.parse("x^1 - (-y)")) == dl.parse("x + y")
    True
    """
    return rewritten(function, _simplest)


def common(function: Function) -> Function:
    """Have each computation once, operands that commute in either order.

    Examples
    --------
    >>> import difflab as dl
    >>> len(common(dl.parse("x*y + y*x")).graph)
    4
    """
    return rewritten(function, None)


def dead(function: Function) -> Function:
    """Remove nodes that no output needs; inputs are kept.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("sin(x) + 1")
    >>> part = dl.Function(f.graph, f.input_nodes, (f.graph.arguments(f.outputs[0])[0],), ("y",))
    >>> len(part.graph), len(dead(part).graph)
    (4, 2)
    """
    return selected(function, function.outputs, function.output_names, function.structure)
