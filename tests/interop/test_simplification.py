"""What SymPy simplifies is shorter, has the same values, and is refused if it computes worse."""

from __future__ import annotations

import re

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.interop import simplification
from difflab.interop.simplification import simplified
from tests.support.rows import for_each


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("-(1/(k*T)*(q*phi/(k*T))*k)", "-q*phi/(k*T^2)"),
        ("sin(x)^2*y + y*cos(x)^2", "(y)"),
        ("2*x*3*y", "6*x*y"),
        ("x^2 - 2*x*y + y^2", "(x - y)^2"),
        ("0.5*x/y*2", "x/y"),
        ("where(x > 0, x^2/x, 0)*y/y", "where(x > 0, x, 0)"),
    ],
)
def test_formulas_become_what_a_person_writes(text: str, shown: str) -> None:
    f = dl.parse(text)
    found = simplified(f).function
    assert str(found).splitlines()[-1] == shown
    assert found.inputs == f.inputs
    point = np.linspace(0.3, 1.7, f.n)
    assert float(found(*point)) == pytest.approx(float(f(*point)), rel=1e-14)


@for_each(
    ("text", "variable", "shown"),
    [
        ("Vmax*S/(Km + S)", "S", "Vmax*Km/(S + Km)^2"),
        ("A*exp(-Ea/(R*T))", "T", "A*Ea*exp(-Ea/(R*T))/(R*T^2)"),
        ("n*R*T/(V - n*b) - a*n^2/V^2", "V", "n*(2*n*a/V^3 - R*T/(V - n*b)^2)"),
        ("4*u*((s/r)^12 - (s/r)^6)", "s", "24*u*s^5*(2*s^6 - r^6)/r^12"),
        (
            "exp(-(x - mu)^2/(2*s^2))/(s*sqrt(2*pi))",
            "mu",
            "(x - mu)*exp(-(x - mu)^2/(2*s^2))/(sqrt(2*pi)*s^3)",
        ),
        ("D*(1 - exp(-a*(r - q)))^2", "r", "2*D*a*(1 - exp(-a*(r - q)))*exp(-a*(r - q))"),
        ("b*10^(-a*c*l)", "c", "-b*a*l*10^(-a*c*l)*log(10)"),
        ("-p*log(p) - (1 - p)*log(1 - p)", "p", "log(1 - p) - log(p)"),
        ("x^n/(K^n + x^n)", "n", "x^n*K^n*(log(x) - log(K))/(x^n + K^n)^2"),
        ("erf(x/sqrt(2))", "x", "sqrt(2/pi)*exp(-x^2/2)"),
    ],
)
def test_derivatives_are_written_as_in_textbooks(text: str, variable: str, shown: str) -> None:
    """Fractions are whole, numbers come first, and variables in the order of the formula."""
    f = dl.parse(text)
    assert str(simplified(dl.partial(f, variable)).function).splitlines()[-1] == shown


def test_names_of_the_language_and_of_sympy_stay_variables() -> None:
    f = dl.parse("e*S*e/e + I - gamma*0", variables=["e", "S", "I", "gamma"])
    found = simplified(f).function
    assert found.inputs == f.inputs
    assert float(found(I=2.0, S=3.0, e=5.0, gamma=7.0)) == 17.0


def test_outputs_and_shapes_remain() -> None:
    f = dl.jacobian(dl.parse("[x^2*y/x, sin(y)^2 + cos(y)^2]"))
    found = simplified(f).function
    assert (found.output_shapes, found.output_names) == (f.output_shapes, f.output_names)
    np.testing.assert_allclose(found(2.0, 3.0), [[3.0, 2.0], [0.0, 0.0]], atol=1e-15)


def test_it_is_said_where_only_the_simplified_form_has_a_value() -> None:
    assert simplified(dl.parse("(x^2 - 1)/(x - 1)")).extended == ("x = 1",)
    assert simplified(dl.parse("x^2*y")).extended == ()


@pytest.mark.parametrize("text", ["expm1(x)", "log1p(x)*y"])
def test_a_form_that_computes_worse_is_refused_with_the_error_and_the_point(text: str) -> None:
    with pytest.raises(UnsupportedError, match=r"its error is \d.* ULP, and was .*, at x = "):
        simplified(dl.parse(text))


def test_a_form_that_sympy_does_not_prove_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = simplification.equal_forms

    def planted(expression: object) -> object:
        yield next(wrong(expression)) * 0 + 1

    monkeypatch.setattr(simplification, "equal_forms", planted)
    with pytest.raises(UnsupportedError, match="SymPy does not prove it equal"):
        simplified(dl.parse("x*y"))


@pytest.mark.parametrize(
    ("text", "said"), [("x: [2]; sum(x)", "'x' is an array"), ("2 + 3", "no variable")]
)
def test_what_cannot_be_simplified(text: str, said: str) -> None:
    with pytest.raises(UnsupportedError, match=said):
        simplified(dl.parse(text))


def test_the_message_names_the_values_that_matter() -> None:
    """The term's error is that of t - m and s, beside forty parameters that it has nothing of."""
    sums = " + ".join(f"a{k}*exp(-k{k}*t)" for k in range(20))
    f = dl.partial(dl.parse(f"{sums} + a*exp(-((t-m)/s)^2)/(1+g*t^2)"), "s")
    with pytest.raises(UnsupportedError) as caught:
        simplified(f)
    said = re.search(r" ULP, and was \S+, at (.*) and 1 for the others;", str(caught.value))
    assert said is not None
    named = dict(pair.split(" = ") for pair in said[1].split(", "))
    assert len(named) <= 3
    assert set(named) <= set("tms")
    point = dict.fromkeys(f.inputs, 1.0) | {name: float(value) for name, value in named.items()}
    form = simplified(f, anyway=True).function
    with mpmath.workdps(60):
        t, m, s, a, g = (mpmath.mpf(point[name]) for name in "tmsag")
        exact = 2 * a * (t - m) ** 2 * mpmath.exp(-(((t - m) / s) ** 2)) / s**3 / (1 + g * t**2)
        errors = [
            abs(mpmath.mpf(float(one(**point))) - exact) / np.spacing(float(exact))
            for one in (form, f)
        ]
    assert errors[0] > 8 + 2 * errors[1], "the point shows what is said"


def test_anyway_uses_a_form_that_computes_worse_but_none_of_another_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert str(simplified(dl.parse("expm1(x)"), anyway=True).function) == "exp(x) - 1"
    forms = simplification.equal_forms
    monkeypatch.setattr(simplification, "equal_forms", lambda e: [2 * form for form in forms(e)])
    with pytest.raises(UnsupportedError, match="SymPy does not prove it equal"):
        simplified(dl.parse("expm1(x)*y"), anyway=True)
