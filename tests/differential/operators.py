"""Differential operators of random formulas, in every way, against differences of many digits.

The reference, `mpmath.diff` of the values at 60 digits, uses no derivative rule. Operators are
taken by x and y, at a point and at a batch of points; p is a parameter, by which a Laplacian is
differentiated once more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
from hypothesis import strategies as st

import difflab as dl
from tests.differential.search import Family
from tests.differential.series import LARGEST, ONE, TWO

TOLERANCE = 1e-7
"""Of the largest number that is compared, and of 1: fourth derivatives of nested formulas."""

SECOND = ("auto", "collapsed", "jets", "forward-reverse", "reverse", "symbolic")
FOURTH = ("nested", "collapsed", "jets", "reverse", "symbolic")
DIGITS = 60


@dataclass(frozen=True)
class Program:
    """Formulas of x, y and p, the two that are outputs, and two points."""

    lines: tuple[str, ...]
    outputs: tuple[str, str]
    points: tuple[tuple[float, float, float], ...]

    def function(self, result: str) -> dl.Function:
        return dl.parse("\n".join([*self.lines, f"{result} + 0*x + 0*y + 0*p"]))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    known, lines = ["x", "y", "p"], []
    for number in range(draw(st.integers(1, 5))):
        form = draw(st.sampled_from(ONE + TWO))
        operands = [draw(st.sampled_from(known)) for _ in range(2)]
        lines.append(f"t{number} = {form.format(*operands)}")
        known.append(f"t{number}")
    seed = draw(st.integers(0, 10**6))
    points = np.random.default_rng(seed).uniform(-1.5, 1.5, (2, 3)).round(3).tolist()
    outputs = known[-1], draw(st.sampled_from(known[:-1]))
    return Program(tuple(lines), outputs, tuple(map(tuple, points)))


def derivative(f: dl.Function, point: Any, orders: tuple[int, int, int]) -> float:
    """Return a mixed derivative by differences of many digits."""
    with mpmath.workdps(DIGITS):
        if not any(orders):
            return float(f(*map(mpmath.mpf, point)))
        found = mpmath.diff(lambda *at: mpmath.mpf(f(*at)), tuple(map(mpmath.mpf, point)), orders)
        return float(mpmath.re(found))


def check(program: Program) -> None:
    """Compare the operators in every way."""
    f, g = map(program.function, program.outputs)

    def sums(point: Any, *orders: tuple[int, int, int]) -> float:
        return sum(derivative(f, point, each) for each in orders)

    try:
        laplacians = [sums(at, (2, 0, 0), (0, 2, 0)) for at in program.points]
        slope = sums(program.points[0], (2, 0, 1), (0, 2, 1))
        twice = sums(program.points[0], (4, 0, 0), (2, 2, 0), (2, 2, 0), (0, 4, 0))
        (fx, fy), (gx, gy) = (
            [derivative(each, program.points[0], by) for by in ((1, 0, 0), (0, 1, 0))]
            for each in (f, g)
        )
    except (ZeroDivisionError, ValueError, TypeError):  # outside of the domain
        return
    expected = [*laplacians, slope, twice, fx, fy, gx, gy]
    if not np.isfinite(expected).all() or np.max(np.abs(expected)) > LARGEST:
        return
    room = TOLERANCE * max(1.0, float(np.max(np.abs(expected))))

    def same(found: Any, value: Any, what: str) -> None:
        assert np.allclose(found, value, rtol=0.0, atol=room), f"{program}: {what} {found}, {value}"

    batch = [np.array(column) for column in zip(*program.points, strict=True)]
    point = program.points[0]
    for way in SECOND:
        operator = dl.laplacian(f, argnums=(0, 1), method=way)
        same(operator(*batch), laplacians, f"laplacian by {way}")
        same(dl.grad(operator, argnums=2)(*point), slope, f"the gradient of it by {way}")
    for way in FOURTH:
        same(dl.biharmonic(f, argnums=(0, 1), method=way)(*point), twice, f"biharmonic by {way}")
    field = lambda x, y, p: (f(x, y, p), g(x, y, p))  # noqa: E731
    for way in ("forward", "reverse"):
        same(dl.divergence(field, (0, 1), way)(*point), fx + gy, f"divergence by {way}")
        same(dl.curl(field, (0, 1), way)(*point), gx - fy, f"curl by {way}")


FAMILY = Family("operators", programs(), check, fixed=60, fresh=10)
