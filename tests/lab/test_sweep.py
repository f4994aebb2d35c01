"""Rows are kept as they are measured, and never measured twice."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from difflab.errors import InputError
from difflab.lab.sweep import Cell, Layout, Task, load, run

LAYOUT = Layout({"name": str, "n": int, "limit": float, "value": float}, key=("name", "n", "limit"))


class Counting:
    """Measures the square root of n and counts how often it was asked."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.calls: list[int] = []
        self.stop_at = stop_at

    def task(self, n: int, name: str = "root", limit: float = 10.0) -> Task:
        return Task({"name": name, "n": n, "limit": limit}, self.measure(n))

    def measure(self, n: int) -> Callable[[], Mapping[str, Cell]]:
        def call() -> Mapping[str, Cell]:
            if n == self.stop_at:
                raise KeyboardInterrupt
            self.calls.append(n)
            return {"value": n**0.5}

        return call


def test_rows_come_back_in_the_tasks_order_and_are_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "roots.csv"
    meter = Counting()
    rows = run(path, LAYOUT, [meter.task(9), meter.task(4)])
    assert [(row["n"], row["value"]) for row in rows] == [(9, 3.0), (4, 2.0)]
    assert path.read_text() == "name,n,limit,value\nroot,9,10.0,3.0\nroot,4,10.0,2.0\n"


def test_an_interrupted_sweep_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "roots.csv"
    first = Counting(stop_at=3)
    with pytest.raises(KeyboardInterrupt):
        run(path, LAYOUT, [first.task(n) for n in range(5)])
    assert [row["n"] for row in load(path, LAYOUT)] == [0, 1, 2]
    second = Counting()
    rows = run(path, LAYOUT, [second.task(n) for n in range(5)])
    assert second.calls == [3, 4]
    assert [row["value"] for row in rows] == [n**0.5 for n in range(5)]


def test_other_settings_are_measured_anew_and_both_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "roots.csv"
    meter = Counting()
    run(path, LAYOUT, [meter.task(2, limit=10.0)])
    rows = run(path, LAYOUT, [meter.task(2, limit=20.0)])
    assert meter.calls == [2, 2]
    assert [row["limit"] for row in rows] == [20.0]
    assert [row["limit"] for row in load(path, LAYOUT)] == [10.0, 20.0]


def test_a_line_cut_short_is_dropped_and_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "roots.csv"
    run(path, LAYOUT, [Counting().task(4), Counting().task(9)])
    path.write_text(path.read_text()[:-4])
    meter = Counting()
    rows = run(path, LAYOUT, [meter.task(4), meter.task(9)])
    assert meter.calls == [9]
    assert [row["value"] for row in rows] == [2.0, 3.0]
    assert path.read_text().count("root,9") == 1


@pytest.mark.parametrize(
    "text", ["=cmd()", "-x1 + 2", "+1", "@x", "a\nb", "\x1b[31mred", "x,y", '"']
)
def test_text_stays_text_in_a_spreadsheet_and_is_found_again(tmp_path: Path, text: str) -> None:
    path = tmp_path / "roots.csv"
    meter = Counting()
    for _ in range(2):
        rows = run(path, LAYOUT, [meter.task(1, name=text)])
    assert meter.calls == [1]
    assert rows[0]["name"] == text
    body = path.read_text().split("\n", 1)[1]
    assert body.count("\n") == 1
    assert "\x1b" not in body
    assert body[0] not in "=+-@"


def test_empty_and_non_finite_cells_survive(tmp_path: Path) -> None:
    path = tmp_path / "roots.csv"
    values: list[Cell] = [None, float("inf"), 1e-300, 0.1]
    tasks = [
        Task({"name": "v", "n": n, "limit": 1.0}, lambda value=value: {"value": value})
        for n, value in enumerate(values)
    ]
    assert [row["value"] for row in run(path, LAYOUT, tasks)] == values
    assert [row["value"] for row in load(path, LAYOUT)] == values


@pytest.mark.parametrize(
    "content",
    ["other,columns\n1,2\n", "name,n,limit,value\nroot,2\n", "name,n,limit,value\na,b,c,d\n"],
)
def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "roots.csv"
    path.write_text(content)
    with pytest.raises(InputError, match="not a table with the columns name, n, limit, value"):
        run(path, LAYOUT, [Counting().task(1)])
    assert path.read_text() == content


def test_a_place_that_cannot_be_written_is_the_inputs_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        run(tmp_path / "file" / "roots.csv", LAYOUT, [Counting().task(1)])


def test_progress_is_told_only_of_rows_that_are_measured(tmp_path: Path) -> None:
    path = tmp_path / "roots.csv"
    run(path, LAYOUT, [Counting().task(1)])
    seen: list[tuple[int, int, str]] = []
    run(
        path,
        LAYOUT,
        [Counting().task(n) for n in (1, 2)],
        lambda done, total, label: seen.append((done, total, label)),
    )
    assert seen == [(1, 2, "name=root n=2 limit=10.0"), (2, 2, "")]
