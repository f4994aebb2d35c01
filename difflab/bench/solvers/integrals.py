"""The true derivative of an integral: FLINT's integration with proved bounds, and differences.

FLINT integrates the values of the integrand, with proved bounds (Johansson, "Numerical integration
in arbitrary-precision ball arithmetic", 2018). The derivative is a central difference of such
integrals, by two steps, whose difference is its error: it uses no derivative rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from difflab.balls.library import acb, arb, precision
from difflab.bench.solvers.newton import truth_of
from difflab.bench.solvers.problem import Flat, SolverProblem, Truth
from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.graph.evaluate import Fold
from difflab.graph.interpreters import ElementInterpreter
from difflab.graph.ir import Number

__all__ = ["judge"]

BITS = 128
STEP = 34
"""Binary digits of the step of the differences; half as many determine the error."""
TOLERANCE = arb(2) ** -100
"""Error of an integral."""


def judge(problem: SolverProblem) -> Truth:
    """Return the true derivative of an integral by the parameters."""
    flat = Flat(problem)
    with precision(BITS):
        at = [arb(float(value)) for value in flat.at]
        value = _integral(flat, at)
        row = [_difference(flat, at, k) for k in range(len(at))]
        return truth_of([value], [row], f"differences of integrals by FLINT, {BITS} bits")


def _difference(flat: Flat, at: Sequence[Any], k: int) -> Any:
    """Return the derivative by one parameter as a ball of the estimated error."""
    found = []
    for bits in (STEP, STEP // 2):
        h = arb(2) ** -bits
        ends = [_integral(flat, [*at[:k], at[k] + s * h, *at[k + 1 :]]) for s in (1, -1)]
        found.append((ends[0] - ends[1]) / (2 * h))
    fine, coarse = found
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
        found = acb(arb.pi() if name == "pi" else arb.const_e() if name else arb(value))
        return _Pair(found, found)

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
