"""The bench of points: each package gives what the formula gives; the fastest calls are named."""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from benchmarks import beside
from benchmarks.points import bench
from benchmarks.points.bench import LAYOUT, draw, tasks
from benchmarks.points.programs import CASES, Case, arm, chain, seed
from benchmarks.points.tools import TOOLS, Ready
from difflab.lab.sweep import run
from difflab.methods.timer import LoopCall
from tests.bench.picture_checks import check_picture, texts

SMALL = {
    "seed": CASES["seed"],
    "chain": Case(chain, "value and gradient", 5),
    "hessian": Case(chain, "hessian", 4),
    "arm": CASES["Jacobian of an arm of 6 axes"],
    "batch": Case(seed, "value and gradient", 2, 40),
}


def derivative(case: Case, x: list[float]) -> list[float]:
    """Return the derivative at a point by differences in 60 digits."""
    with mpmath.workdps(60):
        found = []
        for k in range(len(case.code(math, x))):
            value = lambda *p, k=k: case.code(mpmath, p)[k]  # noqa: E731
            orders = [[int(i == j) for j in range(case.inputs)] for i in range(case.inputs)]
            if case.kind == "hessian":
                orders = [list(np.add(a, b)) for a in orders for b in orders]
            elif case.kind == "value and gradient":
                found.append(value(*map(mpmath.mpf, x)))
            found += [mpmath.diff(value, tuple(x), tuple(map(int, n))) for n in orders]
    return [float(one) for one in found]


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", SMALL)
def test_each_package_gives_the_derivative(name: str, tool: str) -> None:
    case = SMALL[name]
    if tool != "difflab":
        pytest.importorskip(tool)
    elif case.points > 1:
        pytest.importorskip("llvmlite")
    ready = TOOLS[tool](case)
    ready.call()
    found = ready.result().reshape(case.points, -1)
    points = case.x().reshape(case.points, -1)
    for row, x in list(zip(found, points, strict=True))[:2]:
        np.testing.assert_allclose(row, derivative(case, x.tolist()), rtol=1e-12, atol=1e-14)


def test_the_arm_is_a_pose() -> None:
    pose = np.reshape(arm(math, [0.3, -1.2, 0.7, 0.2, 1.1, -0.4]), (3, 4))
    np.testing.assert_allclose(pose[:, :3] @ pose[:, :3].T, np.eye(3), atol=1e-15)
    # Stretched out, as in the drawing of the UR5's data sheet.
    reach = np.reshape(arm(math, [0.0] * 6), (3, 4))[:, 3]
    np.testing.assert_allclose(reach, [-0.81725, -0.19145, -0.005491], atol=1e-12)


def test_there_is_a_task_for_every_derivative_and_package() -> None:
    found = [(task.key["measure"], task.key["tool"]) for task in tasks()]
    assert len(found) == len(set(found)) == len(CASES) * len(TOOLS)
    assert {"Hessian of the chain, n = 40", "Jacobian of an arm of 6 axes"} <= {m for m, _ in found}
    assert {1} == {task.key["points"] for task in tasks(quick=True)}


def test_another_result_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(case: Case) -> Ready:
        return Ready(LoopCall("f(x)", lambda: None), lambda: np.ones(3))

    monkeypatch.setitem(bench.TOOLS, "casadi", wrong)
    monkeypatch.setattr(beside, "absence", lambda name: None)
    (task,) = [
        task
        for task in tasks(quick=True, timeout=0.1)
        if (task.key["measure"], task.key["tool"]) == ("seed", "casadi")
    ]
    row = task.measure()
    assert (row["status"], "call_seconds" in row) == ("failed", False)
    assert "casadi and difflab differ" in str(row["message"])


def test_rows_and_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "CASES", {"seed": CASES["seed"]})
    rows: Any = run(tmp_path / "points.csv", LAYOUT, tasks(quick=True, timeout=0.05))
    own = {row["tool"]: row for row in rows}
    assert own["difflab"]["status"] == "ok"
    if find_spec("casadi"):
        assert own["casadi"]["call_form"] == "Function.buffer()"
    check_picture(draw, rows)
    assert "seed: " in texts(draw(rows))
