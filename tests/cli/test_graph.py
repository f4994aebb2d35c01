"""``difflab graph``: pictures of formulas and of their derivatives, on disk and on the screen."""

import json
import re
from xml.etree import ElementTree

import pytest

SEED = "ln(x1)+x1*x2-sin(x2)"


def test_mermaid_is_printed_by_default(difflab):
    result = difflab("graph", SEED)
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0] == "---"
    assert json.loads(lines[1].removeprefix("title: ")) == SEED
    assert lines[3] == "flowchart LR"
    assert len([line for line in lines if "-->" in line]) == 9


def test_dot_is_printed_on_request(difflab):
    result = difflab("graph", SEED, "--format", "dot")
    assert result.out.startswith("digraph difflab {")
    assert len(re.findall(" -> ", result.out)) == 9


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("g.svg", b"<svg"),
        ("g.png", b"\x89PNG"),
        ("g.dot", b"digraph"),
        ("g.gv", b"digraph"),
        ("g.mmd", b"---"),
    ],
)
def test_the_name_of_the_file_decides(difflab, tmp_path, name, start):
    result = difflab("graph", SEED, "-o", name)
    assert result.code == 0
    assert result.out == ""
    assert (tmp_path / name).read_bytes().startswith(start)
    assert list(tmp_path.iterdir()) == [tmp_path / name]


@pytest.mark.parametrize("options", [["--derivative"], ["--of", "gradient"]])
def test_the_gradient(difflab, tmp_path, options):
    assert difflab("graph", SEED, *options, "--at", "x1=2,x2=5", "-o", "g.svg").code == 0
    texts = [e.text for e in ElementTree.parse(tmp_path / "g.svg").iter() if e.text]
    assert f"gradient of {SEED}" in texts
    assert "cos" in texts
    assert "= [5.5, 1.71634]" in texts


def test_the_hessian_and_the_jacobian(difflab):
    assert "hessian of" in difflab("graph", SEED, "--of", "hessian").out
    assert "jacobian of" in difflab("graph", "[x*y, x/y]", "--derivative").out


def test_a_large_formula_is_summarised(difflab):
    result = difflab("graph", "+".join(f"sin(x{k})" for k in range(5000)), "--format", "svg")
    assert result.code == 0
    assert ">5,000 × sin<" in result.out or "5,000 × sin" in result.out
    assert len(result.out) < 30_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x+", "-o", "g.svg"], "x+"),
        (["x", "-o", "g.bmp"], "cannot tell the format of the picture"),
        (["x", "--format", "png"], "a PNG picture must be written to a file"),
        (["x", "-o", "missing/g.svg"], "does not exist"),
        (["ln(x)", "--at", "x=-1", "-o", "g.svg"], "log is undefined"),
        (["x*y", "--at", "x=1", "-o", "g.svg"], "no value is given for the input y"),
        (["[x, y]", "--of", "hessian", "-o", "g.svg"], "one output"),
    ],
)
def test_faults_of_the_input(difflab, tmp_path, arguments, message):
    result = difflab("graph", *arguments)
    assert result.code == 2
    assert message in result.err
    assert result.out == ""
    assert not list(tmp_path.iterdir())


def test_comments_do_not_become_the_title(difflab):
    result = difflab("graph", "# <b>note</b>\na = x^2 # why\na + 1")
    assert 'title: "a = x^2; a + 1"' in result.out
    assert "note" not in result.out


def test_values_and_derivatives_at_the_arrows(difflab, tmp_path):
    result = difflab("graph", SEED, "--at", "x1=2,x2=5", "--values", "-o", "g.svg")
    assert result.code == 0
    texts = [e.text for e in ElementTree.parse(tmp_path / "g.svg").iter() if e.text]
    assert {"11.65", "5.5", "1.716", "−0.9589"} <= set(texts)


def test_values_of_a_point_outside_of_the_domain_are_shown(difflab):
    assert difflab("graph", "log(x)", "--at", "x=-1").code == 2
    result = difflab("graph", "log(x)", "--at", "x=-1", "--values", "--format", "dot")
    assert result.code == 0
    assert "v = nan" in result.out


def test_values_need_a_point(difflab):
    result = difflab("graph", SEED, "--values")
    assert result.code == 2
    assert "hint: add --at" in result.err


def test_passes_are_shown_before_and_after(difflab):
    result = difflab("graph", "x^1 + 2*3", "--passes")
    assert result.code == 0
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert "constant folding evaluate constant expressions 7 → 5 3 → 2" in lines
    assert "simplification exact identities: x^1 = x 5 → 3 2 → 1" in lines
    assert "common subexpressions compute equal expressions once 3 1" in lines
    assert lines[-7:-4] == ["constant folding", "- x^1 + 2*3", "+ x^1 + 6"]
    assert lines[-3:] == ["simplification", "- x^1 + 6", "+ x + 6"]
    assert not any("stabilisation" in line for line in lines)


def test_passes_of_a_stabilised_derivative(difflab):
    program = "a = x\nlog(exp(a) + exp(b))"
    result = difflab("graph", program, "--passes", "--stabilise", "--derivative")
    assert "line 2, column 1: log(exp(a) + exp(b)) → logaddexp(x, b)" in result.out
    assert "equal to 60 digits at 3 points" in result.out
    assert "memory planning" in result.out


def test_passes_report_loops_and_memory(difflab):
    result = difflab("graph", "v: [100]; sum(sin(v)*exp(v)) + 1", "--passes")
    text = " ".join(result.out.split())
    assert "4 elementwise operations in 2 loops, the longest of 3" in text
    assert "bytes a point at once" in text


def test_passes_of_a_large_graph_are_only_counted(difflab):
    result = difflab(
        "graph", "+".join(f"log(1+x{k})" for k in range(500)), "--passes", "--stabilise"
    )
    assert len(result.out.splitlines()) < 80
    assert "and 480 more" in result.out


def test_passes_go_to_a_file(difflab, tmp_path):
    assert difflab("graph", "x^1", "--passes", "-o", "passes.txt").out == ""
    assert "simplification" in (tmp_path / "passes.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", [["--format", "dot"], ["--at", "x=1"], ["--values"]])
def test_passes_have_no_picture(difflab, option):
    result = difflab("graph", "x", "--passes", *option)
    assert result.code == 2
    assert option[0] in result.err


def test_the_stabilised_graph_is_drawn(difflab):
    plain, stable = (
        difflab("graph", "1/(1+exp(-x))", *options) for options in ([], ["--stabilise"])
    )
    assert "exp" in plain.out
    assert "σ" in stable.out
    assert "exp" not in stable.out.replace("1/(1+exp(-x))", "")
    assert plain.err == ""
    assert "line 1, column 1: 1/(1+exp(-x)) → sigmoid(x)" in stable.err


def test_one_table_at_a_time(difflab):
    result = difflab("graph", "x", "--passes", "--memory")
    assert result.code == 2
    assert "--passes and --memory" in result.err


def test_what_going_backward_keeps_is_listed(difflab):
    result = difflab("graph", "W: [4, 3]; x: [3]; sum(relu(W @ x))", "--memory")
    assert result.code == 0
    lines = [line.split() for line in result.out.splitlines()]
    assert lines[0] == ["node", "operation", "shape", "keeps", "bytes"]
    assert lines[1][1:] == ["matmul", "4", "input", "1,", "input", "2", "120"]
    assert lines[2][1:] == ["relu", "4", "input", "32"]
    assert lines[3][1:] == ["sum", "number", "nothing", "0"]
    assert result.out.splitlines()[-2].startswith("total 152 bytes: 32 computed, 120 of inputs")
    assert max(map(len, result.out.splitlines())) <= 80


def test_what_the_derivative_keeps_goes_to_a_file(difflab, tmp_path):
    assert difflab("graph", "exp(x)*y", "--memory", "--derivative", "-o", "kept.txt").out == ""
    text = (tmp_path / "kept.txt").read_text(encoding="utf-8")
    assert "exp" in text
    assert "pack" in text
    refused = difflab("graph", "x", "--memory", "--format", "dot")
    assert refused.code == 2
    assert "--memory writes a table, to which --format does not apply" in refused.err


def test_compositions_open_on_request(difflab):
    text = "x: [3]; sum(layer_norm(x)^2)"
    closed = difflab("graph", text, "--open", "none").out
    assert "layer#95;norm" in closed
    assert "sqrt" not in closed
    assert "layer#95;norm" not in difflab("graph", text).out.split("flowchart")[1]
    assert difflab("graph", text, "--open", "all").out == difflab("graph", text).out
    assert difflab("graph", text, "--open", "layer_norm").out == difflab("graph", text).out
    wrong = difflab("graph", text, "--open", "norm")
    assert wrong.code == 2
    assert "choose from all, none, layer_norm" in wrong.err
