"""The bench of graphs: results are compared before they are timed, and checkpoints take less."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.graphs import bench
from benchmarks.graphs.bench import LAYOUT, draw, tasks
from benchmarks.graphs.programs import MEASURES, Ready
from difflab.lab.sweep import SweepRow, run
from tests.bench.picture_checks import check_picture, texts

MEMORY = ("memory, plain", "memory, checkpoints")


def test_there_is_a_task_for_every_measure_and_tool() -> None:
    found = [(task.key["measure"], task.key["tool"]) for task in tasks()]
    assert found[:4] == [("jit call", tool) for tool in ("difflab", "compiled", "jax", "torch")]
    assert found[-3:] == [("memory, checkpoints", tool) for tool in ("difflab", "jax", "torch")]
    assert len(found) == len(set(found)) == 19
    steps = {task.key["measure"]: task.key["steps"] for task in tasks()}
    fewer = {task.key["measure"]: task.key["steps"] for task in tasks(quick=True)}
    assert (steps["scan gradient"], fewer["scan gradient"]) == (8192, 1024)


@pytest.mark.parametrize("measure", MEASURES)
def test_every_tool_computes_what_plain_numpy_does(measure: str) -> None:
    found = {}
    for tool, prepare in MEASURES[measure].items():
        if tool in ("jax", "torch") and find_spec(tool) is None:
            continue
        with bench._precision(tool):
            ready = prepare(6)
            found[tool] = ready.result(ready.call())
    for tool, result in found.items():
        np.testing.assert_allclose(result, found["difflab"], rtol=1e-12, err_msg=tool)
    if measure == "scan":
        draw = np.random.default_rng(1)
        weights, h = draw.normal(size=(8, 8)) / 4, np.zeros(8)
        for x in draw.normal(size=(6, 8)):
            h = np.tanh(weights @ h + x)
        np.testing.assert_allclose(found["difflab"], [h.sum()], rtol=1e-13)


def test_another_result_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Ready(lambda: np.ones(1), lambda result: result)
    measures: dict[str, Any] = {"jit call": {**MEASURES["jit call"], "compiled": lambda _: wrong}}
    monkeypatch.setattr(bench, "MEASURES", measures)
    (task,) = [task for task in tasks(quick=True, timeout=0.1) if task.key["tool"] == "compiled"]
    row = task.measure()
    assert row["status"] == "failed"
    assert "compiled and difflab differ" in str(row["message"])
    assert "call_seconds" not in row


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="resets the peak by /proc")
def test_checkpoints_keep_fewer_states(tmp_path: Path) -> None:
    chosen = [
        task
        for task in tasks(timeout=5.0)
        if task.key["tool"] == "difflab" and task.key["measure"] in MEMORY
    ]
    rows = run(tmp_path / "graphs.csv", LAYOUT, chosen)
    held = {row["measure"]: float(row["peak_bytes"] or 0) / 2**20 for row in rows}
    assert 60 < held["memory, plain"] < 80  # states of 1 MiB: 64 steps
    assert 15 < held["memory, checkpoints"] < 26  # 8 segments of 8


def made(measure: str, tool: str, ratio: float, peak: int | None = None) -> SweepRow:
    row: SweepRow = dict.fromkeys(LAYOUT.columns)
    call = None if peak else 1e-5 * ratio
    figures = {"call_seconds": call, "peak_bytes": peak, "ratio": ratio, "status": "ok"}
    return {**row, "measure": measure, "tool": tool, "steps": 1, **figures}


def test_the_picture_shows_difflabs_figures() -> None:
    rows = [made("jit call", tool, k + 1.0) for k, tool in enumerate(("difflab", "jax", "torch"))]
    rows += [made("memory, plain", "difflab", 1.0, 2**20), made("memory, plain", "jax", 3.0, 3)]
    check_picture(draw, rows)
    written = texts(draw(rows, "svg"))
    assert "jit call: 10.0 µs" in written
    assert "memory, plain: 1.00 MiB" in written or "memory, plain: 1 MiB" in written
