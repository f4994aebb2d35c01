"""True derivatives of the solution of equations, of a minimum and of an integral.

A box that contains exactly one solution of equations is found by `difflab.balls.roots`, with
derivatives by FLINT, and the derivative of the solution follows from a linear system of balls: its
bounds are proved. FLINT integrates the values of an integrand, with proved bounds (Johansson,
"Numerical integration in arbitrary-precision ball arithmetic", 2018). The derivative is a central
difference of such integrals, by two steps, whose difference is its error: it uses no derivative
rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from difflab import solve
from difflab.balls.evaluation import PRECISIONS, evaluator
from difflab.balls.jets import Undecided
from difflab.balls.library import acb, arb, arb_mat, precision
from difflab.balls.roots import enclosed_root
from difflab.bench.solvers.problem import Flat, SolverProblem, SolverTruth
from difflab.bench.solvers.ways import solution
from difflab.core.primitive import Primitive
from difflab.errors import ConvergenceError, UnsupportedError
from difflab.graph.evaluate import Fold
from difflab.graph.interpreters import ElementInterpreter
from difflab.graph.ir import Number

ENOUGH = 1e-20
"""Relative radius of the derivative at which the precision is enough."""


def of_equations(problem: SolverProblem) -> SolverTruth:
    """Return the true derivative of a solution of equations or of a minimum.

    Raises
    ------
    ConvergenceError
        It is not proved at any precision that there is one solution.
    """
    flat = Flat(problem)
    near = np.ravel(solution(problem, solve.equations.TOL, "unrolled")(flat.at))
    for bits in PRECISIONS[:6]:
        with precision(bits):
            try:
                enclosure = _Equations(flat, near, bits).solved()
            except (Undecided, ZeroDivisionError):
                continue
            truth = _truth_of(*enclosure, f"proved, interval Newton at {bits} bits")
        if truth.bound < ENOUGH:
            return truth
    raise ConvergenceError(
        f"the solution of {problem.name} is not proved to be the only one nearby"
    )


def _truth_of(value: Sequence[Any], jacobian: Sequence[Sequence[Any]], how: str) -> SolverTruth:
    """Return the midpoints of balls, with the largest relative radius of a row."""
    bound = 0.0
    for row in jacobian:
        size = max((float(abs(entry).upper()) for entry in row), default=0.0)
        radius = max((float(entry.rad()) for entry in row), default=0.0)
        bound = max(bound, radius / size if size else 0.0)
    return SolverTruth(
        np.array([float(entry.mid()) for entry in value]),
        np.array([[float(entry.mid()) for entry in row] for row in jacobian]),
        bound,
        how,
    )


class _Equations:
    """The equations of a problem in balls: G(x, p) = 0 with its derivatives by x and p."""

    def __init__(self, flat: Flat, near: Any, bits: int) -> None:
        self.flat, self.near = flat, near
        self.kind, self.n = flat.problem.kind, len(flat.start)
        order = 2 if self.kind == "minimum" else 1
        self.evaluate = evaluator(flat.function, bits, order)
        self.at = [arb(float(value)) for value in flat.at]
        self.held = self._held()

    def solved(self) -> tuple[list[Any], list[list[Any]]]:
        """Return the solution and its derivative."""
        free = [k for k in range(self.n) if k not in self.held]
        box = enclosed_root(self._system(free), self.near[free]) if free else []
        x = self._whole(free, box)
        _, by_x, by_p = self._expanded(x)
        columns = range(len(self.at))
        dx = {k: [arb(int(j == self.held[k][1])) for j in columns] for k in self.held}
        right = [
            [-by_p[i][j] - sum((by_x[i][k] * dx[k][j] for k in self.held), arb(0)) for j in columns]
            for i in free
        ]
        if free:
            matrix = arb_mat([[by_x[i][k] for k in free] for i in free])
            slopes = matrix.solve(arb_mat(right))
            dx |= {k: [slopes[i, j] for j in columns] for i, k in enumerate(free)}
        return x, [dx[k] for k in range(self.n)]

    def _held(self) -> dict[int, tuple[Any, int]]:
        """Return the unknowns at their bounds: the bound, and the parameter that it is, or -1."""
        sides = self.flat.sides(self.flat.at)
        if self.kind != "minimum" or sides is None:
            return {}
        held = {}
        for key, values in zip(("lower", "upper"), sides, strict=True):
            names = self.flat.problem.named(key)
            names = names if len(names) == self.n else (names or [0.0]) * self.n
            for k, bound in enumerate(values):
                if np.isfinite(bound) and abs(self.near[k] - bound) <= 1e-9 * max(1.0, abs(bound)):
                    own = names[k]
                    column = self.flat.columns[own][1].start if isinstance(own, str) else -1
                    held[k] = arb(float(bound)), column
        return held

    def _whole(self, free: Sequence[int], box: Sequence[Any]) -> list[Any]:
        """Return all unknowns, given the free ones."""
        x = [arb(0)] * self.n
        for k, at in zip(free, box, strict=True):
            x[k] = at
        for k, (bound, _) in self.held.items():
            x[k] = bound
        return x

    def _system(self, free: Sequence[int]) -> Any:
        def system(box: Sequence[Any]) -> tuple[list[Any], list[list[Any]]]:
            values, by_x, _ = self._expanded(self._whole(free, box))
            return [values[i] for i in free], [[by_x[i][k] for k in free] for i in free]

        return system

    def _expanded(self, x: Sequence[Any]) -> tuple[list[Any], list[list[Any]], list[list[Any]]]:
        """Return G and its derivatives by x and by p."""
        variables: list[tuple[int, int]] = []
        balls = []
        for name in self.flat.function.inputs:
            which, part, _ = self.flat.columns[name]
            indices = range(part.start, part.stop)
            variables += [(which, k) for k in indices]
            balls += [(self.at if which else x)[k] for k in indices]
        where = {variable: k for k, variable in enumerate(variables)}
        own = [where[0, k] for k in range(self.n)]
        # A parameter that is only a bound is no input of the program.
        parameters = [where.get((1, j), -1) for j in range(len(self.at))]
        outputs = self.evaluate(balls)
        for output in outputs:
            if output.fault is not None:
                raise Undecided(output.fault)
        if self.kind == "minimum":
            (f,) = outputs
            curves: dict[tuple[int, int], Any] = f.curves or {}
            by_x, by_p = (
                [[arb(curves.get((min(i, k), max(i, k)), 0)) for k in by] for i in own]
                for by in (own, parameters)
            )
            return [arb(f.slopes.get(i, 0)) for i in own], by_x, by_p
        fixed = self.kind == "fixed-point"
        values = [arb(out.value) - (x[k] if fixed else 0) for k, out in enumerate(outputs)]
        by_x = [
            [arb(out.slopes.get(k, 0)) - int(fixed and i == j) for j, k in enumerate(own)]
            for i, out in enumerate(outputs)
        ]
        return values, by_x, [[arb(out.slopes.get(k, 0)) for k in parameters] for out in outputs]


BITS = 128
STEP = 34
"""Binary digits of the step of the differences; half as many determine the error."""
TOLERANCE = arb(2) ** -100
"""Error of an integral."""


def of_integral(problem: SolverProblem) -> SolverTruth:
    """Return the true derivative of an integral by the parameters."""
    flat = Flat(problem)
    with precision(BITS):
        at = [arb(float(value)) for value in flat.at]
        value = _integral(flat, at)
        row = [_difference(flat, at, k) for k in range(len(at))]
        return _truth_of([value], [row], f"differences of integrals by FLINT, {BITS} bits")


def _difference(flat: Flat, at: Sequence[Any], k: int) -> Any:
    """Return the derivative by one parameter as a ball of the estimated error."""
    quotients = []
    for bits in (STEP, STEP // 2):
        h = arb(2) ** -bits
        ends = [_integral(flat, [*at[:k], at[k] + s * h, *at[k + 1 :]]) for s in (1, -1)]
        quotients.append((ends[0] - ends[1]) / (2 * h))
    fine, coarse = quotients
    # The error of the coarse step is 2^STEP times that of the fine one.
    return fine + arb(0, abs(fine - coarse).upper() * arb(2) ** (2 - STEP))


def _integral(flat: Flat, p: Sequence[Any]) -> Any:
    """Return the integral as a ball, interval by interval between its breaks."""
    listed = partial(_listed, flat, p)
    a, b = listed("between")
    points = [a, *listed("breaks"), b]
    graph, outputs = flat.function.graph, flat.function.outputs
    folds = {flag: Fold(graph, outputs, _Complex(flag)) for flag in (False, True)}
    total = arb(0)
    for low, high in pairwise(points):
        integrand = partial(_integrand, flat, folds, p, (low + high) / 2)
        total += acb.integral(integrand, low, high, abs_tol=TOLERANCE, rel_tol=TOLERANCE).real
    return total


def _listed(flat: Flat, p: Sequence[Any], key: str) -> list[Any]:
    return [arb(one) for one in flat.listed(key, p)]


def _integrand(
    flat: Flat, folds: dict[bool, Fold], p: Sequence[Any], inside: Any, x: Any, analytic: bool
) -> Any:
    """Return the integrand on a complex ball; a branch is that at a point of the interval."""
    values = {}
    for name, node in zip(flat.function.inputs, flat.function.input_nodes, strict=True):
        which, part, _ = flat.columns[name]
        values[node] = _Pair(acb(p[part.start]), acb(p[part.start])) if which else _Pair(x, inside)
    return folds[bool(analytic)].again(values)[0].ball


class _Pair:
    """A value on a ball, and at a point of the interval, which decides branches."""

    def __init__(self, ball: Any, point: Any) -> None:
        self.ball, self.point = ball, acb(point)


class _Complex(ElementInterpreter):
    """Values are holomorphic functions on complex balls."""

    def __init__(self, analytic: bool) -> None:
        super().__init__()
        self.analytic = analytic

    def constant(self, value: Number, name: str | None) -> Any:
        """Return a number exactly."""
        ball = acb(arb.pi() if name == "pi" else arb.const_e() if name else arb(value))
        return _Pair(ball, ball)

    def _scalar(self, primitive: Primitive) -> Callable[..., Any]:
        if primitive.name in ("less", "less_equal", "greater", "greater_equal"):
            less = primitive.name.startswith("less")
            return lambda a, b: bool((a.point.real < b.point.real) is less)
        if primitive.name == "where":
            return lambda truth, one, two: one if truth else two
        if primitive.name == "absolute":
            return lambda a: a if a.point.real > 0 else _Pair(-a.ball, -a.point)
        form = self._form(primitive.name)
        if form is None:
            raise UnsupportedError(f"complex balls have no form of '{primitive.name}'")
        return lambda *args: _Pair(
            form(*(one.ball for one in args)), form(*(one.point for one in args))
        )

    def _form(self, name: str) -> Callable[..., Any] | None:
        analytic = self.analytic
        forms: dict[str, Callable[..., Any]] = {
            "add": lambda a, b: a + b,
            "subtract": lambda a, b: a - b,
            "multiply": lambda a, b: a * b,
            "divide": lambda a, b: a / b,
            "negative": lambda a: -a,
            "power": lambda a, b: a.pow(b, analytic=analytic),
            "sqrt": lambda a: a.sqrt(analytic=analytic),
            "log": lambda a: a.log(analytic=analytic),
            "exp": lambda a: a.exp(),
            "sin": lambda a: a.sin(),
            "cos": lambda a: a.cos(),
        }
        return forms.get(name)
