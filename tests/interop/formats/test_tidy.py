"""What is printed for papers: short, of one fraction, and equal to the derivative.

The forms are those of textbooks; their values are read back from the LaTeX and compared.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.mathtext import MathTextParser

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.interop.formats import forms, tidy
from difflab.interop.formats.latex import from_latex
from difflab.interop.formats.mathml import mathml
from difflab.interop.formats.tidy import tidied
from difflab.interop.formats.tidy_latex import readable_latex, tidy_latex
from tests.support.rows import for_each


def set_in(printed: str) -> str:
    """Return LaTeX without spaces and braces."""
    return re.sub(r"[{} ]|\\(left|right)(?=[()|])", "", printed)


@for_each(
    ("text", "variable", "printed"),
    [
        (
            "a*exp(-((t-m)/s)^2)/(1+g*t^2)",
            "s",
            r"\frac{2a(t-m)^{2}e^{-\frac{(t-m)^{2}}{s^{2}}}}{s^{3}(gt^{2}+1)}",
        ),
        ("cot(x)", "x", r"-\csc^{2}(x)"),
        ("tan(x)", "x", r"\sec^{2}(x)"),
        ("sec(x)", "x", r"\tan(x)\sec(x)"),
        ("csc(x)", "x", r"-\cot(x)\csc(x)"),
        ("sinh(x)/cosh(x)", "x", r"\operatorname{sech}^{2}(x)"),
        ("coth(x)", "x", r"-\operatorname{csch}^{2}(x)"),
        ("cot(x) + sec(x)", "x", r"\tan(x)\sec(x)-\csc^{2}(x)"),
        ("x*cot(x)", "x", r"\cot(x)-x\csc^{2}(x)"),
        ("tan(x)^2", "x", r"2\tan(x)\sec^{2}(x)"),
        ("x*tanh(x)", "x", r"x\operatorname{sech}^{2}(x)+\tanh(x)"),
        ("sin(x)^2 + cos(x)^2 + x", "x", "1"),
        ("cosh(x)^2 - sinh(x)^2 + x", "x", "1"),
        ("sqrt(x^2+y^2)", "x", r"\frac{x}{\sqrt{x^{2}+y^{2}}}"),
        ("sqrt(x)*ln(x)", "x", r"\frac{\ln(x)+2}{2\sqrt{x}}"),
        ("x^0.1", "x", "0.1x^{-0.9}"),
        ("0.3*x*0.1 + x*2.5", "x", "2.53"),
        ("0.1*x*exp(-0.3*x)", "x", "(0.1-0.03x)e^{-0.3x}"),
        ("(y+1)*x^1.3", "x", "1.3x^{0.3}(y+1)"),
        ("theta*heaviside(x)*y", "y", r"\theta\operatorname{H}(x)"),
        ("1e30*x^3", "x", r"3\cdot10^{30}x^{2}"),
        ("3.3*x/(1.1+x)", "x", r"\frac{3.63}{(x+1.1)^{2}}"),
        ("3.141592653589793*x^2.5", "x", r"7.853981633974483x^{\frac{3}{2}}"),
        ("lgamma(x)", "x", r"\psi(x)"),
        ("cbrt(x)", "x", r"\frac{1}{3|{x}|^{\frac{2}{3}}}"),
        ("erf(x/sqrt(2))", "x", r"\sqrt{\frac{2}{\pi}}e^{-\frac{x^{2}}{2}}"),
        ("4*u*((s/r)^12 - (s/r)^6)", "r", r"\frac{24us^{6}(r^{6}-2s^{6})}{r^{13}}"),
        ("n*R*T/(V - n*b) - a*n^2/V^2", "V", r"\frac{2an^{2}}{V^{3}}-\frac{nRT}{(V-nb)^{2}}"),
        ("6*2^(-x)/ln(2)", "x", r"-6\cdot2^{-x}"),
        ("where(x > 0, x^2, 0)", "x", r"\begin{cases}2x&x>0\\0&\text{otherwise}\end{cases}"),
        ("(1+x)^1000", "x", "1000(x+1)^{999}"),
        ("E0*e^(3*x)", "x", "3E_{0}e^{3x}"),
    ],
)
def test_derivatives_are_set_as_in_textbooks(text: str, variable: str, printed: str) -> None:
    assert set_in(tidy_latex(dl.partial(dl.parse(text), variable))) == set_in(printed)


READ_BACK = [
    "x*exp(x*y)/(1 + y)",
    "sin(x*y)/(x^2 + y^2)",
    "sqrt(x^2 + y^2)*ln(x/y)",
    "exp(-x^2 - y^2)*cos(x*y)^3",
    "tan(x)*sec(y)",
    "1/(1 + exp(-x*y))",
    "atan2(y, x)*x",
    "x^y*y^x",
    "max(x, y)*abs(x - y)",
    "log1p(x)*expm1(y) + hypot(x, y)",
]


@for_each("text", READ_BACK)
def test_the_gradient_has_the_values_of_the_derivative(text: str) -> None:
    """Element by element, read by the reader of LaTeX and computed in float64."""
    for name in ("x", "y"):
        partial = dl.partial(dl.parse(text), name)
        printed = tidy_latex(partial)
        if "cases" not in printed:  # of which matplotlib has none
            MathTextParser("agg").parse(f"${printed}$")
        again = from_latex(printed)
        for point in np.random.default_rng(3).uniform(0.2, 2.0, (5, 2)):
            given = dict(zip("xy", point.tolist(), strict=True))
            wanted = float(partial(**{k: given[k] for k in partial.inputs}))
            found = float(again(**{k: given[k] for k in again.inputs}))
            assert found == pytest.approx(wanted, rel=1e-9)


def test_the_hessian_of_two_variables_is_a_matrix() -> None:
    shown = dl.hessian(dl.parse("sin(x*y)/(x^2+y^2)"))._repr_latex_()
    assert shown.startswith(r"$$\begin{pmatrix} \frac{")
    assert "aligned" not in shown
    assert shown.count(" & ") == 2
    assert "1/" not in shown
    upper, lower = shown.split(r" \\ ")
    assert upper.split(" & ")[1] == lower.split(" & ")[0].strip(), "it is symmetric"


def test_several_outputs_have_lines() -> None:
    f = dl.value_and_gradient(dl.parse("x^2*y_1"))
    assert tidy_latex(f).splitlines() == [
        r"\begin{aligned}",
        r"y &= x^{2} y_{1} \\",
        r"\mathrm{gradient} &= \begin{pmatrix} 2 x y_{1} \\ x^{2} \end{pmatrix}",
        r"\end{aligned}",
    ]


def test_names_are_those_of_the_other_printer() -> None:
    euler = dl.parse("e*x")
    both = dl.trace(lambda e, x: e**2 * euler(x), 1.0, 1.0)
    assert tidy_latex(both) == r"\mathrm{e} e^{2} x"
    assert tidy_latex(euler) == "e x"
    assert tidy_latex(dl.parse("x_1*x1*alpha")) == r"\mathrm{x\_1} x_{1} \alpha"


def test_a_large_function_is_refused_before_it_is_written_out() -> None:
    """Its tree has 2^60 nodes, and its graph 60."""

    def squares(x: float) -> float:
        for _ in range(60):
            x = x * x + 1
        return x

    large = dl.trace(squares, 1.0)
    with pytest.raises(UnsupportedError, match="more than 3,000 nodes"):
        tidied(large)
    assert "aligned" in readable_latex(large, plain=True)
    with pytest.raises(UnsupportedError):
        readable_latex(large, plain=False)


def test_large_powers_are_not_multiplied_out(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    ways = forms.attempted

    def watched(expression, tried):  # type: ignore[no-untyped-def]
        for form in ways(expression, tried):
            seen.append(len(str(form)))
            yield form

    monkeypatch.setattr(forms, "attempted", watched)
    tidied(dl.partial(dl.parse("(x + y + z)^200/(x - y)^100*sin(x)^0.3"), "x"))
    factors = "*".join(f"(a{k} + b{k}*x)" for k in range(20))
    tidied(dl.partial(dl.parse(f"{factors}/({factors.replace('a', 'c')})"), "a3"))
    assert max(seen) < 2000


def test_large_sums_are_collected_by_their_variables() -> None:
    model = " + ".join(f"a{k}*exp(-k{k}*t)*cos(w{k}*t + p{k})" for k in range(2, 12))
    printed = set_in(tidy_latex(dl.partial(dl.parse(model), "t")))
    assert printed.count(r"\cos") == printed.count("e^") == 10
    assert r"-a_7(k_7\cos(w_7t+p_7)+w_7\sin(w_7t+p_7))e^-k_7t" in printed


@pytest.mark.parametrize("factor", [2, 1 + 1e-25])
def test_a_form_of_another_value_is_not_used(
    factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sympy

    wrong = lambda e: [e * sympy.Rational(str(factor)), e]  # noqa: E731
    monkeypatch.setattr(tidy, "sorted_forms", wrong)
    assert tidy_latex(dl.parse("x*y")) == "x y"
    monkeypatch.setattr(tidy, "sorted_forms", lambda e: [e + sympy.Rational(1, 10**12)])
    with pytest.raises(UnsupportedError, match="no form of it is found to have the same values"):
        tidied(dl.parse("x*y"))


def test_what_is_undefined_at_all_points_is_not_used() -> None:
    with pytest.raises(UnsupportedError, match="same values"):
        tidied(dl.parse("sqrt(-1 - x^2)"))


@for_each(
    ("text", "said"),
    [("x: [3]; x*2", "'x' is an array"), ("iterate(y = x; while y < 9; 2*y)", "SymPy")],
)
def test_what_is_printed_as_it_is_computed(text: str, said: str) -> None:
    with pytest.raises(UnsupportedError, match=said):
        tidy_latex(dl.parse(text))


def test_mathml_is_the_same_formula() -> None:
    def words(f: dl.Function) -> str:
        return "".join(part.text or "" for part in ElementTree.fromstring(mathml(f)).iter())

    assert words(dl.gradient(dl.parse("cot(x)"))) == "-csc(x)2"
    assert words(dl.partial(dl.parse("sqrt(x^2+y^2)"), "x")) == "xx2+y2"
    assert words(dl.parse("alpha - beta")) == "α-β"
    assert "0.5" not in words(dl.gradient(dl.parse("sqrt(x)*y")))
    assert (
        len(list(ElementTree.fromstring(mathml(dl.jacobian(dl.parse("w: [2]; w*x")))).iter())) > 9
    )
