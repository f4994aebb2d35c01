"""GradBench's results as a table and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from difflab.bench.dot_chart import legend, name_lines, number, panel
from difflab.bench.pictures import picture
from difflab.core.quantities import error, ratio, seconds
from difflab.core.table import Column, Table
from difflab.lab.sweep import SweepRow
from difflab.report.canvas import seconds_tick, titled_figure
from difflab.report.style import clean, shorten
from difflab.report.terminal import draw as rendered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "text"]


def text(
    rows: Sequence[SweepRow], *, colour: bool = False, width: int = 110, plain: bool = False
) -> str:
    """Return a table with a row for every function and tool.

    Parameters
    ----------
    rows : sequence of row
        Rows of `difflab.bench.gradbench.bench`.
    colour, width, plain
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
    return rendered([table], colour=colour, width=width, plain=plain)


def _place(row: SweepRow) -> tuple[str, str]:
    return str(row["eval"]), str(row["function"])


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw the mean and the shortest times of every function, a line each.

    Published figures are hollow, and the subtitle names their source.
    """
    places = list(dict.fromkeys(map(_place, rows)))
    height = 2.0 + 0.3 * len(places)
    sources = sorted({str(row["message"]) for row in rows if row["origin"] == "published"})
    about = "sums over the workloads of a function; only accepted answers are timed"
    if sources:
        about += f" · hollow: published, other machine, {clean(', '.join(sources))}"
    canvas = titled_figure((11.5, height), "GradBench: time of an evaluation", about)
    left, right = canvas.subplots(1, 2, sharey=True, sharex=True)
    canvas.subplots_adjust(
        left=0.16, right=0.985, top=1 - 1.1 / height, bottom=0.55 / height, wspace=0.06
    )
    for axes, column in ((left, "mean_seconds"), (right, "best_seconds")):
        panel(axes, rows, places, _place, column)
    name_lines(left, [clean(" ".join(place)) for place in places])
    left.xaxis.set_major_formatter(seconds_tick)
    left.set_xlabel("mean of the runs")
    right.set_xlabel("shortest run")
    legend(right, rows)
    return canvas
