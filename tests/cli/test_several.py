"""``compare --each-line``: a record for every formula of a file."""

from __future__ import annotations

import csv
import json

import pytest

QUICK = ("--methods", "reverse,symbolic", "--no-timing")
FORMULAS = "x^2*y  # first\n\n# e is the charge\n  e*x; \na = x*y; sin(a)\n"


@pytest.fixture(autouse=True)
def file(tmp_path):
    (tmp_path / "f.txt").write_text(FORMULAS, encoding="utf-8")


def test_json_has_one_record_each(difflab):
    options = ["--each-line", "--at", "x=2,y=3,e=5", *QUICK, "--format", "json"]
    done = difflab("compare", "@f.txt", *options)
    assert done.code == 0, done.err
    records = json.loads(done.out)
    assert [one["expression"]["text"] for one in records] == [
        *("x^2*y", "e: []; e*x;", "a = x*y; sin(a)")
    ]
    assert [one["methods"][0]["jacobian"] for one in records[:2]] == [[[12.0, 4.0]], [[2.0, 5.0]]]
    assert records[1]["point"] == {"e": 5.0, "x": 2.0}
    single = json.loads(
        difflab("compare", "x^2*y", "--at", "x=2,y=3", *QUICK, "--format", "json").out
    )
    assert single.keys() == records[0].keys()


def test_csv_has_one_header(difflab):
    done = difflab("compare", "@f.txt", "--each-line", *QUICK, "--format", "csv")
    rows = list(csv.DictReader(done.out.splitlines()))
    assert [row["expression"] for row in rows[::2]] == ["x^2*y", "e*x;", "a = x*y; sin(a)"]
    assert len(rows) == 6


def test_the_exit_code_is_the_worst(difflab, tmp_path):
    (tmp_path / "g.txt").write_text("x\n1/(1 + exp(-x))\nx^2\n", encoding="utf-8")
    options = ["--each-line", "--methods", "reverse", "--no-timing", "--format", "json"]
    done = difflab("compare", "@g.txt", *options, "--at", "x=-700")
    verdicts = [one["methods"][0]["verdict"] for one in json.loads(done.out)]
    assert verdicts == ["agree", "disagree", "agree"]
    assert done.code == 1


def test_the_files_are_whole_or_absent(difflab, tmp_path):
    done = difflab("compare", "@f.txt", "--each-line", *QUICK, "-o", "all.json")
    assert done.code == 0
    assert len(json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))) == 3
    (tmp_path / "bad.txt").write_text("x\n2x\n", encoding="utf-8")
    done = difflab("compare", "@bad.txt", "--each-line", *QUICK, "-o", "bad.json")
    assert done.code == 2
    assert "(line 2)" in done.err
    assert not (tmp_path / "bad.json").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["@f.txt", "--at", "x=2"], "no value is given for the input"),
        (["@f.txt", "--at", "x=2,y=3,e=1,z=4"], "'z'"),
        (["@f.txt", "--plot", "p.svg"], "--plot is for one formula"),
        (["@f.txt", "--over", "x=0:1"], "--over is for one formula"),
        (["@f.txt", "-o", "p.html"], "--format html is for one formula"),
        (["module:function"], "--each-line is for a text of formulas"),
        (["# nothing"], "there is no formula"),
    ],
)
def test_refusals(difflab, arguments, says):
    done = difflab("compare", *arguments, "--each-line")
    assert done.code == 2
    assert says in done.err
