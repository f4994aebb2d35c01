"""`from_sympy` against SymPy's own values and derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import HealthCheck, Phase, given, settings
from sympy.codegen import cfunctions, numpy_nodes, scipy_nodes

import difflab as dl
from difflab.errors import InputError
from tests.interop.formats.expressions import X, Y, check_against_sympy, expressions
from tests.support.rows import for_each


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(expressions())
def test_values_and_gradients_are_sympys(expression: Any) -> None:
    if expression.has(sympy.I, sympy.zoo, sympy.nan, sympy.oo):
        return
    check_against_sympy(expression, dl.from_sympy(expression))


FUNCTIONS = [
    sympy.digamma(X),
    sympy.polygamma(2, X),
    sympy.loggamma(X),
    sympy.LambertW(X),
    sympy.besselj(0, X),
    sympy.atan2(Y, X),
    sympy.factorial(X),
    sympy.acot(X) + sympy.csch(X),
    sympy.Mod(X, 3),
    sympy.Min(X, Y, 3),
    sympy.ITE(X > Y, X < 1, X > 1),
    sympy.log(X, 2) + sympy.cbrt(X) + sympy.Float("1e-5"),
    sympy.Integer(10) ** 30 * X + sympy.EulerGamma,
    sympy.Piecewise((X, X < 0)),
]


@for_each("expression", FUNCTIONS, ids=str)
def test_functions_are_sympys(expression: Any) -> None:
    point = {"x": 1.4, "y": -0.375}
    function = dl.from_sympy(expression)
    found = function(**{name: point[name] for name in function.inputs})
    expected = sympy.lambdify([X, Y], expression, ["scipy", "numpy"])(1.4, -0.375)
    assert np.allclose(float(found), float(np.real(expected)), rtol=1e-13, equal_nan=True)


A, B = sympy.Float("2.5"), sympy.Float("1.75")
SPECIAL = [
    sympy.zeta(X + 1),
    sympy.zeta(X + 1, B),
    sympy.dirichlet_eta(X + 1),
    sympy.erf2(X, 0.5),
    sympy.expint(1, X),
    sympy.E1(X),
    sympy.betainc_regularized(A, B, 0, X / 2),
    sympy.betainc_regularized(A, B, 0.25, X / 2),
    sympy.betainc(A, B, 0, X / 2),
    sympy.lowergamma(A, X),
    sympy.uppergamma(A, X),
    sympy.sinc(X),
    sympy.sinc(X - sympy.Float("1.4")),
    sympy.frac(3 * X),
    sympy.harmonic(X),
    sympy.li(X + 2),
    sympy.jn(2, X),
    sympy.yn(2, X),
    sympy.UnevaluatedExpr(X) + 1,
    cfunctions.expm1(X),
    cfunctions.log2(X),
    cfunctions.log10(X),
    cfunctions.hypot(X, A),
    cfunctions.Cbrt(X),
    numpy_nodes.logaddexp(X, A),
    numpy_nodes.logaddexp2(X, A),
    scipy_nodes.cosm1(X),
]


@pytest.mark.parametrize("expression", SPECIAL, ids=str)
def test_special_functions_are_sympys(expression: Any) -> None:
    """Values and slopes, by SymPy at 30 digits."""
    function = dl.from_sympy(expression)

    def value(x: Any) -> Any:
        plain = expression.replace(sympy.erf2, lambda a, b: sympy.erf(b) - sympy.erf(a))
        return plain.subs(X, x).doit().rewrite(sympy.Pow).evalf(30)

    x, step = sympy.Float("1.4", 40), sympy.Float("1e-10", 40)
    slope = (value(x + step) - value(x - step)) / (2 * step)
    assert float(function(1.4)) == pytest.approx(float(value(x)), rel=1e-13)
    if expression.has(sympy.zeta, sympy.dirichlet_eta):
        return  # the derivative by the first argument has no row
    assert dl.gradient(function)(1.4) == pytest.approx([float(slope)], rel=1e-7, abs=1e-9)


def test_inverses_that_sympy_does_not_evaluate() -> None:
    function = dl.from_sympy(sympy.erfcinv(X))
    assert math.erfc(float(function(0.3))) == pytest.approx(0.3, rel=1e-14)


def test_the_program_is_what_one_would_write() -> None:
    expression = -X / 3 - 2 * Y / X + sympy.exp(-(X**2)) / sympy.sqrt(Y)
    program = dl.parse(str(dl.from_sympy(expression)))
    assert str(dl.from_sympy(X / 3)) == "x/3"
    assert str(dl.from_sympy(Y / X**2)) == "y/x^2"
    assert float(program(1.4, 2.0)) == pytest.approx(float(expression.subs({X: 1.4, Y: 2.0})))


def test_matrices_are_arrays() -> None:
    a, b = sympy.MatrixSymbol("A", 2, 2), sympy.MatrixSymbol("B", 2, 2)
    function = dl.from_sympy(a * b.T + 2 * a.I)
    rng = np.random.default_rng(3)
    A, B = rng.normal(size=(2, 2, 2))
    assert np.allclose(function(A, B), A @ B.T + 2 * np.linalg.inv(A))
    assert float(dl.from_sympy(a[0, 1] * sympy.Determinant(b))(A, B)) == pytest.approx(
        A[0, 1] * np.linalg.det(B)
    )
    jacobian = dl.from_sympy(sympy.Matrix([[X * Y, X], [Y, 1]]))
    assert jacobian(2.0, 3.0).tolist() == [[6.0, 2.0], [3.0, 1.0]]
    assert [float(value) for value in dl.from_sympy([X + Y, X * Y])(2.0, 3.0)] == [5.0, 6.0]


def test_a_deep_expression_and_a_shared_one() -> None:
    deep = X
    for _ in range(200):
        deep = sympy.sin(deep) + Y
    assert len(dl.from_sympy(deep).graph) == 402
    shared = X
    for _ in range(60):  # a tree of 2^60 leaves
        shared = sympy.Add(sympy.sin(shared, evaluate=False), shared, evaluate=False)
    assert len(dl.from_sympy(shared).graph) == 121


@for_each(
    ("expression", "message"),
    [
        (sympy.Integral(X, X), "no counterpart of SymPy's Integral\nhint: evaluate it first"),
        (sympy.I * X, "contains the imaginary unit"),
        (sympy.Float("1e-400", 30) * X, "so small that float64 rounds it to 0"),
        (sympy.LambertW(X, -1), r"no counterpart of SymPy's LambertW with 2 arguments"),
        (sympy.expint(2, X), "expint of the order 1"),
        (sympy.binomial(X, Y), "no counterpart of SymPy's binomial"),
        (sympy.Function("f")(X), "no counterpart of SymPy's f"),
        (sympy.Symbol("x_{1}"), r"the symbol 'x_\{1\}' is no name"),
        (sympy.Symbol("x", positive=True) + X, "two symbols are called x"),
        (sympy.Integer(10) ** 400 * X, "too large for a float64"),
        (sympy.Heaviside(X, 1), "heaviside is 1/2 at 0"),
        (sympy.MatrixSymbol("A", sympy.Symbol("n"), 2), "shape of the matrix A is not known"),
        ("x + y", "takes an expression of SymPy, not str"),
        ([X, 2.0], "takes an expression of SymPy, not float"),
        ([], "takes an expression of SymPy, not list"),
    ],
    ids=str,
)
def test_what_has_no_counterpart_is_named(expression: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        dl.from_sympy(expression)


@pytest.mark.parametrize("text", ["1e-400", "-1e-400", "1e-5000"])
def test_numbers_that_float64_rounds_to_zero_are_refused(text: str) -> None:
    x = sympy.Symbol("x")
    number = sympy.Float(text, 30)
    for expression in (number * x, x**number, x + number, sympy.Rational(1, 10**400) * x):
        with pytest.raises(InputError, match="so small that float64 rounds it to 0"):
            dl.from_sympy(expression)
    assert float(dl.from_sympy(sympy.Float("1e-310", 30) * x)(1.0)) == 1e-310
