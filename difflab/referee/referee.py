"""The referee: derivatives from high-precision values of the function, and nothing else.

The function's values are taken in mpmath and differentiated by differences; the digits are
doubled, and the step shrinks along, until two successive precisions agree. Both sides are
looked at, so kinks, jumps, poles and edges of the domain are found and named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from random import Random
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.errors import MethodTimeout
from difflab.referee.differences import LADDER, BudgetSpent, Sampler, Stage
from difflab.referee.limits import Regularity
from difflab.referee.refine import Key, Settling
from difflab.referee.ulp import nearest
from difflab.referee.values import ExactValues

if TYPE_CHECKING:
    from difflab.graph.function import Function

__all__ = ["Referee", "Reference", "refer"]

Real = Any  # an mpmath number
Exact = NDArray[Any]  # an array of mpmath numbers

_INPUT = 1e-5  # seconds that an input takes before it is first moved


@dataclass(frozen=True, eq=False)
class Reference:
    """The referee's derivative at one point: ``(m, n)``, or the Hessian ``(n, n)``.

    Attributes
    ----------
    value : tuple of mpf
        The ``m`` outputs; nan where the function is undefined.
    exact, left, right : ndarray of mpf
        The derivative, and those from the left and from the right. At a kink, a jump or a
        pole with two signs the derivative is nan; at a jump `left` and `right` belong to the
        pieces; where a side lies outside the domain it is nan.
    bounds : ndarray of float64
        Bound on the error of every entry.
    regularity : ndarray of str
        What the function is like, entry by entry: the values of `Regularity`.
    digits : int
        Significant digits that every settled entry reaches at least.
    status : str
        The worst entry's regularity.
    linear : ndarray of bool
        For each output, whether the entries also predict the change along a direction
        that moves all inputs at once; if not, the function has no derivative here even
        though every partial one exists.
    evaluations : int
        Values of the function that it took.
    judged : int
        The components that were looked at before the time ended; all of them where it did not.
    components : int
        The inputs, or for the Hessian the pairs of inputs.
    point : tuple of float
        Where.
    magnitude : float
        The largest size of a value met on the way to the outputs.
    rounded_in : bool
        Whether an output without a value has one in float64, whose rounding moved an operand
        into a domain: acosh(1 - 1e-20).
    """

    order: int
    point: tuple[float, ...]
    magnitude: float
    rounded_in: bool
    value: tuple[Real, ...]
    exact: Exact
    left: Exact
    right: Exact
    bounds: NDArray[float64]
    regularity: NDArray[np.str_]
    digits: int
    status: str
    linear: NDArray[np.bool_]
    evaluations: int
    judged: int
    components: int

    @cached_property
    def jacobian(self) -> NDArray[float64]:
        """The derivative, each entry the nearest float64."""
        rounded = [nearest(entry) for entry in self.exact.flat]
        return np.array(rounded, dtype=float64).reshape(self.exact.shape)

    @property
    def error_bound(self) -> float:
        """The largest bound of an entry that has one."""
        finite = self.bounds[np.isfinite(self.bounds)]
        return float(finite.max()) if finite.size else math.nan


class Referee:
    """Judge of derivatives at one point, by values only.

    Parameters
    ----------
    values : callable
        A list of ``n`` mpmath numbers to a list of ``m``; nan where undefined.
    point : sequence of float
        The point, taken as the exact doubles.
    order : int
        1 for the Jacobian; 2 for the Hessian of a single output.
    timeout : float
        Seconds after which what is still open is reported as ``unsettled``.

    Examples
    --------
    >>> referee = Referee(lambda x: [abs(x[0]) + x[1] ** 2], [0.0, 3.0])
    >>> reference = referee.reference()
    >>> reference.regularity.tolist(), reference.jacobian.tolist()
    ([['kink', 'smooth']], [[nan, 6.0]])
    >>> int(reference.left[0, 0]), int(reference.right[0, 0])
    (-1, 1)
    """

    def __init__(
        self,
        values: Callable[[Sequence[Real]], Sequence[Real]],
        point: Sequence[float],
        *,
        order: int = 1,
        timeout: float = 10.0,
    ) -> None:
        self._values = values
        self._point = [float(x) for x in point]
        self._order = order
        self._timeout = timeout
        self._level = 0
        self._spent = 0.0  # before the first value
        self._patience = timeout  # of `sensitivity`, over all calls
        self._stages: list[Stage] = []
        self._changes: dict[Key, float] = {}

    @classmethod
    def of(
        cls, function: Function, point: Sequence[float], *, order: int = 1, timeout: float = 10.0
    ) -> Referee:
        """Return the referee of a graph, at its packed inputs.

        Raises
        ------
        MethodTimeout
            There are more inputs than could even be written down in the time.
        """
        began = perf_counter()
        if _INPUT * len(point) > timeout > 0:
            raise MethodTimeout(f"{len(point):,} inputs are too many for {timeout:g} s")
        values = ExactValues(function)
        found = cls(values, point, order=order, timeout=timeout)
        found._spent = perf_counter() - began
        return found

    def reference(self) -> Reference:
        """Return the derivative with what is known of its accuracy.

        Notes
        -----
        At a smooth point every input costs two values, and one joint direction at doubled
        digits and shorter steps checks all entries together: the entries g predict its
        difference Σ gᵢvᵢ. What the check does not vouch for is settled on its own, level by
        level.

        Raises
        ------
        difflab.errors.UnsupportedError
            A Hessian was asked for of several outputs.
        """
        sampler = Sampler(self._values, self._point, self._timeout - self._spent)
        graph = self._values if isinstance(self._values, ExactValues) else None
        work = Settling(sampler, self._order)
        with _stirling():
            work.run()
        if not work.value:
            raise MethodTimeout(
                f"one value takes longer than the {self._timeout:g} s of the time limit"
            )
        self._level = work.level
        sizes = [abs(nearest(value)) for value in work.value]
        magnitude = max((size for size in sizes if math.isfinite(size)), default=0.0)
        if graph:
            magnitude = max(magnitude, graph.magnitude())
        rounded_in = False
        if graph and any(math.isnan(size) for size in sizes):
            rounded_in = bool(np.isfinite(graph.function.values(np.array(self._point))).all())
        return _collected(work, magnitude, rounded_in)

    def sensitivity(self, entries: Iterable[Key]) -> dict[Key, float]:
        """Return how far entries change when every input moves by half an ULP.

        The true derivative is taken, by values, at a few neighbours of the point whose
        distance is half the spacing of doubles in every input, the function's decimal
        literals moved likewise; the largest change is given, infinite where a neighbour has
        no derivative. Digits and steps are those that `reference` needed. All calls together take
        the time limit once more; entries for which there was no time are left out.
        """
        asked = sorted(set(entries))
        began = perf_counter()
        with suppress(BudgetSpent), _stirling():
            for place in asked:
                if place not in self._changes:
                    self._changes[place] = self._largest_change(place)
        self._patience -= perf_counter() - began
        return {place: self._changes[place] for place in asked if place in self._changes}

    def _largest_change(self, place: Key) -> float:
        if not self._stages:
            corners = [None, *_corners()]
            level = LADDER[self._level]
            self._stages = [Stage(self._near(corner), level, self._order) for corner in corners]
        for stage in self._stages:
            stage.sampler.restart(self._patience)
        base, *moved = self._stages
        return max(self._change(base, stage, place) for stage in moved)

    def _near(self, corner: Callable[[], float] | None) -> Sampler:
        """Return a sampler at a neighbour of the point, of a neighbour of the function."""
        values = self._values
        if corner is None:
            return Sampler(values, self._point, self._timeout)

        def nudge(number: float) -> float:
            # Half the smallest subnormal is not a double: zero is an exact number.
            return corner() * math.ulp(number) if number else 0.0

        if isinstance(values, ExactValues):
            values = values.nudged(nudge)
        return Sampler(values, self._point, self._timeout, [nudge(x) for x in self._point])

    def _change(self, base: Stage, moved: Stage, place: Key) -> float:
        unit, row = ((place[1],), place[0]) if self._order == 1 else (place, 0)
        with base.mp.workdps(base.digits):
            size = nearest(abs(moved.sample(unit)[row].centre - base.sample(unit)[row].centre))
        return math.inf if math.isnan(size) else size


def refer(
    function: Function, point: Sequence[float], *, order: int = 1, timeout: float = 10.0
) -> Reference:
    """Return the referee's derivative of a function at packed inputs."""
    return Referee.of(function, point, order=order, timeout=timeout).reference()


@contextmanager
def _stirling() -> Iterator[None]:
    """Let mpmath take the gamma function from Stirling's series.

    Beyond some 300 digits the table of Taylor coefficients that it would rather make costs
    seconds, once for every precision.
    """
    from mpmath.libmp import gammazeta

    limit = gammazeta.MAX_GAMMA_TAYLOR_PREC
    gammazeta.MAX_GAMMA_TAYLOR_PREC = 1000
    try:
        yield
    finally:
        gammazeta.MAX_GAMMA_TAYLOR_PREC = limit


def _corners() -> list[Callable[[], float]]:
    """Return what draws the coordinates of four corners of the box of half an ULP."""
    draw = Random(2)
    return [lambda: 0.5, lambda: -0.5, *[lambda: draw.choice((-0.5, 0.5))] * 2]


_SEVERITY = list(Regularity)


def _collected(work: Settling, magnitude: float, rounded_in: bool) -> Reference:
    """Return the entries as arrays; what did not settle is nan."""
    m, n = len(work.value), len(work.sampler.point)
    shape = (m, n) if work.order == 1 else (n, n)
    nan = work.mp.nan
    exact, left, right = (np.full(shape, nan, dtype=object) for _ in range(3))
    bounds = np.full(shape, math.inf)
    regularity = np.full(shape, str(Regularity.UNSETTLED), dtype=object)
    apart = _apart(work, shape)
    defined = np.array([work.defined(row) for row in range(m)], dtype=bool)
    zero = apart & (defined[:, None] if work.order == 1 else defined)
    for part in (exact, left, right):
        part[zero] = work.mp.zero
    bounds[zero] = 0.0
    regularity[zero] = str(Regularity.SMOOTH)
    regularity[apart & ~zero] = str(Regularity.UNDEFINED)
    for (row, position), entry in work.entries.items():
        unit = work.units[position]
        for place in {(row, unit[0])} if work.order == 1 else {unit, unit[::-1]}:
            exact[place], left[place], right[place] = entry.value, entry.left, entry.right
            bounds[place] = nearest(entry.bound)
            regularity[place] = str(entry.regularity)
    worst = max(map(_SEVERITY.index, set(regularity.flat)), default=0)
    return Reference(
        order=work.order,
        point=tuple(work.sampler.point),
        magnitude=magnitude,
        rounded_in=rounded_in,
        value=tuple(work.value),
        exact=exact,
        left=left,
        right=right,
        bounds=bounds,
        regularity=regularity.astype(str),
        digits=_digits(work, regularity),
        status=str(_SEVERITY[worst]),
        linear=np.array(work.linear, dtype=bool),
        evaluations=work.sampler.evaluations,
        judged=len(work.judged) if work.ended else len(work.units),
        components=len(work.units),
    )


def _apart(work: Settling, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return where an output is not made of an input at all, among what was looked at."""
    apart = np.zeros(shape, dtype=bool)
    for position in work.judged:
        unit, rows = work.units[position], work.rows[position]
        if work.order == 1:
            apart[:, unit[0]] = True
            apart[rows, unit[0]] = False
        else:
            apart[unit] = apart[unit[::-1]] = not rows
    return apart


def _digits(work: Settling, regularity: NDArray[Any]) -> int:
    """Return the significant digits of the worst entry, at most the first level's."""
    mp = work.mp
    digits = LADDER[0].digits
    if (regularity == str(Regularity.UNDEFINED)).all():
        return 0
    for entry in work.entries.values():
        if mp.isfinite(entry.value) and entry.value and entry.bound:
            digits = min(digits, int(mp.floor(mp.log10(abs(entry.value) / entry.bound))))
    return max(digits, 0)
