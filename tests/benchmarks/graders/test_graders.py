"""The bench of gradient checkers: verdicts known from algebra, rows, table and picture."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.graders import bench as module
from benchmarks.graders.corpus import GradientCase
from benchmarks.graders.drawing import draw, shares, text
from benchmarks.graders.faults import FAULTS
from benchmarks.graders.graders import GRADERS, Grader, Judgement
from difflab.core.optional import installed
from difflab.errors import InputError, MissingDependencyError
from difflab.lab.sweep import SweepRow, run
from tests.bench.picture_checks import check_picture, texts


def cubes(factor: float, dtype: str = "float64") -> GradientCase:
    """The sum of x³, whose gradient is 3 x², times a factor."""

    def value(xp: Any, x: Any) -> Any:
        return xp.sum(x**3)

    def gradient(xp: Any, x: Any) -> Any:
        return factor * 3 * x**2

    x = np.array([0.5, -1.0, 1.5], dtype=dtype)
    return GradientCase(1, "cubes", "smooth", "", dtype, x, value, gradient)


@pytest.mark.parametrize("name", GRADERS)
def test_a_checker_accepts_the_right_gradient_and_finds_a_factor_of_two(name: str) -> None:
    grader = GRADERS[name]
    if not installed(grader.package):
        pytest.skip(f"{grader.package} is not installed")
    right, wrong = grader(cubes(1.0)), grader(cubes(2.0))
    assert right.accepted
    assert not wrong.accepted
    assert right.evaluations >= 2  # of the values, at the least at both ends of a step


def test_a_checker_whose_package_is_missing_gives_the_command() -> None:
    with pytest.raises(MissingDependencyError, match=r"pip install 'difflab\[graders\]'"):
        Grader("x", "no_such_package", lambda case, found: None).load()


# Twelve classes and the right gradients, of which checkers of the test know the answers.


def by_fault(case: GradientCase, found: Judgement) -> None:
    """A checker that finds every fault but signs, and fails in float16."""
    if case.dtype == "float16":
        raise TypeError("no float16")
    found.accepted, found.evaluations = case.fault in ("", "sign"), 7


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[SweepRow]:
    graders = {
        "known": Grader("known", "numpy", by_fault),
        "absent": Grader("absent", "no_such_package", by_fault),
    }
    monkeypatch.setattr(module, "GRADERS", graders)
    return run(tmp_path / "graders.csv", module.LAYOUT, module.tasks(every=5))


def test_rows_count_verdicts(rows: list[SweepRow]) -> None:
    assert len(rows) == 2 * (len(FAULTS) + 1) * 3
    own = [row for row in rows if row["grader"] == "known"]
    assert shares(own, fault="sign", dtype=None).rejected == 0
    assert shares(own, fault="transposed", dtype="float64").value == 1.0
    assert shares(own, fault="", dtype=None).rejected == 0
    assert shares(own, fault=None, dtype="float16").cases == 0
    assert sum(int(row["cases"] or 0) for row in own) == 440  # 2200 / 5
    signs = next(row for row in own if row["fault"] == "sign" and row["dtype"] == "float64")
    numbers = [int(word) for word in str(signs["misjudged"]).split()]
    assert len(numbers) == signs["cases"]
    assert all(module.case(number).fault == "sign" for number in numbers)
    half = next(row for row in own if row["fault"] == "sign" and row["dtype"] == "float16")
    assert (half["failed"], half["accepted"]) == (half["cases"], 0)
    assert "no float16" in str(half["message"])
    absent = [row for row in rows if row["grader"] == "absent"]
    assert {row["status"] for row in absent} == {"unsupported"}


def test_the_table_and_the_picture_show_the_shares(rows: list[SweepRow]) -> None:
    shown = text(rows, plain=True, width=200)
    line = next(line for line in shown.splitlines() if "known" in line)
    own = [row for row in rows if row["grader"] == "known"]
    found = shares(own, fault=None, dtype="float64")
    assert 0.85 < found.value < 0.97  # eleven of twelve classes
    assert f"{found.value:.1%}"[:2] in line
    assert "pip install 'difflab[graders]'" in shown
    check_picture(draw, rows)
    words = texts(draw(rows))
    assert "one component" in words
    assert "100 %" in words
    assert "alarms, float32" in words


@pytest.mark.parametrize("stride", [2, 3, 12])
def test_a_slice_without_every_class_is_refused(stride: int) -> None:
    with pytest.raises(InputError, match="would leave out classes of faults"):
        module.tasks(every=stride)


def test_a_failure_is_no_verdict() -> None:
    with pytest.raises(TypeError):
        Grader("known", "numpy", by_fault)(replace(cubes(1.0), dtype="float16"))


def test_a_checker_that_draws_at_random_repeats_itself() -> None:
    def judge(seen: list[float], case: GradientCase, found: Judgement) -> None:
        seen.append(float(np.random.random()))  # noqa: NPY002 - as autograd's checker does

    seen: list[float] = []
    grader = Grader("random", "numpy", partial(judge, seen))
    grader(cubes(1.0))
    grader(cubes(1.0))
    assert seen[0] == seen[1]
