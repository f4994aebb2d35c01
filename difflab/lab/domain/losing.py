"""Where a method loses its digits: the first divergence from the exact derivative at a point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.diagnose.divergence import Derivative, Differentiate, first_divergence
from difflab.diagnose.point_check import packed
from difflab.errors import DifflabError
from difflab.execute.long_loops import values_of
from difflab.graph.function import Function
from difflab.lab.domain.record import LosingNode, WorstPoint
from difflab.methods.exact import EXACT
from difflab.methods.protocol import Method, Problem

LARGEST = 5_000
"""Nodes of a graph up to which the operation is searched."""
LEAST = 1e-11
"""The least relative error whose origin is searched; a smaller one is rounding."""


def losing_node(method: Method, problem: Problem, worst: WorstPoint) -> LosingNode | None:
    """Return the operation at which a method parts from the exact derivative, if there is one.

    Parameters
    ----------
    method : Method
        The method.
    problem : Problem
        The function and the settings.
    worst : WorstPoint
        The point.
    """
    function = problem.function
    size = worst.max_rel_error
    small = worst.verdict == "agree" and (size is None or size < LEAST)
    if function is None or problem.order != 1 or small or len(function.graph) > LARGEST:
        return None
    point = packed(function, {name: np.asarray(x) for name, x in worst.point.items()})
    once = replace(problem, often=False)
    try:
        with np.errstate(all="ignore"):
            found = first_divergence(function, point, _by(method, once), _by(EXACT, once))
    except (DifflabError, ArithmeticError, ValueError):  # a part that one of them refuses
        return None
    if found is None:
        return None
    where = found.site.span if found.site.text == function.text else None
    text = found.render((method.name, "exact")).splitlines()
    return LosingNode(found.call, where, next((t for t in text if t.startswith("its ")), text[0]))


def _by(method: Method, problem: Problem) -> Differentiate:
    def derivative(function: Function, point: NDArray[float64]) -> Derivative:
        values, n, m = values_of(function), function.n, function.m
        part = replace(problem, values=values, n=n, m=m, function=function)
        found = method.prepare(part)(point)
        shape = (function.m, function.n)
        error = np.zeros(shape) if found.error is None else np.reshape(found.error, shape)
        return Derivative(np.reshape(found.value, shape), np.nan_to_num(error, nan=np.inf))

    return derivative
