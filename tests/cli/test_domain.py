"""`difflab compare --over`: the formats, the files, resuming, and what is refused."""

import csv
import io
import json

import jsonschema
import pytest

OVER = ("--over", "x1=0.1:10,x2=-5:5", "--points", "30", "--methods", "reverse,finite-central")
SEED = "ln(x1)+x1*x2-sin(x2)"


def test_the_table_says_shares_errors_and_worst_points(difflab):
    result = difflab("compare", SEED, *OVER)
    assert result.code == 0
    assert "over     x1 = 0.1 … 10, x2 = -5 … 5" in result.out
    assert "30 points, and a search of" in result.out
    assert "proved at 100 %" in result.out
    assert "reverse: worst (" in result.out
    assert "No method is wrong" in result.out
    assert all(len(line) <= 80 for line in result.out.splitlines())


def test_a_wrong_method_is_exit_code_one(difflab):
    result = difflab(
        *("compare", "x - sin(x)", "--over", "x=1e-6:1", "--scale", "x=log", "--points", "24"),
        *("--methods", "reverse"),
    )
    assert result.code == 1
    assert "reverse is wrong in a part of this domain" in result.out
    assert "the digits are lost in" in result.out


def test_every_format(difflab, reference, tmp_path):
    record = json.loads(difflab("compare", SEED, *OVER, "--format", "json").out)
    jsonschema.validate(record, reference("domain-3.schema"))
    rows = list(csv.DictReader(io.StringIO(difflab("compare", SEED, *OVER, "--format", "csv").out)))
    assert len(rows) == 60
    assert {row["method"] for row in rows} == {"reverse", "finite-central"}
    assert all(0.1 <= float(row["x1"]) <= 10 and row["verdict"] == "agree" for row in rows)
    assert "### Over a domain" in difflab("compare", SEED, *OVER, "--format", "md").out
    result = difflab("compare", SEED, *OVER, "-o", "page.html", "--plot", "map.svg")
    assert result.code == 0
    assert "<svg" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert (tmp_path / "map.svg").read_bytes().startswith(b"<?xml")
    assert not list(tmp_path.glob("*.partial"))


def test_an_interrupted_command_goes_on(difflab, tmp_path, monkeypatch):
    from difflab.lab.domain import compare

    monkeypatch.setattr(compare, "BLOCK", 10)
    monkeypatch.setattr(compare.Search, "scan", _interrupted)
    result = difflab("compare", SEED, *OVER, "-o", "out.json")
    assert result.code != 0
    assert not (tmp_path / "out.json").exists()
    assert (tmp_path / "out.json.partial").exists()
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compare, "BLOCK", 10)
    again = difflab("compare", SEED, *OVER, "-o", "out.json")
    assert again.code == 0
    assert "going on from out.json.partial: 3 blocks are finished" in again.err
    assert (tmp_path / "out.json").exists()
    assert not (tmp_path / "out.json.partial").exists()


def _interrupted(*_):
    raise KeyboardInterrupt


def test_python_functions_and_arrays(difflab, tmp_path):
    (tmp_path / "model.py").write_text("def loss(w, x):\n    return (w * x).sum()\n")
    result = difflab(
        *("compare", "model:loss", "--at", "w=[0.5,1],x=2", "--over", "x=1:3", "--points", "8"),
        *("--methods", "reverse"),
    )
    assert result.code == 0, result.err
    assert "w = [0.5, 1]" in result.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--over", "x1=0.1:10"), "'x2' has neither an interval nor a value"),
        (("--over", "x1=0.1"), "an interval is written as name=low:high"),
        (("--over", "x1=1:2,x1=2:3"), "'x1' is given twice"),
        (("--over", "x1=a:2,x2=0:1"), "'a' is not a number"),
        (("--over", "x1=2:1,x2=0:1"), "not below the upper end"),
        (("--over", "x1=1:2,x2=0:1", "--scale", "x2=log"), "contains 0"),
        (("--over", "x1=1:2,x2=0:1", "--scale", "x2"), "a scale is written as name=log"),
        (("--over", "x1=1:2,x2=0:1", "--stabilise"), "--stabilise is for one point"),
        (("--points", "10"), "--points and --scale are for a domain"),
        (("--over", "x1=1:2,x2=0:1", "-o", "out.xyz"), "cannot tell the format"),
    ],
)
def test_bad_arguments(difflab, arguments, message, tmp_path):
    result = difflab("compare", SEED, *arguments)
    assert result.code == 2
    assert message in " ".join(result.err.split())
    assert not list(tmp_path.iterdir())


def test_without_pyarrow_the_command_that_adds_it_is_named(difflab, monkeypatch):
    from difflab.core import optional

    found = optional.installed
    monkeypatch.setattr(optional, "installed", lambda name: name != "pyarrow" and found(name))
    result = difflab("compare", SEED, *OVER, "-o", "points.parquet")
    assert result.code == 2
    assert "pip install 'difflab[parquet]'" in " ".join(result.err.split())
