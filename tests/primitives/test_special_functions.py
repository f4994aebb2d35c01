"""Bessel functions, incomplete gamma functions and inverses: published values and refusals."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.primitives import (
    airy,
    bessel,
    beta_functions,
    by_spelling,
    dawson,
    entropies,
    integrals,
    inverses,
    normal,
    zeta_function,
)
from tests.support.rows import for_each

FAMILIES = (
    *(airy, bessel, beta_functions, dawson, entropies),
    *(integrals, inverses, normal, zeta_function),
)
SPELLINGS = [
    name
    for name, row in by_spelling.items()
    if row.name in {name for family in FAMILIES for name in family.__all__}
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
    # DLMF 9.2.3–9.2.6, 9.2.5; 5.12.1; 25.6.1; A&S 26.1 and 26.2, 7.1 (erfcx = e·erfc(1)).
    ("airyai(x)", 0.0, 0.355028053887817),
    ("airyaiprime(x)", 0.0, -0.258819403792807),
    ("airybi(x)", 0.0, 0.614926627446001),
    ("airybiprime(x)", 0.0, 0.448288357353826),
    ("beta(x, 3)", 2.0, 1 / 12),
    ("betaln(x, 3)", 2.0, -math.log(12)),
    ("betainc(2, 2, x)", 0.25, 0.15625),
    ("zeta(2, x)", 1.0, math.pi**2 / 6),
    ("erfcx(x)", 1.0, 0.427583576155807),
    ("erfi(x)", 1.0, 1.650425758797543),
    ("ndtr(x)", 1.0, 0.841344746068543),
    ("ndtri(x)", 0.975, 1.959963984540054),
    ("log_ndtr(x)", -1.0, math.log(0.158655253931457)),
    ("logit(x)", 0.75, math.log(3)),
    ("entr(x)", 0.5, 0.5 * math.log(2)),
    ("xlogy(3, x)", 2.0, 3 * math.log(2)),
    ("xlog1py(3, x)", 1.0, 3 * math.log(2)),
    ("lambertw(x)", 1.0, 0.567143290409784),
    ("lambertw(x)", math.e, 1.0),
    # DLMF 7.8: F is largest at 0.924…, where F = 1/(2x); A&S table 7.5.
    ("dawsn(x)", 1.0, 0.538079506912768),
    ("dawsn(x)", 0.924138873004591, 0.541044224635182),
]


@for_each(("text", "x", "value"), PUBLISHED)
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


@pytest.mark.parametrize(
    "name", ["besselj(n, x)", "besselk(n, x)", "gammainc(n, x)", "betainc(n, 3, x)", "zeta(n, x)"]
)
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_the_derivative_by_the_order_is_refused(name: str, mode: str) -> None:
    f = dl.parse(name)
    with pytest.raises(UnsupportedError, match="has no closed form"):
        dl.gradient(f, mode=mode)
    x = 0.5 if "beta" in name else 1.5
    slope = dl.grad(f, argnums=1)(2.0, x)
    expected = dl.gradient(dl.parse(name.replace("n,", "2,")), mode=mode)(x)
    assert float(slope) == float(np.ravel(expected)[0])
    finite = dl.differentiate(f, [2.0, x], method="richardson").value
    with mpmath.workdps(30):
        library = {
            "besselj": mpmath.besselj,
            "besselk": mpmath.besselk,
            "zeta": mpmath.zeta,
            "betainc": lambda a, x: mpmath.betainc(a, 3, 0, x, regularized=True),
        }
        call = library.get(
            name.partition("(")[0], lambda a, x: mpmath.gammainc(a, 0, x, regularized=True)
        )
        truth = float(mpmath.diff(lambda n: call(n, mpmath.mpf(x)), 2))
    assert np.ravel(finite)[0] == pytest.approx(truth, rel=1e-7)


@for_each("name", SPELLINGS)
def test_the_names_stay_free_for_variables(name: str) -> None:
    f = dl.parse(f"{name} = 3*x; {name} + 1")
    assert f(2.0) == 7.0
    arity = by_spelling[name].arity
    called = dl.parse(f"{name}*{name}({', '.join(['2', '3', '0.5'][-arity:])})")
    assert called.inputs == (name,)
    assert dl.parse(str(called)) == called


@for_each(
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
        ("airyai(x)", 500.0, 0.0),
        ("airybi(x)", 500.0, math.inf),
        ("beta(x, 1)", -0.5, math.nan),
        ("betainc(2, 3, x)", 0.0, 0.0),
        ("betainc(2, 3, x)", 1.0, 1.0),
        ("betainc(2, 3, x)", 1.5, math.nan),
        ("zeta(2, x)", 0.0, math.nan),
        ("ndtr(x)", -30.0, float(mpmath.ncdf(-30))),
        ("ndtr(x)", -math.inf, 0.0),
        ("ndtr(x)", math.inf, 1.0),
        ("log_ndtr(x)", -1e10, -5e19 - math.log(1e10) - 0.5 * math.log(2 * math.pi)),
        ("dawsn(x)", 1e8, 5e-9),
        ("dawsn(x)", -math.inf, 0.0),
        ("dawsn_derivative(1, x)", math.inf, 0.0),
        ("dawsn_derivative(2, x)", 5e-324, -2e-323),
        ("dawsn_derivative(1, x)", math.nan, math.nan),
        ("dawsn_derivative(1.5, x)", 1.0, math.nan),
        ("dawsn_derivative(21, x)", 1.0, math.nan),
        ("ndtri(x)", 0.0, -math.inf),
        ("ndtri(x)", 1.5, math.nan),
        ("logit(x)", 1.0, math.inf),
        ("entr(x)", 0.0, 0.0),
        ("entr(x)", -1.0, -math.inf),
        ("xlogy(0, x)", 0.0, 0.0),
        ("xlog1py(0, x)", -1.0, 0.0),
    ],
)
def test_edges(text: str, x: float, value: float) -> None:
    assert float(dl.parse(text)(x)) == pytest.approx(value, rel=4e-15, nan_ok=True)


def test_derivatives_at_the_edges() -> None:
    assert np.ravel(dl.gradient(dl.parse("lambertw(x)"))(0.0)) == [1.0]
    assert np.ravel(dl.gradient(dl.parse("erfinv(x)"))(1.0)) == [math.inf]
    assert np.ravel(dl.hessian(dl.parse("gammainc(1, x)"))(0.0)) == [-1.0]
    assert np.isnan(np.ravel(dl.gradient(dl.parse("e1(x)"))(-1.0))).all()


@pytest.mark.parametrize(
    ("call", "text", "x"),
    [
        (lambda x: special.jv(0, x), "besselj(0, x)", 1.3),
        (lambda x: special.kv(1, x), "besselk(1, x)", 1.3),
        (lambda x: special.betainc(2, 3, x), "betainc(2, 3, x)", 0.3),
        (lambda x: special.log_ndtr(x) * special.ndtri(x), "log_ndtr(x)*ndtri(x)", 0.3),
        (lambda x: special.expit(special.logit(x)), "sigmoid(logit(x))", 0.3),
        (lambda x: special.xlogy(x, x) + special.entr(x), "xlogy(x, x) + entr(x)", 0.3),
        (lambda x: special.erfcx(x) * special.erfi(x), "erfcx(x)*erfi(x)", 0.3),
        (lambda x: special.dawsn(x) * x, "dawsn(x)*x", 0.3),
    ],
)
def test_scipys_functions_take_traced_values_and_tensors(call: Any, text: str, x: float) -> None:
    assert dl.trace(call, x) == dl.parse(text)
    tensor = dl.tensor(x, requires_grad=True)
    call(tensor).backward()
    assert float(tensor.grad) == float(np.ravel(dl.gradient(dl.parse(text))(x))[0])


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_products_with_logarithms_at_zero(mode: str) -> None:
    for text in ("xlogy(x, y)", "xlog1py(x, y - 1)"):
        found = dl.gradient(dl.parse(text), mode=mode)(0.0, 0.0)
        assert np.ravel(found).tolist() == [-math.inf, 0.0]
    assert np.ravel(dl.gradient(dl.parse("entr(x)"), mode=mode)(0.0)).tolist() == [math.inf]


@pytest.mark.parametrize("target", ["python", "numpy", "auto"])
def test_second_derivatives_of_products_with_logarithms_are_symmetric_at_zero(target: str) -> None:
    """Both orders of the mixed derivative are 1/y = inf; that by y alone has the convention 0."""
    for text in ("xlogy(x, y)", "xlog1py(x, y - 1)"):
        f = dl.parse(text)
        wanted = [[0.0, math.inf], [math.inf, 0.0]]
        for mode in ("forward", "reverse"):
            second = dl.compile(dl.jacobian(dl.gradient(f), mode=mode), target)
            assert np.reshape(second(0.0, 0.0), (2, 2)).tolist() == wanted
        gradient = dl.compile(dl.gradient(f), target)(0.0, 0.0)
        assert [math.copysign(1.0, part) for part in gradient] == [-1.0, 1.0]


@pytest.mark.parametrize("x", [-1e8, -40.0, -3.0, 0.5, 8.0])
def test_two_derivatives_of_log_ndtr_far_out(x: float) -> None:
    """By mpmath's differences; the textbook's form (x + m)·m of the second one cancels."""
    f = dl.gradient(dl.parse("log_ndtr(x)"))
    with mpmath.workdps(80):
        t = mpmath.mpf(x)
        m = mpmath.npdf(t) / mpmath.ncdf(t)
        if x < -1000:  # the continued fraction's first terms
            m = -t / (1 - 1 / t**2 + 3 / t**4)
        first, second = float(m), float(-m * (t + m))
    assert float(np.ravel(f(x))[0]) == pytest.approx(first, rel=4e-15)
    assert float(np.ravel(dl.gradient(f)(x))[0]) == pytest.approx(second, rel=4e-15)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@for_each("x", [1e-3, 0.3, -0.49, 0.51, 3.0, -7.0, 8.7, 29.9, 30.1, 1e2, 1e4, 1e8])
def test_four_derivatives_of_dawsons_integral_keep_their_digits(x: float, mode: str) -> None:
    """By differences of mpmath's e^(-x²)erfi(x); 1 - 2xF has no digit left at 1e8."""
    f = dl.parse("dawsn(x)")
    with mpmath.workdps(120):
        exact = mpmath.taylor(
            lambda z: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-z * z) * mpmath.erfi(z), x, 4
        )
        for order in range(1, 5):
            f = dl.gradient(f, mode=mode)
            wanted = float(exact[order] * math.factorial(order))
            assert float(np.ravel(f(x))[0]) == pytest.approx(wanted, rel=4e-15, abs=0), order


@pytest.mark.parametrize("name", ["erfi", "dawsn"])
@pytest.mark.parametrize("target", ["numpy", "python", "native"])
def test_erfi_and_dawsons_integral_near_0(name: str, target: str) -> None:
    """SciPy's are off by 80 ULP between 0.01 and 0.02."""
    if target == "native":
        pytest.importorskip("llvmlite", reason="llvmlite compiles machine code")
    fast = dl.compile(dl.parse(f"{name}(x)"), target)
    for x in (1e-9, 0.0101, -0.0106, 0.012, 0.0155, -0.021, 0.035, 0.09, 0.2, -0.45, 0.4999, 0.5):
        with mpmath.workdps(40):
            t = mpmath.mpf(x)
            wanted = mpmath.erfi(t)
            if name == "dawsn":
                wanted *= mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-t * t)
        assert float(np.ravel(fast(x))[0]) == pytest.approx(float(wanted), rel=9e-16, abs=0), x


@pytest.mark.parametrize("order", [5, 8, 12, 20])
def test_high_derivatives_of_dawsons_integral(order: int) -> None:
    """By its recurrence (DLMF 7.10) in 200 digits, relative to the size of two neighbours."""
    x = np.concatenate([np.linspace(-12.0, 12.0, 61), [40.0, 1e3]])
    found = dl.parse(f"dawsn_derivative({order}, x)").values(x[None, :].T).ravel()
    with mpmath.workdps(200):
        for at, value in zip(x.tolist(), found, strict=True):
            t = mpmath.mpf(at)
            terms = [mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-t * t) * mpmath.erfi(t)]
            terms.append(1 - 2 * t * terms[0])
            for n in range(1, order):
                terms.append(-2 * (t * terms[n] + n * terms[n - 1]))
            size = abs(terms[order]) + abs(terms[order - 1])
            assert abs(value - terms[order]) <= 1e-13 * size, at


@for_each("order", [-3, -2, -1, 0, 1, 2])
@pytest.mark.parametrize("x", [-1.28e-308, 1.28e-308, -1e-9])
def test_bessel_functions_of_the_least_numbers_have_their_first_term(order: int, x: float) -> None:
    """SciPy's I is nan there, and its J is 0; of the orders n and -n they differ by a sign."""
    with mpmath.workdps(30):
        for name in ("besselj", "besseli"):
            expected = float(getattr(mpmath, name)(abs(order), mpmath.mpf(x)))
            expected *= -1.0 if name == "besselj" and order < 0 and order % 2 else 1.0
            found = float(dl.parse(f"{name}({order}, x)")(x))
            assert found == pytest.approx(expected, rel=1e-15, abs=5e-324), name


@pytest.mark.parametrize(("text", "y"), [("xlogy(x, y)", 0.5), ("xlog1py(x, y)", -0.5)])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_products_with_a_logarithm_are_smooth_where_the_factor_is_zero(
    text: str, y: float, mode: str
) -> None:
    """x ln z has the mixed derivative 1/z, also at x = 0, and z is 0.5 here."""
    gradient = dl.gradient(dl.parse(text))
    assert gradient(0.0, y).tolist() == [np.log(0.5), 0.0]
    second = dl.jacobian(gradient, mode)(0.0, y)
    assert np.abs(second - [[0.0, 2.0], [2.0, 0.0]]).max() == 0.0
    assert dl.gradient(dl.parse(text))(0.0, y - 0.5)[1] == 0.0  # both are 0: the convention
