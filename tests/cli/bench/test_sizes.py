"""``difflab bench dimensions``: families on the command line."""

from __future__ import annotations

import csv
import re

import pytest

from difflab.cli.bench.sizes import doubled, integers
from difflab.errors import InputError

FEW = ("--methods", "forward,reverse", "--timeout", "60", "--reports", "new")


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_formula_with_sizes(difflab, tmp_path):
    arguments = ("bench", "dimensions", "x: [n]; W: [m, n]; W@x", "--n", "1:3", "--m", "2", *FEW)
    result = difflab(*arguments)
    assert result.code == 0, result.err
    files = [line[6:] for line in result.err.splitlines() if line.startswith("wrote ")]
    assert files == [f"new/dimensions.{end}" for end in ("svg", "html", "csv")]
    rows = rows_of(tmp_path / "new/dimensions.csv")
    assert [(row["n"], row["m"], row["method"]) for row in rows] == [
        (n, "2", method) for n in "123" for method in ("forward", "reverse")
    ]
    assert [row["inputs"] for row in rows[::2]] == ["3", "6", "9"]
    assert {row["status"] for row in rows} == {"ok"}
    before = (tmp_path / "new/dimensions.csv").read_text()
    assert difflab(*arguments).code == 0
    assert (tmp_path / "new/dimensions.csv").read_text() == before


def test_python_code_of_sizes(difflab, tmp_path):
    (tmp_path / "made.py").write_text(
        "import numpy as np\n"
        "def family(n):\n"
        "    return lambda x: np.sum(np.sin(x) ** 2), np.linspace(0, 1, n)\n"
        "def broken(n):\n"
        "    return 1 / (n - 1)\n"
    )
    result = difflab("bench", "dimensions", "made:family", "--n", "2,4", *FEW)
    assert result.code == 0, result.err
    rows = rows_of(tmp_path / "new/dimensions.csv")
    assert {row["inputs"] for row in rows} == {"2", "4"}
    assert all(re.fullmatch(r"made:family \(SHA-256 \w{12}\)", row["family"]) for row in rows)
    result = difflab("bench", "dimensions", "made:broken", "--n", "1", *FEW)
    assert result.code == 2
    assert "made:broken raised ZeroDivisionError" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x*y"], "has no size"),
        (["n = 2; x*n"], "n is a size of the family"),
        (["x: [n]; sum(x)", "--m", "1:2"], "the family has no size m"),
        (["x: [n]; sum(x)", "--n", "0:4"], "'0' in '0:4' is not a size"),
        (["x: [n]; sum(x)", "--n", "4:1"], "ends before it begins"),
        (["x: [n]; sum(x)", "--n", "1e3"], "'1e3' in '1e3' is not a size"),
        (["x: [n]; sum(x"], "("),
        (["x: [n]; sum(x)", "--methods", "reverze"], "there is no method 'reverze'"),
        (["none:none"], "no module named 'none'"),
    ],
)
def test_bad_input_is_reported_and_leaves_nothing(difflab, tmp_path, arguments, message):
    result = difflab("bench", "dimensions", *arguments)
    assert result.code == 2
    assert message in result.err
    assert list(tmp_path.iterdir()) == []


def test_ranges():
    assert doubled("3:30") == [3, 6, 12, 24, 30]
    assert doubled("4:4") == [4]
    assert integers("7,2,2") == [2, 7]
    with pytest.raises(InputError, match="more than 1,000 sizes"):
        integers("1:5000")
