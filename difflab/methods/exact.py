"""`exact`: derivatives by ball arithmetic over FLINT's power series, correctly rounded.

The precision is raised until the proved bounds of every component round to one float64. FLINT's
expansions of the elementary functions give the derivatives; no rule of difflab is used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.optional import load
from difflab.errors import MissingDependencyError, UnsupportedError
from difflab.graph.function import Function
from difflab.methods.protocol import Estimate, Family, Problem, Size


class Exact:
    """Correctly rounded derivatives.

    Examples
    --------
    >>> import difflab as dl
    >>> f = dl.parse("ln(x1) + x1*x2 - sin(x2)")
    >>> EXACT.prepare(Problem(f.values, f.n, f.m, f))(np.array([2.0, 5.0])).value
    array([[5.5       , 1.71633781]])
    """

    name = "exact"
    family = Family.AUTOMATIC
    summary = "ball arithmetic over FLINT's power series, every component correctly rounded"
    orders = (1, 2)
    only_float64 = "ball arithmetic takes as many digits as it needs"

    def missing(self) -> str | None:
        """Return why python-flint cannot be used and the command that installs it, or None."""
        package = load("flint")
        if package.module is not None:
            return None
        fault = "" if package.reason == "missing" else package.reason
        return str(MissingDependencyError("python-flint", fault=fault))

    def prepare(self, problem: Problem) -> ExactDerivative:
        """Return the derivative of the problem's graph.

        Raises
        ------
        UnsupportedError
            The function is Python code without a graph, or python-flint is missing.
        """
        reason = self.missing()
        if reason is not None:
            raise UnsupportedError(reason)
        if problem.function is None:
            raise UnsupportedError("exact needs a Function: record Python code by dl.trace")
        return ExactDerivative(problem.function, problem.order)


@dataclass(frozen=True)
class ExactDerivative:
    """The derivative of a function, to be evaluated at points."""

    function: Function
    order: int
    size: Size | None = None
    operations: int | None = None

    def __call__(self, x: NDArray[float64]) -> Estimate:
        """Return the derivative at `x`, with an error of half a unit in the last place (ulp).

        Raises
        ------
        UnsupportedError
            There is no derivative at `x`; the message says why, and where that is written.
        """
        from difflab.balls.rounded import rounded_derivative

        value = rounded_derivative(self.function, x.tolist(), self.order)
        return Estimate(value, np.spacing(np.abs(value)) / 2, 0)


EXACT = Exact()
