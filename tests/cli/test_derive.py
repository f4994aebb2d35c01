"""``derive``: what is written is the derivative, read back and evaluated; expected by algebra."""

import math

import pytest

from difflab.language import parse


def evaluated(text, **point):
    # A matrix is written row by row; the language reads a list of numbers.
    if "[[" in text:
        text = text.replace("], [", ", ").replace("[[", "[").replace("]]", "]")
    function = parse(text)
    result = function(**{name: point[name] for name in function.inputs})
    return result if isinstance(result, tuple) else [result]


def flat(values):
    return [
        float(entry) for value in values for entry in getattr(value, "ravel", lambda v=value: [v])()
    ]


X, Y = 1.3, 0.7


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["x^2*sin(y)"], [2 * X * math.sin(Y), X**2 * math.cos(Y)]),
        (["x^2*sin(y)", "--wrt", "y"], [X**2 * math.cos(Y)]),
        (["x^2*sin(y)", "--wrt", "x", "--order", "2"], [2 * math.sin(Y)]),
        (["x^2*sin(y)", "--wrt", "x", "--order", "3"], [0.0]),
        (["x^2*sin(y)", "--wrt", "x,y,y"], [-2 * X * math.sin(Y)]),
        (["x^2*sin(y)", "--wrt", "y, x , x"], [2 * math.cos(Y)]),
        (["[x*y, x^2*y^3]", "--wrt", "y,x,y"], [0.0, 12 * X * Y]),
        (["exp(2*x)", "--order", "5"], [32 * math.exp(2 * X)]),
        (["-x^2"], [-2 * X]),
        (["[x*y, x+y]"], [Y, X, 1, 1]),
        (["[x*y, x^2]", "--wrt", "x"], [Y, 2 * X]),
        (["[x*y, x^2]", "--wrt", "x", "--order", "2"], [0, 2]),
        (
            ["x^2*sin(y)", "--order", "2"],
            [
                2 * math.sin(Y),
                2 * X * math.cos(Y),
                2 * X * math.cos(Y),
                -(X**2) * math.sin(Y),
            ],
        ),
        (["x*y", "--of", "jacobian"], [Y, X]),
        (["x*y", "--of", "hessian"], [0, 1, 1, 0]),
    ],
)
def test_the_text_is_the_derivative(difflab, arguments, expected):
    result = difflab("derive", *arguments)
    assert result.code == 0, result.err
    assert flat(evaluated(result.out, x=X, y=Y)) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["x: [3]; x[0]*x[1]*x[2]^2", "--wrt", "x[2]"], [2 * 2.0 * 3.0 * 5.0]),
        (["x: [3]; x[0]*x[1]*x[2]^2"], [3.0 * 25, 2.0 * 25, 2 * 2.0 * 3.0 * 5.0]),
        (["x: [3]; w: [3]; x[1]*w[1]", "--wrt", "w[1]"], [3.0]),
        (["M: [2, 3]; M[0,1]*M[1,0]^3", "--wrt", "M[1,0]"], [2.0 * 3 * 4.0**2]),
        (["x: [3]; x[0]*x[1]*x[2]^3", "--wrt", "x[2],x[0],x[2]"], [6 * 3.0 * 5.0]),
        (["M: [2, 3]; M[0,1]^2*M[1,0]^3", "--wrt", "M[0, 1],M[1,0]"], [2 * 2.0 * 3 * 4.0**2]),
    ],
)
def test_arrays(difflab, arguments, expected):
    result = difflab("derive", *arguments)
    assert result.code == 0, result.err
    values = evaluated(result.out, x=[2.0, 3.0, 5.0], w=[1.0] * 3, M=[[1.0, 2, 3], [4, 5, 6]])
    assert flat(values) == pytest.approx(expected)


def test_a_plain_derivative_reads_as_one_would_write_it(difflab):
    assert difflab("derive", "x^2*sin(y)", "--wrt", "x", "--order", "2").out.count("\n") == 1
    assert "x: []" not in difflab("derive", "x^2 + y").out


def test_python_is_python(difflab):
    result = difflab("derive", "ln(x)*sqrt(y)", "--wrt", "x", "--format", "python")
    assert result.code == 0, result.err
    names = {}
    exec(result.out, names)
    function = next(v for k, v in names.items() if callable(v) and getattr(v, "__code__", None))
    assert function(2.0, 9.0) == pytest.approx(1.5)


def test_latex_and_c(difflab):
    latex = difflab("derive", "sqrt(x)/y", "--format", "latex")
    assert latex.code == 0, latex.err
    assert "\\frac" in latex.out
    c = difflab("derive", "sqrt(x)/y", "--format", "c", "-o", "d.c")
    assert c.code == 0, c.err
    assert c.out == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["3"], "no variable"),
        (["x*y", "--wrt", "z"], "'z'"),
        (["x*y", "--order", "3"], "--wrt"),
        (["[x*y, x]", "--order", "2"], "--wrt"),
        (["[x*y, x]", "--of", "gradient"], "jacobian"),
        (["x*y", "--wrt", "x", "--of", "hessian"], "exclude"),
        (["x*y", "--of", "gradient", "--order", "2"], "order 2"),
        (["x: [3]; x[0]", "--wrt", "x"], "x[0]"),
        (["x*y", "--wrt", "x,y", "--order", "2"], "omit --order"),
        (["x*y", "--wrt", "x,,y"], "unknown variable ''"),
        (["x*y", "--wrt", "x,z"], "'z'"),
        (["x: [3]; x[0]", "--wrt", "x[3]"], "x[3]"),
        (["x*y", "--wrt", "x[0]"], "--wrt x"),
        (["x*", "-o", "a.txt"], "x*"),
        (["x", "-o", "missing/a.txt"], "does not exist"),
    ],
)
def test_bad_input(difflab, tmp_path, arguments, says):
    result = difflab("derive", *arguments)
    assert (result.code, result.out) == (2, ""), result
    assert says in result.err
    assert list(tmp_path.iterdir()) == []


def test_code_has_a_name_the_value_and_the_order_zero(difflab):
    source = difflab("derive", "x*exp(x*z)", "--value", "--format", "c", "--name", "energy").out
    assert "void energy(const double *point, double *result)" in source
    assert "result[2] = " in source
    assert "result[3]" not in source
    source = difflab("derive", "x*exp(x*z)", "--order", "0", "--format", "rust").out
    assert "result[0] = x * f64::exp(x * z);" in source
    source = difflab("derive", "x*z", "--value", "--order", "2", "--format", "matlab").out
    assert "result = zeros(5, 1);" in source


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x", "--name", "energy"], "--name is the name of a function in code"),
        (["x", "--sparsity", "--name", "energy"], "--name is the name of a function in code"),
        (["x", "--name", "a b", "--format", "rust"], "'a b' cannot be the name of a function"),
        (["x", "--order", "0", "--wrt", "x"], "--order 0 is the function itself"),
        (["[x*y, x]", "--sparsity", "--value"], "--sparsity shows the pattern"),
        (
            ["exp_remainder(k, 0, x)", "--order", "0", "--format", "stan"],
            "Stan has no function for",
        ),
    ],
)
def test_what_code_cannot_be_is_said(difflab, arguments, message):
    result = difflab("derive", *arguments)
    assert result.code == 2
    assert message in result.err
    assert not result.out


def test_simplify_writes_what_a_person_would(difflab):
    result = difflab("derive", "exp(-q*V/(k*T))", "--wrt", "T", "--simplify")
    assert (result.code, result.err) == (0, "")
    assert result.out == "q*V*exp(-q*V/(k*T))/(k*T^2)\n"


def test_simplify_says_where_a_value_appears(difflab):
    result = difflab("derive", "x^3/x", "--simplify")
    assert result.code == 0
    assert result.out.endswith("[2*x]\n")
    assert "note: the simplified form has a value at x = 0" in result.err


def test_simplify_anyway_is_named_where_it_helps(difflab):
    refused = difflab("derive", "expm1(x)*y", "--wrt", "y", "--simplify")
    assert refused.code == 2
    assert "; --simplify=anyway uses it nevertheless" in " ".join(refused.err.split())
    written = difflab("derive", "--simplify=anyway", "expm1(x)*y", "--wrt", "y")
    assert "exp(x) - 1" in written.out
    assert difflab("derive", "x*y", "--simplify=never").code == 2


def test_latex_and_mathml_are_for_readers(difflab):
    """`log1p(x)*y` is refused as text, where its value matters; for print nothing is rounded."""
    written = difflab("derive", "sqrt(x)*log1p(x)", "--format", "latex")
    assert (written.code, written.err) == (0, "")
    assert "0.5" not in written.out
    assert "cdot" not in written.out
    assert difflab("derive", "log1p(x)*y", "--simplify", "--format", "latex").code == 0
    mathml = difflab("derive", "sqrt(x)*log1p(x)", "--format", "mathml")
    assert "0.5" not in mathml.out


def test_it_is_said_if_a_formula_for_readers_is_not_collected(difflab):
    program = "y1 = x*x + 1\n" + "".join(f"y{k + 1} = y{k}*y{k} + 1\n" for k in range(1, 40))
    arrays = difflab("derive", "x: [3]; cumsum(x*x)", "--format", "latex")
    assert arrays.code == 0
    assert "written as it is computed, not collected: 'x' is an array" in arrays.err
    large = difflab("derive", f"{program}y40*x", "--format", "latex")
    assert large.code == 0, large.err
    assert "written as it is computed, not collected: written out it has more than" in large.err
    assert "aligned" in large.out


def test_simplify_refuses_with_the_reason(difflab):
    result = difflab("derive", "x: [3]; sum(x^2)", "--simplify")
    assert result.code == 2
    assert "SymPy simplifies formulas of numbers, and 'x' is an array" in result.err
    assert difflab("derive", "x*y", "--simplify", "--sparsity").code == 2
