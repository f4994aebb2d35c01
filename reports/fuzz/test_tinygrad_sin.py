"""tinygrad 0.14.0: the derivative of `sin` has 8 digits beyond 32, two at 1e8 and none at 1e10.

It is computed as sin(π/2 - x), and the sine of a float64 beyond about 31 that is not an integer
loses digits with its size: that of π/2 - 40 is wrong by 1e-8. The cosine of these numbers has all
its digits in float64.
"""

import mpmath
import pytest

tinygrad = pytest.importorskip("tinygrad")


@pytest.mark.parametrize("x", [40.0, 1e6, 1e8, 1e10])
def test_the_derivative_of_sin_is_cos(x):
    """At large numbers, by mpmath's cosine of the same float64."""
    point = tinygrad.Tensor([x], dtype=tinygrad.dtypes.float64)
    try:
        (slope,) = point.sin().sum().gradient(point)
        found = slope.numpy()[0]
    except RuntimeError as error:
        pytest.skip(f"tinygrad finds no device: {error}")
    with mpmath.workdps(40):
        exact = float(mpmath.cos(x))
    assert found == pytest.approx(exact, rel=0, abs=1e-14)
