"""GradBench's results as a table and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from difflab.core.quantities import error, ratio, seconds
from difflab.core.table import Column, Table
from difflab.lab.sweep import SweepRow
from difflab.report.canvas import FAINT, INK, marker, saved, style, titled
from difflab.report.style import clean, shorten
from difflab.report.terminal import draw as rendered

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw", "text"]

# Colours of Okabe and Ito; each tool also has its own marker.
_STYLES = {
    "difflab": ("#0072B2", "o"),
    "jax": ("#009E73", "^"),
    "pytorch": ("#D55E00", "s"),
    "tensorflow": ("#B5578C", "D"),
    "manual": ("#000000", "P"),
    "finite": ("#E69F00", "X"),
}
_OTHER = (FAINT, ".")


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
    own = {_place(row): _number(row, "mean_seconds") for row in rows if row["tool"] == "difflab"}
    before, lines = ("", ""), []
    for row in rows:
        place, measured = _place(row), row["origin"] == "measured"
        mean, reference = _number(row, "mean_seconds"), own.get(place)
        lines.append(
            (
                *(place if place != before else ("", "")),
                clean(f"{row['tool']}{'' if measured else ', published'}"),
                f"{row['valid']}/{row['workloads']}" if measured else "",
                mean,
                *(_number(row, f"{name}_seconds") for name in ("best", "prepare")),
                mean / reference if mean and reference and row["tool"] != "difflab" else None,
                _number(row, "difference"),
                clean(shorten(str(row["message"] or ""), 60)) if measured else "",
            )
        )
        before = place
    table = Table(columns, lines, gap=2, ruled=False)
    return rendered([table], colour=colour, width=width, plain=plain)


def _place(row: SweepRow) -> tuple[str, str]:
    return str(row["eval"]), str(row["function"])


def _number(row: SweepRow, name: str) -> float | None:
    value = row.get(name)
    return None if value is None or value == "" else float(value)


def draw(rows: Sequence[SweepRow], kind: str = "svg") -> bytes:
    """Draw the mean and the shortest times of every function, a line each.

    Published figures are hollow, and the subtitle names their source.

    Parameters
    ----------
    rows : sequence of row
        Rows of `difflab.bench.gradbench.bench`.
    kind : {"svg", "png", "pdf"}
        The format.

    Returns
    -------
    bytes
        The file.
    """
    from matplotlib.figure import Figure

    places = list(dict.fromkeys(map(_place, rows)))
    height = 2.0 + 0.3 * len(places)
    sources = sorted({str(row["message"]) for row in rows if row["origin"] == "published"})
    with style():
        canvas = Figure(figsize=(11.5, height))
        about = "sums over the workloads of a function; only accepted answers are timed"
        if sources:
            about += f" · hollow: published, other machine, {clean(', '.join(sources))}"
        titled(canvas, "GradBench: time of an evaluation", about)
        left, right = canvas.subplots(1, 2, sharey=True, sharex=True)
        canvas.subplots_adjust(
            left=0.16, right=0.985, top=1 - 1.1 / height, bottom=0.55 / height, wspace=0.06
        )
        for axes, column in ((left, "mean_seconds"), (right, "best_seconds")):
            _panel(axes, rows, places, column)
        left.set_yticks(range(len(places)), [clean(" ".join(place)) for place in places])
        left.set_ylim(len(places) - 0.5, -0.5)
        left.xaxis.set_major_formatter(lambda t, _: seconds(t).replace(".00", ""))
        left.set_xlabel("mean of the runs")
        right.set_xlabel("shortest run")
        _legend(right, rows)
        return saved(canvas, kind)


def _panel(
    axes: Axes, rows: Sequence[SweepRow], places: Sequence[tuple[str, str]], column: str
) -> None:
    axes.set_xscale("log")
    axes.grid(visible=True)
    axes.tick_params(axis="y", length=0)
    for row in rows:
        value = _number(row, column)
        if value is None:
            continue
        colour, shape = _STYLES.get(str(row["tool"]), _OTHER)
        own, known = row["tool"] == "difflab", row["origin"] == "published"
        axes.plot(
            value,
            places.index(_place(row)),
            shape,
            color=colour,
            ms=8 if own else 6,
            mfc="none" if known else colour,
            mec=colour if known else INK if own else "none",
            mew=0.8,
            zorder=3 if own else 2,
            clip_on=False,
        )


def _legend(axes: Axes, rows: Sequence[SweepRow]) -> None:
    """Write the names of the tools above the right panel; those without a style share one."""
    names = dict.fromkeys(str(row["tool"]) for row in rows)
    handles = [
        marker(clean(tool), shape, colour, INK if tool == "difflab" else "none", ms=7)
        for tool, (colour, shape) in _STYLES.items()
        if tool in names
    ]
    if names.keys() - _STYLES.keys():
        handles.append(marker("other tools", _OTHER[1], _OTHER[0], "none", ms=7))
    axes.legend(
        handles=handles,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=len(handles),
        frameon=False,
        fontsize=9,
        handletextpad=0.2,
    )
