"""SymPy 1.14.0: the derivative of a root of a step function is nan where the function is constant.

`cbrt(Heaviside(x))` is 0 left of 0, and so is its derivative there. The chain rule of `diff` gives
DiracDelta(x)/(3 Heaviside(x)^(2/3)), which is 0/0.
"""

import pytest

sympy = pytest.importorskip("sympy")


def test_the_derivative_of_a_constant_piece_is_0():
    """Of cbrt(Heaviside(x)) at -1."""
    x = sympy.Symbol("x", real=True)
    f = sympy.cbrt(sympy.Heaviside(x))
    assert [f.subs(x, point) for point in (-2, -1, sympy.Rational(-1, 2))] == [0, 0, 0]
    assert f.diff(x).subs(x, -1) == 0
