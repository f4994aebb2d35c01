"""SymPy 1.14.0: the derivative of Lambert's W function at 0 is nan instead of 1.

`diff` gives W(x)/(x (W(x) + 1)), which is 0/0 at 0; exp(-W(x))/(W(x) + 1) is the same function and
has the value 1 there, as W(x) = x - x² + … has.
"""

import pytest

sympy = pytest.importorskip("sympy")


def test_the_derivative_at_zero_is_one():
    """Of W at 0, whose series is x - x² + 3x³/2 - …."""
    x = sympy.Symbol("x", real=True)
    w = sympy.LambertW(x)
    assert sympy.series(w, x, 0, 3).removeO() == x - x**2
    assert w.diff(x).subs(x, 0) == 1
