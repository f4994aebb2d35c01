"""``python -m benchmarks``: its subcommands, and the commands that they were before."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.commands import BENCHMARKS, app
from difflab.bench.registry import MOVED, load

ROOT = Path(__file__).parents[2]


def test_the_subcommands_are_the_rows() -> None:
    commands = {command.name: command.help for command in app.registered_commands}
    for name, summary in BENCHMARKS.items():
        assert commands[name] == summary
        module = load(name, "benchmarks")
        assert set(module.LAYOUT.key) < set(module.LAYOUT.columns)
        assert callable(module.tasks)
        assert callable(module.draw)


@pytest.mark.parametrize("name", MOVED)
def test_the_command_that_it_was_says_where_it_is(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "difflab", "bench", name, "--quick", "--reports", "new"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"'difflab bench {name}' is 'python -m benchmarks {name}' now" in done.stderr


def test_the_tool_that_it_was_says_where_it_is() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "difflab.gradbench"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "'python -m benchmarks gradbench-tool' now" in done.stderr


def test_what_moved_is_there() -> None:
    assert (
        {*MOVED, "ivp", "points", "sparsity"}  # the three have always been here
        == {*BENCHMARKS, "gpu"}
        <= {command.name or command.callback.__name__ for command in app.registered_commands}
    )


def test_adbench_of_one_problem(benchmarks, tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.adbench.bench.ROUNDS", 1)
    monkeypatch.setenv("COLUMNS", "110")
    data = ROOT / "tests" / "data" / "adbench"
    result = benchmarks(
        *("adbench", "--data", str(data), "--problems", "hand", "--peers", "", "--reports", "new")
    )
    assert result.code == 0
    said = [line.removeprefix("wrote ") for line in result.err.splitlines()]
    assert said[-3:] == ["new/adbench.svg", "new/adbench.json", "new/adbench.csv"]
    assert "hand_complicated_small/hand1_t26_c100  difflab" in result.out
    rows = json.loads((tmp_path / "new/adbench.json").read_text())["rows"]
    assert {row["tool"] for row in rows} == {"difflab"}
    with (tmp_path / "new/adbench.csv").open(newline="") as file:
        assert len(rows) == len(list(csv.DictReader(file))) == 4


def test_adbench_without_its_data(benchmarks):
    result = benchmarks("adbench", "--data", "nowhere")
    assert (result.code, "nowhere holds no instance" in result.err) == (2, True)


def test_adbench_of_a_name_that_is_empty(benchmarks):
    result = benchmarks("adbench", "--data", "nowhere", "--problems", "hand,,ba")
    assert (result.code, "an empty name in the list" in result.err) == (2, True)
