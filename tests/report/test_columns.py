"""`dl.columns`: one table for pandas, Arrow and CSV, whatever was compared."""

from __future__ import annotations

import csv as reader
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import difflab as dl
from difflab.errors import InputError
from difflab.methods.protocol import Size
from difflab.report.comparison.formats import csv
from difflab.report.domain import formats

METHODS = ["richardson", "forward"]


@pytest.fixture(scope="module")
def compared() -> Any:
    return dl.compare("x*sin(x)", {"x": 0.5}, methods=METHODS, timing=False)


@pytest.fixture(scope="module")
def domain() -> Any:
    return dl.compare("sqrt(x) + y", {"y": 2}, over={"x": (0, 4)}, points=20, methods=METHODS)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from difflab.cli.app import run

    folder = tmp_path_factory.mktemp("study")
    (folder / "s.toml").write_text(
        'grid = [{formulas = ["sin(x)"], at = [{x = 1}], methods = ["forward", "reverse"], '
        "timing = false}]\n"
    )
    assert run(["study", str(folder / "s.toml"), "-o", str(folder / "s.db")]) == 0
    return folder / "s.db"


def test_a_comparison_has_a_row_per_method(compared: Any) -> None:
    table = dl.columns(compared)
    assert table["method"] == METHODS
    assert table["max_ulp_error"] == [row.max_ulp_error for row in compared.methods]
    assert table["call_seconds"] == [None, None]
    lines = [*reader.DictReader(io.StringIO(csv(compared)))]
    assert list(table) == list(lines[0])
    for name, column in table.items():
        texts = ["" if cell is None else str(cell) for cell in column]
        assert [line[name].removeprefix("'") for line in lines] == texts


def test_a_domain_has_a_row_for_each_point_and_method(domain: Any) -> None:
    table = dl.columns(domain)
    lines = [*reader.DictReader(io.StringIO(formats.csv(domain)))]
    assert len(lines) == 40
    assert list(map(float, (line["x"] for line in lines))) == table["x"]
    assert table["method"] == ["richardson"] * 20 + ["forward"] * 20
    assert table["x"][:20] == domain.points[:, 0].tolist()
    assert table["y"] == [2.0] * 40
    assert [line["verdict"] for line in lines] == table["verdict"]


def test_a_study_has_a_row_per_record(study: Path) -> None:
    for source in (study, str(study)):
        table = dl.columns(source)
        assert sorted(table["method"]) == ["forward", "reverse"]
        assert table["verdict"] == ["agree", "agree"]
        assert "comparison" not in table


def test_both_forms_of_a_stabilised_comparison_are_rows() -> None:
    both = dl.compare("1 - cos(x)", {"x": 1e-9}, methods=["forward"], timing=False, stabilise=True)
    table = dl.columns(both)
    assert table["method"] == ["forward", "forward"]
    assert table["expression"][0] == "1 - cos(x)"
    assert table["expression"][1] != "1 - cos(x)"


def test_pandas_and_arrow_take_all_three(compared: Any, domain: Any, study: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    for source, count in ((compared, 2), (domain, 40), (study, 2)):
        frame = pandas.DataFrame(dl.columns(source))
        table = pyarrow.table(dl.columns(source))
        assert len(frame) == table.num_rows == count
        assert frame.columns.tolist() == table.column_names
        errors = frame["ulp_error" if source is domain else "max_ulp_error"]
        assert errors.dtype == "float64"


def test_infinite_errors_and_huge_sizes_are_numbers(compared: Any) -> None:
    first, second = compared.methods
    first = replace(first, max_ulp_error=float("inf"), size=Size(tree=10**30, dag=2**63 - 1))
    second = replace(second, size=Size(tree=10**400))
    table = dl.columns(replace(compared, methods=(first, second)))
    assert table["max_ulp_error"][0] == float("inf")
    assert table["size_tree"] == [1e30, float("inf")]
    assert table["size_dag"] == [2**63 - 1, None]


def test_anything_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a table cannot be made of 'int'"):
        dl.columns(3)
    other = tmp_path / "other.db"
    other.write_text("no database, but long enough for its header to be read as one of SQLite" * 9)
    with pytest.raises(InputError, match=r"other\.db"):
        dl.columns(other)
