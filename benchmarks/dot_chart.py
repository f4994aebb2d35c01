"""Dots on logarithmic axes: a line for each task, and for each tool a colour and a shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from difflab.core.wording import bytes_text, seconds
from difflab.lab.sweep import SweepRow, number
from difflab.report.canvas import (
    FAINT,
    INK,
    decades,
    marker,
    ratio_tick,
    seconds_tick,
    titled_figure,
)
from difflab.report.terminal import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["own_figures", "ratio_chart", "two_panels"]

# Colours of Okabe and Ito; each tool also has its own marker.
_STYLES = {
    "difflab": ("#0072B2", "o"),
    "jax": ("#009E73", "^"),
    "torch": ("#D55E00", "s"),
    "pytorch": ("#D55E00", "s"),
    "autograd": ("#B5578C", "D"),
    "tensorflow": ("#B5578C", "D"),
    "compiled": ("#56B4E9", "v"),
    "casadi": ("#5E6B75", "h"),
    "asdex": ("#8C6D1F", "<"),
    "manual": ("#000000", "P"),
    "finite": ("#E69F00", "X"),
}
_OTHER = (FAINT, ".")


def panel(
    axes: Axes,
    rows: Sequence[SweepRow],
    places: Sequence[Any],
    place_of: Callable[[SweepRow], Any],
    column: str,
) -> None:
    """Draw one figure of every row; published figures are hollow.

    Parameters
    ----------
    axes : Axes
        Where to draw.
    rows : sequence of row
        With a ``tool``.
    places : sequence
        The tasks, from top to bottom.
    place_of : callable
        Returns the task of a row.
    column : str
        The name of the figure.
    """
    axes.set_xscale("log")
    axes.grid(visible=True)
    axes.tick_params(axis="y", length=0)
    known = [(row, value) for row in rows if (value := number(row, column)) is not None]
    for row, value in known:
        colour, shape = _STYLES.get(str(row["tool"]), _OTHER)
        own, published = row["tool"] == "difflab", row.get("origin") == "published"
        beside = [other["tool"] for other, _ in known if place_of(other) == place_of(row)]
        # Equal figures are all seen.
        shift = 0.6 * ((beside.index(row["tool"]) + 0.5) / len(beside) - 0.5)
        axes.plot(
            value,
            places.index(place_of(row)) + shift,
            shape,
            color=colour,
            ms=8 if own else 6,
            mfc="none" if published else colour,
            mec=colour if published else INK if own else "none",
            mew=0.8,
            zorder=3 if own else 2,
            clip_on=False,
        )


def two_panels(
    canvas: Figure,
    rows: Sequence[SweepRow],
    place_of: Callable[[SweepRow], Any],
    columns: tuple[str, str],
    *,
    same: bool,
) -> tuple[Axes, Axes]:
    """Draw two figures of every row side by side, the first a time; return both panels.

    Parameters
    ----------
    canvas : Figure
        Where to draw, with its title.
    rows : sequence of row
        With a ``tool``.
    place_of : callable
        Returns the task of a row, from whose names it is written at the left.
    columns : (str, str)
        The names of the figures.
    same : bool
        Whether both figures have one scale.
    """
    places = list(dict.fromkeys(map(place_of, rows)))
    space = {"wspace": 0.06}
    first, second = canvas.subplots(1, 2, sharey=True, sharex=same, gridspec_kw=space)
    for axes, column in zip((first, second), columns, strict=True):
        panel(axes, rows, places, place_of, column)
    name_lines(first, [clean(str(place)) for place in places])
    decades(first.xaxis, seconds_tick)
    legend(second, rows)
    return first, second


def ratio_chart(
    rows: Sequence[SweepRow],
    place_of: Callable[[SweepRow], str],
    labels: Mapping[str, str],
    titles: tuple[str, str],
    across_label: str,
    *,
    right: float = 0.3,
    line: float = 0.4,
) -> tuple[Figure, Axes]:
    """Draw the ``ratio`` of every row, a line for each task and a rule at 1.

    Parameters
    ----------
    rows, place_of
        As for `two_panels`.
    labels : mapping of str to str
        The text of each task, from top to bottom.
    titles : (str, str)
        The title and the subtitle.
    across_label : str
        The label of the axis of ratios.
    right, line : float
        The margin beside the panel and the height of a line, in inches.
    """
    height = 1.6 + line * len(labels)
    canvas = titled_figure(height, *titles, right=right)
    axes = canvas.subplots()
    panel(axes, rows, list(labels), place_of, "ratio")
    axes.axvline(1, color=INK, lw=0.9, ls="--", zorder=1)
    axes.set_xlabel(across_label)
    decades(axes.xaxis, ratio_tick)
    name_lines(axes, list(labels.values()))
    legend(axes, rows)
    return canvas, axes


def own_figures(rows: Sequence[SweepRow], place_of: Callable[[SweepRow], str]) -> dict[str, str]:
    """Return the tasks, each with difflab's own memory or time."""
    found = {}
    for row in (row for row in rows if row["tool"] == "difflab"):
        held, call = number(row, "peak_bytes"), number(row, "call_seconds")
        shown = "" if call is None else f": {seconds(call)}"
        place = place_of(row)
        found[place] = clean(f"{place}{shown if held is None else f': {bytes_text(held)}'}")
    return found


def name_lines(axes: Axes, names: Sequence[str]) -> None:
    """Write the names of the tasks beside their lines, from top to bottom, in the left margin."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    canvas = axes.get_figure(root=True)
    assert canvas is not None
    widest = max(label.get_window_extent().width for label in axes.get_yticklabels())
    canvas.subplots_adjust(left=widest / canvas.bbox.width + 0.018)


def legend(axes: Axes, rows: Sequence[SweepRow]) -> None:
    """Write the names of the tools above a panel; those without a style share one."""
    names = list(dict.fromkeys(str(row["tool"]) for row in rows))
    handles = [
        marker(clean(tool), shape, colour, INK if tool == "difflab" else "none", ms=7)
        for tool in names
        if tool in _STYLES
        for colour, shape in [_STYLES[tool]]
    ]
    if any(tool not in _STYLES for tool in names):
        handles.append(marker("other tools", _OTHER[1], _OTHER[0], "none", ms=7))
    axes.legend(
        handles=handles,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=len(handles),
        frameon=False,
        fontsize=9,
        handletextpad=0.2,
        columnspacing=1.0,
    )
