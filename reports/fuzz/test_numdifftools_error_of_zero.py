"""numdifftools 0.11.2: an estimate of 0 with an error of 0, where the derivative is 2e-8.

The values of f do not change in float64 over most of its steps, so their differences are 0; the
spread of the estimates, which is then 0, is returned as their error. By differences of mpmath
values with 40 digits the derivative is 1.9999999999999998e-8.
"""

import mpmath
import numpy
import pytest

numdifftools = pytest.importorskip("numdifftools")


def test_the_error_estimate_covers_the_derivative():
    """Of the norm of 2 v at (1, 1, 1e8)."""
    gradient = numdifftools.Gradient(
        lambda v: numpy.sqrt(numpy.sum((2 * v) ** 2)), full_output=True
    )
    found = gradient([1.0, 1.0, 1e8])
    with mpmath.workdps(40):
        exact = float(mpmath.diff(lambda a: 2 * mpmath.sqrt(a**2 + 1 + mpmath.mpf(10) ** 16), 1))
    assert abs(found[0][0] - exact) <= 10 * numpy.ravel(found[1])[0]
