"""ADBench's results as a table and a picture."""

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
    "torch": ("#D55E00", "s"),
    "jax": ("#009E73", "^"),
    "autograd": ("#B5578C", "D"),
}
_OTHER = (FAINT, ".")


def text(
    rows: Sequence[SweepRow], *, colour: bool = False, width: int = 110, plain: bool = False
) -> str:
    """Return a table with a row for every instance and tool, the fastest Jacobian marked.

    Parameters
    ----------
    rows : sequence of row
        Rows of `difflab.bench.adbench.bench`.
    colour, width, plain
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
                clean(instance.removesuffix(".txt")) if instance != before else "",
                clean(str(row["tool"])),
                *(_number(row, name) for name in figures),
                clean(shorten(message, 60)) if message else ("fastest" if first else ""),
            )
        )
        before = instance
    table = Table(columns, lines, gap=2, ruled=False)
    return rendered([table], colour=colour, width=width, plain=plain)


def _number(row: SweepRow, name: str) -> float | None:
    value = row[name]
    return None if value is None or value == "" else float(value)


def _fastest(rows: Sequence[SweepRow]) -> dict[str, float]:
    best: dict[str, float] = {}
    for row in rows:
        value = _number(row, "jacobian_seconds")
        if value is not None:
            instance = str(row["instance"])
            best[instance] = min(value, best.get(instance, value))
    return best


def draw(rows: Sequence[SweepRow], kind: str = "svg") -> bytes:
    """Draw the times of Jacobians and their ratios to the objectives', a line per instance.

    Parameters
    ----------
    rows : sequence of row
        Rows of `difflab.bench.adbench.bench`.
    kind : {"svg", "png", "pdf"}
        The format.

    Returns
    -------
    bytes
        The file.
    """
    from matplotlib.figure import Figure

    instances = list(dict.fromkeys(str(row["instance"]) for row in rows))
    height = 1.9 + 0.34 * len(instances)
    with style():
        canvas = Figure(figsize=(11.5, height))
        titled(
            canvas,
            "ADBench: cost of a Jacobian",
            "left: time of a Jacobian · right: that time over the objective's, the line at 4 ·"
            " only tools with correct results are timed",
        )
        left, right = canvas.subplots(1, 2, sharey=True)
        canvas.subplots_adjust(
            left=0.255, right=0.985, top=1 - 1.05 / height, bottom=0.55 / height, wspace=0.06
        )
        for axes, column in ((left, "jacobian_seconds"), (right, "ratio")):
            _panel(axes, rows, instances, column)
        left.set_yticks(
            range(len(instances)), [clean(name.removesuffix(".txt")) for name in instances]
        )
        left.set_ylim(len(instances) - 0.5, -0.5)
        left.xaxis.set_major_formatter(lambda t, _: seconds(t).replace(".00", ""))
        left.set_xlabel("time of a Jacobian")
        right.axvline(4, color=INK, lw=0.9, ls="--", zorder=1)
        right.xaxis.set_major_formatter("{x:g}")
        right.set_xlabel("Jacobian time / objective time")
        _legend(right, rows)
        return saved(canvas, kind)


def _panel(axes: Axes, rows: Sequence[SweepRow], instances: Sequence[str], column: str) -> None:
    axes.set_xscale("log")
    axes.grid(visible=True)
    axes.tick_params(axis="y", length=0)
    for row in rows:
        value = _number(row, column)
        if value is None:
            continue
        colour, shape = _STYLES.get(str(row["tool"]), _OTHER)
        own = row["tool"] == "difflab"
        axes.plot(
            value,
            instances.index(str(row["instance"])),
            shape,
            color=colour,
            ms=8 if own else 6,
            mec=INK if own else "none",
            mew=0.8,
            zorder=3 if own else 2,
            clip_on=False,
        )


def _legend(axes: Axes, rows: Sequence[SweepRow]) -> None:
    """Write the names of the tools above the right panel."""
    handles = []
    for tool in dict.fromkeys(str(row["tool"]) for row in rows):
        colour, shape = _STYLES.get(tool, _OTHER)
        edge = INK if tool == "difflab" else "none"
        handles.append(marker(clean(tool), shape, colour, edge, ms=7))
    axes.legend(
        handles=handles,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=len(handles),
        frameon=False,
        fontsize=9,
        handletextpad=0.2,
    )
