"""Values that are computed again only where an input moved are the values."""

from __future__ import annotations

import mpmath
from hypothesis import given
from hypothesis import strategies as st

import difflab as dl
from difflab.lab.exact import ExactValues

mp = mpmath.mp
TEXT = "s = x*y + z\nt = exp(x)*s\n[t + where(y > 0, log(y), z), s*z, cos(z)]"


@given(st.sets(st.integers(0, 2)), st.integers(20, 200))
def test_moved_points_are_evaluated_as_fresh_ones(moved: set[int], digits: int) -> None:
    f = dl.parse(TEXT)
    base = [mp.mpf(value) for value in (0.5, 1.25, -2.0)]
    values = ExactValues(f)
    with mp.workdps(digits):
        values(base)
        point = [x + mp.mpf(2) ** -40 if i in moved else x for i, x in enumerate(base)]
        assert values(point) == ExactValues(f)(point)
        assert values(base) == ExactValues(f)(base)


def test_only_reached_nodes_are_computed_again() -> None:
    values = ExactValues(dl.parse(TEXT))
    assert values.reached(0) == [True, True, False]
    assert values.reached(1) == [True, True, False]
    assert values.reached(2) == [True, True, True]


def test_arrays_are_flattened_in_order() -> None:
    values = ExactValues(dl.parse("x: [3]; [sum(x), x]"))
    assert [float(v) for v in values([mp.mpf(k) for k in (1, 2, 4)])] == [7, 1, 2, 4]


def test_precision_changes_recompute_everything() -> None:
    values = ExactValues(dl.parse("sqrt(x) + pi"))
    point = [mp.mpf(2)]
    for digits in (20, 60, 40):
        with mp.workdps(digits):
            assert values(point)[0] == mp.sqrt(2) + mp.pi


def test_magnitude_is_that_of_intermediate_values() -> None:
    values = ExactValues(dl.parse("(x + 1000) - x"))
    values([mp.mpf(3)])
    assert values.magnitude() == 1003.0
