"""The picture of memory against recomputation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from difflab.lab.sweep import SweepRow
from difflab.report.canvas import FAINT, INK, Label, label_ends, saved, style, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["memory"]

# Okabe and Ito's colours, from the shortest chain to the longest.
_COLOURS = ("#009E73", "#0072B2", "#D55E00", "#B5578C")
_NAMED = (3, 4, 8, 16, 32, 64)
"""Numbers of snapshots that are written at the margin: memory hardly depends on the length."""


def memory(rows: Sequence[SweepRow], kind: str = "svg") -> bytes:
    """Draw the peak of memory against the steps that are run, a line for each length of chain.

    Parameters
    ----------
    rows : sequence of row
        Rows of `difflab.bench.memory`.
    kind : {"svg", "png", "pdf"}
        The format.

    Returns
    -------
    bytes
        The file.
    """
    from matplotlib.figure import Figure

    lengths = sorted({int(row["steps"] or 0) for row in rows})
    size = 8 * int(rows[0]["numbers"] or 0)
    with style():
        canvas = Figure(figsize=(10.0, 6.2))
        titled(
            canvas,
            "memory against recomputation: the gradient of a chain",
            f"peak of forward and backward · a state is {size / 1024:g} KiB ·"
            " every gradient is the plain one, bit for bit",
        )
        axes = canvas.add_axes((0.085, 0.085, 0.845, 0.785))
        _frame(axes, rows)
        for steps, colour in zip(lengths, _COLOURS, strict=False):
            _chain(axes, [row for row in rows if row["steps"] == steps], colour)
        _legend(axes)
        label_ends(axes, _snapshots(axes, rows), gap=6)
        return saved(canvas, kind)


def _frame(axes: Axes, rows: Sequence[SweepRow]) -> None:
    from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

    most, bytes_ = max(map(_run, rows)), [float(row["peak_bytes"] or 0) for row in rows]
    axes.set(xscale="log", yscale="log", xlim=(0.9, 1.12 * most))
    axes.set_ylim(0.75 * min(bytes_), 1.6 * max(bytes_))
    axes.set_xlabel("steps run, per step of the chain")
    axes.set_ylabel("peak of memory")
    axes.xaxis.set_major_locator(FixedLocator([1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24]))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_locator(LogLocator(base=4, numticks=12))
    axes.yaxis.set_major_formatter(lambda value, _: _bytes(value))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
        axis.grid(visible=True)


def _chain(axes: Axes, rows: Sequence[SweepRow], colour: str) -> None:
    """Draw one chain's ways, its length beside the plain one."""
    revolved = sorted((row for row in rows if row["strategy"] == "revolve"), key=_run)
    axes.plot(*_places(revolved), "o-", color=colour, lw=1.6, ms=4.5)
    for strategy, mark in (("plain", "s"), ("sqrt", "D")):
        (row,) = (row for row in rows if row["strategy"] == strategy)
        axes.plot(*_places([row]), mark, color=colour, ms=8, mec=INK, mew=0.8)
        if strategy == "plain":
            axes.annotate(
                f"{row['steps']} steps",
                (_run(row), float(row["peak_bytes"] or 0)),
                (10, 0),
                textcoords="offset points",
                va="center",
                color=colour,
                fontsize=9.5,
                fontweight="bold",
            )


def _places(rows: Sequence[SweepRow]) -> tuple[list[float], list[float]]:
    return [_run(row) for row in rows], [float(row["peak_bytes"] or 0) for row in rows]


def _snapshots(axes: Axes, rows: Sequence[SweepRow]) -> list[Label]:
    """Lead from the outermost mark of some numbers of snapshots to the margin."""
    labels = []
    edge = axes.get_xlim()[1]
    for number in _NAMED:
        mine = [row for row in rows if row["snapshots"] == number]
        if mine:
            last = max(mine, key=_run)
            height = float(last["peak_bytes"] or 0)
            axes.plot([_run(last), edge], [height, height], ":", color=FAINT, lw=0.9, zorder=1)
            labels.append(Label(f"s = {number}", edge, height, INK))
    return labels


def _legend(axes: Axes) -> None:
    """Say what the marks are."""
    from matplotlib.lines import Line2D

    marks = (
        ("s", "plain: everything is kept"),
        ("D", "√n segments"),
        ("o", "revolve, s snapshots"),
    )
    handles = [
        Line2D(
            [],
            [],
            marker=mark,
            color=FAINT,
            ls="",
            ms=7,
            mec=INK if mark != "o" else FAINT,
            label=text,
        )
        for mark, text in marks
    ]
    axes.legend(handles=handles, loc="upper right", frameon=False, fontsize=9)


def _run(row: SweepRow) -> float:
    """Return how many steps are run for one of the chain."""
    return float(row["evaluations"] or 0) / float(row["steps"] or 1)


def _bytes(value: float) -> str:
    """Return a number of bytes as people write it."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f} B"
