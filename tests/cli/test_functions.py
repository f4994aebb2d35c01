"""``module:function``: Python code in place of a formula, traced at the point of ``--at``."""

import sys

import numpy as np
import pytest

MODULE = """
import numpy as np
import difflab as dl

print("printed by the module")

def loss(w, x, scale=2.0):
    return scale * np.sum(np.tanh(w * x) ** 2)

def shifted(x, /, *, by=1.0):
    return (x + by) ** 2

def branch(x):
    if x > 0:
        return x
    return -x

def crash(x):
    return 1 / 0

def several(x):
    return x[0] * x[1], np.sin(x)

parsed = dl.parse("x*y")
jitted = dl.jit(loss)
number = 3
"""
AT = ["--at", "w=[0.5,1],x=2"]


@pytest.fixture
def run(difflab, tmp_path):
    (tmp_path / "model.py").write_text(MODULE, encoding="utf-8")
    before = list(sys.path)

    def start(*arguments):
        sys.modules.pop("model", None)
        return difflab(*arguments)

    yield start
    sys.modules.pop("model", None)
    sys.path[:] = before


FORMULA = "w: [2]; 2.0*sum(tanh(w*x)^2)"


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("derive", []),
        ("derive", ["--wrt", "w[1]"]),
        ("derive", ["--of", "hessian", "--format", "python"]),
    ],
)
@pytest.mark.parametrize("name", ["loss", "jitted"])
def test_a_function_has_the_derivative_of_its_formula(run, command, options, name):
    result = run(command, f"model:{name}", *AT, *options)
    assert (result.code, result.err) == (0, "printed by the module\n")
    assert result.out == run(command, FORMULA, *options).out


def test_a_function_is_drawn_and_traced_as_its_formula(run):
    drawn = run("graph", "model:loss", *AT, "--format", "dot").out
    formula = run("graph", FORMULA, *AT, "--format", "dot").out
    assert drawn.splitlines()[2:] == formula.splitlines()[2:]
    assert 'label="model:loss\\n' in drawn
    assert run("trace", "model:loss", *AT).out == run("trace", FORMULA, *AT).out
    of = ["--of", "gradient", "--format", "mermaid"]
    picture = run("graph", "model:loss", *AT, *of).out
    assert 'title: "gradient of model:loss"' in picture


def test_arrays_from_files(run, tmp_path):
    np.save(tmp_path / "x.npy", np.array([0.5, 1.0]))
    result = run("trace", "model:loss", "--at", "w=@x.npy,x=2")
    assert result.out == run("trace", "model:loss", *AT).out


def test_tables_and_sparsity(run):
    assert "simplification" in run("graph", "model:loss", *AT, "--passes").out
    assert "tanh" in run("graph", "model:loss", *AT, "--memory").out
    assert "7 of 9" in run("derive", "model:loss", *AT, "--sparsity").out


def test_several_outputs_defaults_and_positions(run):
    assert "cos(x)" in run("derive", "model:several", "--at", "x=[1,2]").out
    assert run("derive", "model:shifted", "--at", "x=2").out == "[2*(x + 1.0)]\n"
    both = run("derive", "model:shifted", "--at", "by=3,x=2").out
    assert both == "[2*(x + by), 2*(x + by)]\n"


def test_a_function_that_is_a_graph_needs_no_point(run):
    assert run("derive", "model:parsed").out == "[y, x]\n"


def test_compare(run):
    arguments = ["--no-timing", "--methods", "forward,reverse,finite-central"]
    result = run("compare", "model:loss", *AT, *arguments)
    assert result.code == 0
    assert "∂/∂w[0] = 2.5588000337968" in result.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nomodule:loss", *AT], "no module named 'nomodule'"),
        (["problem:rosenbrock", *AT], "problem:SET/NAME is a problem of the library"),
        (["model:los", *AT], "did you mean 'loss'?"),
        (["model:number", *AT], "'model:number' is not a function"),
        (["model:loss"], "traced at a point, which gives the shapes of its arguments"),
        (["model:loss", "--at", "w=1"], "no value for the parameter 'x' of model:loss"),
        (["model:loss", "--at", "w=1,x=1,y=2"], "unknown parameter of model:loss 'y'"),
        (["model:branch", "--at", "x=1"], "(model.py, line 14)\n  if x > 0:"),
        (["model:crash", "--at", "x=1"], "in model.py, line 19: return 1 / 0"),
        (["model:loss", "--at", "w=[1,2],x=[1,2,3]"], "cannot combine the shapes (2,) and (3,)"),
    ],
)
@pytest.mark.parametrize("command", ["graph", "trace", "derive", "compare"])
def test_mistakes_of_the_user(run, command, arguments, message):
    result = run(command, *arguments)
    if (command, arguments[0]) == ("compare", "model:branch"):  # which needs no graph
        assert result.code == 0
        return
    assert result.code == 2
    assert message in result.err
    assert "internal error" not in result.err


def test_a_point_of_a_formula_is_refused_by_derive(run):
    result = run("derive", "x^2", "--at", "x=2")
    assert result.code == 2
    assert "--at gives the shapes of the arguments of module:function" in result.err
