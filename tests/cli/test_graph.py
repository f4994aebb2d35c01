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
        (["x", "-o", "g.bmp"], "cannot tell the kind of picture"),
        (["x", "--format", "png"], "a PNG picture is written to a file"),
        (["x", "-o", "missing/g.svg"], "does not exist"),
        (["ln(x)", "--at", "x=-1", "-o", "g.svg"], "log is undefined"),
        (["x*y", "--at", "x=1", "-o", "g.svg"], "no value for y"),
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
