"""The bench of ADBench: answers before times, failures as rows, only what is asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.adbench import bench as adbench
from benchmarks.adbench import tools
from benchmarks.adbench.drawing import draw, text
from benchmarks.adbench.problems import AdbenchProblem
from benchmarks.adbench.tools import TOOLS, Ready, Tool
from difflab.errors import InputError
from difflab.lab.sweep import SweepRow, run
from tests.bench.picture_checks import check_picture

DATA = Path(__file__).parents[1] / "data" / "adbench"


def measured(tmp_path: Path, names: list[str], instances: list[str]) -> list[SweepRow]:
    return run(tmp_path / "a.csv", adbench.LAYOUT, adbench.tasks(DATA, instances, names))


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three tools beside difflab: one whose Jacobian is off, one that breaks, one not there."""

    def off(problem: AdbenchProblem) -> Ready:
        ready = TOOLS["difflab"].prepare(problem)
        return replace(ready, jacobian=lambda: 1.000001 * ready.jacobian()[0])

    def breaks(problem: AdbenchProblem) -> Ready:
        raise RuntimeError("out of\nluck")

    for tool in (Tool("math", off), Tool("cmath", breaks), Tool("no_such_package", breaks)):
        monkeypatch.setitem(tools.TOOLS, tool.name, tool)
    monkeypatch.setattr(adbench, "ROUNDS", 2)


@pytest.mark.usefixtures("others")
def test_a_wrong_answer_is_not_timed_and_a_failure_is_a_row(tmp_path: Path) -> None:
    names = ["difflab", "math", "cmath", "no_such_package"]
    own, off, broken, absent = measured(tmp_path, names, ["hand/test.txt"])
    assert (own["status"], own["against"]) == ("ok", "expected")
    ratio = float(own["jacobian_seconds"] or 0) / float(own["objective_seconds"] or 1)
    assert own["ratio"] == pytest.approx(ratio)
    assert (off["status"], off["ratio"], off["jacobian_seconds"]) == ("wrong", None, None)
    assert (broken["status"], broken["message"]) == ("failed", "out of")
    assert "pip install no_such_package" in str(absent["message"])
    shown = text([own, off, broken, absent], width=110)
    assert "fastest" in shown
    assert "out of" in shown
    check_picture(draw, [own, off, broken, absent])
    json.dumps(adbench.document([{**own, "difference": float("inf")}]), allow_nan=False)


@pytest.mark.usefixtures("others")
def test_without_a_published_answer_tools_are_held_to_each_other(tmp_path: Path) -> None:
    name = "hand_simple_small/hand1_t26_c100.txt"
    own, off = measured(tmp_path, ["difflab", "math"], [name])
    assert (own["against"], off["against"]) == ("math", "difflab")
    assert (own["status"], off["status"]) == ("wrong", "wrong")


def test_alone_and_unpublished_nothing_is_claimed(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(adbench, "ROUNDS", 1)
    (row,) = measured(tmp_path, ["difflab"], ["hand_simple_small/hand1_t26_c100.txt"])
    assert (row["status"], row["against"]) == ("ok", "nothing")


def test_instances_of_millions_are_measured_when_asked_for() -> None:
    usual = adbench.chosen(DATA, ["gmm", "ba"], large=False)
    every = adbench.chosen(DATA, ["gmm", "ba"], large=True)
    assert set(every) - set(usual) == {"gmm_2.5M_replicated/gmm_d2_K5.txt"}
    with pytest.raises(InputError, match="holds no instance of lstm"):
        adbench.chosen(DATA / "ba", ["lstm"], large=True)
    with pytest.raises(InputError, match="no tool 'jaxx'"):
        list(adbench.tasks(DATA, usual, ["difflab", "jaxx"]))
