"""A column of a comparison is one line: every form of a comparison shows it, and reads it."""

from __future__ import annotations

import csv as reader
import io
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import difflab
from difflab.lab import record
from difflab.lab.compare import compare
from difflab.lab.kinds import columns
from difflab.lab.record import MethodRow, from_dict
from difflab.lab.study.cases import StudyStore, to_columns, to_csv
from difflab.lab.study.run import plan, run
from difflab.lab.study.study import read
from difflab.report.comparison import formats
from difflab.report.site.site import site

PACKAGE = Path(difflab.__file__).parent
STUDY = """
name = "one"
[[grid]]
formulas = ["x^2"]
at = {x = 3}
methods = ["forward"]
timing = false
"""
LINES = '    planted: Annotated[float | None, kinds.SECONDS("a test", "planted", since=6)] = 0.25\n'
LINES += '    remarked: Annotated[str, kinds.TEXT("a text", "remarks", since=6)] = "seen"\n'
"""The declarations of two columns."""


@pytest.fixture(scope="module")
def compared() -> Any:
    return compare("x*sin(x)", {"x": 0.5}, methods=["forward", "richardson"], timing=False)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudyStore]:
    folder = tmp_path_factory.mktemp("columns")
    (folder / "s.toml").write_text(STUDY, encoding="utf-8")
    with StudyStore(folder / "s.db", new=True) as opened:
        run(opened, plan(read(folder / "s.toml")))
        yield opened


@pytest.mark.parametrize("column", columns(MethodRow), ids=lambda column: column.name)
def test_every_form_has_every_column(column: Any, compared: Any, store: StudyStore) -> None:
    written = compared.to_dict()["methods"][0]
    assert column.name in written
    back = from_dict(compared.to_dict()).methods[0].to_dict()
    assert back[column.name] == written[column.name]
    assert set(column.cells(column.title, None)) <= set(difflab.columns(compared))
    assert set(column.cells(column.title, None)) <= set(formats.COLUMNS)
    if column in record.STORED:
        records = store.records()
        assert column.name in to_columns(records)
        assert column.name in to_csv(records).decode().splitlines()[0].split(",")
    if column.heading:
        for report in (formats.view(compared).table(), formats.view(compared).markdown()):
            assert column.heading in report
        for page in (formats.view(compared).latex(), unescape(formats.view(compared).page())):
            assert column.heading in page
    if column.heading and column in record.STORED:
        index = site(store.records())[Path("index.html")].decode()
        assert f"<button>{column.heading}</button>" in index


def planted(folder: Path) -> None:
    """Make a copy of the package that has two more lines, the declarations of columns."""
    for source, copy in ((PACKAGE, folder / "difflab"), (PACKAGE / "lab", folder / "difflab/lab")):
        copy.mkdir()
        for path in source.iterdir():
            if path.name not in ("lab", "record.py", "__pycache__"):
                (copy / path.name).symlink_to(path)
    text = (PACKAGE / "lab" / "record.py").read_text("utf-8")
    assert text.count("    samples: tuple[float, ...] = ()\n") == 1
    found = text.replace("    samples: tuple", f"{LINES}    samples: tuple")
    (folder / "difflab" / "lab" / "record.py").write_text(found, encoding="utf-8")


SCRIPT = """
import json, sys
from pathlib import Path
import difflab as dl
from difflab.bench.problems import LAYOUT, tasks
from difflab.cli.app import run
from difflab.lab.problems.library import problem
from difflab.lab.record import SCHEMA, SCHEMAS
from difflab.lab.record import from_dict
from tests.docs.test_schemas import page
assert str(Path(dl.__file__).parents[1]) == sys.argv[1], dl.__file__
result = dl.compare("x^2", {"x": 3}, methods=["forward"], timing=False)
written = result.to_dict()
assert written["schema"] == SCHEMA == SCHEMAS[-1] == "difflab.comparison/6"
assert written["methods"][0].pop("planted") == 0.25
older = from_dict({**written, "schema": "difflab.comparison/5"})
assert older.methods[0].planted == 0.25  # the default
try:
    from_dict(written)
except dl.errors.InputError as error:
    assert "methods[0].planted is missing" in str(error)
else:
    raise AssertionError("the sixth version has the column")
written["methods"][0]["planted"] = 0.5
assert from_dict(written).methods[0].planted == 0.5
assert dl.columns(result)["planted"] == [0.25]
(task,) = tasks([problem("nist/misra1a")], ["forward"])
assert (LAYOUT.columns["planted"], task.measure()["remarked"]) == (float, "seen")
print(result.table())
for form in ("md", "latex", "html", "csv"):
    run(["compare", "x^2", "--at", "x=3", "--methods", "forward", "--no-timing",
         "--format", form, "-o", f"f.{form}"])
run(["study", "s.toml", "-o", "s.db"])
run(["study", "export", "s.db", "-o", "s.csv"])
run(["report", "s.db", "-o", "site"])
Path("page.md").write_text(page())
"""


def test_one_line_is_a_column_of_everything(tmp_path: Path) -> None:
    planted(tmp_path)
    (tmp_path / "s.toml").write_text(STUDY, encoding="utf-8")
    with StudyStore(tmp_path / "s.db", new=True) as older:  # it lacks the column
        run(older, plan(read(tmp_path / "s.toml")))
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT, str(tmp_path)],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:{PACKAGE.parent}", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = {path.name: path.read_text("utf-8") for path in tmp_path.glob("f.*")}
    shown["table"] = done.stdout
    for name in ("table", "f.md", "f.latex", "f.html"):
        assert "planted" in shown[name], name
        assert "250" in shown[name], name
        assert "remarks" in shown[name], name
        assert "seen" in shown[name], name
    for text in (shown["f.csv"], (tmp_path / "s.csv").read_text("utf-8")):
        (row, *_) = [*reader.DictReader(io.StringIO(text))][-1:]
        assert (row["planted"], row["remarked"]) == ("0.25", "seen")
    index = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert "<button>planted</button>" in index
    assert 'data-value="0.25"' in index
    assert "<td>seen</td>" in index
    assert re.search(
        r"\| `planted` \| `planted` \| 6 \| a test", (tmp_path / "page.md").read_text()
    )


def test_a_store_that_lacks_columns_gets_them(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    StudyStore(path, new=True).close()
    with closing(sqlite3.connect(path)) as other:
        other.execute('ALTER TABLE records DROP COLUMN "peak_bytes"')
        other.commit()
    with StudyStore(path) as store:
        assert store.records() == []
        names = {row["name"] for row in store._open.execute("PRAGMA table_info(records)")}
    assert {column.name for column in record.STORED} <= names
