"""Derivatives of formulas with decimal constants, to order 3: `exact` against mpmath's values.

mpmath differentiates values alone. A rule or a rewrite that rounds a constant, such as 1/7, the
exponent of x^(0.1 - 1) or the logarithm of 10, costs the correct rounding of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
from hypothesis import strategies as st

import difflab as dl
from difflab.errors import UnsupportedError
from tests.differential.search import Family

ORDER = 3
DIGITS = 80
"""mpmath's, of which a derivative of a value loses a third for each order."""

CONSTANTS = (0.1, 0.3, 0.7, 1.1, 2.3, 3.0, 7.0, 0.5, 1.75, 12.9)
ONE: dict[str, Callable[[Any, Any], Any]] = {
    "({0})^{1}": lambda x, c: x**c,
    "({0})^-{1}": lambda x, c: x**-c,
    "({0})/{1}": lambda x, c: x / c,
    "{1}/({0})": lambda x, c: c / x,
    "{1}*({0})": lambda x, c: c * x,
    "({0}) + {1}": lambda x, c: x + c,
    "(({0})/3)^{1}": lambda x, c: (x / 3) ** c,
    "{1}^(1/(1 + {0}))": lambda x, c: c ** (1 / (1 + x)),
    "log10(2 + {0})": lambda x, c: mpmath.log10(2 + x),
    "log2(2 + {0})": lambda x, c: mpmath.log(2 + x, 2),
    "ln({1} + 1 + {0})": lambda x, c: mpmath.log(c + 1 + x),
    "exp2(1/(1 + {0}))": lambda x, c: mpmath.mpf(2) ** (1 / (1 + x)),
    "exp(-({0})/{1})": lambda x, c: mpmath.exp(-x / c),
    "cbrt({0})": lambda x, c: mpmath.cbrt(x),
    "sqrt({0})": lambda x, c: mpmath.sqrt(x),
    "({0})^pi": lambda x, c: x**mpmath.pi,
    "pi*({0})/{1}": lambda x, c: mpmath.pi * x / c,
    "2 + sin({1}*({0}))": lambda x, c: 2 + mpmath.sin(c * x),
    "2 + erf({0})/{1}": lambda x, c: 2 + mpmath.erf(x) / c,
}
"""By their texts, functions of a positive number and a constant, positive themselves."""
TWO: dict[str, Callable[[Any, Any], Any]] = {
    "({0})*({1})": lambda x, y: x * y,
    "({0})/({1})": lambda x, y: x / y,
    "({0}) + ({1})": lambda x, y: x + y,
}

Step = tuple[str, int, int, float]
"""A form, the numbers of its operands among x and the earlier steps, and a constant."""


@dataclass(frozen=True)
class Program:
    """A formula of x as steps, and a point."""

    steps: tuple[Step, ...]
    point: float

    def text(self) -> str:
        """Return the formula in the language."""
        known = ["x"]
        for form, first, second, constant in self.steps:
            other = repr(constant) if form in ONE else known[second]
            known.append(form.format(known[first], other))
        return known[-1]

    def value(self, x: Any) -> Any:
        """Return the value by mpmath, where a constant is its float64."""
        known = [x]
        for form, first, second, constant in self.steps:
            if form in ONE:
                known.append(ONE[form](known[first], mpmath.mpf(constant)))
            else:
                known.append(TWO[form](known[first], known[second]))
        return known[-1]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    steps: list[Step] = []
    for number in range(draw(st.integers(1, 4))):
        form = draw(st.sampled_from([*ONE, *TWO]))
        # The last step reads the one before it, so that all but a few steps count.
        first, second = number, draw(st.integers(0, number))
        steps.append((form, first, second, draw(st.sampled_from(CONSTANTS))))
    return Program(tuple(steps), draw(st.floats(0.25, 4.0, allow_subnormal=False)))


def check(program: Program) -> None:
    """Compare the derivatives of order 1 to 3."""
    function = dl.parse(program.text())
    if not function.inputs:
        return
    with mpmath.workdps(DIGITS):
        terms = mpmath.taylor(program.value, mpmath.mpf(program.point), ORDER)
        derivatives = [term * math.factorial(k) for k, term in enumerate(terms)]
        truths = [*map(float, derivatives)]
        vanishing = [abs(term) < mpmath.mpf(10) ** -20 for term in terms]
    for order in range(1, ORDER + 1):
        if vanishing[order] or not math.isfinite(truths[order]):
            continue  # a complete cancellation of irrational numbers is not decided
        derivative = dl.partial(function, *["x"] * order)
        try:
            found = float(dl.compile(derivative, target="exact")(program.point))
        except UnsupportedError:
            # Such as 6x of (x·√x)²: no number of digits decides a tie.
            assert _is_tie(derivatives[order]), program
            continue
        assert found == truths[order], (
            f"{program.text()} at {program.point!r}, order {order}: {found!r}, not"
            f" {truths[order]!r}"
        )


def _is_tie(value: Any) -> bool:
    """Return whether a number is halfway between two float64, as far as its digits tell."""
    with mpmath.workdps(DIGITS):
        off = abs(value - float(value)) / math.ulp(float(value))
        return bool(abs(off - 0.5) < mpmath.mpf(10) ** -15)


FAMILY = Family("constants", programs(), check, fixed=200, fresh=30)
