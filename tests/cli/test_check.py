"""``check``: right gradients pass, wrong ones are named, and the user's faults are the user's."""

import json
import sys

import jsonschema
import pytest

MODULE = """
import numpy as np
print("printed by the module")
def right(w): return np.sum(w**2), 2*w
def wrong(w): return np.sum(w**2), np.array([2*w[0], 3*w[1]])
def value(a, b): return a*b**2
def slope(a, b): return b**2, 2*a*b
def forgotten(a, b): return b**2, a*b
def layers(W, b):
    h = np.tanh(W @ b)
    return np.sum(h), (np.outer(1 - h**2, b), W.T @ (1 - h**2))
def layers_wrong(W, b):
    h = np.tanh(W @ b)
    return np.sum(h), (np.outer(1 - h**2, b), W @ (1 - h**2))
def several(x): return np.array([x[0]*x[1], x[0]]), np.array([[x[1], x[0]], [1.0, 0.0]])
def keyword(x, /, *, scale=3.0): return scale*x**2, 2*scale*x
def crash(x): return 1/0, 1
def outside(x): return np.log(x), 1/x
def single(x): return np.sin(x)
def nothing(): return 1
def hidden(a, b): return float(1e12*a**2 + 1e-6*b), (2e12*a, 5e-6)
def decimals(w): return round(float(w[0]*w[1]**2), 3), np.array([w[1]**2, 2*w[0]*w[1]])
def decimals_wrong(w): return decimals(w)[0], np.array([w[1]**2, 3*w[0]*w[1]])
def leaves(x): raise SystemExit(5)
def matrix(w): return np.sum(w**2), np.where(np.arange(4).reshape(2, 2) == 1, 5.0, 2*w)
def joined(a, b): return np.sum(a)*b, np.array([b, b, np.sum(a)])
def joined_wrong(a, b): return np.sum(a)*b, np.array([b, b, b])
def tree(params, x): return np.sum(x @ params["layer"]["W"] + params["b"] ** 2)
def tree_wrong(params, x):
    W, b = np.outer(x.sum(0), np.ones(2)), len(x) * params["b"]
    return {"layer": {"W": W}, "b": b}, np.ones((len(x), 2)) @ params["layer"]["W"].T
number = 3
"""


@pytest.fixture
def check(difflab, tmp_path):
    (tmp_path / "model.py").write_text(MODULE, encoding="utf-8")
    before = list(sys.path)

    def run(*arguments):
        sys.modules.pop("model", None)
        return difflab("check", *arguments)

    yield run
    sys.modules.pop("model", None)
    sys.path[:] = before


@pytest.mark.parametrize(
    "arguments",
    [
        ["model:right", "--at", "w=[1,2]"],
        ["model:right", "--at", "w=[[1,2],[3,4]]"],
        ["model:value", "--gradient", "slope", "--at", "a=1,b=2"],
        ["model:value", "--gradient", "model:slope"],
        ["model:layers", "--at", "W=[[1,2],[3,4.5]],b=[.1,.2]"],
        ["model:several", "--at", "x=[2,3]"],
        ["model:keyword", "--at", "x=2"],
        ["model:decimals", "--at", "w=[1.5,2.25]"],
        ["model:hidden", "--at", "a=1,b=2", "--atol", "0.01"],
    ],
)
def test_right_gradients_pass(check, arguments):
    result = check(*arguments)
    assert (result.code, result.err) == (0, "printed by the module\n")
    assert "the gradient is right" in result.out


def test_a_wrong_component_is_named_with_both_values(check):
    result = check("model:wrong", "--at", "w=[1,2]")
    assert result.code == 1
    assert "wrong in 1 of 2 components" in result.out
    assert "w[1]" in result.out
    assert "6.0" in result.out
    line = next(line for line in result.out.splitlines() if "w[1]" in line)
    assert float(line.split()[2]) == pytest.approx(4.0, rel=1e-9)


def test_the_noise_of_rounded_values_is_said(check):
    result = check("model:decimals_wrong", "--at", "w=[1.5,2.25]")
    assert result.code == 1
    assert "wrong in 1 of 2 components" in result.out
    assert "the values of f are noisy" in result.out


def test_a_component_that_could_not_be_judged_is_a_failure(check):
    result = check("model:hidden", "--at", "a=1,b=2")
    assert result.code == 1
    assert "could not judge component b" in result.out
    assert "atol" in result.out


def test_components_have_the_names_of_the_parameters(check):
    result = check("model:value", "--gradient", "forgotten", "--at", "a=1,b=2")
    assert result.code == 1
    assert "\n  b " in result.out
    assert "x[" not in result.out
    result = check("model:layers_wrong", "--at", "W=[[1,2],[3,4.5]],b=[.1,.2]")
    assert result.code == 1
    assert "\n  b[0] " in result.out
    assert "wrong in 2 of 6 components" in result.out
    result = check("model:matrix", "--at", "w=[[1,2],[3,4]]")
    assert "\n  w[0, 1] " in result.out


def test_one_array_for_several_parameters_is_split(check):
    assert check("model:joined", "--at", "a=[1,2],b=3").code == 0
    assert "\n  b " in check("model:joined_wrong", "--at", "a=[1,3],b=3").out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["model"], "does not name a function"),
        (["model.py:right"], "write model:right"),
        (["modle:right"], "no module named 'modle'"),
        (["model:rigth"], "did you mean 'right'"),
        (["model:number"], "not a function"),
        (["model:nothing"], "has no named parameter"),
        (["model:single"], "not the pair (value, gradient)"),
        (["model:crash"], "ZeroDivisionError"),
        (["model:leaves"], "SystemExit"),
        (["model:outside", "--at", "x=-1"], "not finite"),
        (["model:value", "--gradient", "slope", "--at", "a=1"], "no value for the parameter 'b'"),
        (["model:value", "--gradient", "slope", "--at", "a=1,b=2,c=3"], "'c'"),
    ],
)
def test_faults_are_the_users(check, arguments, says):
    result = check(*arguments)
    assert result.code == 2
    assert says in result.err
    assert result.out == ""


def test_the_place_of_an_exception_is_given(check):
    assert "model.py, line" in check("model:crash").err


def test_a_broken_module_is_its_own_fault(difflab, tmp_path):
    (tmp_path / "broken.py").write_text("x = ", encoding="utf-8")
    before = list(sys.path)
    result = difflab("check", "broken:f")
    sys.path[:] = before
    assert result.code == 2
    assert "not valid Python" in result.err
    assert "broken.py, line 1" in result.err


@pytest.fixture
def record(reference):
    def read(text):
        found = json.loads(text, parse_constant=pytest.fail)
        jsonschema.validate(found, reference("check-2.schema"))
        return found

    return read


def test_json_of_a_right_gradient(check, record):
    result = check("model:layers", "--at", "W=[[1,2],[3,4.5]],b=[.1,.2]", "--format", "json")
    assert (result.code, result.err) == (0, "printed by the module\n")
    found = record(result.out)
    assert (found["status"], found["wrong"], found["unjudged"]) == ("right", [], [])
    assert found["point"] == {"W": [[1.0, 2.0], [3.0, 4.5]], "b": [0.1, 0.2]}
    assert found["parameters"] == [
        {"name": "W", "shape": [2, 2], "first": 0},
        {"name": "b", "shape": [2], "first": 4},
    ]


def test_json_of_a_wrong_gradient_has_the_components_and_the_message(check, record, tmp_path):
    result = check("model:wrong", "--at", "w=[1,2]", "--format", "json", "-o", "check.json")
    assert (result.code, result.out) == (1, "")
    found = record((tmp_path / "check.json").read_text("utf-8"))
    (wrong,) = found["wrong"]
    assert (found["status"], wrong["name"], wrong["yours"]) == ("wrong", "w[1]", 6.0)
    assert wrong["numeric"] == pytest.approx(4.0, rel=1e-9)
    assert found["tolerance"] == {"rtol": 1e-8, "atol": 0.0}
    assert check("model:wrong", "--at", "w=[1,2]").out.endswith(found["message"] + "\n")


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["model:hidden", "--at", "a=1,b=2"], "unjudged"),
        (["model:counted", "--at", "w=[1,2]"], "impure"),
        (["model:value", "--gradient", "slope", "--at", "a=1,b=2"], "right"),
    ],
)
def test_json_tells_wrong_from_unjudged_and_impure(check, record, tmp_path, arguments, status):
    with (tmp_path / "model.py").open("a", encoding="utf-8") as module:
        module.write("import itertools\ncalls = itertools.count()\n")
        module.write("def counted(w): return w.sum() + next(calls), w * 0 + 1\n")
    result = check(*arguments, "--format", "json")
    assert result.code == (status != "right")
    found = record(result.out)
    assert found["status"] == status
    assert bool(found["unjudged"]) == (status == "unjudged")


def test_json_of_nan_is_strict(check, record, tmp_path):
    with (tmp_path / "model.py").open("a", encoding="utf-8") as module:
        module.write("def lost(w): return (w**2).sum(), w * np.nan\n")
    found = record(check("model:lost", "--at", "w=[1,2]", "--format", "json").out)
    assert {part["yours"] for part in found["wrong"]} == {"nan"}


def test_a_certificate_is_not_written_as_json(check):
    result = check("--certificate", "proof.json", "--format", "json")
    assert result.code == 2
    assert "--format and -o are for the check of a gradient" in result.err


def test_points_that_are_trees_come_from_a_file(check, reference, tmp_path):
    text = '{"params": {"layer": {"W": [[1, 2], [3, 4]]}, "b": [1, -1]}, "x": [[1, 2], [3, 4]]}'
    (tmp_path / "point.json").write_text(text, encoding="utf-8")
    arguments = ["model:tree", "--gradient", "tree_wrong", "--at", f"@{tmp_path / 'point.json'}"]
    done = check(*arguments)
    assert done.code == 1
    assert 'tree at params["b"] = [1, -1], params["layer"]["W"] = [[1, 2], [3, 4]], x' in done.out
    assert "the gradient is wrong in 2 of 10 components" in done.out
    assert '  params["b"][1]  -2.0 ' in done.out
    record = json.loads(check(*arguments, "--format", "json").out)
    assert record["point"]["params"]["layer"]["W"] == [[1.0, 2.0], [3.0, 4.0]]
    names = [(each["name"], each["first"]) for each in record["parameters"]]
    assert names == [('params["b"]', 0), ('params["layer"]["W"]', 2), ("x", 6)]
    jsonschema.validate(record, reference("check-2.schema"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"p": {"w": [[1, 2], [3]]}}', "the rows of 'w' differ in length (point.json, line 1)"),
        ('{"p": [{"w": 1}, "a"]}', "'p' is not a finite number or a list of them"),
        ('{"p": {"w": 1, "w": 2}}', "'w' is given twice"),
    ],
)
def test_faults_in_trees_are_named(check, tmp_path, text, message):
    (tmp_path / "point.json").write_text(text, encoding="utf-8")
    done = check("model:tree", "--gradient", "tree", "--at", f"@{tmp_path / 'point.json'}")
    assert done.code == 2
    assert message in done.err
