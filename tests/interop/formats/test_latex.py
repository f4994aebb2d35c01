r"""`from_latex`: values against Python, what SymPy and difflab print, places of errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import HealthCheck, Phase, given, settings

import difflab as dl
from difflab.errors import ParseError
from difflab.interop.formats.latex import program_of_latex
from difflab.language.printers import latex
from tests.interop.formats.expressions import check_against_sympy, expressions
from tests.support.rows import for_each

A = {"x": 1.7, "y": 0.6, "z": 0.4, "x1": 2.0, "x2": 5.0, "m": 1.5, "v": 3.0, "mu": 0.2}
A |= {"sigma": 0.9, "alpha": 1.1, "alpha_max": 0.7, "y_hat": 1.3, "a": 1.0, "b": -3.0, "c": 2.0}
A |= {"s": 1.0, "i": 1.0, "d": 2.0, "Delta": 2.0}
A |= {"gamma": 0.4, "omega": 2.5, "t": 0.3, "n": 3.0, "a_i_j": 4.0, "e1": 0.8, "rate": 0.25}
VALUES: list[tuple[str, Any]] = [
    (r"\frac{1}{2} x^2 + \sin x \cos y", 0.5 * 1.7**2 + math.sin(1.7) * math.cos(0.6)),
    (r"\ln(x_1) + x_1 x_2 - \sin(x_2)", math.log(2) + 10 - math.sin(5)),
    (r"\frac12 m v^2", 0.5 * 1.5 * 9),
    (r"e^{-x^2/2}", math.exp(-(1.7**2) / 2)),
    (r"\sqrt[3]{x}+\sqrt[5]{y} + \sqrt2 y", 1.7 ** (1 / 3) + 0.6**0.2 + math.sqrt(2) * 0.6),
    (r"\sin^2 x + \cos^{-1}(y)", math.sin(1.7) ** 2 + math.acos(0.6)),
    (r"\operatorname{atan}_{2}{\left(y,x \right)}", math.atan2(0.6, 1.7)),
    (r"\begin{cases} x^2 & \text{for}\: x > 0 \\ -x & \text{otherwise} \end{cases}", 1.7**2),
    (r"\begin{cases} x & \text{if } x < 0, \\ y & x \ge 2 \end{cases}", math.nan),
    (r"\begin{cases} x & y < x \text{ and } x < 3 \\ 0 & \text{else} \end{cases}", 1.7),
    (r"\left|{x}\right| + |y - |z||", 1.7 + 0.2),
    (r"\log_2 x + \log_{10}{(y)} + \log_3 z", math.log2(1.7) + math.log10(0.6) + math.log(0.4, 3)),
    (r"x = \frac{-b + \sqrt{b^2-4ac}}{2a}", 2.0),
    (r"\Gamma(x) + \gamma (x+1)", math.gamma(1.7) + 0.4 * 2.7),
    (r"\max\left(x, y\right) \alpha_{\text{max}} \hat{y}", 1.7 * 0.7 * 1.3),
    (
        r"\begin{aligned} t_1 &= x y \\ f &= \sin\left(t_1\right) + t_1 \end{aligned}",
        math.sin(1.02) + 1.02,
    ),
    (r"\begin{align*} f &= a + b \\ &\quad + c \end{align*}", 0.0),
    (
        r"$$ f(x, y) = \exp\left(-\frac{(x-\mu)^2}{2\sigma^2}\right). $$",
        math.exp(-(1.5**2) / (2 * 0.81)),
    ),
    (r"x^\alpha y + 2^{n} + x^{y^{z}}", 1.7**1.1 * 0.6 + 8 + 1.7 ** (0.6**0.4)),
    (r"\sin\omega t - \tanh\frac{x}{2}", math.sin(0.75) - math.tanh(0.85)),
    (r"\left\lfloor x \right\rfloor + \lceil y \rceil", 2.0),
    (r"\ln\ln v + \ln|b|", math.log(math.log(3)) + math.log(3)),
    (r"1.5 \times 10^{-3} \cdot x", 1.5e-3 * 1.7),
    (r"a_{i,j} \mathrm{erf}(x) + e_1 \mathrm{rate}", 4 * math.erf(1.7) + 0.2),
    (r"2\pi x \{y + z\}[x - y]", 2 * math.pi * 1.7 * 1.1),
    (r"(x + y)(x - y) % a comment", 2.3 * 1.1),
    (r"\dfrac{x}{y} \, \bigl(z\bigr)", 1.7 / 0.6 * 0.4),
    (r"\mathrm{sin} x + \text{cos} y", math.sin(1.7) + math.cos(0.6)),
    (r"\mathit{exp}\, y \mathbf{tan}^2 x", math.exp(0.6) * math.tan(1.7) ** 2),
    (r"\mathrm{log}_2 x + \mathrm{arcsin}\left(y\right)", math.log2(1.7) + math.asin(0.6)),
    (r"\operatorname{mod}(x, y) + \mathrm{max}(x, y)", math.fmod(1.7, 0.6) + 1.7),
    (r"1.5 e - 3x", 1.5 * math.e - 5.1),
    (r"s i n x", 1.7 * 3),
    (r"π x + \frac{\Delta}{2 \cdot \Delta}", math.pi * 1.7 + 0.5),
    (r"2 \cdot \frac{1}{3} + 2 + \frac13", 3.0),
    (
        r"\frac{d \cdot y}{d \cdot x} + \frac{d}{d + 1} + \frac{2 d}{d x}",
        0.6 / 1.7 + 2 / 3 + 2 / 1.7,
    ),
]


@for_each(("text", "value"), VALUES, ids=[text for text, _ in VALUES])
def test_values(text: str, value: float) -> None:
    function = dl.from_latex(text)
    found = float(function(**{name: A[name] for name in function.inputs}))
    assert found == pytest.approx(value, rel=1e-14, abs=1e-15, nan_ok=True), function.text


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(expressions())
def test_what_sympy_prints_is_read(expression: Any) -> None:
    if expression.has(sympy.I, sympy.zoo, sympy.nan, sympy.oo):
        return
    check_against_sympy(expression, dl.from_latex(sympy.latex(expression)))


@pytest.mark.parametrize(
    "text",
    [
        "ln(x1) + x1*x2 - sin(x2)",
        "x1/(x2+1)^2 - (-x1)^3*exp(-x2)",
        "where(x1 > 0 and x2 < 1, sqrt(x1), abs(x2))",
        "a = x1*x2; b = sin(a); b/a + tanh(b)^2",
        "gamma(x1) + erf(x2) + asinh(x1) + max(x1, x2) + log2(x1) + cbrt(x1) + floor(x2)",
    ],
)
def test_what_difflab_prints_is_read(text: str) -> None:
    function = dl.parse(text)
    again = dl.from_latex(latex(function))
    assert again.inputs == function.inputs
    points = np.random.default_rng(1).uniform(0.1, 3.0, (2, 50))
    assert np.allclose(again(*points), function(*points), rtol=1e-14)


def test_the_variables_are_those_of_the_paper() -> None:
    assert dl.from_latex("e x", variables=["e"]).inputs == ("e", "x")
    assert dl.from_latex(r"\frac{dy}{dx}", variables=["d"])(3.0, 2.0, 5.0) == 2.5
    assert dl.from_latex(r"\mathrm{mean} \mathrm{d} x", variables=["mean", "d"]).inputs == (
        *("d", "mean", "x"),
    )
    assert dl.from_latex(r"\pi x", variables=["pi"]).inputs == ("pi", "x")
    assert dl.from_latex(r"\gamma e^x").inputs == ("gamma", "x")
    assert program_of_latex(r"E = m c^2") == "E = m*c^2"
    assert dl.from_latex(r"E = m c^2").output_names == ("E",)
    column = dl.from_latex(r"\begin{pmatrix} x \\ 2y \end{pmatrix}")
    assert np.ravel(column(1.0, 2.0)).tolist() == [1.0, 4.0]


WRONG = [
    (r"y + \frac{dy}{dx}", r"\frac", "a derivative or a quotient"),
    (r"\frac{d}{dx} x^2", r"\frac", "a derivative or a quotient"),
    (r"\frac{d^2 y}{d x^2}", r"\frac", "a derivative or a quotient"),
    (r"\frac{\Delta y}{\Delta x}", r"\frac", "a derivative or a quotient"),
    (r"\dfrac{\delta F}{\delta \rho}", r"\dfrac", "a derivative or a quotient"),
    (r"\frac{\mathrm{d}}{\mathrm{d}x} x^2", "d}", "an upright d is a differential"),
    (r"x \mathrm{d}x", "d}", "an upright d is a differential"),
    (r"\frac{\partial f}{\partial x}", r"\partial", "not in the part of LaTeX"),
    ("dy/dx", "x", "ambiguous"),
    ("y''", "'", "derivative"),
    (r"y^{\prime}", r"\prime", "not in the part of LaTeX"),
    ("y^{(2)}", "^", "the order of a derivative"),
    ("f^{-1}(x)", "(", "a function or a product"),
    ("y^2(x)", "(", "a function or a product"),
    ("y(2)", "(", "a function or a product"),
    ("f(x + 1)", "(", "a function or a product"),
    ("1.5e-3x", "1.5", "one number, or has it the factor e"),
    ("x + 2E5", "2E5", "one number, or has it the factor e"),
    ("y + sin x", "sin", "a word or a product of 3 variables"),
    ("2xsinx", "sinx", "a word or a product of 3 variables"),
    ("ln x", "ln", "a word or a product of 2 variables"),
    ("x mod y", "mod", "a word or a product of 3 variables"),
    (r"\begin{cases} x & if x > 0 \end{cases}", "if", "a word or a product of 2 variables"),
    (r"x \bmod 3", r"\bmod", "a function of two arguments"),
    (r"x \mod 3", r"\mod", "a function of two arguments"),
    (r"x \pmod{3}", r"\pmod", "a function of two arguments"),
    (r"y \mathrm{gamma} x", "gamma", "a function or a variable"),
    (r"y \mathrm{mean} x", "mean", "a function or a variable"),
    (r"\mathrm{i} x", "i}", "the imaginary unit"),
    (r"x^{\mathrm{T}} x", "T}", "a transposition"),
    (r"x \text{ if } y", " if", "is no name"),
    (r"2\frac{1}{3}", r"\frac", "a mixed number or a product"),
    ("1/2x", "x", "ambiguous"),
    (r"\sin x/2", "/", "ambiguous"),
    (r"\sin x (y+1)", "(", "ambiguous"),
    ("f(x)", "(", "a function or a product"),
    (r"\sigma(x + 1)", "(", "a function or a product"),
    ("x 2", "2", "the number 2 follows"),
    (r"\frac{x", "{", "is not closed"),
    (r"\foo x", r"\foo", "not in the part of LaTeX"),
    (r"\int x", r"\int", "not in the part of LaTeX"),
    (r"\sum_{i=1}^n x_i", r"\sum", "not in the part of LaTeX"),
    ("x^2^3", "^3", "two exponents"),
    ("x_{+}", "+", "a subscript is a part of a name"),
    (r"\left( x ]", "]", "closes nothing that is open"),
    ("(x", "(", "is not closed"),
    ("x)", ")", "closes nothing"),
    (r"y + \sin", r"\sin", "argument of .sin is missing"),
    (r"\frac{}{x}", "{", "nothing stands between"),
    ("x'", "'", "derivative"),
    ("x + * y", "*", "expected an expression"),
    (r"y\operatorname{foo}(x)", "foo", "no function 'foo'"),
    ("x^-1", "-", "needs braces"),
    (r"\begin{array} x \end{array}", "array", "does not read the environment"),
    (r"\text{hello world} x", "hello world", "is no name"),
    ("y = x = z", "= z", "defines a name, once"),
    ("2 = x", "=", "a name is expected"),
    (r"y + \sin(x, y)", r"\sin", "takes 1 argument, not 2"),
    ("x & y", "&", "separates the cells"),
    (r"\tan^{-2}^3 x", "^3", "two exponents"),
    (r"\begin{cases} x \\ y & x > 0 \end{cases}", "", "only the last case"),
    (r"\max^{-1}(x, y)", r"\max", "no inverse function"),
    (r"\end{cases}", "cases", "ends nothing"),
    (r"\begin{aligned} x", "aligned", "is not ended"),
]


@for_each(("text", "place", "message"), WRONG, ids=[text for text, *_ in WRONG])
def test_errors_name_the_place_in_the_latex(text: str, place: str, message: str) -> None:
    with pytest.raises(ParseError, match=message) as told:
        dl.from_latex(text)
    assert told.value.text == text
    start, _ = told.value.span or (-1, -1)
    assert not place or text[start:].startswith(place[0]), (text, start)


@pytest.mark.parametrize(
    ("opener", "closer"),
    [("{", "}"), (r"\left(", r"\right)"), (r"\sqrt{", "}"), (r"\frac{1}{", "}"), ("x^{", "}"),
     (r"\sin ", ""), (r"\sqrt", ""), ("|", "|")],
)  # fmt: skip
def test_depth_is_only_a_longer_input(opener: str, closer: str) -> None:
    depth = 5_000
    function = dl.from_latex(opener * depth + " x " + closer * depth)
    assert function.inputs == ("x",)
