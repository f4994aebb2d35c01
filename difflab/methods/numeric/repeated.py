"""One function differentiated again and again: from some calls on by compiled code."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from difflab.graph.function import Function
from difflab.methods.numeric.compiled_stencil import CompiledStencil, suits
from difflab.methods.numeric.rules import DifferenceRule

__all__ = ["CALLS", "Repeated"]

CALLS = 200
"""Calls before compiling, which takes about as long as two or three times as many."""

Array = NDArray[np.float64]


class Repeated:
    """The derivatives of one function by one rule, compiled once they were asked for often.

    Parameters
    ----------
    function : Function
        What is differentiated.
    rule : DifferenceRule or None
        How; None where that is by no rule.
    """

    def __init__(self, function: Function, rule: DifferenceRule | None) -> None:
        self._rule = rule if rule is not None and suits(function, rule) else None
        self._calls = 0
        self._straight: CompiledStencil | None = None

    @property
    def evaluations(self) -> int:
        """Points at which a compiled call evaluates the function."""
        return 0 if self._straight is None else self._straight.evaluations

    def __call__(self, function: Function, x: Array) -> tuple[Array, Array] | None:
        """Return the Jacobian and its errors, flat; None where the method itself is to be asked."""
        straight = self._straight
        if straight is None:
            self._calls += 1
            if self._rule is None or self._calls <= CALLS:
                return None
            straight = self._straight = CompiledStencil.of(function, self._rule)
            if straight is None:
                self._rule = None
                return None
        return straight(x)
