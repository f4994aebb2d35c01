"""Rows are kept as they are measured, and never measured twice."""

import csv
import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Thread

import pytest

from difflab.errors import InputError
from difflab.lab.alone import locked_file
from difflab.lab.sweep import Cell, SweepLayout, SweepRow, Task, load, run

LAYOUT = SweepLayout(
    {"name": str, "n": int, "limit": float, "value": float}, key=("name", "n", "limit")
)


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


# --- several processes and other people's files ------------------------------------------------

HOLDER = """
import sys, time
from pathlib import Path
from difflab.lab.sweep import SweepLayout, Task, run
KEY = ("name", "n", "limit")
LAYOUT = SweepLayout({"name": str, "n": int, "limit": float, "value": float}, KEY)
def forever():
    print("mine", flush=True)
    time.sleep(600)
tasks = [Task({"name": "root", "n": n, "limit": 10.0}, call)
         for n, call in ((4, lambda: {"value": 2.0}), (9, forever))]
run(Path(sys.argv[1]), LAYOUT, tasks)
"""
WRITER = """
import sys
from pathlib import Path
from difflab.lab.sweep import SweepLayout, Task, run
KEY = ("name", "n", "limit")
LAYOUT = SweepLayout({"name": str, "n": int, "limit": float, "value": float}, KEY)
tasks = [Task({"name": "root", "n": n, "limit": 1.0}, lambda n=n: {"value": n**0.5})
         for n in range(400)]
print("ready", flush=True)
sys.stdin.readline()
rows = run(Path(sys.argv[1]), LAYOUT, tasks)
print([row["value"] for row in rows] == [n**0.5 for n in range(400)])
"""


def started(code: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_sweeps_of_several_processes_write_every_row_once(tmp_path: Path) -> None:
    path = tmp_path / "roots.csv"
    processes = [started(WRITER, path) for _ in range(3)]
    assert [line_of(process) for process in processes] == ["ready"] * 3
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate()[0] for process in processes] == ["True\n"] * 3
    assert [row["n"] for row in load(path, LAYOUT)] == list(range(400))


def test_a_second_sweep_waits_and_finds_what_the_first_measured(tmp_path: Path) -> None:
    path = tmp_path / "roots.csv"
    meter, said = Counting(), []
    done: list[list[SweepRow]] = []
    waiting = Event()

    def second() -> None:
        done.append(run(path, LAYOUT, [meter.task(4), meter.task(9)], None, tell))

    def tell(line: str) -> None:
        said.append(line)
        waiting.set()

    with locked_file(tmp_path / "roots.csv.partial.lock"):
        thread = Thread(target=second)
        thread.start()
        assert waiting.wait(600)
        path.write_text("name,n,limit,value\nroot,4,10.0,2.0\n")
        assert not done
    thread.join(600)
    assert [row["value"] for row in done[0]] == [2.0, 3.0]
    assert meter.calls == [9]
    assert said == [f"another bench is writing {path}; waiting until it ends (Ctrl-C to stop)"]


def test_a_killed_process_leaves_the_file_to_others(tmp_path: Path) -> None:
    path = tmp_path / "roots.csv"
    holder = started(HOLDER, path)
    assert line_of(holder) == "mine"
    holder.kill()
    holder.communicate()
    meter = Counting()
    rows = run(path, LAYOUT, [meter.task(4), meter.task(9)])
    assert meter.calls == [9]
    assert [row["value"] for row in rows] == [2.0, 3.0]


def test_a_lock_removed_while_one_waits_is_taken_anew(tmp_path: Path) -> None:
    path, lock = tmp_path / "roots.csv", tmp_path / "roots.csv.partial.lock"
    waiting = Event()
    thread = Thread(
        target=lambda: run(path, LAYOUT, [Counting().task(4)], None, lambda _: waiting.set())
    )
    with locked_file(lock):
        thread.start()
        assert waiting.wait(600)
        lock.unlink()
    thread.join(600)
    assert [row["n"] for row in load(path, LAYOUT)] == [4]
    assert [file.name for file in tmp_path.iterdir()] == ["roots.csv"]


def test_without_a_table_the_rows_are_kept_until_the_run_ends(tmp_path: Path) -> None:
    resume = tmp_path / "roots.svg.partial"
    first = Counting(stop_at=3)
    with pytest.raises(KeyboardInterrupt):
        run(None, LAYOUT, [first.task(n) for n in range(5)], resume=resume)
    assert [file.name for file in tmp_path.iterdir()] == ["roots.svg.partial"]
    second, said = Counting(), list[str]()
    rows = run(None, LAYOUT, [second.task(n) for n in range(5)], resume=resume, notify=said.append)
    assert (second.calls, said) == ([3, 4], [])
    assert [row["value"] for row in rows] == [n**0.5 for n in range(5)]
    assert not list(tmp_path.iterdir())


def test_in_memory_every_run_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    meter = Counting()
    for _ in range(2):
        assert run(None, LAYOUT, [meter.task(4)])[0]["value"] == 2.0
    assert meter.calls == [4, 4]
    assert not list(tmp_path.iterdir())


def test_kept_rows_that_cannot_be_read_are_measured_again(tmp_path: Path) -> None:
    resume = tmp_path / "roots.csv.partial"
    resume.write_bytes(b"SQLite format 3\0" + bytes(100))
    said: list[str] = []
    (row,) = run(tmp_path / "roots.csv", LAYOUT, [Counting().task(4)], None, said.append)
    assert row["value"] == 2.0
    assert said == [f"{resume} cannot be continued: started again"]


def test_where_files_cannot_be_locked_a_sweep_goes_on_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unable(file: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("difflab.lab.alone.lock", unable)
    said: list[str] = []
    run(tmp_path / "roots.csv", LAYOUT, [Counting().task(4)], None, said.append)
    assert len(said) == 1
    assert "cannot be locked (No locks available): do not start another bench" in said[0]


def test_a_file_of_an_earlier_version_is_copied_aside(tmp_path: Path) -> None:
    path = tmp_path / "roots.csv"
    earlier = "name,n,limit,root\nroot,4,10.0,1.9\n"
    for number in (1, 2):
        path.write_text(earlier)
        meter, said = Counting(), []
        (row,) = run(path, LAYOUT, [meter.task(4)], None, said.append)
        assert (row["value"], meter.calls) == (2.0, [4])
        aside = tmp_path / f"roots-earlier-{number}.csv"
        assert aside.read_text() == earlier
        assert len(said) == 1
        assert f"copied to {aside} and started again" in said[0]
    assert len(load(path, LAYOUT)) == 1


def test_a_cell_of_any_length_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "roots.csv"
    limit = csv.field_size_limit()
    meter, name = Counting(), "x+" * 100_000 + "x"
    for _ in range(2):
        (row,) = run(path, LAYOUT, [meter.task(4, name=name)])
        assert row["name"] == name
    assert meter.calls == [4]
    assert csv.field_size_limit() == limit


def test_progress_does_not_print_a_long_formula() -> None:
    label = Counting().task(4, name="x+" * 100_000 + "x").label
    assert label == f"name={'x+' * 17}x… n=4 limit=10.0"


def test_the_source_of_a_row_is_no_part_of_what_people_read() -> None:
    assert Task({"n": 4}, dict, {"python": "3.14"}).label == "n=4"


def test_a_pipe_is_no_table(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "roots.csv")
    with pytest.raises(InputError, match="not a file"):
        run(tmp_path / "roots.csv", LAYOUT, [Counting().task(4)])


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Python does not notice that the compiled form of a module was cut at a limit.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def fills() -> Mapping[str, Cell]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        return {"value": 1.0}

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    tasks = [Counting().task(4), Task({"name": "x" * 5000, "n": 1, "limit": 1.0}, fills)]
    try:
        with pytest.raises(InputError, match=r"cannot (use|write)"):
            run(tmp_path / "roots.csv", LAYOUT, tasks)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    meter = Counting()
    assert run(tmp_path / "roots.csv", LAYOUT, [meter.task(4)])[0]["value"] == 2.0
    assert meter.calls == []


def test_a_table_of_another_layout_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "roots.csv"
    run(path, LAYOUT, [Counting().task(4)])
    other = SweepLayout({"name": str, "n": int, "limit": float, "cube": float}, key=("name", "n"))
    with pytest.raises(InputError, match="not a table with the columns name, n, limit, cube"):
        load(path, other)
