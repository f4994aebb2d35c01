"""Estimates of how long difflab's own methods take, to decide which need a separate process."""

from __future__ import annotations

import math
from time import perf_counter

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.graph.counts import operation_count
from difflab.methods.protocol import Family, Method, Problem
from difflab.methods.registry import apart

# Evaluations of a numeric method for each input.
_POINTS = 30
# Seconds of a sweep for each node, compilation included, and for each array element, a call
# included.
_NODE = 3e-5
_NUMBER = 1e-8
# Seconds of an operation on complex numbers, at one of several points.
_COMPLEX = 2e-7
_LONG = 0.1  # seconds above which an evaluation is not repeated
_SHARE = 0.25  # of the time limit; leaves a margin for the error of the estimate


class Effort:
    """The work of a problem, estimated from the time of one evaluation of its function.

    Examples
    --------
    >>> import difflab as dl
    >>> from difflab.methods.registry import own
    >>> f = dl.parse("x: [3]; sum(sin(x))")
    >>> effort = Effort(Problem(f.values, f.n, f.m, f), np.ones(3))
    >>> any(effort.is_long(method) for method in own().values())
    False
    """

    def __init__(self, problem: Problem, x: NDArray[float64]) -> None:
        self._problem = problem
        self._value = _seconds(problem, x)
        graph = problem.function.graph if problem.function is not None else None
        self._nodes = 0 if graph is None else len(graph)
        self._operations = operation_count(problem.function) if problem.function else 0
        sizes = [] if graph is None else [math.prod(shape) for shape in graph.shape_table]
        self._numbers = self._nodes * max(sizes, default=1)

    def stoppable(self, method: Method) -> Method:
        """Return the method, in a process of its own if it may exceed the time limit."""
        return apart(method) if self.is_long(method) else method

    def is_long(self, method: Method) -> bool:
        """Return whether the method may exceed the time limit, by a conservative estimate."""
        problem = self._problem
        if method.family is Family.NUMERIC:
            value = self._value
            if method.name == "complex-step":  # long loops are machine code on real points only
                value = max(value, _COMPLEX * self._operations)
            seconds = value * _POINTS * float(problem.n) ** problem.order
        else:
            sweeps = problem.m if method.name == "reverse" else problem.n
            if problem.order == 2:
                sweeps = problem.n * (1 if method.name == "reverse" else problem.n)
            seconds = sweeps * (_NODE * self._nodes + _NUMBER * self._numbers)
        return seconds > _SHARE * problem.timeout


def _seconds(problem: Problem, x: NDArray[float64]) -> float:
    """Return the shortest of a few evaluations; the first includes one-time costs."""
    shortest = math.inf
    for _ in range(3):
        start = perf_counter()
        with np.errstate(all="ignore"):
            problem.values(x[None, :])
        shortest = min(shortest, perf_counter() - start)
        if shortest > _LONG:
            break
    return shortest
