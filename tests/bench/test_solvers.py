"""The bench of solvers: truths against formulas, what each way returns, table and picture."""

from __future__ import annotations

import math
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pytest

from difflab.bench.solvers.bench import LAYOUT, draw, tasks, ways
from difflab.bench.solvers.problem import JUDGES, SolverProblem, SolverTruth, problems
from difflab.errors import UnsupportedError
from difflab.lab.sweep import SweepRow, run
from tests.bench.picture_checks import check_picture

BY_NAME = {problem.name: problem for problem in problems()}


def truth(name: str) -> SolverTruth:
    problem = BY_NAME[name]
    found: SolverTruth = resolve_name(JUDGES[problem.kind])(problem)
    return found


def of_way(name: str, problem: str, tolerance: float = 1e-10) -> np.ndarray:
    way = next(way for way in ways() if way.name == name)
    return np.asarray(way.differentiate(BY_NAME[problem], tolerance).jacobian)


def test_the_problems_are_many_and_say_what_is_difficult() -> None:
    kinds = [problem.kind for problem in problems()]
    assert len(kinds) >= 25
    assert {"root", "fixed-point", "linear", "minimum", "integral"} <= set(kinds)
    assert all(problem.about and problem.title for problem in problems())


KNOWN = {
    "root-square": [[0.5 / math.sqrt(2)]],
    "root-nearly-double-12": [[0.5 / math.sqrt(1e-12)]],
    "root-atan": [[1 + math.tan(0.1) ** 2]],
    "root-ten-thirds": [[1e-9 ** (-2 / 3) / 3]],
    "minimum-rosenbrock": [[1, 0], [2, 0]],
    "minimum-active": [[1, 0], [-0.5, 1]],
    "integral-kink": [[2 * math.exp(0.3) - 1 - math.e]],
    "integral-jump": [[1.3]],
}


@pytest.mark.parametrize("name", KNOWN)
def test_truths_are_those_of_formulas(name: str) -> None:
    found = truth(name)
    np.testing.assert_allclose(found.jacobian, KNOWN[name], rtol=4e-15, atol=1e-18)
    assert found.bound < 1e-15


@pytest.mark.parametrize("name", ["root-square", "fixed-cos", "minimum-well", "integral-gauss"])
def test_implicit_derivatives_are_right_to_rounding(name: str) -> None:
    np.testing.assert_allclose(of_way("implicit", name), truth(name).jacobian, rtol=1e-12)


def test_where_each_way_is_wrong() -> None:
    known = truth("integral-jump").jacobian
    assert of_way("implicit", "integral-jump") == pytest.approx(0.0)  # it misses the jump
    assert of_way("scipy differences", "integral-jump")[0, 0] != pytest.approx(
        known[0, 0], rel=1e-3
    )
    exact = truth("root-ten-thirds").jacobian[0, 0]
    assert of_way("scipy differences", "root-ten-thirds")[0, 0] < exact / 10  # a step beyond 0


def test_rows_of_what_is_missing_or_refused(tmp_path: Path) -> None:
    rows = _rows(tmp_path)
    assert {row["status"] for row in rows} <= {"ok", "unsupported", "failed"}
    own = [row for row in rows if row["way"] in ("implicit", "unrolled")]
    assert all(row["status"] == "ok" and float(row["relative_error"] or 0) < 1e-9 for row in own)
    assert all("proved" in str(row["truth"]) for row in own)
    advect = [row for row in rows if row["way"] == "advect implicit_root"]
    assert advect
    check_picture(draw, rows)


def _rows(folder: Path) -> list[SweepRow]:
    chosen: list[SolverProblem] = [BY_NAME["root-square"], BY_NAME["fixed-cos"]]
    own = ("implicit", "unrolled", "scipy differences", "casadi rootfinder", "advect implicit_root")
    listed = [task for task in tasks(chosen, (1e-4, 1e-8)) if task.key["way"] in own]
    return run(folder / "solvers.csv", LAYOUT, listed)


def test_a_problem_without_a_form_in_complex_balls_is_unsupported(tmp_path: Path) -> None:
    file = tmp_path / "erf.txt"
    file.write_text(
        "# name: n\n# kind: integral\n# about: a\n# start: x = 0\n# at: p = 1\n"
        "# between: 0, 1\nerf(p*x)\n"
    )
    from difflab.lab.problems.file import read_header

    problem = SolverProblem("erf", file, read_header(file))
    with pytest.raises(UnsupportedError, match="no form of 'erf'"):
        resolve_name(JUDGES["integral"])(problem)
