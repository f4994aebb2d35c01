"""Repeated differentiation of one function, by compiled code after a number of calls."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from difflab.graph.function import Function
from difflab.methods.numeric.compiled_stencil import CompiledStencil, suits
from difflab.methods.numeric.rules import DifferenceRule

__all__ = ["CALLS", "Repeated"]

CALLS = 200
"""Calls before compilation, which takes as long as two to three times this number of calls."""

Array = NDArray[np.float64]


class Repeated:
    """The derivatives of one function by one rule, compiled after `CALLS` calls.

    Parameters
    ----------
    function : Function
        The function to differentiate.
    rule : DifferenceRule or None
        The difference rule; None if the method uses none.
    """

    def __init__(self, function: Function, rule: DifferenceRule | None) -> None:
        self._rule = rule if rule is not None and suits(function, rule) else None
        self._calls = 0
        self._compiled: CompiledStencil | None = None

    @property
    def evaluations(self) -> int:
        """Number of points at which a compiled call evaluates the function."""
        return 0 if self._compiled is None else self._compiled.evaluations

    def __call__(self, function: Function, x: Array) -> tuple[Array, Array] | None:
        """Return the Jacobian and its errors, flat; None if the method itself must be called."""
        compiled = self._compiled
        if compiled is None:
            self._calls += 1
            if self._rule is None or self._calls <= CALLS:
                return None
            compiled = self._compiled = CompiledStencil.of(function, self._rule)
            if compiled is None:
                self._rule = None
                return None
        return compiled(x)
