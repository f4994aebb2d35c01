"""The one judge: the referee at a point, its verdicts on estimates, and the errors of a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from difflab.core.dtypes import DOUBLE, FloatFormat
from difflab.errors import MethodTimeout
from difflab.execute.long_loops import values_of
from difflab.lab.outcomes import outcome
from difflab.lab.record import ERRORS, MethodRow, ReferenceRow
from difflab.methods.protocol import Estimate, Family

if TYPE_CHECKING:
    from difflab.graph.function import Function
    from difflab.referee.referee import Referee, Reference
    from difflab.referee.verdict import Judgement

LOST = 1e-3
"""The relative change of the value above which the inputs' rounding is not negligible."""
BENT = 0.1
"""The second difference over the first ones above which the changes are not those of a slope."""


@dataclass
class Judge:
    """The referee at one point, called once; if it fails, every verdict is inconclusive.

    Without a graph it is the referee of values, and `values` are those of the code. The methods
    compute in `dtype`. With a `reason` the referee is not called.

    Attributes
    ----------
    reference : Reference or None
        The referee's derivative; None if it failed or was not called.
    reason : str
        Why it was not called, or why it failed.

    Examples
    --------
    >>> import difflab as dl
    >>> judge = Judge(dl.parse("sin(x)*y"), np.array([0.0, 2.0]))
    >>> str(judge.verdict([2.0, 0.0], Family.AUTOMATIC).verdict), judge.status
    ('agree', 'smooth')
    """

    function: Function | None
    x: NDArray[float64]
    order: int = 1
    timeout: float = 10.0
    values: Callable[[NDArray[Any]], NDArray[Any]] | None = None
    dtype: FloatFormat = DOUBLE
    reason: str = ""

    def __post_init__(self) -> None:
        self._referee: Referee | None = None
        self.reference: Reference | None = None
        if self.reason:
            return
        try:
            with np.errstate(all="ignore"):
                self.reference = self._refer()
        except Exception as error:  # mpmath, FLINT and the user's own values may raise anything
            self.reason = f"the referee gave up: {outcome(error).message}"
            if isinstance(error, MethodTimeout) and self.function is not None:
                lost = lost_value(values_of(self.function), self.x)
                self.reason += f"; {lost}" if lost else ""

    def __getstate__(self) -> dict[str, Any]:
        """Leave the referee itself behind, as its values cannot be sent to a process."""
        return {**self.__dict__, "_referee": None}

    def _refer(self) -> Reference:
        point, order, timeout = self.x.tolist(), self.order, self.timeout
        if self.function is None:
            from difflab.referee.by_values import reference_by_values

            assert self.values is not None
            return reference_by_values(self.values, point, order=order, timeout=timeout)
        from difflab.referee.referee import Referee

        self._referee = Referee.of(self.function, point, order=order, timeout=timeout)
        return self._referee.reference()

    @property
    def status(self) -> str:
        """The regularity of the worst element, or why the referee failed."""
        return self.reason if self.reference is None else self.reference.status

    def row(self) -> ReferenceRow:
        """Return the referee's result as a row of the record."""
        found = self.reference
        if found is None:
            return ReferenceRow(None, 0, None, self.reason)
        return ReferenceRow(
            found.jacobian,
            found.digits,
            found.error_bound,
            found.status,
            proved=bool(found.proved.all()),
            contradiction=found.contradiction,
        )

    def verdict(self, found: Estimate | ArrayLike, family: Family) -> Judgement:
        """Return the verdict on a derivative, an array if it has no estimate of its error."""
        from difflab.referee.verdict import Judgement, Verdict, judge

        if self.reference is None:
            return Judgement(Verdict.INCONCLUSIVE, self.reason, None, None, None, None)
        if not isinstance(found, Estimate):
            found = Estimate(np.reshape(found, self.reference.exact.shape), None, 0)
        sensitivity = None if self._referee is None else self._referee.sensitivity
        return judge(found, self.reference, family, sensitivity=sensitivity, dtype=self.dtype)

    def judged(self, row: MethodRow, estimate: Estimate) -> MethodRow:
        """Return the row with its verdict and errors."""
        found = self.verdict(estimate, row.family)
        return replace(
            row,
            verdict=str(found.verdict),
            message=found.reason,
            **{name: getattr(found, name) for name in ERRORS},
        )


def lost_value(values: Callable[[NDArray[Any]], NDArray[Any]], x: NDArray[float64]) -> str:
    """Return why no slope describes the function between adjacent float64, or an empty text.

    It is so if one unit in the last place of every input changes the value far, and not by as
    much on both sides of the point: after many turns of a chaotic recurrence.

    Parameters
    ----------
    values : callable
        Maps packed points ``(N, n)`` to values ``(N, m)``.
    x : ndarray, shape (n,)
        The point.

    Examples
    --------
    >>> import difflab as dl
    >>> lost_value(dl.parse("iterate(y = x; 100 times; 4*y*(1 - y))").values, np.array([0.3]))
    'one unit in the last place of the inputs changes the value by 26 %, not along a slope'
    >>> lost_value(dl.parse("sin(x)").values, np.array([np.pi]))
    ''
    """
    points = np.stack([np.nextafter(x, -np.inf), x, np.nextafter(x, np.inf)])
    with np.errstate(all="ignore"):
        before, here, after = values(points)
        left, right = here - before, after - here
        size = np.maximum(np.abs(left), np.abs(right))
        relative = np.max(size) / np.max(np.abs(here))
        bent = np.max(np.abs(right - left)) > BENT * np.max(size)
    if not (relative > LOST and bent):
        return ""
    change = f"changes the value by {100 * relative:.2g} %, not along a slope"
    return f"one unit in the last place of the inputs {change}"
