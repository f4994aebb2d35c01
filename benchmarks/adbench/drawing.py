"""ADBench's results as a table and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from benchmarks.dot_chart import two_panels
from difflab.bench.shared import picture
from difflab.core.table import Column, Table
from difflab.core.wording import error, ratio, seconds
from difflab.lab.sweep import SweepRow, number
from difflab.report.canvas import INK, titled_figure
from difflab.report.terminal import Screen, clean, shorten
from difflab.report.terminal import draw as rendered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "text"]


def text(rows: Sequence[SweepRow], **screen: Unpack[Screen]) -> str:
    """Return a table with a row for every instance and tool, the fastest Jacobian marked.

    Parameters
    ----------
    rows : sequence of row
        Rows of `benchmarks.adbench.bench`.
    screen
        As for `difflab.report.terminal.draw`.
    """
    columns = (
        *(Column("instance"), Column("tool")),
        *(Column(name, right=True, format=seconds) for name in ("objective", "Jacobian")),
        *(Column("ratio", right=True, format=ratio), Column("error", right=True, format=error)),
        Column(wrap=True),
    )
    fastest, before, lines = _fastest(rows), "", []
    for row in rows:
        instance, message = str(row["instance"]), str(row["message"] or "")
        first = row["jacobian_seconds"] == fastest.get(instance, -1.0)
        figures = ("objective_seconds", "jacobian_seconds", "ratio", "difference")
        lines.append(
            (
                clean(_instance(row)) if instance != before else "",
                clean(str(row["tool"])),
                *(number(row, name) for name in figures),
                clean(shorten(message, 60)) if message else ("fastest" if first else ""),
            )
        )
        before = instance
    table = Table(columns, lines, gap=2, ruled=False)
    return rendered([table], **screen)


def _fastest(rows: Sequence[SweepRow]) -> dict[str, float]:
    best: dict[str, float] = {}
    for row in rows:
        value = number(row, "jacobian_seconds")
        if value is not None:
            instance = str(row["instance"])
            best[instance] = min(value, best.get(instance, value))
    return best


def _instance(row: SweepRow) -> str:
    return str(row["instance"]).removesuffix(".txt")


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw the times of Jacobians and their ratios to the objectives', a line per instance."""
    canvas = titled_figure(
        1.6 + 0.3 * len({*map(_instance, rows)}),
        "ADBench: cost of a Jacobian",
        "left: time of a Jacobian · right: that time over the objective's, the line at 4 ·"
        " only tools with correct results are timed",
    )
    left, right = two_panels(canvas, rows, _instance, ("jacobian_seconds", "ratio"), same=False)
    left.set_xlabel("time of a Jacobian")
    right.axvline(4, color=INK, lw=0.9, ls="--", zorder=1)
    right.set_xlabel("Jacobian time / objective time")
    return canvas
