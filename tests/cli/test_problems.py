"""``difflab problems``, and the names of problems wherever a formula is taken."""

import csv
import io
import json

import pytest


def test_sets_are_listed_with_their_licences(difflab):
    result = difflab("problems")
    assert result.code == 0
    assert "public domain" in result.out
    assert "`difflab problems --set NAME`" in result.out
    assert all(len(line) <= 80 for line in result.out.splitlines())


def test_filters_and_formats(difflab):
    options = ("problems", "--set", "mgh,nist", "--kind", "least-squares", "--inputs", ":2")
    table = difflab(*options)
    assert "mgh/beale" in table.out
    assert "nist/misra1a" in table.out
    assert "mgh/wood" not in table.out
    listed = json.loads(difflab(*options, "--format", "json").out)
    rows = list(csv.DictReader(io.StringIO(difflab(*options, "--format", "csv").out)))
    assert [one["problem"] for one in listed] == [row["problem"] for row in rows]
    assert {row["inputs"] for row in rows} == {"2"}
    assert len(rows) == len(listed) > 10


def test_a_problem_is_shown(difflab):
    shown = difflab("problems", "mgh/beale")
    assert shown.out.startswith("# name: Beale\n# source: Moré")
    assert json.loads(difflab("problems", "mgh/beale", "--format", "json").out)["value"] == [
        "14.203125"
    ]


def test_files_are_exported_and_read_as_formulas(difflab, tmp_path):
    assert difflab("problems", "mgh/beale", "--export", "out").code == 0
    assert (tmp_path / "out" / "mgh" / "beale.txt").exists()
    exported = difflab("derive", "@out/mgh/beale.txt")
    assert exported.out == difflab("derive", "problem:mgh/beale").out
    difflab("problems", "--set", "mgh", "-o", "list.csv")
    assert (tmp_path / "list.csv").read_text().startswith("problem,name,kind,inputs")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("problems", "mgh/beal"), "did you mean mgh/beale"),
        (("problems", "--set", "mgg"), "there is no set of problems 'mgg'"),
        (("problems", "--kind", "odd"), "there is no kind of problem 'odd'"),
        (("problems", "--inputs", "two"), "'two' is not a range of sizes"),
        (("problems", "--inputs", "5000:"), "no problem is of these sets, kinds and sizes"),
        (("problems", "mgh/beale", "--set", "mgh"), "a name and filters exclude each other"),
        (("compare", "problem:mgh/beal"), "did you mean mgh/beale"),
    ],
)
def test_bad_input(difflab, arguments, said):
    result = difflab(*arguments)
    assert result.code == 2
    assert said in result.err
    assert not result.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("compare", "--no-timing", "--methods", "reverse,symbolic"), "x1 = -1.2, x2 = 1"),
        (("trace",), "24.2"),
        (("graph",), "input"),
        (("graph", "--values"), "24#46;2"),
        (("derive",), "20*(10*(x2 - x1^2))]"),
        (("explain",), "no nan"),
    ],
)
def test_a_name_stands_for_a_formula_at_its_start(difflab, arguments, said):
    command, *options = arguments
    result = difflab(command, "problem:mgh/rosenbrock", *options)
    assert result.code == 0, result.err
    assert said in result.out


def test_at_replaces_the_start(difflab):
    result = difflab("trace", "problem:mgh/rosenbrock", "--at", "x1=3,x2=9")
    assert "4" in result.out
    assert "24.2" not in result.out
