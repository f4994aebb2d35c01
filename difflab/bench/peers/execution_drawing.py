"""The table and the picture of `difflab bench peers --execution`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from difflab.bench.peers.drawing import frame, machine, panels, sizes, tables, words
from difflab.bench.pictures import BLUE, GREEN, ORANGE, PURPLE, picture
from difflab.core.quantities import ABSENT, count, error, ratio, seconds
from difflab.core.table import Cell, Column, Table
from difflab.lab.sweep import SweepRow, number
from difflab.report.canvas import FAINT, INK, beside, marker, titled_figure
from difflab.report.style import clean, shorten
from difflab.report.terminal import Screen
from difflab.report.terminal import draw as rendered

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_COLOURS = {
    "define-by-run": ORANGE,
    "define-then-run": PURPLE,
    "traced": BLUE,
    "compiled": GREEN,
}
_NOTE = """\
prepare: until the first result; the package is in use, caches on disk are empty
speed-up: of a call over one of the same package define-by-run, in turns
pays after: with its preparation, so many calls take no longer than define-by-run
* no define-by-run mode: compared with difflab's tensors"""


def table(rows: Sequence[SweepRow], **screen: Unpack[Screen]) -> str:
    """Return a table for every number of points, then the reasons of missing times.

    Parameters
    ----------
    rows : sequence of row
        Rows of `difflab.bench.peers.execution` of one function at one point.
    screen
        As for `difflab.report.terminal.draw`.
    """
    parts = [*tables(rows, _grid, "way"), _NOTE]
    return rendered(parts, **screen)


_COLUMNS = (
    *(Column(), Column("execution"), Column("ULP", right=True, format=error)),
    *(Column(name, right=True, format=seconds) for name in ("prepare", "call")),
    *(Column("speed-up", right=True), Column("pays after", right=True)),
)


def _grid(rows: Sequence[SweepRow]) -> Table:
    lines = []
    for row in rows:
        outcome = str(row["status"])
        pays = Cell(_pays(row)) if outcome == "ok" else Cell(outcome, outcome)
        figures = [number(row, name) for name in ("ulps", "prepare_seconds", "call_seconds")]
        lines.append((_named(row), str(row["execution"]), *figures, _speedup(row), pays))
    return Table(_COLUMNS, lines, gap=0)


def _named(row: SweepRow) -> str:
    """Return the name of a way, with a star if its baseline is of another package."""
    other = row["package"] != "difflab" and str(row["baseline"]).startswith("difflab")
    return f"{row['way']}{' *' if other else ''}"


def _speedup(row: SweepRow) -> str:
    return ABSENT if row["ratio"] is None else f"{ratio(1 / float(row['ratio']))}×"


def _pays(row: SweepRow) -> str:
    calls = number(row, "break_even")
    if calls is None:
        return ABSENT
    return "never" if math.isinf(calls) else count(int(calls))


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw the seconds of preparing and of a call of every way, a panel per number of points."""
    shown = sizes(rows)
    places = _places(rows)
    height = 2.0 + 0.3 * (max(places.values()) + 1)
    canvas = titled_figure(
        (1.9 + 4.2 * len(shown), height),
        "one model, four ways of execution: seconds of a call and of preparing it",
        f"value and gradient of {shorten(clean(str(rows[0]['expression'])), 50)} · after how"
        f" many calls preparing pays, against define-by-run · {shorten(machine(rows[0]), 50)}",
    )
    for axes, chosen in panels(canvas, rows, left=1.65, bottom=1.0, top=0.95):
        _panel(axes, chosen, places)
    handles = [marker(name, "o", colour, "white", ms=8) for name, colour in _COLOURS.items()]
    handles += [
        marker("preparing and the first call", "D", "white", INK, ms=5),
        marker("against difflab's tensors", "$*$", INK, INK, ms=5),
    ]
    canvas.legend(handles=handles, loc="lower left", ncols=len(handles), frameon=False, fontsize=9)
    return canvas


def _places(rows: Sequence[SweepRow]) -> dict[str, float]:
    """Return the height of every way, with a gap between packages."""
    places: dict[str, float] = {}
    before, height = rows[0]["package"], -1.0
    for row in rows:
        if _named(row) in places:
            continue
        height += 1.0 if row["package"] == before else 1.4
        places[_named(row)] = height
        before = row["package"]
    return places


def _panel(axes: Axes, rows: Sequence[SweepRow], places: dict[str, float]) -> None:
    known = [number(row, name) for row in rows for name in ("prepare_seconds", "call_seconds")]
    found = [value for value in known if value] or [1e-6, 1.0]
    low, high = min(found), max(found)
    # Space for the figures to the right of the marks.
    limits = (low / 2, high * (high / low) ** 0.8 * 2)
    frame(axes, places, (low, high), limits, lambda tick: f"$10^{{{round(math.log10(tick))}}}$")
    axes.set_xlabel("seconds, logarithmic", loc="left")
    axes.set_ylim(max(places.values()) + 0.6, -0.6)
    for row in rows:
        _mark(axes, row, places[_named(row)], low)


def _mark(axes: Axes, row: SweepRow, height: float, low: float) -> None:
    """Draw one way's times with their figures, or write why there are none."""
    call, prepare = number(row, "call_seconds"), number(row, "prepare_seconds")
    if call is None or prepare is None:
        beside(axes, words(row), (low, height), (0, 0), fontsize=8, color=FAINT)
        return
    colour = _COLOURS[str(row["execution"])]
    axes.plot((call, prepare), (height, height), "-", color=colour, lw=1.4, alpha=0.45)
    axes.plot(prepare, height, "D", color="white", ms=5, mec=colour, mew=1.2)
    axes.plot(call, height, "o", color=colour, ms=7, mec="white", mew=0.8)
    figures = seconds(call)
    if number(row, "break_even") is not None:
        figures += {"never": " · never pays", "1": " · pays at once"}.get(
            _pays(row), f" · pays after {_pays(row)} calls"
        )
    beside(axes, figures, (max(call, prepare), height), (8, 0), fontsize=8, color=INK)
