"""LaTeX that typesets: matplotlib's reader of mathematics is the judge where it can be."""

import re
from typing import Any

from hypothesis import given
from matplotlib.mathtext import MathTextParser

import difflab as dl
from difflab.graph.repetition import rolled
from difflab.language import parse
from difflab.language.printers import latex
from difflab.language.printers.latex import latex_name
from difflab.primitives import by_spelling
from tests.support.programs import programs
from tests.support.rows import for_each

PARSER = MathTextParser("agg")
UNKNOWN_THERE = {"where", "mod"}
SCALARS = [name for name, row in by_spelling.items() if row.shape is None]


@for_each("spelling", sorted(set(SCALARS) - UNKNOWN_THERE))
def test_every_function_of_the_table_is_typeset(spelling: str) -> None:
    arguments = ", ".join(["x + 1", "y^2", "-z", "w"][: by_spelling[spelling].arity])
    call = f"{spelling}({arguments})"
    PARSER.parse(f"${latex(parse(f'{call}^2/{call} - 2*{call}'))}$")


@given(programs())
def test_brackets_balance(program: str) -> None:
    printed = latex(parse(program))
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", printed):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    assert printed.count("\\left") == printed.count("\\right")
    assert not re.search(r"\^\{[^{}]*\}\^", printed), "a double superscript is an error in TeX"


@for_each(
    ("program", "printed"),
    [
        ("x/y^2", r"\frac{x}{y^{2}}"),
        ("(x/y)^2", r"\left(\frac{x}{y}\right)^{2}"),
        ("exp(x)^2", r"\left(e^{x}\right)^{2}"),
        ("sqrt(x1)*ln(x2)", r"\sqrt{x_{1}} \ln\left(x_{2}\right)"),
        ("a*(-b) - (-c)", r"a \left(-b\right) - \left(-c\right)"),
        ("-(a*b)", r"-a b"),
        ("-(a+b)", r"-\left(a + b\right)"),
        ("1.5e-7*pi", r"1.5 \cdot 10^{-7} \pi"),
        (
            "where(x >= 0, x, -x)",
            r"\begin{cases} x & x \ge 0 \\ -x & \text{otherwise} \end{cases}",
        ),
        ("[x^2, x]", "\\begin{aligned}\ny_{1} &= x^{2} \\\\\nf_{2} &= x\n\\end{aligned}"),
    ],
)
def test_printed_forms(program: str, printed: str) -> None:
    assert latex(parse(program)) == printed


ROOT = r"\operatorname{root}_{x}\left(x^{3} - a,\ 1\right)"


def test_a_root_is_its_equation() -> None:
    function = parse("root(x^3 - a, x, 1) + x")
    assert latex(function) == f"{ROOT} + x"
    gradient = r"\begin{pmatrix} \frac{1}{3 " + ROOT + r"^{2}} \\ 1 \end{pmatrix}"
    assert latex(dl.gradient(function)) == gradient


def test_a_root_with_definitions_and_computed_parameters() -> None:
    printed = latex(parse("p = a*b; root(t = x*x; t + t*x - p, x, a + 1)"))
    assert printed.splitlines() == [
        r"\begin{aligned}",
        r"p &= a b \\",
        r"y &= \operatorname{root}_{x}\left(\begin{aligned}",
        r"t &= x x \\",
        r"y_{1} &= t + t x - p",
        r"\end{aligned},\ a + 1\right)",
        r"\end{aligned}",
    ]


def test_a_gradient_is_a_column_and_a_hessian_a_matrix() -> None:
    function = parse("x^2*y")
    assert latex(dl.gradient(function)).startswith(r"\begin{pmatrix} ")
    assert latex(dl.hessian(function)).count(" & ") == 2


def test_shared_parts_have_lines_of_their_own() -> None:
    def squares(x: Any) -> Any:
        x = x + 1
        for _ in range(40):
            x = x * x
        return x

    lines = latex(dl.trace(squares, 1.0)).splitlines()
    assert lines[1] == r"t_{1} &= x + 1 \\"
    assert lines[2] == r"t_{2} &= t_{1} t_{1} \\"
    assert len(lines) == 43


def test_names_of_the_program_are_kept() -> None:
    program = "h = ln(x); u1 = h*y; t2 = u1 + h; t2*sin(t2)"
    assert latex(parse(program)).splitlines()[1:-1] == [
        r"h &= \ln\left(x\right) \\",
        r"u_{1} &= h y \\",
        r"t_{2} &= u_{1} + h \\",
        r"f &= t_{2} \sin\left(t_{2}\right)",
    ]
    assert r"u_{1} &= h y" in latex(dl.gradient(parse(program)))


def test_an_output_that_is_used_has_one_line() -> None:
    assert latex(parse("a = x^2; [a, a + 1]")).splitlines()[1:-1] == [
        r"a &= x^{2} \\",
        r"y_{2} &= a + 1",
    ]


@for_each(
    ("name", "printed"),
    [
        ("x", "x"),
        ("x12", "x_{12}"),
        ("x_1", "x_{1}"),
        ("theta", r"\theta"),
        ("θ2", r"\theta_{2}"),
        ("Λ", r"\Lambda"),
        ("x_dot", r"x_{\mathrm{dot}}"),
        ("speed", r"\mathrm{speed}"),
        ("a_b_c", r"\mathrm{a\_b\_c}"),
        ("_", r"\mathrm{\_}"),
    ],
)
def test_names(name: str, printed: str) -> None:
    assert latex_name(name) == printed


def test_names_that_would_look_alike_do_not() -> None:
    assert latex(parse("x_1 + x1")) == r"\mathrm{x\_1} + x_{1}"


def test_names_of_array_functions_are_set_as_text() -> None:
    assert latex(parse("x: [3]; log_softmax(x)")).startswith("\\operatorname{log\\_softmax}")
    terms = " + ".join(f"sin(x[{i}])*x[{i}]" for i in range(40))
    written = latex(rolled(parse(f"x: [40]\n{terms}"), least=0))
    assert written.startswith("\\operatorname{sum\\_in\\_order}")
