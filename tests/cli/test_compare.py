"""The main job, from the words of the command line to what stands on the screen and on disk."""

import csv
import io
import json
import re
import sys
from xml.etree import ElementTree

import pytest

SEED = "ln(x1)+x1*x2-sin(x2)"
AT = ("--at", "x1=2,x2=5")
METHODS = [
    "symbolic",
    "finite-forward",
    "finite-central",
    "richardson",
    "complex-step",
    "forward",
    "reverse",
]
QUICK = ("--no-timing", "--methods", "reverse,finite-central")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def strict(text):
    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_the_seed_expression(difflab):
    result = difflab("compare", SEED, *AT)
    assert result.code == 0
    assert "11.652071455223084" in result.out
    assert "∂/∂x1 = 5.5\n" in result.out
    assert "∂/∂x2 = 1.7163378145367738\n" in result.out
    rows = re.findall(r"^([a-z-]+) +(\w+) +[0-9.e–-]+ +([0-9.e–-]+) ", result.out, re.M)
    assert [(name, verdict) for name, verdict, _ in rows] == [(name, "agree") for name in METHODS]
    assert all(float(ulps) <= 2 for name, _, ulps in rows if name in {"forward", "reverse"})
    assert all(len(line) <= 80 for line in result.out.splitlines())
    last = result.out.rstrip().rsplit("\n\n", 1)[1]
    assert any(name in last for name in METHODS)
    assert last.rstrip().endswith(".")


def test_the_target_is_asked_for(difflab):
    for target in ("python", "numpy", "auto"):
        result = difflab("compare", SEED, *AT, *QUICK, "--target", target)
        assert result.code == 0
        assert re.search(r"^reverse +agree ", result.out, re.M)
    result = difflab("compare", SEED, *AT, *QUICK, "--target", "fortran")
    assert result.code == 2
    assert "no target 'fortran'" in result.err
    assert "auto, python, numpy" in result.err


def test_json_follows_the_contract(difflab):
    result = difflab("compare", SEED, *AT, "--format", "json")
    assert result.code == 0
    record = strict(result.out)
    assert record["schema"] == "difflab.comparison/5"
    assert record["expression"]["text"] == SEED
    assert record["point"] == {"x1": 2.0, "x2": 5.0}
    assert record["value"] == [11.652071455223084]
    assert record["reference"]["jacobian"] == [[5.5, 1.7163378145367738]]
    assert [row["name"] for row in record["methods"]] == METHODS
    for row in record["methods"]:
        assert row["status"] == "ok"
        assert row["verdict"] == "agree"
        assert row["call_seconds"] > 0
        assert set(row["size"]) == {"tree", "dag", "simplified_tree", "simplified_dag"}


def test_csv_markdown_and_html(difflab):
    rows = list(
        csv.DictReader(io.StringIO(difflab("compare", SEED, *AT, *QUICK, "--format", "csv").out))
    )
    assert [row["method"] for row in rows] == ["reverse", "finite-central"]
    assert "| reverse | agree |" in difflab("compare", SEED, *AT, *QUICK, "--format", "md").out
    page = difflab("compare", SEED, *AT, *QUICK, "--format", "html").out
    assert page.startswith("<!DOCTYPE html>")
    assert "<svg" in page


def test_files_take_their_format_from_their_name(difflab, tmp_path):
    result = difflab("compare", SEED, *AT, *QUICK, "-o", "a.json", "--plot", "a.svg")
    assert result.code == 0
    assert result.out == ""
    assert "wrote a.json" in result.err
    assert strict((tmp_path / "a.json").read_text(encoding="utf-8"))["value"]
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")
    difflab("compare", SEED, *AT, *QUICK, "-o", "a.txt")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8").startswith("f  ")
    assert difflab("report", ".").code == 0


def test_without_a_point_one_is_chosen_and_shown(difflab):
    first = difflab("compare", SEED, *QUICK)
    assert first.code == 0
    assert "chosen" in first.out
    assert difflab("compare", SEED, *QUICK).out.splitlines()[1] == first.out.splitlines()[1]
    other = difflab("compare", SEED, *QUICK, "--seed", "1")
    assert other.out.splitlines()[1] != first.out.splitlines()[1]


def test_the_expression_from_standard_input_and_from_a_file(process, tmp_path):
    (tmp_path / "f.txt").write_text(
        "# a model\ny = x1*x2\nln(x1) + y − sin(x₂)\n", encoding="utf-8"
    )
    for arguments, stdin in ((("@f.txt",), b""), (("-",), SEED.encode())):
        result = process("compare", *arguments, *AT, *QUICK, stdin=stdin)
        assert result.code == 0, result.err
        assert "1.7163378145367738" in result.out


def test_an_expression_that_begins_with_a_minus(difflab):
    result = difflab("compare", "-x^2", "--at", "x=3", *QUICK)
    assert result.code == 0
    assert "∂/∂x = -6\n" in result.out


def test_hessians(difflab):
    result = difflab("compare", SEED, *AT, *QUICK, "--order", "2")
    assert result.code == 0
    assert "∂²/∂x1² = -0.25\n" in result.out
    assert "∂²/∂x2² = -0.9589242746631385\n" in result.out


def test_arrays_from_files(difflab, tmp_path):
    import numpy as np

    np.save(tmp_path / "x.npy", np.array([1.0, 2.0, 3.0]))
    result = difflab("compare", "x: [3]; x[0]*x[1]*x[2]", "--at", "x=@x.npy", *QUICK)
    assert result.code == 0, result.err
    assert "∂/∂x[2] = 2\n" in result.out


@pytest.mark.parametrize(
    ("arguments", "says", "marked"),
    [
        ([""], "empty", None),
        (["   "], "empty", None),
        (["x + sn(y)"], "did you mean", "sn"),
        (["x + foo(y)"], "unknown function", "foo"),
        (["2x"], "2*x", "2x"),
        (["(x + 1"], "never closed", "("),
        (["x + 1)"], "unmatched", ")"),
        (["atan2(x)"], "2 arguments", "atan2(x)"),
        (["x + \x1b[31m y"], "control character", "\\x1b"),
        (["x + \x00 y"], "control character", "\\x00"),
        (["1e999*x"], "too large", "1e999"),
        (["__import__('os').system('touch hacked')"], "unknown function", "__import__"),
        (["=cmd()"], "=", "="),
        (["<script>alert(1)</script>"], "<", "<"),
        ([SEED, "--at", "x1=2"], "x2", None),
        ([SEED, "--at", "x1=2,x2=5,x3=1"], "x3", None),
        ([SEED, "--at", "x1=2,x2=[1,2]"], "x2", None),
        ([SEED, "--at", "x1=-1,x2=5"], "ln(x1)", None),
        ([SEED, "--methods", "revrse"], "reverse", None),
        ([SEED, "-o", "missing/a.json"], "does not exist", None),
        ([SEED, "-o", "a.json", "--plot", "missing/a.svg"], "does not exist", None),
        ([SEED, "-o", "a.json", "--plot", "a.bmp"], ".svg", None),
        ([SEED, "-o", "a.xyz"], "cannot tell the format from 'a.xyz'", None),
        (["@missing.txt"], "no such file", None),
        (["[x*y, x]", "--order", "2"], "", None),
    ],
)
def test_bad_input(difflab, tmp_path, arguments, says, marked):
    result = difflab("compare", *QUICK, *arguments)
    assert result.code == 2, result
    assert result.out == ""
    assert says in result.err
    assert not CONTROL.search(result.err)
    assert "Traceback" not in result.err
    assert list(tmp_path.iterdir()) == []
    if marked is not None:
        _, line, carets = result.err.splitlines()[:3]
        assert line[carets.index("^") :].startswith(marked)


def test_a_point_outside_the_domain_marks_the_subexpression(difflab):
    result = difflab("compare", "x + sqrt(y - 2)", "--at", "x=1,y=1", *QUICK)
    assert result.code == 2
    _, line, carets = result.err.splitlines()[:3]
    start = carets.index("^")
    assert line[start : start + len(carets.strip())].startswith("sqrt(y - 2)")


@pytest.mark.parametrize("kind", ["bytes", "letters", "operators"])
def test_ten_megabytes_of_noise(process, tmp_path, kind):
    import random

    source = random.Random(7)
    if kind == "bytes":
        noise = source.randbytes(10_000_000)
    else:
        letters = b"abc xyz()[]+-*/^,.0123456789" if kind == "letters" else b"+-*/^()"
        noise = bytes(source.choices(letters, k=10_000_000))
    (tmp_path / "noise").write_bytes(noise)
    result = process("compare", "@noise")
    assert result.code == 2, result.err
    assert len(result.err) < 1000
    assert "Traceback" not in result.err
    assert process("compare", "-", stdin=noise).code == 2


def test_a_tower_of_powers_is_an_answer_and_not_a_hang(process):
    result = process("compare", "9^9^9^9*x", "--at", "x=1", *QUICK)
    assert result.code == 2
    assert "9^9^9" in result.err


@pytest.mark.parametrize("form", ["table", "json", "csv", "md", "html"])
def test_comments_that_look_like_code_stay_text(difflab, form):
    text = "-x^2 # <script>alert(1)</script> `a` | =cmd() @SUM(1) $\\frac{1}{2}$ \u202e\u2066"
    result = difflab("compare", text, "--at", "x=3", *QUICK, "--format", form)
    assert result.code == 0
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", result.out)
    if form == "csv":
        row = next(csv.DictReader(io.StringIO(result.out)))
        assert row["expression"].startswith("'-x^2")
    if form == "html":
        assert "<script" not in result.out


def test_an_argument_that_is_not_utf8_is_strict_json_all_the_same(difflab):
    result = difflab("compare", "x^2 # \udcff\x7f", "--at", "x=3", *QUICK, "--format", "json")
    assert result.code == 0
    assert strict(result.out)["expression"]["text"].encode("utf-8")
    assert not CONTROL.search(result.out)


class Wrong:
    """A method that gives minus the derivative."""

    name = "wrong"
    family = "automatic"
    summary = "wrong by a sign"
    orders = (1,)

    def missing(self):
        return None

    def prepare(self, problem):
        from difflab.methods.registry import find

        right = find("reverse").prepare(problem)

        class Prepared:
            size = None
            operations = None

            def __call__(self, x):
                from difflab.methods.protocol import Estimate

                return Estimate(-right(x).value, None, 0)

        return Prepared()


class Crash(Wrong):
    """A method that fails, with a message that steers terminals."""

    name = "crash"

    def prepare(self, problem):
        raise RuntimeError("=1+1 \x1b[31mred <b>")


@pytest.fixture
def plugged(monkeypatch):
    """Add a method as if a package had brought it."""
    from difflab.methods import registry

    def plug(method):
        monkeypatch.setitem(registry._OWN, method.name, ("", ""))
        monkeypatch.setitem(registry._loaded, method.name, method)

    return plug


def test_a_method_that_disagrees_is_exit_code_one(difflab, plugged):
    plugged(Wrong())
    result = difflab("compare", SEED, *AT, "--no-timing", "--methods", "reverse,wrong")
    assert result.code == 1
    assert re.search(r"^wrong +disagree", result.out, re.M)
    assert re.search(r"^reverse +agree", result.out, re.M)


def test_a_method_that_fails_is_a_row(difflab, plugged):
    plugged(Crash())
    result = difflab("compare", SEED, *AT, "--no-timing", "--methods", "reverse,crash")
    assert result.code == 0
    assert re.search(r"^crash +failed", result.out, re.M)
    assert "\\x1b[31mred <b>" in result.out
    assert not CONTROL.search(result.out)


def test_nothing_else_is_loaded_than_needed(process, tmp_path):
    code = (
        "import sys\nfrom difflab.cli import main\n"
        "try: main(['compare', 'x^2', '--at', 'x=3', '--methods', 'reverse'])\n"
        "except SystemExit: pass\n"
        "heavy = {'sympy', 'matplotlib', 'pandas', 'numpy.ma', 'difflab.stabilisation'}\n"
        "unused = ('llvm.arrays', 'cuda', 'exact')\n"
        "heavy |= {f'difflab.execute.targets.{target}' for target in unused}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_name_of_a_folder_that_does_not_exist_is_no_file(difflab, tmp_path):
    result = difflab("compare", "x^2", "-o", "new/")
    assert (result.code, result.out) == (2, "")
    assert "it is a directory" in result.err
    assert "name a file, as new/NAME" in result.err
    assert not list(tmp_path.iterdir())
