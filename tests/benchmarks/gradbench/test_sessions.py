"""The bench of GradBench, on a small checkout whose evals are written here."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import benchmarks.gradbench.tool.protocol as tool
from benchmarks.gradbench import bench as module
from benchmarks.gradbench import checkout as checkouts
from benchmarks.gradbench.checkout import EVALS, Checkout, published
from benchmarks.gradbench.drawing import draw, text
from benchmarks.gradbench.session import difference, session
from difflab.errors import InputError
from difflab.lab.sweep import SweepRow, run
from tests.bench.picture_checks import check_picture, texts

JUDGE = """
import json, math, sys
SHIFT = {shift}
LOGS = {{2: math.log(2), 3: math.log(3)}}

def expect(function, question):
    n = len(question["x"])
    return {{"output": [1 / n] * n if function == "gradient" else LOGS[n] + SHIFT}}

def ask(**message):
    print(json.dumps(message), flush=True)
    return json.loads(sys.stdin.readline())

if __name__ == "__main__":
    ask(id=0, kind="start", eval="lse")
    if ask(id=1, kind="define", module="lse")["success"]:
        for number, (function, size) in enumerate([("primal", 2), ("gradient", 2), ("primal", 3)]):
            question = {{"x": [0.0] * size, "min_runs": 2, "min_seconds": 0}}
            found = ask(id=2 * number + 2, kind="evaluate", module="lse", function=function,
                        input=question, description=f"n={{size}}")
            if found["success"]:
                valid = function == "gradient" or abs(found["output"] - LOGS[size]) < 1e-4
                ask(id=2 * number + 3, kind="analysis", of=2 * number + 2, valid=valid)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with the eval lse, whose golden tool is there by name."""
    return written(tmp_path / "checkout", shift=0.0)


def written(root: Path, shift: float) -> Path:
    folder = root / "python/gradbench/gradbench/evals/lse"
    folder.mkdir(parents=True)
    (folder / "run.py").write_text(JUDGE.format(shift=shift))
    golden = root / "tools/manual/bin"
    golden.mkdir(parents=True)
    (golden / "lse").write_text("")
    return root


def measured(root: Path, tmp_path: Path, tools: list[str], **options: Any) -> list[SweepRow]:
    checkout = Checkout.of(root, ["lse"])
    return run(tmp_path / "g.csv", module.LAYOUT, module.tasks(checkout, ["lse"], tools, **options))


def test_the_evals_and_their_functions_are_those_of_the_tool() -> None:
    assert list(EVALS) == list(tool.EVALS)
    for name, known in EVALS.items():
        assert set(known.functions) == set(tool.functions(name))


def test_rows_are_sums_over_workloads(root: Path, tmp_path: Path) -> None:
    primal, gradient = measured(root, tmp_path, ["difflab"])
    assert (primal["status"], primal["workloads"], primal["valid"]) == ("ok", 2, 2)
    assert (gradient["status"], gradient["workloads"], gradient["valid"]) == ("ok", 1, 1)
    assert primal["repetitions"] == 4
    assert 0 < float(primal["best_seconds"] or 0) <= float(primal["mean_seconds"] or 0)
    assert float(primal["prepare_seconds"] or 0) > float(primal["mean_seconds"] or 0)
    assert float(primal["difference"] or 0) < 1e-15


def test_an_answer_that_gradbench_tolerates_is_inexact(tmp_path: Path) -> None:
    primal, gradient = measured(written(tmp_path / "c", shift=1e-6), tmp_path, ["difflab"])
    assert (primal["status"], primal["valid"], primal["inexact"]) == ("inexact", 0, 2)
    assert 0.5e-6 < float(primal["difference"] or 0) < 2e-6
    assert gradient["status"] == "ok"


def test_an_answer_that_gradbench_rejects_is_not_timed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    liar = tmp_path / "liar.py"
    liar.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    time = [{'name': 'evaluate', 'nanoseconds': 7}]\n"
        "    print(json.dumps({'id': m['id'], 'success': True, 'output': 5.0, 'timings': time}),"
        " flush=True)\n"
    )
    monkeypatch.setattr(checkouts, "TOOLS", {**checkouts.TOOLS, "liar": (str(liar),)})
    primal, _ = measured(root, tmp_path, ["liar"])
    assert (primal["status"], primal["valid"], primal["mean_seconds"]) == ("invalid", 0, None)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import sys; sys.exit('broken tool')", "ended with code 1: broken tool"),
        ("import time; time.sleep(60)", "no answer in 1 s"),
        ("print('hello', flush=True); input()", "JSONDecodeError"),
        (
            "import json\nfor i in range(9):\n"
            " m = json.loads(input()); ok = m['kind'] != 'define'\n"
            " print(json.dumps({'id': m['id'], 'success': ok}), flush=True)",
            "the tool does not have this eval",
        ),
        (
            "import json\nfor i in range(9):\n m = json.loads(input())\n"
            ' print(\'{"success": true, "output": NaN, "timings": []}\', flush=True)',
            "NaN in an answer is not JSON",
        ),
    ],
)
def test_a_tool_that_fails_is_a_reason(root: Path, source: str, reason: str) -> None:
    asking = Checkout.of(root, ["lse"]).eval_command("lse", quick=False)
    limit = 1.0 if "sleep" in source else 600.0
    found = session(asking, [sys.executable, "-c", source], root, limit)
    assert reason in found.error
    assert not any(entry.valid for entry in found.evaluations)


def test_a_tool_that_cannot_run_is_a_row(root: Path, tmp_path: Path) -> None:
    for row in measured(root, tmp_path, ["manual"]):
        assert (row["status"], row["workloads"], row["mean_seconds"]) == ("failed", 0, None)
        assert "cpp/json.hpp" in str(row["message"])


def test_difference() -> None:
    assert difference({"a": [1.0, 4.0], "b": 2}, {"a": [1.0, 5.0], "b": 2}) == 0.2
    assert difference([0.0, 0.0], [0, 0]) == 0
    for wrong in ({"a": 1}, [1.0], None, math.nan, math.inf, "1", True):
        assert difference(wrong, [1.0, 2.0]) == math.inf
    assert difference([1.0, math.inf], [1.0, math.inf]) == math.inf


def figures(folder: Path) -> Path:
    (folder / "evals/lse").mkdir(parents=True)
    (folder / "evals/saddle").mkdir(parents=True)
    (folder / "summary.json").write_text('{"date": "2026-03-14", "commit": "f26651a7bcc1"}')

    def time(nanos: int) -> dict[str, int]:
        return {"secs": 1, "nanos": nanos}

    both = {"primal": time(500), "derivative": time(0)}
    summary = {
        "primal": "primal",
        "derivative": "gradient",
        "tools": {"enzyme": {"2500": both, "5000": both}, "zygote": {"2500": both}},
    }
    (folder / "evals/lse/summary.json").write_text(json.dumps(summary))
    modes = {"tools": {"enzyme": {"rr": time(7)}}}
    (folder / "evals/saddle/summary.json").write_text(json.dumps(modes))
    return folder


def test_published_figures_are_sums_of_complete_tools(tmp_path: Path) -> None:
    found = {(t.eval, t.tool, t.function): t for t in published(figures(tmp_path))}
    assert set(found) == {
        ("lse", "enzyme", "primal"),
        ("lse", "enzyme", "gradient"),
        ("saddle", "enzyme", "rr"),
    }
    assert found["lse", "enzyme", "primal"].seconds == 2.000001
    assert found["saddle", "enzyme", "rr"].seconds == 1.000000007
    assert "2026-03-14" in found["lse", "enzyme", "primal"].source
    with pytest.raises(InputError, match="holds no published figures of GradBench"):
        published(tmp_path / "nowhere")


def test_the_table_and_the_picture_tell_published_from_measured(root: Path, tmp_path: Path) -> None:
    rows = measured(root, tmp_path, ["difflab", "manual"], figures=figures(tmp_path / "f"))
    assert [row["origin"] for row in rows].count("published") == 2
    shown = text(rows, plain=True, width=110)
    assert "enzyme, published" in shown
    assert "2/2" in shown
    check_picture(draw, rows)
    assert "published" in texts(draw(rows))
    assert "2026-03-14" in texts(draw(rows))


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ("", ["--evals", "lsq"], "GradBench has no eval 'lsq'"),
        ("", ["--tools", "numpy"], "there is no tool 'numpy'"),
        ("", ["--published", "x", "--quick"], "leave out --quick"),
        ("tools/manual/bin/lse", [], "make -C"),
        ("python/gradbench/gradbench/evals/lse/run.py", ["--gradbench", "nowhere"], "git clone"),
    ],
)
def test_what_is_missing_is_an_error_with_what_to_do(
    root: Path, benchmarks: Callable[..., Any], change: str, options: list[str], said: str
) -> None:
    if change:
        (root / change).unlink()
    done = benchmarks("gradbench", "--gradbench", str(root), "--evals", "lse", *options)
    assert done.code == 2
    assert said in done.err


def test_the_command(root: Path, tmp_path: Path, benchmarks: Callable[..., Any]) -> None:
    only = ("--evals", "lse", "--tools", "difflab")
    done = benchmarks("gradbench", "--gradbench", str(root), *only, "--reports", "out")
    assert done.code == 0
    assert "gradient" in done.out
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written >= {"gradbench.csv", "gradbench.svg"}
