"""The table and the picture of the peers show every outcome."""

from __future__ import annotations

from difflab.bench.peers.drawing import draw, table
from difflab.lab.sweep import SweepRow
from tests.bench.picture_checks import check_picture


def row(peer: str, points: int = 1, **cells: str | float | None) -> SweepRow:
    shown: SweepRow = {
        "expression": "x\x1b[2J^2",
        "point": "x = 3",
        "points": points,
        "peer": peer,
        "version": "1.2",
        "status": "ok",
        "message": None,
        "ulps": 0.5,
        "prepare_seconds": 0.25,
        "call_seconds": 3e-6,
        "difflab_seconds": 1e-6,
        "ratio": 3.0,
        "ratio_low": 2.5,
        "ratio_high": 3.5,
        "rounds": 25,
        "cpu": "A CPU",
        "threads": 2,
    }
    return shown | cells


def without(
    status: str, message: str, **cells: str | float | None
) -> dict[str, str | float | None]:
    times = ("prepare_seconds", "call_seconds", "ratio", "ratio_low", "ratio_high", "ulps")
    return dict.fromkeys(times) | {"status": status, "message": message} | cells


ROWS = [
    row("difflab", ratio=1.0, ratio_low=0.99, ratio_high=1.01),
    row("fast", ratio=0.25, ratio_low=0.2, ratio_high=0.3),
    row("slow", ratio=12345.0, ratio_low=12000.0, ratio_high=13000.0),
    row("wrong", **without("disagree", "6 where the derivative is 5")),
    row("absent", **without("unsupported", "add it with: pip install absent", version="")),
    row("unable", **without("unsupported", "no such function")),
    row("long", **without("timeout", "not started")),
    row("broken", **without("failed", "RuntimeError: \x1b[31mno")),
    row("difflab", 1000, ratio=1.0, ratio_low=0.99, ratio_high=1.01),
]


def test_the_table_has_every_row_and_every_reason() -> None:
    text = table(ROWS)
    lines = text.splitlines()
    assert "A CPU, 2 processors" in text
    assert "one point" in lines
    assert "1,000 points" in lines
    (slow,) = [line for line in lines if line.startswith("slow")]
    assert slow.split() == [
        "slow",
        "1.2",
        "agree",
        "0.5",
        "250",
        "ms",
        "3.00",
        "µs",
        "12,345×",
        "(12,000–13,000)",
    ]
    (wrong,) = [line for line in lines if line.startswith("wrong 1.2")]
    assert wrong.split() == ["wrong", "1.2", "disagree", "–", "–", "–", "–"]
    assert "wrong: 6 where the derivative is 5" in lines
    assert "absent: add it with: pip install absent" in lines
    assert "\x1b" not in text
    assert max(map(len, lines)) <= 80


def test_the_picture_has_every_row() -> None:
    check_picture(draw, ROWS)
    assert draw(ROWS[:1], "png").startswith(b"\x89PNG")
    assert draw(ROWS[3:8], "pdf").startswith(b"%PDF")


def test_figures_stand_in_the_picture(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from matplotlib.figure import Figure

    texts: list[str] = []
    save = Figure.savefig

    def recorded(self: Figure, *args: object, **settings: object) -> None:
        texts.extend(text.get_text() for axes in self.axes for text in axes.texts)
        save(self, *args, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(Figure, "savefig", recorded)
    draw(ROWS)
    assert "0.25×  3.00 µs" in texts
    assert "12,345×  3.00 µs" in texts
    assert "wrong result: not timed" in texts
    assert "not installed" in texts
    assert "not supported" in texts
    assert "too slow for the time limit" in texts
    assert "failed" in texts
