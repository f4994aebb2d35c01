"""The table and the picture of `difflab bench peers`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Unpack

from difflab.bench.shared import picture
from difflab.core.table import Cell, Column, Table
from difflab.core.wording import ABSENT, error, ratio, seconds
from difflab.lab.sweep import SweepRow, number
from difflab.report.canvas import FAINT, INK, Axes, Figure, beside, ratio_tick, ticks, titled_figure
from difflab.report.terminal import Part, Screen, clean, shorten
from difflab.report.terminal import draw as rendered

__all__ = ["draw", "frame", "machine", "number", "panels", "sizes", "table", "tables", "words"]

_FASTER, _EQUAL, _SLOWER = "#009E73", "#0072B2", "#D55E00"
"""Colours of Okabe and Ito; the side of the line has the same meaning."""
_SAME = 1.02
"""Ratios up to this are equal: difflab compared with itself varies as much."""
_NOTE = """\
ratio: time over difflab's, measured in turns: median (middle half)
prepare: until the first result; difflab may load its machine code from its cache"""


def table(rows: Sequence[SweepRow], **screen: Unpack[Screen]) -> str:
    """Return a table for every number of points, then the reasons of missing times.

    Parameters
    ----------
    rows : sequence of row
        Rows of `difflab.bench.peers.bench` of one function at one point.
    screen
        As for `difflab.report.terminal.draw`.
    """
    return rendered([*tables(rows, _grid, "peer"), _NOTE], **screen)


def tables(
    rows: Sequence[SweepRow], grid: Callable[[Sequence[SweepRow]], Table], name: str
) -> list[Part]:
    """Return a heading, a grid for each number of points, and why times are missing.

    The contender of a row is in the column `name`.
    """
    first = rows[0]
    parts: list[Part] = [
        f"value and gradient of {clean(str(first['expression']))}\n"
        f"at {clean(str(first['point']))}, batches around it\n"
        f"{machine(first)}"
    ]
    for points in sizes(rows):
        chosen = [row for row in rows if row["points"] == points]
        parts += [Cell(points_text(points), "label"), grid(chosen)]
    return [*parts, *_forms(rows, name), *_reasons(rows, name)]


def _forms(rows: Sequence[SweepRow], name: str) -> list[Part]:
    """Return which call was timed of each contender that has a faster one than the usual."""
    lines = dict.fromkeys(
        f"{clean(str(row[name]))} is called by {clean(str(row.get('call_form')))}"
        for row in rows
        if row.get("call_form")
    )
    return ["\n".join(lines)] if lines else []


def _reasons(rows: Sequence[SweepRow], name: str) -> list[Part]:
    """Return why times are missing, each with the contender in the column `name`, as a part."""
    lines = dict.fromkeys(
        f"{clean(str(row[name]))}: {clean(str(row['message']))}" for row in rows if row["message"]
    )
    return ["\n".join(lines)] if lines else []


_COLUMNS = (
    *(Column(wrap=True, widest=22), Column("results"), Column("ULP", right=True, format=error)),
    *(Column(name, right=True, format=seconds) for name in ("prepare", "call")),
    Column("ratio", right=True),
)


def _grid(rows: Sequence[SweepRow]) -> Table:
    lines = []
    for row in rows:
        outcome = "agree" if row["status"] == "ok" else str(row["status"])
        figures = [number(row, name) for name in ("ulps", "prepare_seconds", "call_seconds")]
        lines.append((_named(row), Cell(outcome, outcome), *figures, _ratio(row)))
    return Table(_COLUMNS, lines, gap=0)


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw every peer's time over difflab's on a logarithmic axis, a panel per number of points."""
    names = list(dict.fromkeys(str(row["peer"]) for row in rows))
    across = min(len(sizes(rows)), 3)
    canvas = titled_figure(
        1.0 + (0.65 + 0.3 * len(names)) * math.ceil(len(sizes(rows)) / across),
        "value and gradient: time over difflab's",
        f"{shorten(clean(str(rows[0]['expression'])), 60)} · left of the line is faster than "
        f"difflab, right is slower · {shorten(machine(rows[0]), 70)}",
        left=1.25,
        right=0.15,
    )
    for axes, chosen in panels(canvas, rows, across):
        _panel(axes, chosen, names)
    return canvas


def panels(
    canvas: Figure, rows: Sequence[SweepRow], across: int
) -> Iterator[tuple[Axes, list[SweepRow]]]:
    """Yield a panel for each number of points, with its rows; so many are side by side."""
    shown = sizes(rows)
    down, space = math.ceil(len(shown) / across), {"wspace": 0.06, "hspace": 0.2}
    subplots = canvas.subplots(down, across, squeeze=False, sharey=True, gridspec_kw=space).ravel()
    for axes in subplots[len(shown) :]:
        axes.set_axis_off()
    for axes, points in zip(subplots, shown, strict=False):
        axes.set_title(points_text(points), loc="left", fontsize=10)
        yield axes, [row for row in rows if row["points"] == points]


def frame(
    axes: Axes,
    names: Mapping[str, float],
    reached: tuple[float, float],
    limits: tuple[float, float],
    label: Callable[[float], str],
) -> None:
    """Set up a panel: the names at their heights, and the decades of the range `reached`."""
    axes.set(xscale="log", xlim=limits)
    axes.set_yticks(list(names.values()))
    axes.set_yticklabels(list(names), parse_math=False)
    low, high = reached
    decades = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    step = 1 + (len(decades) - 1) // 3
    ticks(axes.xaxis, {10.0**k: label(10.0**k) for k in decades if k % step == 0})
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _panel(axes: Axes, rows: Sequence[SweepRow], names: Sequence[str]) -> None:
    reached = [float(row[end] or 1) for row in rows for end in ("ratio_low", "ratio_high")]
    low, high = min([0.5, *reached]), max([2.0, *reached])
    # Space for the figures to the right of their dots.
    limits = (low / 1.6, high * (high / low) ** 0.9 * 2)
    heights = {name: float(position) for position, name in enumerate(names)}
    frame(axes, heights, (low, high * 2), limits, ratio_tick)
    axes.set_xlabel("time over difflab's")
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.axvline(1.0, color=INK, lw=1.2)
    for row in rows:
        _mark(axes, row, names.index(str(row["peer"])))


def _mark(axes: Axes, row: SweepRow, height: int) -> None:
    """Draw one ratio with its spread and its figures, or write why there is none."""
    if row["status"] != "ok":
        colour = _SLOWER if row["status"] in ("disagree", "failed") else FAINT
        beside(axes, words(row), (1.0, height), (6, 0), color=colour)
        return
    ratios = _ratios(row)
    colour = _EQUAL
    if ratios.high < 1 / _SAME or ratios.low > _SAME:
        colour = _FASTER if ratios.high < 1 else _SLOWER
    axes.fill_between(
        (1.0, ratios.middle), height - 0.12, height + 0.12, color=colour, alpha=0.22, lw=0
    )
    axes.plot((ratios.low, ratios.high), (height, height), "-", color=colour, lw=2.2)
    axes.plot(ratios.middle, height, "o", color=colour, ms=7, mec="white", mew=0.8)
    figures = f"{_times(ratios.middle)}  {seconds(number(row, 'call_seconds'))}"
    beside(axes, figures, (max(ratios.high, 1.0), height), (9, 0), color=INK)


class _Ratios(NamedTuple):
    low: float
    middle: float
    high: float


def _ratios(row: SweepRow) -> _Ratios:
    return _Ratios(*(float(row[name] or 0) for name in ("ratio_low", "ratio", "ratio_high")))


def _ratio(row: SweepRow) -> str:
    """Return a row's ratio and its spread as text."""
    if row["ratio"] is None:
        return ABSENT
    low, middle, high = _ratios(row)
    return f"{_times(middle)} ({ratio(low)}–{ratio(high)})"


def _times(value: float) -> str:
    return f"{ratio(value)}×"


def words(row: SweepRow) -> str:
    """Return in a few words why there is no time."""
    return {
        "disagree": "wrong result: not timed",
        "failed": "failed",
        "timeout": "too slow for the time limit",
    }.get(str(row["status"]), "not installed" if not row["version"] else "not supported")


def _named(row: SweepRow) -> str:
    """Return the name and version of a row; difflab's targets have no own version."""
    name, version = clean(str(row["peer"])), clean(str(row["version"] or ""))
    return name if name.startswith("difflab-") else f"{name} {version}".rstrip()


def sizes(rows: Sequence[SweepRow]) -> list[int]:
    """Return the point counts, in the order of the rows."""
    return list(dict.fromkeys(int(row["points"] or 0) for row in rows))


def points_text(points: int) -> str:
    """Return a number of points as text."""
    return "one point" if points == 1 else f"{points:,} points"


def machine(row: SweepRow) -> str:
    """Return the processor of a row."""
    threads = int(row["threads"] or 1)
    processors = "1 processor" if threads == 1 else f"{threads} processors"
    return f"{clean(str(row['cpu'] or 'an unknown processor'))}, {processors}"
