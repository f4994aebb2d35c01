"""Taylor mode against nested forward mode: random formulas with branches, to order 3.

The two roads share the derivative rules and nothing else. Operations are bounded or grow slowly,
so that third derivatives have digits to compare. Branches that are not taken hide singular slopes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import difflab as dl
from tests.differential.search import Family

ORDER = 3
TOLERANCE = 1e-8
"""Of the largest derivative of the formula, and of 1."""

LARGEST = 1e6
"""Derivatives beyond it are ill-conditioned, and not compared."""

ONE = (
    *("sin({0})", "cos({0})", "tanh({0})", "atan({0})", "exp(sin({0}))", "sigmoid({0})"),
    *("softplus({0})", "relu({0})", "abs({0})", "sqrt(relu({0}))", "cbrt(relu({0}))"),
    *("sqrt(1 + ({0})^2)", "ln(1 + ({0})^2)", "({0})^2", "({0})^3", "relu({0})^2.5", "erf({0})"),
    *("1/(2 + sin({0}))", "asinh({0})", "clip({0}, -0.5, 0.5)", "log1p(exp({0}))", "{0} + 0.3"),
    *("asin(0.9*sin({0}))", "versine({0})", "(1.5 + sin({0}))^-1.5", "sech({0})"),
)
TWO = (
    *("({0}) + ({1})", "({0}) - ({1})", "({0})*({1})", "({0})/(2 + cos({1}))", "hypot({0}, {1})"),
    *("max({0}, {1})", "min({0}, {1})", "logaddexp({0}, {1})", "atan2({0}, 2 + sin({1}))"),
    *("where({0} > 0, {1}, {0})", "where({0} > {1}, sqrt({0} - ({1})), 0)"),
    *("(1.5 + sin({0}))^({1})", "({0})^2 - ({1})^2", "where({1} < 0.2, {0}, 1)*({1})"),
)


@dataclass(frozen=True)
class Program:
    """A formula of x and y, a point and a direction."""

    text: str
    point: tuple[float, float]
    direction: tuple[float, float]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    known = ["x", "y"]
    lines = []
    for number in range(draw(st.integers(1, 6))):
        form = draw(st.sampled_from(ONE + TWO))
        operands = [draw(st.sampled_from(known)) for _ in range(2)]
        lines.append(f"t{number} = {form.format(*operands)}")
        known.append(f"t{number}")
    seed = draw(st.integers(0, 10**6))
    numbers = np.random.default_rng(seed).uniform(-1.5, 1.5, 4).round(3).tolist()
    text = "\n".join([*lines, f"{known[-1]} + 0*x + 0*y"])
    return Program(text, (numbers[0], numbers[1]), (numbers[2], numbers[3]))


def check(program: Program) -> None:
    """Compare the derivatives along the direction."""
    function = dl.parse(program.text)
    x, x_dot = np.array(program.point), np.array(program.direction)

    def along(t: float) -> object:
        return function(x[0] + t * x_dot[0], x[1] + t * x_dot[1])

    curve, expected = along, []
    with np.errstate(all="ignore"):
        for _ in range(ORDER + 1):
            expected.append(float(np.asarray(curve(0.0))))
            curve = (lambda f: lambda t: dl.jvp(f, (t,), (1.0,))[1])(curve)
        scaled = dl.taylor(function, order=ORDER)(*x, *x_dot)
    found = [float(c) * math.factorial(k) for k, c in enumerate(scaled)]
    if not np.isfinite(expected).all() or np.max(np.abs(expected)) > LARGEST:
        return
    room = TOLERANCE * max(1.0, float(np.max(np.abs(expected))))
    assert np.allclose(found, expected, rtol=0.0, atol=room), f"{program}: {found}, not {expected}"


FAMILY = Family("series", programs(), check, fixed=300, fresh=40)
