"""The bench of memory: counts are the schedule's, and fewer kept states take fewer bytes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import isqrt
from typing import Any

import pytest

from difflab.bench import memory
from difflab.bench.memory import LAYOUT, SNAPSHOTS, draw, tasks
from difflab.eager.chains import forward_steps
from difflab.errors import DifflabError
from difflab.lab.sweep import SweepRow, run
from tests.bench.picture_checks import check_picture

STEPS = 36


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[SweepRow]:
    path = tmp_path_factory.mktemp("memory") / "memory.csv"
    return run(path, LAYOUT, tasks((STEPS,), 4096))


def of(rows: list[SweepRow], strategy: str) -> list[SweepRow]:
    return [row for row in rows if row["strategy"] == strategy]


def test_steps_are_those_of_the_schedules(rows: list[SweepRow]) -> None:
    (plain,), (root,) = of(rows, "plain"), of(rows, "sqrt")
    assert (plain["evaluations"], plain["recomputed"]) == (STEPS, 0)
    assert root["recomputed"] == STEPS - isqrt(STEPS)
    revolved = {row["snapshots"]: row["recomputed"] for row in of(rows, "revolve")}
    assert revolved == {s: forward_steps(STEPS, s) for s in SNAPSHOTS if s < STEPS}


def test_bytes_follow_the_number_of_states_that_are_kept(rows: list[SweepRow]) -> None:
    revolved = of(rows, "revolve")
    for fewer, more in pairwise(revolved):
        between = int(more["snapshots"] or 0) - int(fewer["snapshots"] or 0)
        grown = float(more["peak_states"] or 0) - float(fewer["peak_states"] or 0)
        assert grown == pytest.approx(between, rel=0.1)
    (plain,), (root,) = of(rows, "plain"), of(rows, "sqrt")
    assert float(plain["peak_states"] or 0) > STEPS
    assert float(root["peak_states"] or 0) < 4 * isqrt(STEPS)


def test_another_gradient_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(step: Callable[[int, Any], Any], state: Any, steps: int, **_: Any) -> Any:
        return step(0, state) * 2.0

    monkeypatch.setattr(memory, "checkpoint_chain", wrong)
    (task, *_) = [task for task in tasks((5,), 8) if task.key["strategy"] == "sqrt"]
    with pytest.raises(DifflabError, match="sqrt gives another gradient of 5 steps"):
        task.measure()


# --- the picture

PICTURE_ROWS: list[SweepRow] = [
    {
        "steps": steps,
        "numbers": 8192,
        "strategy": strategy,
        "snapshots": snapshots,
        "evaluations": evaluations * steps,
        "recomputed": (evaluations - 1) * steps,
        "peak_bytes": kept * 65536,
        "peak_states": float(kept),
    }
    for steps in (64, 256)
    for strategy, snapshots, evaluations, kept in (
        ("plain", None, 1, steps),
        ("sqrt", None, 2, 20),
        ("revolve", 3, 5, 8),
        ("revolve", 8, 3, 13),
    )
]


def drawn(rows: list[SweepRow]) -> str:
    """Return an SVG file in which text is text."""
    import matplotlib as mpl

    from difflab.report import canvas

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(canvas._SETTINGS, "svg.fonttype", "none")
        with mpl.rc_context():
            return draw(rows).decode()


def test_lengths_snapshots_and_marks_are_written() -> None:
    text = drawn(PICTURE_ROWS)
    for part in ("64 steps", "256 steps", "s = 3", "s = 8", "√n segments", "a state is 64 KiB"):
        assert part in text
    assert "s = 64" not in text


def test_the_picture_of_memory_in_every_format() -> None:
    check_picture(draw, PICTURE_ROWS)
