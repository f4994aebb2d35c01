"""Formulas of FPBench and Herbie: values of the published programs, and other forms of the rest.

``tests/data/fpbench.json`` has, for each problem, the benchmark and its value at the problem's
start. They were computed with mpmath from the FPCore programs of both projects, by an evaluator
that shares nothing with difflab.
"""

import json
from pathlib import Path

import mpmath

import difflab as dl
from tests.support.rows import for_each

PUBLISHED = json.loads((Path(__file__).parents[2] / "data" / "fpbench.json").read_text())


def difference_of_squares(x, y):
    return (x - y) * (x + y)


def logarithm_of_a_quotient(N):
    return -N * mpmath.log1p(1 / N)


def linear_two_body_cancellation(x, y):
    return y * y


def secant_minus_one(x):
    return mpmath.tan(x) * mpmath.tan(x / 2)


def instantaneous_current(t, r, l, vmax, f):  # noqa: E741 - the name of the inductance
    """The current through a resistance and an inductance, which lags the voltage."""
    impedance = mpmath.mpc(r, 2 * mpmath.pi * f * l)
    return (vmax * mpmath.exp(2j * mpmath.pi * f * t) / impedance).real


def matrix_determinant(a, b, c, d, f, g, h, k, l):  # noqa: E741
    return mpmath.det(mpmath.matrix([[a, b, c], [d, f, g], [l, h, k]]))


def longitude_of_a_midpoint(l1, l2, p1, p2):
    """The mean of two unit vectors has the direction of the midpoint."""
    x, y = (
        sum(mpmath.cos(p) * turn(at) for at, p in ((l1, p1), (l2, p2)))
        for turn in (mpmath.cos, mpmath.sin)
    )
    return mpmath.atan2(y, x)


OTHER_FORMS = {
    f"fpbench/{form.__name__.replace('_', '-')}": form
    for form in (
        difference_of_squares,
        instantaneous_current,
        linear_two_body_cancellation,
        logarithm_of_a_quotient,
        longitude_of_a_midpoint,
        matrix_determinant,
        secant_minus_one,
    )
}
NAMES = [one.name for one in dl.problems() if one.name.startswith("fpbench/")]


def test_every_problem_has_a_second_source():
    assert sorted(NAMES) == sorted({**PUBLISHED, **OTHER_FORMS})


@for_each("name", NAMES)
def test_value_is_that_of_the_second_source(name):
    one = dl.problem(name)
    with mpmath.workdps(60):
        if name in PUBLISHED:
            expected = mpmath.mpf(PUBLISHED[name][1])
        else:
            start = {key: mpmath.mpf(float(value)) for key, value in one.start.items()}
            expected = OTHER_FORMS[name](**start)
        found = mpmath.mpf(one.reference.value[0])
        assert mpmath.almosteq(found, expected, rel_eps=1e-12, abs_eps=0)
