"""The reciprocal functions and their inverses against mpmath and SymPy."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy

import difflab as dl
from tests.support.rows import for_each

WIDE = (-700.0, -30.0, -3.0, -0.75, -1e-3, 1e-9, 0.1, 0.9, 2.5, 40.0, 709.0)
OUTSIDE = (-1e200, -50.0, -1.5, -1 - 1e-9, 1 + 2.0**-50, 1.25, 7.0, 1e9, 1e200)
POINTS = {
    "sec": (-3.0, -0.75, 1e-9, 0.1, 1.5, 2.5, 40.0),
    "csc": (-3.0, -0.75, 1e-9, 0.1, 1.5, 2.5, 40.0),
    "cot": (-3.0, -0.75, 1e-9, 0.1, 1.5, 2.5, 40.0),
    "csch": WIDE,
    "coth": WIDE,
    "asec": OUTSIDE,
    "acsc": OUTSIDE,
    "acoth": OUTSIDE,
    "acot": (*WIDE, 0.0, 1e200),
    "asech": (1e-200, 1e-9, 0.3, 0.9, 1 - 1e-9, 1 - 2.0**-50),
    "acsch": (*WIDE, 1e200, -1e-200),
}


def slope(name: str, x: float) -> mpmath.mpf:
    """Return the derivative by differences of mpmath's values, far below the step's error."""
    function = getattr(mpmath, name)
    step = mpmath.mpf(2) ** -700 * abs(x)
    return (function(x + step) - function(x - step)) / (2 * step)


@for_each("name", POINTS)
def test_values_and_derivatives_are_right_up_to_the_edges(name: str) -> None:
    f = dl.parse(f"{name}(x)")
    for x in POINTS[name]:
        with mpmath.workprec(4000):
            exact = mpmath.mpf(x)
            value = float(getattr(mpmath, name)(exact))
            derivative = float(slope(name, exact)) if x else -1.0
        assert abs(f(x) - value) <= 8 * np.spacing(abs(value)), x
        for mode in ("forward", "reverse"):
            found = dl.jacobian(f, mode)(x).item()
            assert abs(found - derivative) <= 24 * np.spacing(abs(derivative)) + 1e-320, (mode, x)


@for_each("name", POINTS)
def test_branches_are_those_of_sympy(name: str) -> None:
    for point in POINTS[name]:
        theirs = float(getattr(sympy, name)(sympy.Float(point, 30)).evalf(20))
        assert dl.parse(f"{name}(x)")(point) == pytest.approx(theirs, rel=1e-12)


def test_a_name_that_is_no_call_is_a_variable() -> None:
    assert dl.parse("sec*2").inputs == ("sec",)


def test_python_functions_have_them_too() -> None:
    slopes = dl.grad(lambda x: dl.arrays.csc(x) * dl.arrays.acot(x))(0.5)
    assert float(slopes) == pytest.approx(float(dl.gradient(dl.parse("csc(x)*acot(x)"))(0.5)[0]))
