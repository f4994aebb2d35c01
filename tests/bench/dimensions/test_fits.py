"""Least squares reproduces NIST's certified values, and power laws their own exponents."""

from __future__ import annotations

import numpy as np
import pytest

from difflab.bench.dimensions.winners import least_squares, power_law

# NIST StRD, linear regression, Longley (1967): certified to 15 digits.
LONGLEY = """
60323 83.0 234289 2356 1590 107608 1947
61122 88.5 259426 2325 1456 108632 1948
60171 88.2 258054 3682 1616 109773 1949
61187 89.5 284599 3351 1650 110929 1950
63221 96.2 328975 2099 3099 112075 1951
63639 98.1 346999 1932 3594 113270 1952
64989 99.0 365385 1870 3547 115094 1953
63761 100.0 363112 3578 3350 116219 1954
66019 101.2 397469 2904 3048 117388 1955
67857 104.6 419180 2822 2857 118734 1956
68169 108.4 442769 2936 2798 120445 1957
66513 110.8 444546 4681 2637 121950 1958
68655 112.6 482704 3813 2552 123366 1959
69564 114.2 502601 3931 2514 125368 1960
69331 115.7 518173 4806 2572 127852 1961
70551 116.9 554894 4007 2827 130081 1962
"""
COEFFICIENTS = [
    -3482258.63459582, 15.0618722713733, -0.358191792925910e-01, -2.02022980381683,
    -1.03322686717359, -0.511041056535807e-01, 1829.15146461355,
]  # fmt: skip
DEVIATIONS = [
    890420.383607373, 84.9149257747669, 0.334910077722432e-01, 0.488399681651699,
    0.214274163161675, 0.226073200069370, 455.478499142212,
]  # fmt: skip


def test_least_squares_has_the_certified_coefficients_and_deviations():
    data = np.array([line.split() for line in LONGLEY.split("\n") if line], dtype=float)
    design = np.column_stack([np.ones(len(data)), data[:, 1:]])
    coefficients, errors = least_squares(design, data[:, 0])
    np.testing.assert_allclose(coefficients, COEFFICIENTS, rtol=1e-6)
    np.testing.assert_allclose(errors, DEVIATIONS, rtol=1e-6)


def test_the_intervals_are_those_of_scipys_regression():
    from scipy.stats import linregress, t

    noise = np.random.default_rng(1).normal(size=9) / 4
    n = 2 ** np.arange(9)
    figures = 5e-6 * n**1.5 * np.exp(noise)
    law = power_law([(int(k), 3, float(y)) for k, y in zip(n, figures, strict=True)])
    upper = n >= 16
    its = linregress(np.log(n[upper]), np.log(figures[upper]))
    half = its.stderr * t.ppf(0.975, upper.sum() - 2)
    assert law is not None
    assert law.samples == upper.sum() == 5
    assert law.exponents["n"] == pytest.approx((its.slope, its.slope - half, its.slope + half))
    assert law.at(16, 3) == pytest.approx(np.exp(its.intercept) * 16**its.slope)


def test_two_sizes_have_two_exponents():
    samples = [(n, m, 2e-6 * n**2 * m**0.5) for n in (1, 2, 4, 8) for m in (1, 2, 4, 8)]
    law = power_law(samples)
    assert law is not None
    assert [law.exponents[size].value for size in "nm"] == pytest.approx([2, 0.5])
    assert law.at(64, 25) == pytest.approx(2e-6 * 4096 * 5)


def test_fixed_costs_of_small_sizes_do_not_hide_the_growth():
    law = power_law([(n, 1, 1e-5 + 1e-9 * n**2) for n in (1, 2, 4, 8, *(4096, 8192, 16384))])
    assert law is not None
    assert law.exponents["n"].value == pytest.approx(2, abs=0.01)


@pytest.mark.parametrize("samples", [[], [(1, 1, 2.0)], [(1, 1, 2.0), (2, 1, 4.0)]])
def test_too_few_sizes_have_no_law(samples):
    assert power_law(samples) is None
