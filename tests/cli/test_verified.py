"""Commands run ``module:function`` once more, and compare it with its graph."""

import json
import sys

import pytest

MODULE = """
import math
import numpy as np
import difflab as dl

def other(x):
    y = 2.0 * x
    k = 3.0 if isinstance(x, np.ndarray | np.float64) else 1.0
    return np.sum(k * y)

def branch(x, y=1.0):
    print("printed")
    return x * y if x > y else math.sin(x)

def declared(x):
    return np.sum(x * dl.stop_gradient(x))

def declared_pair(x):
    return x * dl.stop_gradient(x), x

def right(x):
    return np.sum(np.sin(x))
"""


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


QUICK = ["--methods", "reverse", "--no-timing"]
TOLD = "the graph is not your function: at x = 2 the code gives 12, the graph 4"


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "model:other", "--at", "x=2", *QUICK],
        ["compare", "model:other", "--at", "x=2", *QUICK, "--stabilise"],
        ["compare", "model:other", "--over", "x=1:3", "--points", "5", "--methods", "reverse"],
        ["explain", "model:other", "--at", "x=2"],
        ["explain", "model:other", "--at", "x=2", "--between", "reverse,richardson"],
    ],
    ids=lambda a: " ".join(a[:1] + a[4:]),
)
def test_another_function_is_exit_code_two(run, arguments):
    result = run(*arguments)
    assert result.code == 2
    assert TOLD in result.err
    assert "(model.py, line 8)\n  k = 3.0 if isinstance" in result.err
    assert result.out == ""
    again = run(*arguments, "--no-verify")
    assert again.code in (0, 1)
    assert "not your function" not in again.err


STUDY = """
[[grid]]
formulas = ["model:{name}"]
at = {{x = 2}}
methods = ["reverse"]
timing = false
"""


def test_a_study_verifies_its_code(run, tmp_path):
    (tmp_path / "s.toml").write_text(STUDY.format(name="other"), encoding="utf-8")
    result = run("study", "s.toml")
    assert result.code == 2
    assert TOLD in result.err
    assert run("study", "s.toml", "--no-verify").code == 0
    (tmp_path / "t.toml").write_text(STUDY.format(name="right"), encoding="utf-8")
    assert run("study", "t.toml").code == 0


def test_a_study_of_a_domain_needs_no_point(run, tmp_path):
    text = STUDY.format(name="right").replace("at = {x = 2}", "over = {x = [0, 1]}\npoints = 5")
    (tmp_path / "d.toml").write_text(text, encoding="utf-8")
    result = run("study", "d.toml")
    assert result.code == 0, result.err
    (tmp_path / "e.toml").write_text(text.replace("right", "other"), encoding="utf-8")
    assert "not your function" in run("study", "e.toml").err


def test_code_that_branches_is_compared(run):
    result = run("compare", "model:branch", "--at", "x=2", "--no-timing")
    assert result.code == 0
    assert result.err.count("printed") == 1
    assert "f         model:branch" in result.out
    assert "the Python code cannot be traced: a branch on a traced value" in " ".join(
        result.out.split()
    )
    over = run("compare", "model:branch", "--over", "x=0:2,y=0.5:1", "--points", "9")
    assert (over.code, "100 %" in over.out) == (0, True)


def test_a_declared_derivative_is_exit_code_zero(run):
    result = run("compare", "model:declared", "--at", "x=3", *QUICK, "--format", "json")
    assert result.code == 0
    row = json.loads(result.out)["methods"][0]
    assert row["verdict"] == "declared"
    assert row["message"] == (
        "differs from the derivative by the rule of stop_gradient: 3 where the derivative is 6"
    )
    checked = run("check", "model:declared_pair", "--at", "x=3")
    assert checked.code == 0
    assert "the gradient is declared: it differs from the derivative by the rule of" in checked.out
    found = json.loads(run("check", "model:declared_pair", "--at", "x=3", "--format", "json").out)
    assert (found["schema"], found["status"]) == ("difflab.check/2", "declared")
