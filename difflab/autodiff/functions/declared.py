"""Declared derivatives: rules that a function states instead of its derivative, and without them.

Straight-through estimators, reversed gradients and `stop_gradient` differ from the derivative on
purpose. Without its declared rules, a function has the derivative of its values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from difflab.core.primitive import Custom, Params, Primitive
from difflab.errors import UnsupportedError
from difflab.graph.builder import Builder
from difflab.graph.expansion import expand
from difflab.graph.function import Function
from difflab.graph.rewrite import Args
from difflab.graph.rewritten import rewritten
from difflab.primitives import stop_gradient


def declared_rules(function: Function) -> tuple[str, ...]:
    """Return the names of the rules that a function declares, in loops and branches too.

    Examples
    --------
    >>> import difflab as dl
    >>> declared_rules(dl.parse("x*stop_gradient(x)")), declared_rules(dl.parse("x*sin(x)"))
    (('stop_gradient',), ())
    """
    return tuple(dict.fromkeys(row.name for row in _rows(function) if _declares(row)))


def undeclared(function: Function, names: Collection[str] | None = None) -> Function:
    """Return a function without the rules that it declares, in loops and branches too.

    `stop_gradient` becomes the identity, and a custom function the operations of its `forward`.

    Parameters
    ----------
    function : Function
        The function.
    names : collection of str, optional
        Which of `declared_rules`; by default all.

    Raises
    ------
    UnsupportedError
        The `forward` of a custom function cannot be recorded.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("x*stop_gradient(x)")
    >>> float(dl.gradient(f)(3.0)[0]), float(dl.gradient(undeclared(f))(3.0)[0])
    (3.0, 6.0)
    """
    wanted = declared_rules(function) if names is None else names

    def rule(builder: Builder, node: int, row: Primitive, args: Args, params: Params) -> int | None:
        if row.holds is not None and row.holding is not None:
            parts = [undeclared(each, wanted) for each in row.holds.functions]
            return builder.emit(row.holding(row.holds.with_functions(parts)), args, params)
        if not _declares(row) or row.name not in wanted:
            return None
        if row is stop_gradient:
            return args[0]
        expanded = expand(builder, node, row, args, params)
        if expanded is None:
            raise UnsupportedError(f"the forward of {row.name} cannot be recorded")
        return expanded

    return (
        rewritten(function, rule)
        if not set(wanted).isdisjoint(declared_rules(function))
        else (function)
    )


def _declares(row: Primitive) -> bool:
    """Whether a row has a rule of its user's; loops and branches have difflab's."""
    return row is stop_gradient or (isinstance(row.rule, Custom) and row.holds is None)


def _rows(function: Function) -> Iterator[Primitive]:
    """Yield the rows of a function, and of the functions that they hold."""
    todo = [function]
    while todo:
        for row in todo.pop().graph.primitives:
            yield row
            if row.holds is not None:
                todo += row.holds.functions
