"""Correct rounding: a held-out set of random formulas, exact zeros and ties, refusals.

The expected gradients are differences of mpmath values with hundreds of digits.
"""

from __future__ import annotations

import math
import random
from collections import Counter

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.balls.rounded import rounded_derivative, rounded_values
from difflab.errors import UnsupportedError
from difflab.graph.evaluate import ArrayInterpreter, fold_all
from difflab.graph.function import Function
from tests.balls.truth import values
from tests.differential import formulas
from tests.differential.formulas import Formula, _formula
from tests.support.rows import for_each

DIGITS, MORE_DIGITS = 400, 1200
SEED, FORMULAS = 20260714, 400  # a seed without Bessel functions that take mpmath minutes


LEFT_OUT = ("float32(", "dawsn")
"""A cast has no true derivative, and Dawson's integral has tests of its own."""


def held_out(seed: int, count: int) -> list[tuple[Formula, list[float]]]:
    """Return random formulas, each with a point of finite numbers."""
    with pytest.MonkeyPatch.context() as patch:
        kept = [word for word in formulas.WORDS if not word.template.startswith(LEFT_OUT)]
        patch.setattr(formulas, "WORDS", kept)
        return _drawn(seed, count)


def _drawn(seed: int, count: int) -> list[tuple[Formula, list[float]]]:
    draw = random.Random(seed)
    found: list[tuple[Formula, list[float]]] = []
    while len(found) < count:
        formula = _formula(draw.randbytes(draw.randint(6, 30)), draw.randbytes(16))
        x = [number for number in formula.points[0] if math.isfinite(number)]
        if len(x) == 4:
            found.append((formula, x))
    return found


def difference(function: Function, x: list[float], place: int, step: mpmath.mpf) -> mpmath.mpf:
    ends = []
    for sign in (1, -1):
        point = [mpmath.mpf(number) for number in x]
        point[place] += sign * step
        ends.append(values(function, point)[0])
    return (ends[0] - ends[1]) / (2 * step)


def is_regular(function: Function, x: list[float]) -> bool:
    """Whether no number on the way overflows: mpmath's form of the row may give up there."""
    inputs = dict(zip(function.input_nodes, map(np.float64, x), strict=False))
    with np.errstate(all="ignore"):
        computed = fold_all(function.graph, inputs, ArrayInterpreter())
    return all(bool(np.all(np.abs(v) < 1e150)) for v in computed if v is not None)


def slope(function: Function, x: list[float], place: int) -> mpmath.mpf | None:
    """Return a derivative on which two steps agree to 40 digits; None if they do not."""
    size = mpmath.mpf(abs(x[place])) or mpmath.mpf(1)
    one = difference(function, x, place, size * mpmath.mpf(10) ** -80)
    two = difference(function, x, place, size * mpmath.mpf(10) ** -95)
    if not mpmath.isfinite(two) or abs(one - two) > abs(two) * mpmath.mpf(10) ** -40:
        return None
    return two


def check_rounded(found: float, truth: mpmath.mpf) -> None:
    """Fail unless no float64 is nearer to the truth."""
    if math.isinf(found):
        assert abs(truth) >= mpmath.mpf(2) ** 1024 * (1 - mpmath.mpf(2) ** -54)
        return
    half = mpmath.mpf(float(np.spacing(abs(found)))) / 2
    assert abs(truth - found) <= half * (1 + mpmath.mpf(10) ** -30), (found, truth)


def judged(seed: int, count: int) -> Counter[str]:
    """Check the gradients of a held-out set; return how many were judged, and why others not."""
    counts: Counter[str] = Counter()
    for formula, point in held_out(seed, count):
        function = dl.parse(formula.text)
        x = point[: function.n]
        try:
            found = rounded_derivative(function, x, 1)[0]
        except UnsupportedError as error:
            counts[str(error).split(": ")[1] if ": " in str(error) else "undecided"] += 1
            continue
        if not is_regular(function, x):
            counts["overflow"] += len(x)
            continue
        tiny = any(0 < abs(number) < 1e-60 for number in x)
        with mpmath.workdps(MORE_DIGITS if tiny else DIGITS):
            for place, number in enumerate(found.tolist()):
                try:
                    truth = slope(function, x, place)
                except RecursionError:  # mpmath's incomplete gamma function turns its ends round
                    truth = None
                counts["judged" if truth is not None else "no reference"] += 1
                if truth is not None:
                    check_rounded(number, truth)
    return counts


def test_all_smooth_gradients_of_a_held_out_set_are_correctly_rounded() -> None:
    counts = judged(SEED, FORMULAS)
    assert counts["judged"] > 250
    assert counts["no reference"] <= 0.05 * counts["judged"]


@for_each(
    ("formula", "point", "value"),
    [
        ("x/3*3 - x", 1.0, 0.0),
        ("sin(x)^2 + cos(x)^2", 1.0, 1.0),
        ("sin(x)^2 + cos(x)^2 - 1", 1.0, 0.0),
        ("exp(ln(x))", 2.0, 2.0),
        ("x + 1 - x", 1e16, 1.0),
        ("1 + x", 2.0**-53, 1.0),  # a tie, to even
        ("1 + 3*x", 2.0**-53, 1.0 + 2.0**-51),
        ("(x/3*3 - x) + 2^-53 + 1", 1.0, 1.0),
        ("floor(x/3*3)", 1.0, 1.0),
        ("sqrt(x/9)*3", 4.0, 2.0),
        ("exp(x)", 800.0, math.inf),
        ("exp(x)", -800.0, 0.0),
        ("exp(x)*exp(-800)", 800.0, 1.0),
        ("x*0.1", 5e-324, 0.0),
        ("ln(x)", -1.0, math.nan),
        ("1/x", 0.0, math.nan),
        ("sin(x)", 1e22, -0.8522008497671888),
        ("where(x > 0, sqrt(x), 0)", -1.0, 0.0),
    ],
)
def test_values_at_zeros_ties_and_extremes(formula: str, point: float, value: float) -> None:
    found = rounded_values(dl.parse(formula), [[point]])[0, 0]
    assert found == value or (math.isnan(found) and math.isnan(value))


@pytest.mark.parametrize(
    ("formula", "point", "text"),
    [
        ("sin(x)^2 + cos(x)^2 + 2^-53", 1.0, "halfway between two numbers"),
        ("floor(sin(x)^2 + cos(x)^2)", 1.0, "jump: floor jumps"),
        ("ln(sin(x)^2 + cos(x)^2 - 1)", 1.0, "edge: ln is analytic for x > 0"),
    ],
)
def test_what_cannot_be_decided_is_refused(formula: str, point: float, text: str) -> None:
    with pytest.raises(UnsupportedError, match=text):
        rounded_values(dl.parse(formula), [[point]])


def test_a_kink_has_no_derivative_and_its_place_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"kink: abs has a kink at 0.*\(column 5\)"):
        rounded_derivative(dl.parse("2 + abs(x)"), [0.0], 1)


def test_second_derivatives_are_correctly_rounded() -> None:
    f = dl.parse("ln(x)*sin(y) + x^3/y")
    found = rounded_derivative(f, [1.7, 2.3], 2)
    with mpmath.workdps(60):
        x, y = mpmath.mpf(1.7), mpmath.mpf(2.3)
        xx = -mpmath.sin(y) / x**2 + 6 * x / y
        xy = mpmath.cos(y) / x - 3 * x**2 / y**2
        yy = -mpmath.log(x) * mpmath.sin(y) + 2 * x**3 / y**3
        for number, truth in zip(found.ravel().tolist(), (xx, xy, xy, yy), strict=True):
            check_rounded(number, truth)


def test_long_exact_arithmetic_does_not_grow_without_bound() -> None:
    text = "x0 = x; " + "; ".join(f"x{k + 1} = 3.9*x{k}*(1 - x{k})" for k in range(60)) + "; x60"
    found = rounded_values(dl.parse(text), [[0.3]])[0, 0]
    with mpmath.workdps(200):
        x = mpmath.mpf(0.3)
        for _ in range(60):
            x = mpmath.mpf(3.9) * x * (1 - x)
        check_rounded(found, x)
