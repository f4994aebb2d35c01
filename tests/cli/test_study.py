"""``study``: counts, runs, resumes and exports."""

import csv
import html
import io
import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from difflab.lab.study.cases import StudyStore

ROOT = Path(__file__).parents[2]
STUDY = """
[[grid]]
formulas = ["x^2*sin(x)", "exp(x)*x", "=x"]
seeds = [0, 1]
methods = ["forward", "reverse"]
timing = false
"""
LONG = """
[[grid]]
formulas = ["x^2*sin(x)"]
seeds = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
methods = ["forward", "richardson"]
orders = [1, 2]
timing = false
"""

# Beyond these records, one that takes an hour: no run ends before it is stopped.
ENDLESS = """
[[grid]]
formulas = ["x: [20000]; sum(sin(x)*x)*sum(cos(x))"]
methods = ["finite-forward"]
timeout = 3600
timing = false
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(STUDY.replace('"=x"', '"x + y"'), encoding="utf-8")
    return path


def test_a_dry_run_counts_and_writes_nothing(difflab, file, tmp_path):
    result = difflab("study", "a.toml", "--dry-run")
    assert (result.code, result.out) == (0, "6 cases, 12 records: 0 in a.db, 12 left\n")
    assert [path.name for path in tmp_path.iterdir()] == ["a.toml"]
    assert difflab("study", "a.toml").code == 0
    assert difflab("study", "a.toml", "--dry-run").out.endswith("12 in a.db, 0 left\n")


def test_exported_records_are_those_of_the_store(difflab, file, tmp_path):
    assert difflab("study", "a.toml", "-o", "s.db").code == 0
    assert difflab("study", "export", "s.db").code == 0
    lines = list(csv.DictReader(io.StringIO((tmp_path / "s.csv").read_text(encoding="utf-8"))))
    with StudyStore(tmp_path / "s.db") as store:
        records = store.records()
    assert [line["key"] for line in lines] == [record["key"] for record in records]
    assert [float(line["max_abs_error"]) for line in lines] == [
        record["max_abs_error"] for record in records
    ]
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    assert difflab("study", "export", "s.db", "-o", "s.parquet").code == 0
    table = parquet.read_table(tmp_path / "s.parquet").to_pylist()
    assert [row["max_abs_error"] for row in table] == [r["max_abs_error"] for r in records]
    assert [row["order"] for row in table] == [1] * 12


def test_without_pyarrow_parquet_says_what_to_install(difflab, file, monkeypatch, tmp_path):
    assert difflab("study", "a.toml").code == 0
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = difflab("study", "export", "a.db", "--format", "parquet")
    assert result.code == 2
    assert "pip install 'difflab[parquet]'" in result.err
    assert not (tmp_path / "a.parquet").exists()


def test_errors_are_bad_input_and_write_nothing(difflab, tmp_path):
    (tmp_path / "a.toml").write_text(STUDY, encoding="utf-8")
    result = difflab("study", "a.toml")
    assert result.code == 2
    assert "grid[0].formulas" in result.err
    assert "line 3" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["a.toml"]
    assert difflab("study", "b.toml").code == 2
    assert difflab("study", "export", "b.db").code == 2


def test_interrupted_and_killed_runs_resume_quietly(tmp_path):
    (tmp_path / "a.toml").write_text(LONG + ENDLESS, encoding="utf-8")
    command = [sys.executable, "-m", "difflab", "study", "a.toml"]
    moments = random.Random(3)
    counts = [0]
    for number in (signal.SIGINT, signal.SIGKILL):
        with subprocess.Popen(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
        ) as process:
            started = time.monotonic()
            while time.monotonic() < started + 600 and not _records(
                tmp_path, min(counts[-1] + 1, 60)
            ):
                time.sleep(0.05)
            time.sleep(moments.uniform(0, 0.1))
            os.killpg(process.pid, number)
            _, err = process.communicate(timeout=600)
        assert "Traceback" not in err
        if number is signal.SIGINT:
            assert process.returncode == 130
            assert "run the same command again to resume" in err
        counts.append(len(_records(tmp_path, 0)))
    assert 0 < counts[1] <= counts[2] <= 60
    (tmp_path / "a.toml").write_text(LONG, encoding="utf-8")
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
        text=True,
    )
    assert "a.db has 60 records" in done.stderr
    assert len(_records(tmp_path, 60)) == 60
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db", "a.toml"]


def _records(folder, least):
    """Return the records of the store, if there are that many."""
    if not (folder / "a.db").exists():
        return []
    try:
        with StudyStore(folder / "a.db") as store:
            found = store.records()
    except Exception:  # the file is being made
        return []
    return found if len(found) >= least else []


def test_python_code_and_domains_are_run_shown_and_repeated(difflab, tmp_path, monkeypatch):
    (tmp_path / "study_code.py").write_text(
        "def loss(w, x):\n    return (w * x - 1) ** 2\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "a.toml").write_text(
        '[[grid]]\nformulas = "study_code:loss"\nat = {x = 2, w = 3}\nmethods = "reverse"\n'
        'timing = false\n[[grid]]\nformulas = "sqrt(x)*y"\nover = {x = [0.5, 4]}\npoints = 16\n'
        'at = {y = 2}\nmethods = "finite-forward"\n',
        encoding="utf-8",
    )
    assert difflab("study", "a.toml", "--dry-run").out.startswith("2 cases, 2 records: 0 in")
    assert difflab("study", "a.toml").code == 0
    assert difflab("report", "a.db", "-o", "site").code == 0
    index = (tmp_path / "site/index.html").read_text(encoding="utf-8")
    assert "study_code:loss" in index
    assert "x=0.5:4, 16 points" in index
    pages = [path.read_text(encoding="utf-8") for path in (tmp_path / "site/records").iterdir()]
    (page,) = [page for page in pages if "Over x=0.5:4" in page]
    (command,) = re.findall(r"difflab (compare --at .*?)</pre>", page)
    words = shlex.split(html.unescape(command))
    repeated = difflab(words[0], "--format", "json", *words[1:])
    (row,) = json.loads(repeated.out)["methods"]
    with StudyStore(tmp_path / "a.db") as store:
        (record,) = [record for record in store.records() if record["over"]]
    assert row["worst"]["max_ulp_error"] == record["max_ulp_error"]
    assert difflab("diff", "a.db", "a.db").code == 0
