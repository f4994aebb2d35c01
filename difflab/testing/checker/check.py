"""The check of a gradient: by components if they are few, else along directions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.differences.sampling import noise_along
from difflab.differences.scan import scan_line
from difflab.differences.window import first_half, slope_along
from difflab.errors import DifflabError
from difflab.testing.checker.arguments import Point
from difflab.testing.checker.blame import report_directional
from difflab.testing.checker.components import decided, report
from difflab.testing.checker.directions import (
    LARGE,
    Directional,
    along_gradient,
    at_random,
    judged_along,
    neighbours,
)
from difflab.testing.checker.given import ArrayPoint, OfSeveral
from difflab.testing.checker.leaves import Array, BoolArray, Callee
from difflab.testing.checker.own import pulled
from difflab.testing.checker.probe import Probe, check_repeatable, remembered
from difflab.testing.checker.truth import (
    MOST_OWN,
    TRUSTED,
    CheckSettings,
    NumericJacobian,
    Verdicts,
    judged,
    most_own,
    small,
)

if TYPE_CHECKING:
    from difflab.graph.function import Function

__tracebackhide__ = True  # pytest shows the message and the test, no frame of this module


_DENSE = {"numpy": 256, "": 256}
"""Components up to which each is checked on its own in float64, for values computed quickly."""
_DENSE_OTHER = 48
_COARSE = 100
"""The same in other dtypes, where each component costs 8 evaluations or some more."""
_ELEMENTS = 1 << 16
"""Elements of a Jacobian up to which it is checked element by element."""
_TRACED = 20_000
"""Elements of a wrong Jacobian up to which the mistake is searched for in the graph."""
_ROUNDINGS = 8.0
_NEIGHBOURS = 2


def check_tree(f: Callee, gradient: Any, point: Point, settings: CheckSettings) -> None:
    """Raise `GradientMismatch` unless the gradient is right; see `check_gradient`."""
    check = GradientCheck(f, gradient, point, Probe(f, point))
    before = None
    if callable(gradient):
        with np.errstate(all="ignore"):
            before = check.rows_there if check.dense else check.gradient_there
    if not check.dense:
        check.by_directions(settings)
    elif check.probe.eps < 1e-12:
        check.by_components(settings)
    else:
        check.by_coordinates(settings)
        check.by_directions(settings)
    if before is not None:
        with np.errstate(all="ignore"):
            after = check.rows(point) if check.dense else check.weighted(point)
        check_repeatable(before, after, check.probe.eps)


@dataclass(frozen=True)
class GradientCheck:
    """A function, a gradient under test (None: the framework's), and a point."""

    f: Callee
    gradient: Any
    point: Point
    probe: Probe
    kept: dict[str, Array] = field(default_factory=dict)

    @property
    def gradient_there(self) -> Array:
        """The gradient under test at the point, of the weighted sum of the values."""
        # A cached property would leave a frame of its own in tracebacks of the user's faults.
        if "gradient" not in self.kept:
            self.kept["gradient"] = self.weighted(self.point)
        return self.kept["gradient"]

    @property
    def rows_there(self) -> Array:
        """The Jacobian under test at the point ``(m, n)``."""
        if "rows" not in self.kept:
            self.kept["rows"] = self.rows(self.point)
        return self.kept["rows"]

    @property
    def dense(self) -> bool:
        """Whether every component is checked on its own."""
        if isinstance(self.point, ArrayPoint):
            return True
        n, m = self.point.n, self.probe.center.size
        if self.probe.eps > 1e-12:
            most = _COARSE
        else:
            most = min(_DENSE.get(library, _DENSE_OTHER) for library in self.point.libraries)
        return n <= most and n * m <= _ELEMENTS

    @cached_property
    def cotangent(self) -> Array | None:
        """Weights of several values, whose sum is checked along directions; None for one."""
        m = self.probe.center.size
        if m == 1:
            return None
        return np.random.default_rng(7).choice((-1.0, -0.5, 0.5, 1.0), m)

    def rows(self, point: Point) -> Array:
        """Return the Jacobian under test ``(m, n)`` at a point."""
        outputs = self.probe.outputs
        if self.gradient is None:
            units = np.eye(outputs.m)
            return np.array([pulled(self.f, point, outputs, unit) for unit in units])
        gradient = self.gradient(point.copy()) if callable(self.gradient) else self.gradient
        return point.rows(gradient, outputs)

    def column(self, index: int) -> Array:
        """Return the Jacobian under test with respect to one number, ``(m,)``."""
        column: Array = self.rows(self.point)[:, index]
        return column

    def weighted(self, point: Point) -> Array:
        """Return the gradient under test ``(n,)`` of the weighted sum of the values."""
        cotangent = self.cotangent
        if self.gradient is None:
            weights = np.ones(1) if cotangent is None else cotangent
            return pulled(self.f, point, self.probe.outputs, weights)
        rows = self.rows(point)
        gradient: Array = rows[0] if cotangent is None else cotangent @ rows
        return gradient

    def by_components(self, allowed: CheckSettings) -> None:
        """Check every component in float64."""
        point, values = self.point, self.probe.center

        # Methods accept any result of a function of one array, also complex ones.
        values_of = self.f if isinstance(point, ArrayPoint) else self.probe

        def packed(x: Array) -> Any:
            return values_of(point.at(x))

        def slope(x: Array) -> Array:
            if self.gradient is None:
                return self.rows(point.moved(x))
            return point.rows(self.gradient(point.at(x)), self.probe.outputs)

        with np.errstate(all="ignore"):
            yours = self.rows_there
            moving = slope if self.gradient is None or callable(self.gradient) else None
            here = point.numbers()
            truth, verdicts = decided(
                packed, moving, yours, here, values, allowed, self._small_graph
            )

        def explain() -> str:
            return self.explained(yours) or self._stale(yours)

        self._report(yours, truth, verdicts, allowed, explain)

    def _report(
        self,
        yours: Array,
        truth: NumericJacobian,
        verdicts: Verdicts,
        allowed: CheckSettings,
        explain: Callable[[], str],
    ) -> None:
        root = "" if isinstance(self.f, OfSeveral) else self.point.root or "x"
        report(self.probe, root, yours, truth, verdicts, allowed, explain)

    def _stale(self, yours: Array) -> str:
        """Return whether a wrong gradient keeps values of earlier calls; empty if unknown."""
        if not callable(self.gradient) or not isinstance(self.point, ArrayPoint):
            return ""
        with np.errstate(all="ignore"):
            try:
                away = self.point.moved(1.25 * self.point.numbers() + 0.125)
                values = away.outputs(self.f(away.copy())).numbers()
                if not np.isfinite(values).all():
                    return ""
                return remembered(yours, self.rows(self.point), self.rows(away))
            except Exception:  # user code may raise anything away from the given point
                return ""

    @cached_property
    def graph(self) -> Function | None:
        """The graph of the function of the arguments' arrays; None if it cannot be traced."""
        if self.point.libraries - {"numpy", ""} or any(leaf.complex for leaf in self.point.leaves):
            return None
        # A right gradient needs no graph, and graphs take longer to import than to check many.
        from difflab.graph.trace import trace

        point = self.point
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                graph = trace(lambda *leaves: self.f(point.rebuilt(leaves)), *point.copies())
        except Exception:  # user code may raise anything on a traced value
            return None
        return graph if graph.m == self.probe.center.size else None

    def _small_graph(self) -> Function | None:
        return self.graph if self.graph is not None and small(self.graph, self.point.n) else None

    def explained(self, yours: Array) -> str:
        """Return the mistake in one operation that gives a wrong Jacobian ``(m, n)``.

        Empty if none does, or the function is too large or cannot be traced.
        """
        if yours.size > _TRACED or self.graph is None or len(yours) != self.graph.m:
            return ""
        from difflab.testing.checker.wrong_operation import mistake_in

        alike = max(1e-6, _ROUNDINGS**2 * self.probe.eps)
        try:
            with np.errstate(all="ignore"):
                return mistake_in(self.graph, self.point.numbers(), yours, alike)
        except DifflabError:  # an operation without a derivative
            return ""

    def by_coordinates(self, allowed: CheckSettings) -> None:
        """Check every component in a coarser dtype; directions check those below the noise."""
        eps = self.probe.eps
        allowed = replace(allowed, rtol=max(allowed.rtol, _ROUNDINGS * eps))
        with np.errstate(all="ignore"):
            yours = self.rows_there
            truth = _coordinate_truth(self.probe, yours)
            verdicts = judged(yours, truth, allowed, np.zeros_like(yours))
            if not verdicts.wrong.any():
                return
            changes = [np.abs(self.rows(near) - yours) for near in self._neighbours()]
            noise = 2.0 * np.max([np.zeros_like(yours), *changes], axis=0)
            wrong = judged(yours, truth, allowed, noise).wrong
            wrong = _confirmed(self.probe, yours, truth, wrong)
        verdicts = Verdicts(wrong, np.zeros_like(wrong))
        self._report(yours, truth, verdicts, allowed, partial(self.explained, yours))

    def by_directions(self, settings: CheckSettings) -> None:
        """Check along a few directions, and find the component that is wrong."""
        gradient = self.gradient_there
        derivatives = self._directional(gradient)
        report_directional(self, gradient, derivatives, settings)

    def _directional(self, gradient: Array) -> list[Directional]:
        """Return the derivatives along some directions; the last is wrong if any is."""
        if not np.isfinite(gradient).all():
            return []
        derivatives: list[Directional] = []
        for along in self._directions(gradient):
            seen = judged_along(self.probe, gradient, along, self.cotangent)
            if seen.wrong or seen.unjudged:
                seen = judged_along(
                    self.probe,
                    gradient,
                    along,
                    self.cotangent,
                    doubted=seen,
                    sensitivity=self._sensitivity(gradient) if seen.wrong else None,
                )
            if seen.wrong:
                return [*derivatives, seen]
            derivatives.append(replace(seen, along=np.empty(0)))  # it is as large as the arguments
        return derivatives

    def _directions(self, gradient: Array) -> list[Array] | Any:
        yield along_gradient(self.point, gradient, seed=1)
        yield at_random(self.point, seed=2)
        if self.point.n < LARGE:
            yield at_random(self.point, seed=3, floor=True)
            yield along_gradient(self.point, gradient, seed=4)

    def _sensitivity(self, gradient: Array) -> Callable[[Array], float]:
        """Return how far the derivative under test changes between neighbouring arguments."""
        if self.gradient is not None and not callable(self.gradient):
            return lambda along: 0.0
        near = [self.weighted(point) for point in self._neighbours()]
        point = self.point
        line = at_random(point, 41)

        def along_line(t: float) -> Array:
            tree, _ = point.displaced(line, t, np.zeros((0, point.n)))
            return self.weighted(Point(tree, point.root))

        def sensitivity(along: Array) -> float:
            changed = 2.0 * max(abs(float((each - gradient) @ along)) for each in near)
            if self.probe.eps > 1e-12:
                return changed
            own = noise_along(lambda t: np.array([[along_line(t) @ along]]))
            terms = float(np.linalg.norm(gradient * along))  # a jump at a kink is no rounding
            most = min(MOST_OWN * terms, most_own(gradient) * float(np.linalg.norm(along)))
            return max(changed, min(float(own[0, 0]), most))

        return sensitivity

    def _neighbours(self) -> list[Point]:
        if self.gradient is not None and not callable(self.gradient):
            return []
        return list(neighbours(self.point, _NEIGHBOURS))


def _coordinate_truth(probe: Probe, rows: Array) -> NumericJacobian:
    """Return the derivatives ``(m, n)`` from values along each component.

    Parameters
    ----------
    probe : Probe
        The values.
    rows : ndarray (m, n)
        The Jacobian under test. It only accounts for the rounding of the arguments.
    """
    value, bar, jump, rise = (np.zeros_like(rows) for _ in range(4))
    along, scale = np.zeros(probe.point.n), _scale(probe)
    for j in range(probe.point.n):
        along[j] = scale[j]
        # Also if the row is zero: a missing term is seen if it matters to the value.
        size = np.maximum(np.abs(rows[:, j]) * scale[j], np.abs(probe.center))
        best = slope_along(
            probe.residual(along, rows, start=j, stop=j + 1),
            probe.rounding,
            first_half(probe.eps, alone=True),
            max(0.1 * np.sqrt(probe.eps), 8.0 * probe.eps) * size,
            most=3,
        ).per(scale[j])
        value[:, j] = rows[:, j] + best.value
        bar[:, j], jump[:, j] = best.bar, best.half_jump
        rise[:, j] = best.rise + np.abs(rows[:, j])
        along[j] = 0.0
    return NumericJacobian(
        value=value,
        bar=bar,
        left=value - jump,
        right=value + jump,
        rise=rise,
        final=np.zeros(rows.shape, dtype=bool),
        smooth=bar <= TRUSTED * np.abs(value),
        noise=np.zeros(len(rows)),
        source=f"polynomials through values of f, {probe.count} evaluations",
    )


def _confirmed(probe: Probe, rows: Array, truth: NumericJacobian, wrong: BoolArray) -> BoolArray:
    """Return which components are wrong also by a scan of the values for noise and kinks."""
    result = wrong.copy()
    scale = _scale(probe)
    along = np.zeros(probe.point.n)
    for j in np.flatnonzero(wrong.any(axis=0)):
        along[j] = scale[j]
        changes = probe.residual(along, rows, start=int(j), stop=int(j) + 1)
        scan = scan_line(changes, np.zeros(len(rows)), 1.0, wrong[:, j])
        if scan.windows:
            seen = scan.estimate(np.maximum(scan.noise, probe.rounding))
            margin = seen.bar + np.abs(seen.half_jump)
            result[:, j] &= ~(np.isfinite(seen.bar) & (np.abs(seen.value) <= margin))
        along[j] = 0.0
    return result


def _scale(probe: Probe) -> Array:
    """Return the displacement of each component."""
    size = np.abs(probe.point.numbers())
    return np.where(size < probe.eps**2, 1.0, size)
