"""The benchmark of sparse Jacobians: truth, bounds, and packages that miss or add entries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.sparsity import bench, tools
from benchmarks.sparsity.bench import LAYOUT, SIZES, draw, measured, tasks
from benchmarks.sparsity.problems import PROBLEMS, jacobian, true_pattern, values
from benchmarks.sparsity.tools import TOOLS
from difflab.errors import DifflabError
from difflab.lab.sweep import run
from tests.bench.picture_checks import check_picture, texts

N = 16
BOUNDS = {"band": 3, "arrow": 3, "grid": 5, "blocks": 1, "cancelling": 1}


def test_the_truth_is_that_of_differences() -> None:
    x = np.random.default_rng(1).uniform(0.5, 1.5, 36)
    for name in PROBLEMS:
        found = jacobian(name, x)
        steps = 1e-6 * np.eye(len(x))
        rows = [(values(name, x + step) - values(name, x - step)) / 2e-6 for step in steps]
        np.testing.assert_allclose(found, np.transpose(rows), atol=1e-8, err_msg=name)
        assert np.array_equal(found != 0, true_pattern(name, len(x))), name


def test_there_is_a_task_for_every_problem_size_and_package() -> None:
    found = [(task.key["problem"], task.key["inputs"], task.key["tool"]) for task in tasks()]
    assert len(found) == len(set(found)) == len(PROBLEMS) * len(SIZES) * len(TOOLS)
    assert {size for _, size, _ in found} == set(SIZES)
    assert {task.key["inputs"] for task in tasks(quick=True)} == {SIZES[0]}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_package_finds_the_pattern(problem: str, tool: str) -> None:
    if tool != "difflab":
        pytest.importorskip(tool, exc_type=ImportError)
    n = 64 if problem == "grid" else N
    row = measured(tool, problem, n, 0.01)
    assert (row["status"], row["missing"], row["bound"]) == ("ok", 0, BOUNDS[problem])
    # The terms that cancel are n - 1 entries; only CasADi sees that they do.
    assert row["added"] == (n - 1 if problem == "cancelling" and tool != "casadi" else 0)
    if tool == "sparsediffpy":
        assert row["forward"] is None
    else:
        sweeps = int(row["forward"] or 0) + int(row["reverse"] or 0)
        assert BOUNDS[problem] <= sweeps <= 2 * BOUNDS[problem]


def test_a_wrong_jacobian_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(name: str, x: Any) -> tools.Found:
        found = TOOLS["difflab"](name, x)
        return replace(found, entries=lambda result: 1.001 * found.entries(result))

    monkeypatch.setattr(bench, "TOOLS", {"wrong": wrong})
    with pytest.raises(DifflabError, match="an entry of the Jacobian of wrong is wrong by"):
        measured("wrong", "band", N, 0.01)


def test_a_pattern_that_lacks_an_entry_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(name: str, x: Any) -> tools.Found:
        found = TOOLS["difflab"](name, x)
        pattern = found.pattern.toarray()
        pattern[0, 0] = False
        return replace(found, pattern=type(found.pattern)(pattern))

    monkeypatch.setattr(bench, "TOOLS", {"lacking": lacking})
    row = measured("lacking", "band", N, 0.01)
    assert (row["missing"], row["added"]) == (1, 0)


def test_rows_come_from_processes_and_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "PROBLEMS", ("band", "cancelling"))
    monkeypatch.setattr(bench, "TOOLS", {"difflab": None, "no_such_package": None})
    rows = run(tmp_path / "sparsity.csv", LAYOUT, tasks(quick=True, timeout=0.1))
    assert [row["status"] for row in rows] == ["ok", "unsupported"] * 2
    assert [row["ratio"] for row in rows] == [1.0, None, 2.0, None]
    assert "no_such_package is not installed" in str(rows[1]["message"])
    check_picture(draw, rows)
    assert "cancelling, 64" in texts(draw(rows))
