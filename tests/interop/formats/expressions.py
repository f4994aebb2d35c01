"""Random expressions of SymPy, and their values by SymPy at 30 digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
import sympy
from hypothesis import assume
from hypothesis import strategies as st

import difflab as dl
from difflab.graph.interpreters import MpmathInterpreter

X, Y, Z = sympy.symbols("x y z", real=True)
POINT = {X: sympy.Rational(7, 5), Y: sympy.Rational(-3, 8), Z: sympy.Rational(11, 4)}
UNARY = (
    *(sympy.sin, sympy.cos, sympy.tan, sympy.exp, sympy.log, sympy.sqrt, sympy.Abs, sympy.tanh),
    *(sympy.atan, sympy.erf, sympy.gamma, sympy.sec, sympy.sinh, sympy.floor, sympy.asinh),
)
LEAVES = (X, Y, Z, sympy.Integer(2), sympy.Integer(-3), sympy.Rational(2, 3), sympy.pi, sympy.E)
EXPONENTS = (2, -1, 3, sympy.Rational(1, 2), sympy.Rational(-3, 2), -2)


def _piecewise(parts: tuple[Any, Any, Any]) -> Any:
    a, b, c = parts
    return sympy.Piecewise((a, b > c), (b, sympy.And(a < c, b <= 1)), (c, True))


def expressions() -> st.SearchStrategy[Any]:
    """Return a strategy of expressions of x, y and z with a finite real value at `POINT`."""

    def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        pairs = st.tuples(inner, inner)
        return st.one_of(
            st.tuples(st.sampled_from(UNARY), inner).map(lambda p: p[0](p[1])),
            pairs.map(lambda p: p[0] + p[1]),
            pairs.map(lambda p: p[0] - p[1]),
            pairs.map(lambda p: p[0] * p[1]),
            pairs.map(lambda p: p[0] / p[1] if p[1] != 0 else p[0]),
            st.tuples(inner, st.sampled_from(EXPONENTS)).map(
                lambda p: p[0] ** p[1] if p[0] != 0 else p[0]
            ),
            pairs.map(
                lambda p: (
                    sympy.Max(*p)
                    if all(q.is_extended_real is not False for q in p)
                    and not any(q.has(sympy.I, sympy.zoo, sympy.nan) for q in p)
                    else p[0]
                )
            ),
            st.tuples(inner, inner, inner).map(_piecewise),
        )

    return st.recursive(st.sampled_from(LEAVES), larger, max_leaves=7)


def check_against_sympy(expression: Any, function: dl.Function) -> None:
    """Hold value and gradient of a function to SymPy's at 30 digits."""
    symbols = [sympy.Symbol(name, real=True) for name in function.inputs]
    with mpmath.workdps(40):
        value = _number(expression)
        assume(value is not None)
        point = [mpmath.mpf(POINT[s].p) / POINT[s].q for s in symbols]
        _assert_near(
            dl.evaluate(function, point, MpmathInterpreter()), [value], mpmath.mpf(10) ** -24
        )
        slopes = [_number(sympy.diff(expression, symbol)) for symbol in symbols]
        if not symbols or any(slope is None for slope in slopes):
            return
        (gradient,) = dl.evaluate(dl.gradient(function), point, MpmathInterpreter())
        # Its constants are folded, with rounding.
        _assert_near(list(gradient), slopes, mpmath.mpf(10) ** -10)


def _number(expression: Any) -> Any:
    """Return the value at `POINT`; None if it is no finite real number."""
    try:
        found = expression.subs(POINT).evalf(30)
    except (TypeError, ValueError, ZeroDivisionError, RecursionError):
        return None
    small = found.is_Float and abs(found) < 1e200
    return mpmath.mpf(found._mpf_) if small or (found.is_Float and found == 0) else None


def _assert_near(found: Sequence[Any], expected: Sequence[Any], bound: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        assert abs(one - other) <= bound * (1 + abs(other)), (one, other)
