"""Dots on logarithmic axes: a line for each task, and for each tool a colour and a shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from difflab.lab.sweep import SweepRow
from difflab.report.canvas import FAINT, INK, marker
from difflab.report.style import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["legend", "name_lines", "number", "panel"]

# Colours of Okabe and Ito; each tool also has its own marker.
_STYLES = {
    "difflab": ("#0072B2", "o"),
    "jax": ("#009E73", "^"),
    "torch": ("#D55E00", "s"),
    "pytorch": ("#D55E00", "s"),
    "autograd": ("#B5578C", "D"),
    "tensorflow": ("#B5578C", "D"),
    "compiled": ("#56B4E9", "v"),
    "manual": ("#000000", "P"),
    "finite": ("#E69F00", "X"),
}
_OTHER = (FAINT, ".")


def number(row: SweepRow, name: str) -> float | None:
    """Return a figure of a row; None if it has none."""
    value = row.get(name)
    return None if value is None or value == "" else float(value)


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
    for row in rows:
        value = number(row, column)
        if value is None:
            continue
        colour, shape = _STYLES.get(str(row["tool"]), _OTHER)
        own, published = row["tool"] == "difflab", row.get("origin") == "published"
        axes.plot(
            value,
            places.index(place_of(row)),
            shape,
            color=colour,
            ms=8 if own else 6,
            mfc="none" if published else colour,
            mec=colour if published else INK if own else "none",
            mew=0.8,
            zorder=3 if own else 2,
            clip_on=False,
        )


def name_lines(axes: Axes, names: Sequence[str]) -> None:
    """Write the names of the tasks beside their lines, from top to bottom."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)


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
    )
