"""The verdict *declared*: a derivative that a rule of the function states instead of its own.

A method that follows such rules is judged a second time, on the function without them. If it then
has the derivative of what the function computes, the rules are the only difference; if it has not,
it is wrong, whatever the function declares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.autodiff.functions.declared import declared_rules, undeclared
from difflab.errors import DifflabError
from difflab.graph.function import Function
from difflab.lab.record import MethodRow
from difflab.methods.protocol import Estimate, Family, Method, Prepared, Problem
from difflab.methods.registry import own

CONFIRMED = ("agree", "convention")
"""The verdicts on the function without its rules for which the rules are the difference."""
_SAME = 1e-9
"""Relative difference of two derivatives that rounding explains."""


@dataclass(frozen=True, eq=False)
class DeclaredRules:
    """The declared rules of the function of a problem, and that function without them."""

    problem: Problem

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the rules."""
        function = self.problem.function
        return () if function is None else declared_rules(function)

    def apply_to(self, method: Method) -> bool:
        """Whether a method may follow declared rules: those that see only values cannot."""
        return bool(self.names) and method.family is Family.AUTOMATIC

    def without(self, names: Sequence[str] | None = None) -> Function:
        """Return the function without these rules, by default without all.

        Raises
        ------
        UnsupportedError
            The `forward` of a custom function cannot be recorded.
        """
        assert self.problem.function is not None
        return undeclared(self.problem.function, names)

    def prepared(self, method: Method, names: Sequence[str] | None = None) -> Prepared | None:
        """Return the method's derivative of the function without rules; None if it has none."""
        try:
            with np.errstate(all="ignore"):
                return method.prepare(replace(self.problem, function=self.without(names)))
        except (DifflabError, ArithmeticError, ValueError):
            return None

    def judged(
        self,
        row: MethodRow,
        method: Method,
        x: NDArray[float64],
        found: NDArray[float64],
        judge: Callable[[MethodRow, Estimate], MethodRow],
    ) -> MethodRow:
        """Return the row of a method that was found wrong, declared if the rules explain it.

        Parameters
        ----------
        row : MethodRow
            With the verdict ``disagree``.
        method : Method
            The method.
        x : ndarray (n,)
            The point.
        found : ndarray
            Its derivative.
        judge : callable
            Returns a row with the verdict on an estimate.
        """
        prepared = self.prepared(method)
        plain = None if prepared is None else _value(prepared, x)
        if plain is None or not self._follows(method, x, found):
            return row
        again = judge(replace(row, verdict=None, message=""), Estimate(plain, None, 0))
        if again.verdict not in CONFIRMED:
            return row
        return declared(row, self._responsible(method, x, found))

    def _follows(self, method: Method, x: NDArray[float64], found: NDArray[float64]) -> bool:
        """Whether a derivative is the declared one; a method of another package may be wrong."""
        mine = own()
        if method.name in mine:
            return True
        modes = [mine[name] for name in ("reverse", "forward")]
        ready = [self.prepared(mode, ()) for mode in modes]
        return any(kept(found, _value(each, x)) for each in ready if each is not None)

    def _responsible(
        self, method: Method, x: NDArray[float64], found: NDArray[float64]
    ) -> tuple[str, ...]:
        """Return the rules each of which changes the derivative at a point; all if none alone."""
        if len(self.names) == 1:
            return self.names
        chosen = []
        for name in self.names:
            prepared = self.prepared(method, [name])
            if prepared is not None and not kept(found, _value(prepared, x)):
                chosen.append(name)
        return tuple(chosen) or self.names


def _value(prepared: Prepared, x: NDArray[float64]) -> NDArray[float64] | None:
    try:
        with np.errstate(all="ignore"):
            found: Estimate = prepared(x)
    except (DifflabError, ArithmeticError, ValueError):
        return None
    return np.asarray(found.value, dtype=float64)


def kept(one: NDArray[float64], other: NDArray[float64] | None) -> bool:
    """Return whether two derivatives are the same within rounding."""
    if other is None:
        return False
    with np.errstate(all="ignore"):
        same = np.abs(one - other) <= _SAME * np.fmax(np.abs(one), np.abs(other))
    return bool((same | (one == other) | (np.isnan(one) & np.isnan(other))).all())


def declared(row: MethodRow, names: Sequence[str]) -> MethodRow:
    """Return the row of a wrong derivative that the rules of these names declare."""
    both = row.message.partition("; proved")[0]
    rules = " and ".join(names)
    message = f"differs from the derivative by the rule of {rules}: {both}"
    return replace(row, verdict="declared", message=message)
