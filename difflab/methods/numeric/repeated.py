"""Repeated differentiation of one function, by compiled code after a number of calls."""

from __future__ import annotations

from difflab.graph.function import Function
from difflab.methods.numeric.compiled_stencil import CompiledStencil, suits
from difflab.methods.numeric.rules import DifferenceRule

__all__ = ["CALLS", "Repeated"]

CALLS = 200
"""Calls before compilation, which takes as long as two to three times this number of calls."""


class Repeated:
    """The derivatives of one function by one rule, compiled after `CALLS` calls.

    Parameters
    ----------
    function : Function
        The function to differentiate.
    rule : DifferenceRule or None
        The difference rule; None if the method uses none.

    Attributes
    ----------
    compiled : CompiledStencil or None
        The compiled first pass, once there is one.
    """

    def __init__(self, function: Function, rule: DifferenceRule | None) -> None:
        self.compiled: CompiledStencil | None = None
        self._rule = rule if rule is not None and suits(function, rule) else None
        self._calls = 0

    def count(self, function: Function) -> CompiledStencil | None:
        """Count a call; return the compiled first pass, None if the method itself is faster."""
        self._calls += 1
        if self._rule is not None and self._calls > CALLS:
            self.compiled = CompiledStencil.of(function, self._rule)
            self._rule = None
        return self.compiled
