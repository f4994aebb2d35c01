"""GradBench's results as a table and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from benchmarks.dot_chart import two_panels
from difflab.bench.shared import picture
from difflab.core.table import Column, Table
from difflab.core.wording import error, ratio, seconds
from difflab.lab.sweep import SweepRow, number
from difflab.report.canvas import titled_figure
from difflab.report.terminal import Screen, clean, shorten
from difflab.report.terminal import draw as rendered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "text"]


def text(rows: Sequence[SweepRow], **screen: Unpack[Screen]) -> str:
    """Return a table with a row for every function and tool.

    Parameters
    ----------
    rows : sequence of row
        Rows of `benchmarks.gradbench.bench`.
    screen
        As for `difflab.report.terminal.draw`.
    """
    columns = (
        *(Column("eval"), Column("function"), Column("tool"), Column("valid", right=True)),
        *(Column(name, right=True, format=seconds) for name in ("mean", "best", "prepare")),
        Column("mean / difflab", right=True, format=ratio),
        Column("error", right=True, format=error),
        Column(wrap=True),
    )
    own = {_place(row): number(row, "mean_seconds") for row in rows if row["tool"] == "difflab"}
    before, lines = ("", ""), []
    for row in rows:
        place, measured = _place(row), row["origin"] == "measured"
        mean, reference = number(row, "mean_seconds"), own.get(place)
        lines.append(
            (
                *(place if place != before else ("", "")),
                clean(f"{row['tool']}{'' if measured else ', published'}"),
                f"{row['valid']}/{row['workloads']}" if measured else "",
                mean,
                *(number(row, f"{name}_seconds") for name in ("best", "prepare")),
                mean / reference if mean and reference and row["tool"] != "difflab" else None,
                number(row, "difference"),
                clean(shorten(str(row["message"] or ""), 60)) if measured else "",
            )
        )
        before = place
    table = Table(columns, lines, gap=2, ruled=False)
    return rendered([table], **screen)


def _place(row: SweepRow) -> tuple[str, str]:
    return str(row["eval"]), str(row["function"])


def _label(row: SweepRow) -> str:
    return " ".join(_place(row))


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw the mean and the shortest times of every function, a line each.

    Published figures are hollow, and the subtitle names their source.
    """
    sources = sorted({str(row["message"]) for row in rows if row["origin"] == "published"})
    about = "sums over the workloads of a function; only accepted answers are timed"
    if sources:
        about += f" · hollow: published, other machine, {clean(', '.join(sources))}"
    canvas = titled_figure(
        1.6 + 0.3 * len({*map(_label, rows)}),
        "GradBench: time of an evaluation",
        about,
    )
    left, right = two_panels(canvas, rows, _label, ("mean_seconds", "best_seconds"), same=True)
    left.set_xlabel("mean of the runs")
    right.set_xlabel("shortest run")
    return canvas
