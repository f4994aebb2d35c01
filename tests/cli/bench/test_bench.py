"""``difflab bench``: pictures with their data, resumed after Ctrl-C."""

from __future__ import annotations

import csv
import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from time import sleep

import numpy as np
import pytest

from difflab.cli.bench.commands import point_key
from difflab.core import optional

ROOT = Path(__file__).parents[3]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def written(result) -> list[str]:
    """Return the files that a command says it wrote."""
    lines = result.err.splitlines()
    return [line.removeprefix("wrote ") for line in lines if line.startswith("wrote ")]


def test_accuracy_of_an_expression_at_a_point(difflab, tmp_path):
    options = ("--at", "x1=2,x2=5", "--quick", "--reports", "new")
    result = difflab("bench", "accuracy", "ln(x1)+x1*x2-sin(x2)", *options)
    assert result.code == 0
    assert written(result) == ["new/accuracy.svg", "new/accuracy.csv"]
    assert (tmp_path / "new/accuracy.svg").read_bytes().startswith(b"<?xml")
    rows = rows_of(tmp_path / "new/accuracy.csv")
    assert {row["point"] for row in rows} == {"x1 = 2.0, x2 = 5.0"}
    (reverse,) = [row for row in rows if row["method"] == "reverse"]
    assert float(reverse["relative_error"]) < 1e-15


def test_accuracy_without_an_expression_is_figure_3(difflab, tmp_path):
    assert difflab("bench", "accuracy", "--quick", "--reports", ".", "--format", "png").code == 0
    assert (tmp_path / "accuracy.png").read_bytes().startswith(b"\x89PNG")
    rows = rows_of(tmp_path / "accuracy.csv")
    assert {row["point"] for row in rows} == {"x = 0.2"}


def test_accuracy_chooses_a_point_where_none_is_given(difflab, tmp_path):
    assert difflab("bench", "accuracy", "log(x)", "--quick", "--reports", ".").code == 0
    assert rows_of(tmp_path / "accuracy.csv")[0]["point"].startswith("x = ")


def test_precision_of_an_expression_at_a_point(difflab, tmp_path):
    arguments = ("precision", "-x^3", "--at", "x=2", "--methods", "reverse", "--quick")
    result = difflab("bench", *arguments, "--reports", "new")
    assert result.code == 0
    assert written(result) == ["new/precision.svg", "new/precision.csv"]
    rows = {row["method"]: row for row in rows_of(tmp_path / "new/precision.csv")}
    assert float(rows["reverse"]["relative_error"]) == 0
    assert len(rows) == 7


def test_swell_of_a_recurrence(difflab, tmp_path):
    arguments = ("--repeat", "y = y*y", "--depth", "2,3", "--timeout", "60", "--reports", "new")
    assert difflab("bench", "swell", *arguments).code == 0
    rows = rows_of(tmp_path / "new/swell.csv")
    assert {(row["family"], row["depth"]) for row in rows} == {("y = y*y", "2"), ("y = y*y", "3")}
    (tree,) = [r for r in rows if (r["series"], r["depth"]) == ("function tree", "3")]
    assert tree["operations"] == "7"  # y to the eighth, written out


def test_memory_of_chains(difflab, tmp_path, monkeypatch):
    monkeypatch.setattr("difflab.bench.memory.LENGTHS", (9, 16, 10**9))
    result = difflab("bench", "memory", "--quick", "--reports", "new")
    assert result.code == 0
    assert written(result) == ["new/memory.svg", "new/memory.csv"]
    rows = rows_of(tmp_path / "new/memory.csv")
    assert {row["steps"] for row in rows} == {"9", "16"}
    assert {row["strategy"] for row in rows} == {"plain", "sqrt", "revolve"}


def test_a_second_expression_is_added_to_the_same_data(difflab, tmp_path):
    difflab("bench", "accuracy", "-sin(x)", "--at", "x=1", "--quick", "--reports", ".")
    first = rows_of(tmp_path / "accuracy.csv")
    difflab("bench", "accuracy", "exp(x)", "--at", "x=1", "--quick", "--reports", ".")
    both = rows_of(tmp_path / "accuracy.csv")
    assert both[: len(first)] == first
    assert {row["expression"] for row in both} == {"'-sin(x)", "exp(x)"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["accuracy", "ln(x"], "("),
        (["accuracy", "abs(x)", "--at", "x=0"], "choose another point"),
        (["accuracy", "log(x)", "--at", "x=-1"], "log is undefined at the point"),
        (["accuracy", "x*y", "--at", "x=1"], "no value is given for the input y"),
        (["accuracy", "x", "--at", "x=1,z=2"], "no input 'z'"),
        (["swell", "--reports", "/proc/none"], "cannot write"),
        (["precision", "abs(x)", "--at", "x=0"], "choose another point"),
        (["precision", "x^2", "--methods", "revers"], "did you mean reverse"),
        (["swell", "--depth", "1:3"], "without a recurrence"),
        (["swell", "--repeat", "4*y"], "a definition of one name"),
        (["swell", "--repeat", "y = 4*y", "--depth", "3:1"], "ends before it begins"),
        (["peers", "--points", "0"], "'0' is not a number of points"),
        (["peers", "--points", "1,1e6"], "'1e6' is not a number of points"),
        (["peers", "--points", "1,,2"], "an empty name"),
        (["peers", "--peers", "pytorch"], "no peer 'pytorch'"),
        (["peers", "[x, y]", "--at", "x=1,y=2"], "need a scalar function"),
        (["peers", "log(x)", "--at", "x=-1"], "undefined"),
        (["peers", "x*y", "--at", "x=1"], "no value"),
        (["accuracy", "x^2", "--at", "x=1", "--reports", "file"], "cannot write"),
    ],
)
def test_bad_input_is_told_and_leaves_nothing(difflab, tmp_path, arguments, message):
    (tmp_path / "file").write_text("")
    result = difflab("bench", *arguments)
    assert result.code == 2
    assert message in result.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


FORMS = {
    "svg": b"<?xml",
    "png": b"\x89PNG",
    "csv": b"expression,point,method,step,",
    "json": b'{\n  "benchmark": "accuracy"',
    "txt": b"expression: x^2\n",
}
SQUARE = ("bench", "accuracy", "x^2", "--at", "x=1", "--quick")


@pytest.mark.parametrize("ending", FORMS)
def test_o_is_a_file_whose_ending_gives_the_format(difflab, tmp_path, ending, one_method):
    result = difflab(*SQUARE, "-o", f"a.{ending}")
    assert (result.code, written(result)) == (0, [f"a.{ending}"])
    assert [path.name for path in tmp_path.iterdir()] == [f"a.{ending}"]
    assert (tmp_path / f"a.{ending}").read_bytes().startswith(FORMS[ending])
    assert ("forward difference" in result.out) == (ending in ("svg", "png"))


def test_without_o_the_table_is_printed_and_nothing_is_written(difflab, tmp_path, one_method):
    result = difflab(*SQUARE)
    assert result.code == 0
    assert result.out.startswith("expression: x^2\npoint: x = 1.0\n")
    assert re.search(r"^reverse +– +0 +0$", result.out, re.MULTILINE)
    assert not list(tmp_path.iterdir())


def test_many_rows_are_summarised_by_formula_and_method(difflab, tmp_path, one_method):
    result = difflab(*SQUARE)
    difflab(*SQUARE, "-o", "rows.csv")
    rows = rows_of(tmp_path / "rows.csv")
    assert f"all {len(rows)} rows: -o rows.csv" in result.out
    names = {row["method"] for row in rows}
    lines = [line for line in result.out.splitlines() if line.startswith(tuple(names))]
    assert len(lines) == len(names) < 10
    errors = [float(row["absolute_error"]) for row in rows if row["method"] == "forward difference"]
    (line,) = [line for line in lines if line.startswith("forward difference")]
    assert float(line.split()[-2]) == pytest.approx(min(errors), rel=0.05)


def test_rows_in_csv_are_gone_on_from(difflab, tmp_path, one_method):
    difflab(*SQUARE, "-o", "a.csv")
    before = (tmp_path / "a.csv").read_bytes()
    difflab(*SQUARE, "-o", "a.csv")
    assert (tmp_path / "a.csv").read_bytes() == before  # the dates too


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "."], "it is a directory"),
        (["-o", "new/"], "--reports new/"),
        (["-o", "."], "--reports ."),
        (["-o", "a.xyz"], "cannot tell the format"),
        (["-o", "a.svg", "--reports", "b"], "a file and a folder are both given"),
        (["--reports", "b", "--format", "csv"], "--reports writes a picture"),
        (["--format", "pdf"], "a picture is written to a file"),
        (["-o", "a.html"], "has no page"),
    ],
)
def test_a_destination_that_makes_no_sense_is_refused_first(difflab, tmp_path, options, message):
    result = difflab(*SQUARE, *options)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert not list(tmp_path.iterdir())


def test_help_shows_the_five(difflab):
    shown = difflab("bench", "--help").out
    assert all(name in shown for name in ("accuracy", "swell", "cost", "memory", "peers"))


@pytest.fixture
def no_peers(monkeypatch):
    """Nothing is installed but llvmlite, with which difflab itself compiles."""
    found = optional.installed
    monkeypatch.setattr(optional, "installed", lambda name: name == "llvmlite" and found(name))


def test_peers_of_the_seed(difflab, tmp_path, no_peers):
    result = difflab("bench", "peers", "--points", "1,4", "--timeout", "0.01", "--reports", "new")
    assert result.code == 0
    assert "no peer is installed" in result.err
    assert "pip install 'difflab[peers]'" in result.err
    assert "value and gradient of ln(x1) + x1*x2 - sin(x2)" in result.out
    assert written(result) == ["new/peers.svg", "new/peers.csv"]
    rows = rows_of(tmp_path / "new/peers.csv")
    assert {row["points"] for row in rows} == {"1", "4"}
    assert {row["point"] for row in rows} == {"x1 = 2.0, x2 = 5.0"}
    assert {row["status"] for row in rows if row["peer"] == "difflab"} == {"ok"}


def test_a_peer_that_is_named_and_absent_is_a_row(difflab, tmp_path, no_peers):
    arguments = ("peers", "-x^2", "--peers", "torch", "--points", "1", "--timeout", "0.01")
    result = difflab("bench", *arguments, "--at", "x=3", "--reports", ".", "--format", "png")
    assert result.code == 0
    assert "pip install 'difflab[peers]'" in result.out
    assert (tmp_path / "peers.png").read_bytes().startswith(b"\x89PNG")


def test_a_peer_that_disagrees_is_exit_code_1(difflab, monkeypatch):
    from difflab.bench.peers.ways import Own
    from difflab.methods.peers.peer import CallAdapter

    class Wrong(Own):
        def adapter(self, function, points):
            right = super().adapter(function, points)
            return CallAdapter(
                right.call, right.arguments, lambda r: (right.result(r)[0], right.result(r)[1] * 2)
            )

    monkeypatch.setattr(
        "difflab.bench.peers.bench.contenders", lambda _: {"wrong": Wrong("difflab")}
    )
    result = difflab("bench", "peers", "x^2", "--at", "x=3", "--points", "1", "--reports", ".")
    assert result.code == 1
    assert "12 where the derivative is 6" in result.out


def rows_in(path: Path) -> int:
    """Return how many rows a run has kept so far."""
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as file:
        try:
            return file.execute("SELECT count(*) FROM records").fetchone()[0]
        except sqlite3.OperationalError:  # the table is not made yet
            return 0


def test_ctrl_c_keeps_what_is_measured_and_the_next_run_goes_on(tmp_path):
    command = [sys.executable, "-m", "difflab", "bench", "swell", "--reports", str(tmp_path)]
    command += ["--timeout", "0.5"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    data, partial = tmp_path / "swell.csv", tmp_path / "swell.csv.partial"
    first = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    while first.poll() is None and rows_in(partial) < 10:
        sleep(0.02)
    first.send_signal(signal.SIGINT)
    _, said = first.communicate()
    assert first.returncode == 130
    assert "the rows so far are kept" in said
    assert not (tmp_path / "swell.svg").exists()
    kept = data.read_text()
    assert kept.count("\n") >= 10

    # All depths take so long that the first run does not end before it is interrupted.
    command += ["--quick"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0
    assert data.read_text().startswith(kept)
    assert not partial.exists()
    assert (tmp_path / "swell.svg").exists()
    keys = [(row["family"], row["depth"], row["series"]) for row in rows_of(data)]
    assert len(keys) == len(set(keys))


def test_two_benches_on_one_output_measure_every_row_once(tmp_path):
    command = [sys.executable, "-m", "difflab", "bench", "accuracy", "sin(x)", "--at", "x=1"]
    command += ["--quick", "--reports", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    first, second = (process.communicate()[0] for process in both)
    assert first == second != ""
    assert [process.returncode for process in both] == [0, 0]
    keys = [(row["method"], row["step"]) for row in rows_of(tmp_path / "accuracy.csv")]
    assert len(keys) == len(set(keys)) > 100


def test_a_formula_longer_than_a_field_of_csv_may_be(difflab, tmp_path, one_method):
    formula = f"sin({'(' * 70_000}x{')' * 70_000})"
    for _ in range(2):
        result = difflab("bench", "accuracy", formula, "--at", "x=1", "--quick", "--reports", ".")
        assert (result.code, len(result.err) < 1000) == (0, True)
    rows = rows_of(tmp_path / "accuracy.csv")
    assert len(rows) == len({(row["method"], row["step"]) for row in rows})
    (named,) = {row["expression"] for row in rows}
    assert named.startswith("sin((((")
    assert "140,006 characters, SHA-256 " in named
    assert len(named) < 300
    other = formula.replace("x", "1*x")
    assert difflab("bench", "accuracy", other, "--at", "x=1", "--quick", "--reports", ".").code == 0
    assert len(rows_of(tmp_path / "accuracy.csv")) == 2 * len(rows)


@pytest.fixture
def one_method(monkeypatch):
    from difflab.methods.registry import find

    monkeypatch.setattr("difflab.bench.accuracy.installed", lambda: {"reverse": find("reverse")})


def test_the_data_of_an_earlier_version_are_kept_aside(difflab, tmp_path, one_method):
    earlier = "expression,point,method,step,status,absolute_error,relative_error\n"
    earlier += "sin(x),x = 1.0,reverse,,ok,0.25,0.5\n"
    (tmp_path / "accuracy.csv").write_text(earlier)
    result = difflab("bench", "accuracy", "sin(x)", "--at", "x=1", "--quick", "--reports", ".")
    assert result.code == 0
    assert "copied to accuracy-earlier-1.csv and started again" in result.err
    assert (tmp_path / "accuracy-earlier-1.csv").read_text() == earlier
    (reverse,) = [row for row in rows_of(tmp_path / "accuracy.csv") if row["method"] == "reverse"]
    assert float(reverse["absolute_error"]) < 1e-15


def test_a_method_that_fails_in_a_way_of_its_own_is_a_row(difflab, tmp_path, monkeypatch):
    class Hostile:
        name, family, summary, orders = "hostile", "numeric", "", (1,)

        def missing(self):
            return None

        def prepare(self, problem):
            raise ValueError("\x1b[31mno")

    for bench, extra in (("accuracy", ["x^2", "--at", "x=1"]), ("cost", [])):
        monkeypatch.setattr(f"difflab.bench.{bench}.installed", lambda: {"hostile": Hostile()})
        assert difflab("bench", bench, *extra, "--quick", "--reports", ".").code == 0
        rows = [row for row in rows_of(tmp_path / f"{bench}.csv") if row["method"] == "hostile"]
        assert {row["status"] for row in rows} == {"failed"}
        assert {row["message"] for row in rows} == {r"ValueError: \x1b[31mno"}


def test_points_that_differ_anywhere_have_keys_of_their_own() -> None:
    large = np.zeros(5000)
    other = large.copy()
    other[2500] = 1e-300
    small = np.array([0.1, 0.2])
    keys = {point_key({"x": point}) for point in (large, other, small, np.nextafter(small, 1))}
    assert len(keys) == 4
    assert max(map(len, keys)) < 80
    assert point_key({"x": 2.0, "w": np.array([1.0, 2.5])}) == "x = 2.0, w = [1.0, 2.5]"


@pytest.mark.parametrize("name", ["accuracy", "precision"])
def test_python_code_stands_where_a_formula_does(difflab, tmp_path, monkeypatch, name):
    (tmp_path / "bench_code.py").write_text(
        "import numpy as np\n\ndef wave(x):\n    return np.sin(x) ** 2\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    options = ["--quick", "--at", "x=0.7", "--reports", "out"]
    options += ["--methods", "finite-central"] if name == "precision" else []
    assert difflab("bench", name, "bench_code:wave", *options).code == 0
    assert difflab("bench", name, "sin(x)^2", *options).code == 0
    text = (tmp_path / f"out/{name}.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    errors = {}
    for row in rows:
        key = row["method"], row.get("step")
        errors.setdefault(row["expression"].partition(" ")[0], {})[key] = row["relative_error"]
    assert errors["bench_code:wave"] == errors["sin(x)^2"]
    result = difflab("bench", name, "bench_code:wave", *options[:1])
    assert result.code == 2
    assert "traced at a point" in result.err
