"""JAX 0.10.2: the derivative of `sigmoid` is 0 where its value rounds to 1.

Its rule is y (1 - y), and 1 - y is 0 from about x = 37 on, where the derivative is 1e-16 and has
all its digits in float64: it is sigmoid(x) sigmoid(-x). By differences of mpmath values with 50
digits the derivative at 40 is 4.24835425529158899e-18.
"""

import mpmath
import pytest

jax = pytest.importorskip("jax")


def test_the_derivative_of_sigmoid_does_not_vanish():
    """Of sigmoid at 40."""
    with mpmath.workdps(50):
        exact = float(mpmath.diff(lambda x: 1 / (1 + mpmath.exp(-x)), 40))
    with jax.enable_x64(True):
        assert float(jax.grad(jax.nn.sigmoid)(40.0)) == pytest.approx(exact, rel=1e-12, abs=0)
