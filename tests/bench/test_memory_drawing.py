"""The picture of memory against recomputation."""

from __future__ import annotations

import pytest

from difflab.bench.memory_drawing import memory
from difflab.errors import InputError

ROWS = [
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


def drawn(rows):
    """Return the texts of the picture, which an SVG with text as text holds."""
    import matplotlib as mpl

    from difflab.report import canvas

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(canvas._SETTINGS, "svg.fonttype", "none")
        with mpl.rc_context():
            return memory(rows).decode()


def test_lengths_snapshots_and_marks_are_written():
    text = drawn(ROWS)
    for part in ("64 steps", "256 steps", "s = 3", "s = 8", "√n segments", "a state is 64 KiB"):
        assert part in text
    assert "s = 64" not in text


def test_the_same_rows_give_the_same_file_and_formats_are_checked():
    assert memory(ROWS) == memory(ROWS)
    assert memory(ROWS, "png").startswith(b"\x89PNG")
    with pytest.raises(InputError, match="cannot draw a picture as 'gif'"):
        memory(ROWS, "gif")
