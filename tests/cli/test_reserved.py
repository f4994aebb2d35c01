"""Reserved names as variables on the command line; expected values by algebra."""

from __future__ import annotations

import json
import math

import pytest


@pytest.mark.parametrize("command", ["compare", "trace", "explain"])
def test_a_name_with_a_value_is_a_variable(difflab, command):
    done = difflab(command, "e*phi/(k*T)", "--at", "e=1.6e-19,phi=1,k=1.38e-23,T=300")
    assert done.code == 0, done.err
    if command != "explain":
        assert "38.64734299516907" in done.out


def test_the_record_declares_the_variable(difflab):
    options = ["--methods", "reverse", "--no-timing", "--format", "json"]
    done = difflab("compare", "e*x^2", "--at", "e=3,x=2", *options)
    record = json.loads(done.out)
    assert record["expression"]["text"] == "e: []; e*x^2"
    assert [one["name"] for one in record["expression"]["inputs"]] == ["e", "x"]
    assert record["methods"][0]["jacobian"] == [[4.0, 12.0]]
    again = difflab("compare", record["expression"]["text"], "--at", "e=3,x=2", *options)
    assert json.loads(again.out)["reference"] == record["reference"]
    plain = json.loads(difflab("compare", "e*x^2", "--at", "x=2", *options).out)
    assert plain["methods"][0]["jacobian"] == [[pytest.approx(4 * math.e, rel=1e-15)]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["e*x", "--wrt", "e"], "(x)\n"),
        (["gamma*gamma(x)", "--wrt", "gamma"], "gamma(x)\n"),
        (["pi: [2]; pi[0]*pi[1]", "--wrt", "pi[1]"], "pi: [2]\npi[0]\n"),
    ],
)
def test_the_variable_of_a_derivative_is_one(difflab, arguments, expected):
    done = difflab("derive", *arguments)
    assert (done.code, done.out) == (0, expected)


def test_a_domain_and_stabilised_forms(difflab):
    over = ["--over", "e=1:2", "--at", "x=3", "--points", "10", "--methods", "forward"]
    assert difflab("compare", "e*x", *over).code == 0
    point = ["--at", "e=700,x=1", "--methods", "reverse", "--no-timing", "--stabilise"]
    assert "logaddexp" in difflab("compare", "log(exp(e) + exp(x))", *point).out
    picture = difflab("graph", "e*x", "--at", "e=2,x=3", "--values", "--format", "dot")
    assert picture.code == 0
    assert "6" in picture.out


def test_a_study_takes_values_as_declarations(difflab, tmp_path):
    (tmp_path / "s.toml").write_text(
        'name = "s"\n[[grid]]\nformulas = ["e*x"]\nmethods = ["reverse"]\n'
        "at = [{e = 1.5, x = 2.0}]\ntiming = false\n",
        encoding="utf-8",
    )
    done = difflab("study", "s.toml", "-o", "s.db")
    assert done.code == 0, done.err
    assert difflab("study", "export", "s.db", "--format", "csv").code == 0
    assert "e: []; e*x" in (tmp_path / "s.csv").read_text(encoding="utf-8")


def test_a_name_that_the_formula_lacks_is_refused(difflab):
    done = difflab("compare", "x^2", "--at", "e=1,x=2")
    assert done.code == 2
    assert "'e'" in done.err
