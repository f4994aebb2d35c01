"""The referee: derivatives that are proved, and derivatives from high-precision values only.

There are two sources, and neither uses a derivative rule of difflab. Where the function is smooth,
ball arithmetic encloses the derivative (`difflab.referee.proofs`). Everywhere, the function is
evaluated in mpmath and differentiated by finite differences; the digits are doubled, and the step
is reduced, until two successive precisions agree. Differences on both sides identify kinks, jumps,
poles and edges of the domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from random import Random
from threading import RLock
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.balls.limit import in_process
from difflab.errors import DifflabError, MethodTimeout, described
from difflab.referee.differences import LADDER, PointSampler, Stage
from difflab.referee.limits import Regularity, worst
from difflab.referee.proofs import combined, prove
from difflab.referee.refine import EntryKey, Refinement
from difflab.referee.ulp import nearest
from difflab.referee.values import ExactValues, own_context, shared

if TYPE_CHECKING:
    from difflab.graph.function import Function


MpReal = Any  # an mpmath number
Exact = NDArray[Any]  # an array of mpmath numbers

_SHARED: AbstractContextManager[Any] = RLock()
"""Held by the one referee that changes the precision of mpmath.mp, which other code sees."""
_GRACE = 0.25  # seconds for which a process may exceed its limit, to return its partial result
_INPUT = 1e-5  # seconds of preparation for each input
PROVING = 0.25
"""Share of the time limit in which the derivative is enclosed by ball arithmetic."""


@dataclass(frozen=True, eq=False)
class Reference:
    """The referee's derivative at one point: ``(m, n)``, or the Hessian ``(n, n)``.

    Attributes
    ----------
    value : tuple of mpf
        The ``m`` outputs; nan where the function is undefined.
    exact, left, right : ndarray of mpf
        The derivative, and the left and right derivatives. At a kink, a jump or a pole with
        two signs the derivative is nan; at a jump `left` and `right` are those of the pieces;
        a side outside the domain is nan.
    bounds : ndarray of float64
        Bound on the error of every element.
    regularity : ndarray of str
        The regularity of the function for every element: values of `Regularity`.
    digits : int
        Smallest number of significant digits of a resolved element.
    status : str
        The regularity of the worst element.
    linear : ndarray of bool
        For each output, whether the elements predict the change along a direction that moves
        all inputs at once; if not, the function is not differentiable even though every
        partial derivative exists.
    evaluations : int
        The number of evaluations of the function.
    judged : int
        The number of components that were judged within the time limit.
    components : int
        The number of inputs, or for the Hessian of pairs of inputs.
    proved : ndarray of bool
        The elements that ball arithmetic encloses, whose `bounds` are rigorous.
    contradiction : str
        Where ball arithmetic and differences of values exclude each other; else empty.
    point : tuple of float
        The packed point.
    magnitude : float
        The largest magnitude of an intermediate value or an output.
    rounded_in : bool
        Whether an output without a value has one in float64, whose rounding moved an operand
        into a domain: acosh(1 - 1e-20).
    """

    order: int
    point: tuple[float, ...]
    magnitude: float
    rounded_in: bool
    value: tuple[MpReal, ...]
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
    proved: NDArray[np.bool_]
    contradiction: str

    @cached_property
    def jacobian(self) -> NDArray[float64]:
        """The derivative, each element rounded to the nearest float64."""
        rounded = [nearest(entry) for entry in self.exact.flat]
        return np.array(rounded, dtype=float64).reshape(self.exact.shape)

    @property
    def error_bound(self) -> float:
        """The largest finite error bound of an element."""
        finite = self.bounds[np.isfinite(self.bounds)]
        return float(finite.max()) if finite.size else math.nan


class Referee:
    """Reference derivatives at one point, from values of the function only.

    Parameters
    ----------
    values : callable
        Map a list of ``n`` mpmath numbers to a list of ``m``; nan where undefined. A graph is
        evaluated in a context of its own (`Referee.of`). Other code sees the precision of
        `mpmath.mp`, which is raised while it is judged, one referee after the other.
    point : sequence of float
        The point; every float64 is exact.
    order : int
        1 for the Jacobian; 2 for the Hessian of a single output.
    timeout : float
        Seconds after which the remaining elements are reported as ``unresolved``.

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
        values: Callable[[Sequence[MpReal]], Sequence[MpReal]],
        point: Sequence[float],
        *,
        order: int = 1,
        timeout: float = 10.0,
    ) -> None:
        graph = self._graph = values if isinstance(values, ExactValues) else None
        self._values = values
        self._precision = _SHARED if graph is None else nullcontext()
        self._point = [float(x) for x in point]
        self._order = order
        self._timeout = timeout
        self._level = 0
        self._spent = 0.0  # before the first value
        self._slow = graph is not None and math.isfinite(timeout) and graph.slow
        self._patience = timeout / 2 if self._slow else timeout  # of `sensitivity`, over all calls
        self._stages: list[Stage] = []
        self._changes: dict[EntryKey, float] = {}

    @classmethod
    def of(
        cls, function: Function, point: Sequence[float], *, order: int = 1, timeout: float = 10.0
    ) -> Referee:
        """Return the referee of a graph, at its packed inputs.

        Raises
        ------
        MethodTimeout
            There are too many inputs to prepare within the time limit.
        """
        began = perf_counter()
        if _INPUT * len(point) > timeout > 0:
            raise MethodTimeout(f"{len(point):,} inputs are too many for {timeout:g} s")
        values = ExactValues(function, context=own_context())
        referee = cls(values, point, order=order, timeout=timeout)
        referee._spent = perf_counter() - began
        return referee

    def reference(self) -> Reference:
        """Return the derivative with its error bounds and regularity.

        Notes
        -----
        At a smooth point every input costs two evaluations, and one joint direction v at doubled
        digits and shorter steps checks all elements g together: they predict its difference
        Σ gᵢvᵢ. An element that the check does not confirm is refined separately, level by level.

        Raises
        ------
        difflab.errors.UnsupportedError
            A Hessian was requested of a function with several outputs.
        """
        proof = None
        if self._graph is not None:
            began = perf_counter()
            seconds = PROVING * self._timeout
            proof = prove(self._graph.function, self._point, self._order, seconds)
            self._spent += perf_counter() - began
        proved = proof is not None and bool(proof.proved.all())
        differences = self._in_time(proved) if self._slow else self._by_differences(proved)
        return differences if proof is None else combined(differences, proof)

    def _in_time(self, proved: bool) -> Reference:
        """Return the derivative by differences, from a process that is stopped at the limit."""
        seconds = max(self._timeout - self._spent, 0.0)
        assert self._graph is not None
        try:
            asked = self._graph.function, self._point, self._order, seconds, proved
            reference, self._level = in_process(_differences, *asked, timeout=seconds, grace=_GRACE)
        except MethodTimeout:
            self._timeout, limit = 0.0, self._timeout  # without an evaluation
            if not proved:
                message = f"one evaluation takes longer than the time limit of {limit:g} s"
                raise MethodTimeout(message) from None
            self._patience = 0.0
            reference = self._without_values()
        return reference  # type: ignore[no-any-return]

    def _by_differences(self, proved: bool) -> Reference:
        """Return the derivative by differences; if all is `proved`, values may be missing.

        Elements that are resolved before an evaluation fails are kept.
        """
        sampler = PointSampler(self._values, self._point, self._timeout - self._spent)
        work = Refinement(sampler, self._order)
        failure: DifflabError | None = None
        try:
            with self._precision:
                work.run()
        except DifflabError:
            raise
        except Exception as error:  # mpmath, or the caller's values, may raise anything
            work.ended = True
            failure = DifflabError(f"values fail: {described(error)}")
        if work.value:
            return self._gathered(work)
        if proved:
            return self._without_values()
        raise failure or self._too_slow()

    def _too_slow(self) -> MethodTimeout:
        """Return the error of a function that has not one value within the time limit."""
        about = 0.0 if self._graph is None else self._graph.seconds()
        needed = f", about {about:.0f} s" if about > self._timeout else ""
        limit = f"the time limit of {self._timeout:g} s"
        return MethodTimeout(f"one evaluation takes longer than {limit}{needed}")

    def _without_values(self) -> Reference:
        """Return a derivative without elements, with rounded values."""
        work = Refinement(PointSampler(self._values, self._point, 0.0), self._order)
        assert self._graph is not None
        work.without_values(self._graph.function.values(np.array(self._point)).tolist())
        return self._gathered(work)

    def _gathered(self, work: Refinement) -> Reference:
        """Return the elements as arrays; unresolved ones are nan."""
        graph, self._level = self._graph, work.level
        sizes = [abs(nearest(value)) for value in work.value]
        magnitude = max((size for size in sizes if math.isfinite(size)), default=0.0)
        if graph is not None:
            magnitude = max(magnitude, graph.magnitude())
        rounded_in = False
        if graph is not None and any(math.isnan(size) for size in sizes):
            rounded_in = bool(np.isfinite(graph.function.values(np.array(self._point))).all())
        m, n = len(work.value), len(work.sampler.point)
        shape = (m, n) if work.order == 1 else (n, n)
        nan = shared(work.mp.nan)
        exact, left, right = (np.full(shape, nan, dtype=object) for _ in range(3))
        bounds = np.full(shape, math.inf)
        regularity = np.full(shape, str(Regularity.UNRESOLVED), dtype=object)
        apart = _apart(work, shape)
        defined = np.array([work.defined(row) for row in range(m)], dtype=bool)
        zero = apart & (defined[:, None] if work.order == 1 else defined)
        for part in (exact, left, right):
            part[zero] = shared(work.mp.zero)
        bounds[zero] = 0.0
        regularity[zero] = str(Regularity.SMOOTH)
        regularity[apart & ~zero] = str(Regularity.UNDEFINED)
        for (row, position), entry in work.entries.items():
            unit = work.units[position]
            for key in {(row, unit[0])} if work.order == 1 else {unit, unit[::-1]}:
                exact[key], left[key], right[key] = map(
                    shared, (entry.value, entry.left, entry.right)
                )
                bounds[key] = nearest(entry.bound)
                regularity[key] = str(entry.regularity)
        return Reference(
            order=work.order,
            point=tuple(work.sampler.point),
            magnitude=magnitude,
            rounded_in=rounded_in,
            value=tuple(map(shared, work.value)),
            exact=exact,
            left=left,
            right=right,
            bounds=bounds,
            regularity=regularity.astype(str),
            digits=_digits(work, regularity),
            status=worst(regularity),
            linear=np.array(work.linear, dtype=bool),
            evaluations=work.sampler.evaluations,
            judged=len(work.judged) if work.ended else len(work.units),
            components=len(work.units),
            proved=np.zeros(shape, dtype=bool),
            contradiction="",
        )

    def sensitivity(self, entries: Iterable[EntryKey]) -> dict[EntryKey, float]:
        """Return how far elements change when every input changes by half an ULP.

        The derivative is computed at a few neighbours of the point at a distance of half an ULP
        in every input, with the function's decimal literals changed likewise. The largest change
        is returned; it is infinite if a neighbour has no derivative. Digits and steps are those
        that `reference` needed. All calls together take at most the time limit once more, or half
        of it if mpmath may not return; elements for which there was no time, or no value, are
        omitted.
        """
        keys = sorted(set(entries))
        began = perf_counter()
        missing = [key for key in keys if key not in self._changes]
        with suppress(Exception), self._precision:  # of time, or anything that mpmath raises
            if self._slow:
                self._changes |= self._changes_in_time(missing)
            else:
                for key in missing:
                    self._changes[key] = self._largest_change(key)
        self._patience -= perf_counter() - began
        return {key: self._changes[key] for key in keys if key in self._changes}

    def _changes_in_time(self, missing: list[EntryKey]) -> dict[EntryKey, float]:
        """Return `sensitivity` from a process that is stopped at the limit."""
        seconds = self._patience
        assert self._graph is not None
        if not missing or seconds <= 0:
            return {}
        asked = self._graph.function, self._point, self._order, self._level, missing, seconds
        changes: dict[EntryKey, float]
        changes = in_process(_sensitivity, *asked, timeout=seconds, grace=_GRACE)
        return changes

    def _largest_change(self, key: EntryKey) -> float:
        if not self._stages:
            corners = [None, *_corners()]
            level = LADDER[self._level]
            self._stages = [Stage(self._near(corner), level, self._order) for corner in corners]
        for stage in self._stages:
            stage.sampler.restart(self._patience)
        base, *moved = self._stages
        return max(self._change(base, stage, key) for stage in moved)

    def _near(self, corner: Callable[[], float] | None) -> PointSampler:
        """Return a sampler at a neighbour of the point, with the literals changed likewise."""
        if corner is None:
            return PointSampler(self._values, self._point, self._timeout)

        def nudge(number: float) -> float:
            # Zero is exact: half the smallest subnormal number is not a float64.
            return corner() * math.ulp(number) if number else 0.0

        values = self._values if self._graph is None else self._graph.nudged(nudge)
        return PointSampler(values, self._point, self._timeout, [nudge(x) for x in self._point])

    def _change(self, base: Stage, moved: Stage, key: EntryKey) -> float:
        unit, row = ((key[1],), key[0]) if self._order == 1 else (key, 0)
        with base.mp.workdps(base.digits):
            size = nearest(abs(moved.sample(unit)[row].centre - base.sample(unit)[row].centre))
        return math.inf if math.isnan(size) else size


def _here(function: Function, point: Sequence[float], order: int, timeout: float) -> Referee:
    """Return the referee of a graph in a process that is stopped at its time limit."""
    values = ExactValues(function, context=own_context())
    referee = Referee(values, point, order=order, timeout=timeout)
    referee._slow = False
    return referee


def _differences(
    function: Function, point: Sequence[float], order: int, seconds: float, proved: bool
) -> tuple[Reference, int]:
    """Return the derivative by differences, and the level of the ladder that it needed."""
    referee = _here(function, point, order, seconds)
    return referee._by_differences(proved), referee._level


def _sensitivity(
    function: Function,
    point: Sequence[float],
    order: int,
    level: int,
    entries: list[EntryKey],
    seconds: float,
) -> dict[EntryKey, float]:
    """Return how far elements change, at a level of the ladder."""
    referee = _here(function, point, order, seconds)
    referee._level, referee._patience = level, seconds
    return referee.sensitivity(entries)


def refer(
    function: Function, point: Sequence[float], *, order: int = 1, timeout: float = 10.0
) -> Reference:
    """Return the referee's derivative of a function at packed inputs."""
    return Referee.of(function, point, order=order, timeout=timeout).reference()


def _corners() -> list[Callable[[], float]]:
    """Return generators of the coordinates of four corners of the half-ULP box."""
    draw = Random(2)
    return [lambda: 0.5, lambda: -0.5, *[lambda: draw.choice((-0.5, 0.5))] * 2]


def _apart(work: Refinement, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return the mask of judged elements whose output does not depend on the input."""
    apart = np.zeros(shape, dtype=bool)
    for position in work.judged:
        unit, rows = work.units[position], work.rows[position]
        if work.order == 1:
            apart[:, unit[0]] = True
            apart[rows, unit[0]] = False
        else:
            apart[unit] = apart[unit[::-1]] = not rows
    return apart


def _digits(work: Refinement, regularity: NDArray[Any]) -> int:
    """Return the significant digits of the worst element, at most those of the first level."""
    mp = work.mp
    digits = LADDER[0].digits
    if (regularity == str(Regularity.UNDEFINED)).all():
        return 0
    for entry in work.entries.values():
        if mp.isfinite(entry.value) and entry.value and entry.bound:
            digits = min(digits, int(mp.floor(mp.log10(abs(entry.value) / entry.bound))))
    return max(digits, 0)
