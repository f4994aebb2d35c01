"""Records of error budgets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from difflab.core.place import SourceLocation
from difflab.graph.function import Function

SLACK = 1 + 1e-9
"""For the rounding of the sums of a budget."""
TINY = 1e-320
"""What an enclosure of 0 may be at most."""


@dataclass(frozen=True)
class Contribution:
    """The rounding error of one operation in the results.

    Attributes
    ----------
    node : int
        The node of the budget's function.
    operation : str
        The name of the primitive; "constant" for a number.
    text : str
        The operation in the source, or with its operands.
    site : SourceLocation
    ulps : float
        The largest contribution to an output, in units in the last place of it; over a domain, the
        mean over the points.
    worst : float
        The largest over the points.
    local : float
        The bound of its own error in units in the last place of its result, at the worst point.
    share : float
        The part of all contributions.
    """

    node: int
    operation: str
    text: str
    site: SourceLocation
    ulps: float
    worst: float
    local: float
    share: float

    @property
    def magnification(self) -> float:
        """How much larger, relative to the result, the error is than where it arises."""
        return self.worst / self.local if self.local else 0.0


@dataclass(frozen=True)
class OutputBudget:
    """The budget of one output number, at the worst point.

    Attributes
    ----------
    name : str
    value : float
        The computed result.
    bound : float
        The sum of all contributions, absolute.
    ulps : float
        The same in units in the last place of the result.
    remainder : float
        What the terms of higher order add at most; infinite where that is not proved.
    error : float
        A proved bound of the error of the computed result; infinite where there is none.
    """

    name: str
    value: float
    bound: float
    ulps: float
    remainder: float = math.inf
    error: float = math.inf

    @property
    def proved(self) -> bool:
        """Whether ball arithmetic proves that the error lies in the budget and its remainder."""
        return self.error <= (self.bound + self.remainder) * SLACK + TINY < math.inf


@dataclass(frozen=True, eq=False)
class Budget:
    """The budget of one function: of the value, or of the gradient.

    Attributes
    ----------
    kind : str
        ``"value"``, ``"gradient"`` or ``"jacobian"``.
    function : Function
        Its graph is that of the budget.
    outputs : tuple of OutputBudget
        At the worst point.
    contributions : tuple of Contribution
        Those that are not 0, the largest first.
    omitted : int
        Outputs that were left out because there are too many.
    reason : str
        Why it is not proved; empty if it is.
    """

    kind: str
    function: Function
    outputs: tuple[OutputBudget, ...]
    contributions: tuple[Contribution, ...]
    omitted: int = 0
    reason: str = ""

    @property
    def proved(self) -> bool:
        """Whether the budget of every output is proved."""
        return not self.reason and all(each.proved for each in self.outputs)

    @property
    def ulps(self) -> float:
        """The largest budget of an output, in units in the last place."""
        return max((each.ulps for each in self.outputs), default=0.0)

    @cached_property
    def shares(self) -> dict[int, float]:
        """The share of every node that contributes."""
        return {each.node: each.share for each in self.contributions}


@dataclass(frozen=True, eq=False)
class ErrorBudget:
    """Result of `difflab.error_budget`.

    Attributes
    ----------
    function : Function
    point : dict of str to value
        The point; of a domain, the worst point.
    dtype : str
        In which value and gradient are computed.
    value : Budget
    gradient : Budget or None
        None for a function without inputs.
    over : dict of str to (float, float)
        The domain; empty for a point.
    points : int
        The number of points.
    advice : tuple of str
        The worst contributions in words, and what to rewrite.
    stable : tuple of str
        What `difflab.stabilise` rewrites, and how many digits that gains.
    """

    function: Function
    point: dict[str, Any]
    dtype: str
    value: Budget
    gradient: Budget | None
    over: dict[str, tuple[float, float]]
    points: int
    advice: tuple[str, ...] = ()
    stable: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[Budget, ...]:
        """The budgets of value and gradient."""
        return (self.value,) if self.gradient is None else (self.value, self.gradient)

    @property
    def proved(self) -> bool:
        """Whether all of it is proved by ball arithmetic."""
        return all(part.proved for part in self.parts)
