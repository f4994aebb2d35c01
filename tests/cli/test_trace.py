"""``difflab trace``: evaluation traces on the screen and on disk."""

import json
import re

import pytest

SEED = "ln(x1)+x1*x2-sin(x2)"
AT = ("--at", "x1=2,x2=5")


def test_both_modes_are_shown(difflab):
    result = difflab("trace", SEED, *AT)
    assert result.code == 0
    assert result.err == ""
    assert "Forward mode" in result.out
    assert "Reverse mode" in result.out
    assert re.search(r"v₁ = ln v₋₁ +0\.693147 +v̇₁ = v̇₋₁ / v₋₁ +0\.5\n", result.out)
    assert "∂y/∂x2 = 1.7163378145367738\n" in result.out


def test_forward_from_another_input(difflab):
    result = difflab("trace", SEED, *AT, "--mode", "forward", "--seed", "x2")
    assert "∂y/∂x2 = 1.7163378145367738\n" in result.out
    assert "Reverse mode" not in result.out


def test_reverse_alone_has_the_primal_trace(difflab):
    result = difflab("trace", SEED, *AT, "--mode", "reverse")
    assert "v₁ = ln v₋₁" in result.out
    assert "v̇" not in result.out
    assert "v̄₀ = v̄₀ + v̄₂ ∂v₂/∂v₀" in result.out


def test_without_a_point_one_is_chosen(difflab):
    result = difflab("trace", SEED)
    assert result.code == 0
    assert "was chosen" in result.err
    assert re.search(r"^at  x1 = [\d.]+, x2 = [\d.]+$", result.out, re.M)


@pytest.mark.parametrize("name", ["t.json", "t.md", "t.html", "t.txt"])
def test_files(difflab, tmp_path, name):
    assert difflab("trace", SEED, *AT, "-o", name).code == 0
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert "1.7163378145367738" in text
    if name == "t.json":
        assert json.loads(text)["reverse"]["gradient"] == {"x1": 5.5, "x2": 1.7163378145367738}


def test_json_holds_every_step_of_a_long_trace(difflab):
    text = "sin(" * 300 + "x" + ")" * 300
    result = difflab("trace", text, "--at", "x=1", "--format", "json")
    assert len(json.loads(result.out)["primal"]) == 301
    assert "256 more steps" in difflab("trace", text, "--at", "x=1").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ln(x)", "--at", "x=-1"], "log is undefined"),
        (["x*y", "--at", "x=1"], "no value is given for the input y"),
        (["x", "--at", "x=1,z=2"], "no input 'z'"),
        ([SEED, *AT, "--seed", "x3"], "no input or output 'x3'"),
        ([SEED, *AT, "--mode", "sideways"], "sideways"),
        (["2x", "--at", "x=1"], "2x"),
    ],
)
def test_faults_of_the_input(difflab, arguments, message):
    result = difflab("trace", *arguments)
    assert result.code == 2
    assert message in result.err
    assert result.out == ""


def test_a_name_that_says_no_format_is_refused(difflab, tmp_path):
    result = difflab("trace", "x", "--at", "x=1", "-o", "a.csv")
    assert result.code == 2
    assert ".txt, .json, .md, .tex, .html, .pdf" in result.err
    assert not list(tmp_path.iterdir())
