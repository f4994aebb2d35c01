"""Bessel functions, incomplete gamma functions and inverses: published values and refusals."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.primitives import bessel, by_spelling, integrals, inverses

SPELLINGS = [
    name
    for name, row in by_spelling.items()
    if row.name in {*bessel.__all__, *integrals.__all__, *inverses.__all__}
]

# Abramowitz and Stegun: tables 9.1, 9.8, 26.9 (chi-square), 5.1; DLMF 4.13.6; erfinv(½) of OEIS.
PUBLISHED = [
    ("besselj(0, x)", 1.0, 0.765197686557967),
    ("besselj(1, x)", 2.0, 0.576724807756873),
    ("bessely(0, x)", 1.0, 0.088256964215677),
    ("bessely(1, x)", 2.0, -0.107032431540938),
    ("besseli(0, x)", 1.0, 1.266065877752008),
    ("besselk(0, x)", 1.0, 0.421024438240708),
    ("besselk(1, x)", 1.0, 0.601907230197235),
    ("gammaincc(1, x)", 1.0, math.exp(-1)),
    ("gammainc(2, x)", 1.0, 1 - 2 * math.exp(-1)),
    ("e1(x)", 1.0, 0.219383934395520),
    ("ei(x)", 1.0, 1.895117816355937),
    ("erfinv(x)", 0.5, 0.476936276204470),
    ("erfcinv(x)", 0.5, 0.476936276204470),
    ("lambertw(x)", 1.0, 0.567143290409784),
    ("lambertw(x)", math.e, 1.0),
]


@pytest.mark.parametrize(("text", "x", "value"), PUBLISHED)
def test_published_values(text: str, x: float, value: float) -> None:
    assert float(dl.parse(text)(x)) == pytest.approx(value, rel=2e-14)


def test_the_wronskian_of_bessel_functions_by_their_derivatives() -> None:
    """J Y' - J' Y = 2/(πx), DLMF 10.5.2; I K' - I' K = -1/x, 10.28.2, at fractional orders too."""
    for order in (0, 1, 2.5, 7):
        for one, two, expected in (("j", "y", lambda x: 2 / (math.pi * x)), ("i", "k", None)):
            f, g = (dl.parse(f"bessel{kind}({order}, x)") for kind in (one, two))
            for x in (0.3, 1.7, 9.0):
                slopes = [float(np.ravel(dl.gradient(h)(x))[0]) for h in (f, g)]
                found = float(f(x)) * slopes[1] - slopes[0] * float(g(x))
                wanted = -1 / x if expected is None else expected(x)
                assert found == pytest.approx(wanted, rel=1e-12), (one, order, x)


@pytest.mark.parametrize("name", ["besselj(n, x)", "besselk(n, x)", "gammainc(n, x)"])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_the_derivative_by_the_order_is_refused(name: str, mode: str) -> None:
    f = dl.parse(name)
    with pytest.raises(UnsupportedError, match="has no closed form"):
        dl.gradient(f, mode=mode)
    slope = dl.grad(f, argnums=1)(2.0, 1.5)
    expected = dl.gradient(dl.parse(name.replace("n,", "2,")), mode=mode)(1.5)
    assert float(slope) == float(np.ravel(expected)[0])
    finite = dl.differentiate(f, [2.0, 1.5], method="richardson").value
    with mpmath.workdps(30):
        library = {"besselj": mpmath.besselj, "besselk": mpmath.besselk}
        call = library.get(
            name.partition("(")[0], lambda a, x: mpmath.gammainc(a, 0, x, regularized=True)
        )
        truth = float(mpmath.diff(lambda n: call(n, mpmath.mpf(1.5)), 2))
    assert np.ravel(finite)[0] == pytest.approx(truth, rel=1e-7)


@pytest.mark.parametrize("name", SPELLINGS)
def test_the_names_stay_free_for_variables(name: str) -> None:
    f = dl.parse(f"{name} = 3*x; {name} + 1")
    assert f(2.0) == 7.0
    arity = by_spelling[name].arity
    called = dl.parse(f"{name}*{name}({'2, 0.5' if arity == 2 else '0.5'})")
    assert called.inputs == (name,)
    assert dl.parse(str(called)) == called


@pytest.mark.parametrize(
    ("text", "x", "value"),
    [
        ("besselj(0, x)", 0.0, 1.0),
        ("besselj(1, x)", 1e-310, 5e-311),
        ("besselj(3, x)", -2.0, -float(mpmath.besselj(3, 2))),
        ("besseli(0, x)", 5e-324, 1.0),
        ("besselk(0, x)", 700.0, float(mpmath.besselk(0, 700))),
        ("besselk(0, x)", 1e-310, float(mpmath.besselk(0, mpmath.mpf("1e-310")))),
        ("bessely(0, x)", 1e-310, float(mpmath.bessely(0, mpmath.mpf("1e-310")))),
        ("besselk(0, x)", -1.0, math.nan),
        ("e1(x)", -1.0, math.nan),
        ("e1(x)", 0.0, math.inf),
        ("erfinv(x)", 1.0, math.inf),
        ("erfinv(x)", 1.5, math.nan),
        ("lambertw(x)", -0.4, math.nan),
        ("lambertw(x)", math.inf, math.inf),
        ("gammainc(2, x)", 0.0, 0.0),
        ("gammainc(2, x)", math.inf, 1.0),
        ("gammainc(2, x)", -1.0, math.nan),
    ],
)
def test_edges(text: str, x: float, value: float) -> None:
    assert float(dl.parse(text)(x)) == pytest.approx(value, rel=4e-15, nan_ok=True)


def test_derivatives_at_the_edges() -> None:
    assert np.ravel(dl.gradient(dl.parse("lambertw(x)"))(0.0)) == [1.0]
    assert np.ravel(dl.gradient(dl.parse("erfinv(x)"))(1.0)) == [math.inf]
    assert np.ravel(dl.hessian(dl.parse("gammainc(1, x)"))(0.0)) == [-1.0]
    assert np.isnan(np.ravel(dl.gradient(dl.parse("e1(x)"))(-1.0))).all()
