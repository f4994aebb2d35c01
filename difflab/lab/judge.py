"""The one judge: the referee at a point, its verdicts on estimates, and the errors of a row.

A method that follows declared rules and disagrees is judged a second time, on the function without
them. If it then has the derivative of what the function computes, the rules are the only
difference, and its verdict is *declared*; if it has not, it is wrong, whatever the function
declares. In other formats than float64 the point is rounded, and operations that leave the range
are named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from difflab.autodiff.functions.declared import declared_rules, undeclared
from difflab.core.dtypes import DOUBLE, FloatFormat
from difflab.diagnose.point_check import derivative_faults, range_faults
from difflab.errors import DifflabError, MethodTimeout, PointError
from difflab.execute.long_loops import values_of
from difflab.graph.function import Function
from difflab.lab.record import ERRORS, MethodRow, ReferenceRow, outcome
from difflab.methods.protocol import Estimate, Family, Method, Prepared, Problem
from difflab.methods.registry import own

if TYPE_CHECKING:
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
        point = self.x.tolist()
        try:
            with np.errstate(all="ignore"):
                if self.function is None:
                    from difflab.referee.by_values import reference_by_values

                    assert self.values is not None
                    self.reference = reference_by_values(
                        self.values, point, order=self.order, timeout=self.timeout
                    )
                else:
                    from difflab.referee.referee import Referee

                    self._referee = Referee.of(
                        self.function, point, order=self.order, timeout=self.timeout
                    )
                    self.reference = self._referee.reference()
        except Exception as error:  # mpmath, FLINT and the user's own values may raise anything
            self.reason = f"the referee gave up: {outcome(error).message}"
            if isinstance(error, MethodTimeout) and self.function is not None:
                lost = _lost_value(values_of(self.function), self.x)
                self.reason += f"; {lost}" if lost else ""

    def __getstate__(self) -> dict[str, Any]:
        """Leave the referee itself behind, as its values cannot be sent to a process."""
        return {**self.__dict__, "_referee": None}

    @property
    def status(self) -> str:
        """The regularity of the worst element, or why the referee failed."""
        return self.reason if self.reference is None else self.reference.status

    def row(self) -> ReferenceRow:
        """Return the referee's result as a row of the record."""
        reference = self.reference
        if reference is None:
            return ReferenceRow(None, 0, None, self.reason)
        return ReferenceRow(
            reference.jacobian,
            reference.digits,
            reference.error_bound,
            reference.status,
            proved=bool(reference.proved.all()),
            contradiction=reference.contradiction,
        )

    def verdict(self, derivative: Estimate | ArrayLike, family: Family) -> Judgement:
        """Return the verdict on a derivative, an array if it has no estimate of its error."""
        from difflab.referee.verdict import Judgement, Verdict, judge

        if self.reference is None:
            return Judgement(Verdict.INCONCLUSIVE, self.reason, None, None, None, None)
        if not isinstance(derivative, Estimate):
            derivative = Estimate(np.reshape(derivative, self.reference.exact.shape), None, 0)
        sensitivity = None if self._referee is None else self._referee.sensitivity
        return judge(derivative, self.reference, family, sensitivity=sensitivity, dtype=self.dtype)

    def judged(self, row: MethodRow, estimate: Estimate) -> MethodRow:
        """Return the row with its verdict and errors."""
        judgement = self.verdict(estimate, row.family)
        return replace(
            row,
            verdict=str(judgement.verdict),
            message=judgement.reason,
            **{name: getattr(judgement, name) for name in ERRORS},
        )


def _lost_value(values: Callable[[NDArray[Any]], NDArray[Any]], x: NDArray[float64]) -> str:
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
    >>> _lost_value(dl.parse("iterate(y = x; 100 times; 4*y*(1 - y))").values, np.array([0.3]))
    'one unit in the last place of the inputs changes the value by 26 %, not along a slope'
    >>> _lost_value(dl.parse("sin(x)").values, np.array([np.pi]))
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


# --- declared rules ---------------------------------------------------------------------------

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
        value: NDArray[float64],
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
        value : ndarray
            Its derivative.
        judge : callable
            Returns a row with the verdict on an estimate.
        """
        prepared = self.prepared(method)
        plain = None if prepared is None else _value(prepared, x)
        if plain is None or not self._follows(method, x, value):
            return row
        again = judge(replace(row, verdict=None, message=""), Estimate(plain, None, 0))
        if again.verdict not in CONFIRMED:
            return row
        return declared(row, self._responsible(method, x, value))

    def _follows(self, method: Method, x: NDArray[float64], value: NDArray[float64]) -> bool:
        """Whether a derivative is the declared one; a method of another package may be wrong."""
        mine = own()
        if method.name in mine:
            return True
        modes = [mine[name] for name in ("reverse", "forward")]
        ready = [self.prepared(mode, ()) for mode in modes]
        return any(_kept(value, _value(each, x)) for each in ready if each is not None)

    def _responsible(
        self, method: Method, x: NDArray[float64], value: NDArray[float64]
    ) -> tuple[str, ...]:
        """Return the rules each of which changes the derivative at a point; all if none alone."""
        if len(self.names) == 1:
            return self.names
        chosen = []
        for name in self.names:
            prepared = self.prepared(method, [name])
            if prepared is not None and not _kept(value, _value(prepared, x)):
                chosen.append(name)
        return tuple(chosen) or self.names


def _value(prepared: Prepared, x: NDArray[float64]) -> NDArray[float64] | None:
    try:
        with np.errstate(all="ignore"):
            estimate: Estimate = prepared(x)
    except (DifflabError, ArithmeticError, ValueError):
        return None
    return np.asarray(estimate.value, dtype=float64)


def _kept(one: NDArray[float64], other: NDArray[float64] | None) -> bool:
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


# --- other formats than float64 ---------------------------------------------------------------

ROUNDED = "the point is rounded to each, the truth is that of the rounded point, in its ULP"


def rounded_point(dtype: FloatFormat, x: NDArray[float64]) -> NDArray[float64]:
    """Return a point rounded to a format.

    Raises
    ------
    PointError
        An element is beyond its largest number.
    """
    rounded = dtype.rounded(x)
    if not np.isfinite(rounded).all():
        beyond = x[~np.isfinite(rounded)][0]
        raise PointError(f"the point has {beyond:g}, and {dtype} ends at {dtype.largest:.6g}")
    return rounded


class _Faults:
    """The operations of a function and of its derivative that leave the range of a format."""

    def __init__(self, function: Function, judge: Judge) -> None:
        self._function, self._judge = function, judge

    @cached_property
    def values(self) -> list[str]:
        """Those of the function."""
        return range_faults(self._function, self._judge.x, self._judge.dtype)

    @cached_property
    def derivative(self) -> list[str]:
        """Those of its derivative in reverse mode."""
        judge = self._judge
        try:
            return derivative_faults(self._function, judge.x, judge.dtype, judge.order)
        except DifflabError:  # some functions have no derivative in a graph
            return self.values


def in_range(
    rows: Sequence[MethodRow],
    function: Function | None,
    judge: Judge,
    reported: Callable[[MethodRow], None] | None = None,
) -> list[MethodRow]:
    """Return the rows of methods in a format, with its name and range faults.

    Operations are named where a derivative has nan, an infinity, or zero where the true one is
    not, and where it is wrong.
    """
    faults = None if function is None else _Faults(function, judge)
    labelled = []
    for row in rows:
        text = ""
        if faults is not None and _left(row, judge):
            texts = faults.values if row.family is Family.NUMERIC else faults.derivative
            text = "; ".join(texts)
        message = "; ".join(filter(None, (row.message, text)))
        labelled.append(replace(row, dtype=judge.dtype.name, message=message))
        if reported is not None:
            reported(labelled[-1])
    return labelled


def _left(row: MethodRow, judge: Judge) -> bool:
    """Whether a derivative may have left the range."""
    if row.jacobian is None:
        return False
    truth = None if judge.reference is None else judge.reference.jacobian
    lost = ~np.isfinite(row.jacobian) | ((row.jacobian == 0) & (truth is None or truth != 0))
    return bool(lost.any()) or row.verdict == "disagree"
