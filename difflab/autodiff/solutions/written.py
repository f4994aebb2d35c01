"""Roots of the language: ``root(x^2 - a, x, 1)``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from difflab.autodiff.control.solutions import solution
from difflab.autodiff.recording import Contents
from difflab.autodiff.solutions.implicit import MOST_CHANGE, Equations, Implicit
from difflab.autodiff.solutions.newton import Newton
from difflab.graph.control import Solution
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.graph.rewritten import composed, inlined
from difflab.primitives import where

TOL = 2.0**-26
MAXITER = 100


def root_value(residual: Function, values: Sequence[Node]) -> Node:
    """Append a root to the graph of its arguments, the first value and the parameters.

    It is nan where Newton's iteration does not converge, and at a root whose Jacobian counts as
    singular.
    """
    function, rule = _root(Contents(residual))
    return solution(function, rule, values)[0]


@lru_cache(maxsize=256)
def _root(contents: Contents) -> tuple[Function, Implicit]:
    equations = Equations(contents)
    solver = Newton(equations, TOL, MAXITER).function()

    def simple(nodes: list[Node]) -> list[Node]:
        x, *_, change = inlined(solver, nodes)
        return [where(change <= MOST_CHANGE, x, np.nan)]

    return composed(simple, solver.input_shapes), Implicit("root", equations, statistics=0)


def written_root(held: object) -> Function | None:
    """Return the residual of a root of the language; None for anything else.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("root(x^2 - a, x, 1)")
    >>> print(written_root(f.graph.primitive(f.outputs[0]).holds))
    y1 = x^2 - a
    """
    if not isinstance(held, Solution) or not held.written:
        return None
    residual: Function = held.rule.equations.residual
    return residual
