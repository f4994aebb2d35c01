"""Forward mode pays for inputs and reverse mode for outputs, asserted in operations."""

from __future__ import annotations

from pathlib import Path

import pytest

from difflab.bench import cost
from difflab.bench.cost import FIXED, LAYOUT, crossing, curve, draw, tasks
from difflab.errors import MethodTimeout, UnsupportedError
from difflab.lab.sweep import SweepRow, run
from difflab.methods.protocol import Prepared, Problem
from difflab.methods.registry import installed
from tests.bench.picture_checks import check_picture, texts


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[SweepRow]:
    names = ("finite-central", "forward", "reverse")
    chosen = {name: method for name, method in installed().items() if name in names}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "installed", lambda: chosen)
        path = tmp_path_factory.mktemp("cost") / "cost.csv"
        return run(path, LAYOUT, tasks((1, 2, 4, 8, 16, 32), 1000.0))


def operations(rows: list[SweepRow], along: str, method: str) -> dict[float, float]:
    return curve(rows, along, method, "operations")


def test_everything_was_measured(rows: list[SweepRow]) -> None:
    assert {row["status"] for row in rows} == {"ok"}
    assert len(rows) == 2 * 6 * 3
    assert all(float(row["call_seconds"] or 0) > 0 for row in rows)


def test_forward_mode_pays_for_inputs(rows: list[SweepRow]) -> None:
    forward, reverse = (operations(rows, "inputs", mode) for mode in ("forward", "reverse"))
    assert forward[32] > 8 * forward[1]
    assert reverse[32] < 2 * reverse[1]


def test_reverse_mode_pays_for_outputs(rows: list[SweepRow]) -> None:
    forward, reverse = (operations(rows, "outputs", mode) for mode in ("forward", "reverse"))
    assert reverse[32] > 8 * reverse[1]
    assert forward[32] < 2 * forward[1]


@pytest.mark.parametrize("along", ["inputs", "outputs"])
def test_the_modes_cross_near_as_many_inputs_as_outputs(rows: list[SweepRow], along: str) -> None:
    size = crossing(operations(rows, along, "forward"), operations(rows, along, "reverse"))
    assert size is not None
    assert FIXED / 2 < size < FIXED * 2


def test_numeric_methods_pay_a_function_for_every_evaluation(rows: list[SweepRow]) -> None:
    for row in rows:
        if row["method"] == "finite-central":
            function, inputs = int(row["function_operations"] or 0), int(row["inputs"] or 0)
            assert int(row["operations"] or 0) % function == 0
            assert int(row["operations"] or 0) >= 2 * inputs * function


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({1: 1.0, 2: 2.0, 4: 4.0}, {1: 2.0, 2: 2.0, 4: 2.0}, 2.0),
        ({1: 1.0, 4: 16.0}, {1: 4.0, 4: 4.0}, 2.0),
        ({1: 1.0, 2: 1.0}, {1: 2.0, 2: 2.0}, None),
        ({1: 1.0, 2: 3.0}, {1: 2.0, 2: 3.0}, 2.0),
        ({}, {1: 2.0}, None),
    ],
)
def test_crossing(
    first: dict[float, float], second: dict[float, float], expected: float | None
) -> None:
    assert crossing(first, second) == (None if expected is None else pytest.approx(expected))


class Fails:
    """A method whose preparation raises a given exception."""

    family = "numeric"
    summary = ""
    orders = (1,)

    def __init__(self, name: str, error: Exception) -> None:
        self.name = name
        self.error = error
        self.attempts = 0

    def missing(self) -> str | None:
        return None

    def prepare(self, problem: Problem) -> Prepared:
        self.attempts += 1
        raise self.error


def test_failures_are_rows_and_a_timeout_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Fails("slow", MethodTimeout("stopped after 5 s"))
    unable = Fails("unable", UnsupportedError("cannot"))
    monkeypatch.setattr(cost, "installed", lambda: {"slow": slow, "unable": unable})
    rows = run(tmp_path / "cost.csv", LAYOUT, tasks((1, 2, 4), 5.0))
    assert {(row["method"], row["status"]) for row in rows} == {
        ("slow", "timeout"),
        ("unable", "unsupported"),
    }
    assert slow.attempts == 2  # once along each direction
    assert unable.attempts == 6
    assert not curve(rows, "inputs", "slow", "operations")


# --- the picture


def picture_rows() -> list[SweepRow]:
    rows: list[SweepRow] = []
    for size in (2, 8, 32):
        for n, m in ((size, FIXED), (FIXED, size)):
            for method, work in (("forward", n), ("reverse", m), ("plug-in", n + m)):
                row: SweepRow = {"inputs": n, "outputs": m, "method": method, "status": "ok"}
                rows.append({**row, "operations": 100 * work, "call_seconds": 1e-6 * work})
    refused: SweepRow = {"inputs": 2, "outputs": FIXED, "method": "symbolic"}
    refused["status"] = "unsupported"
    return [*rows, {**refused, "message": "too <large>", "operations": None, "call_seconds": None}]


def test_the_picture_of_cost_in_every_format() -> None:
    check_picture(draw, picture_rows())


def test_cost_marks_the_crossover_and_names_the_absent() -> None:
    shown = texts(draw(picture_rows(), "svg"))
    assert shown.count(f"n ≈ {FIXED}") == 2
    assert shown.count(f"m ≈ {FIXED}") == 2
    assert "plug-in" in shown
    assert "symbolic has no line" in shown
