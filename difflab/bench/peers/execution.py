"""One model define-by-run, define-then-run, traced and compiled: cost of calls and preparing.

Every way computes the value and the gradient in float64 at the same points, and its answer is
judged as in `difflab.bench.peers.bench` before anything is timed. Its calls alternate with
those of the way without preparation that it is compared with. Preparing includes the first call.
Before that, the package is used once on another function, so that its imports are
not counted, and compiled code that earlier processes left on disk is not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Unpack

import numpy as np

from difflab.bench.peers.bench import Answered, answered
from difflab.bench.peers.drawing import frame, machine, panels, sizes, tables, words
from difflab.bench.peers.ways import OWN, SEED_OF_BATCHES, WAYS, PeerCase, Way, cold, contenders
from difflab.bench.shared import BLUE, GREEN, ORANGE, PURPLE, layout, picture
from difflab.core.table import Cell, Column, Table
from difflab.core.wording import ABSENT, count, error, ratio, seconds
from difflab.errors import DifflabError
from difflab.lab import provenance
from difflab.lab.sampling import paired
from difflab.lab.sweep import Cell as SweepCell
from difflab.lab.sweep import SweepRow, Task, number, trial
from difflab.language import parse
from difflab.report.canvas import (
    FAINT,
    INK,
    Axes,
    Figure,
    beside,
    marker,
    seconds_tick,
    titled_figure,
)
from difflab.report.terminal import Screen, clean, shorten
from difflab.report.terminal import draw as rendered

__all__ = ["LAYOUT", "OWN", "POINTS", "break_even", "contenders", "draw", "table", "tasks"]


LAYOUT = layout(
    "expression point points way package execution version status message ulps prepare_seconds "
    "call_seconds call_form baseline baseline_prepare_seconds baseline_seconds ratio ratio_low "
    "ratio_high break_even",
    key="expression point points way",
)

POINTS = (1, 1_000, 100_000)
Prepared = Callable[[Way], Answered]


def tasks(
    case: PeerCase, chosen: Mapping[str, Way], points: Sequence[int], budget: float = 10.0
) -> Iterator[Task]:
    """Yield a task for every size of batch and way, the small sizes first."""
    timeouts: dict[str, str] = {}
    warm: set[str] = set()
    for size in sorted(points):
        answers: dict[str, Answered] = {}
        ready = partial(_prepared, case, size, budget, answers, warm)
        for way in chosen.values():
            source = provenance.source(
                way.peer,
                uses=("mpmath",),
                target=getattr(way.peer, "target", None),
                timeout=budget,
                seed=SEED_OF_BATCHES,
            )
            yield trial(
                case.key(size, way=way.name),
                partial(_measured, way, budget, ready),
                source,
                timeouts=timeouts,
                name=way.name,
                size=f"with {size:,}",
                package=way.package,
                execution=way.execution,
                version=way.peer.version(),
                message="",
                baseline=way.baseline,
            )


def break_even(prepare: float, call: float, base_prepare: float, base_call: float) -> float:
    """Return after how many calls preparing is repaid: infinity if never.

    Both first calls are part of preparing, so the first of them counts as one call.

    Examples
    --------
    >>> break_even(2.0, 0.5, 1.0, 1.0), break_even(0.5, 2.0, 1.0, 1.0), break_even(0.5, 1, 1, 2)
    (3.0, inf, 1.0)
    """
    if call >= base_call:
        return math.inf
    return 1.0 + max(0, math.ceil((prepare - base_prepare) / (base_call - call)))


def _measured(way: Way, budget: float, ready: Prepared) -> dict[str, SweepCell]:
    answer = ready(way)
    row = answer.columns()
    if answer.complaint:
        return row
    base = _baseline(way, ready)
    times = paired((base or answer).call, answer.call, budget=budget).columns("baseline_seconds")
    if base is None:
        return {**row, "call_seconds": times["call_seconds"]}
    row |= {**times, "baseline_prepare_seconds": base.prepare_seconds}
    if base is not answer:
        # The ratio is of alternating calls, so a drift of the machine is not in it.
        each = times["baseline_seconds"]
        call = each * times["ratio"]
        row["break_even"] = break_even(answer.prepare_seconds, call, base.prepare_seconds, each)
    return row


def _baseline(way: Way, ready: Prepared) -> Answered | None:
    """Return the way that `way` is compared with; None if that one has no right answer."""
    try:
        answer = ready(WAYS[way.baseline])
    except (DifflabError, ArithmeticError, RuntimeError):
        return None
    return None if answer.complaint else answer


def _prepared(
    case: PeerCase,
    points: int,
    budget: float,
    answers: dict[str, Answered],
    warm: set[str],
    way: Way,
) -> Answered:
    """Prepare a way once for each size of batch, in a process that has used the package before."""
    if way.name not in answers:
        with cold():
            if way.name not in warm and way.peer.missing() is None:
                other = PeerCase(parse("exp(t)*t"), np.array([0.5]), "exp(t)*t", "t = 0.5")
                answered(other, way.peer, points=1, budget=budget)
                warm.add(way.name)
            answers[way.name] = answered(case, way.peer, points, budget)
    return answers[way.name]


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
    heights = _heights(rows)
    shown, across = len(sizes(rows)), 2
    free = bool(shown % across)  # for the legend
    canvas = titled_figure(
        1.4 + (0.6 + 0.27 * (max(heights.values()) + 1)) * math.ceil(shown / across),
        "one model, four ways of execution: time of a call and of preparing it",
        f"value and gradient of {shorten(clean(str(rows[0]['expression'])), 50)} · after how"
        f" many calls preparing pays, against define-by-run · {shorten(machine(rows[0]), 50)}",
        left=1.5,
        right=0.15,
        bottom=0.5 if free else 1.0,
    )
    for axes, chosen in panels(canvas, rows, across):
        _panel(axes, chosen, heights)
    handles = [marker(name, "o", colour, "white", ms=8) for name, colour in _COLOURS.items()]
    handles += [
        marker("preparing and the first call", "D", "white", INK, ms=5),
        marker("against difflab's tensors", "$*$", INK, INK, ms=5),
    ]
    if free:
        canvas.axes[-1].legend(handles=handles, loc="upper left", frameon=False)
    else:
        canvas.legend(handles=handles, loc="lower left", ncols=3, frameon=False)
    return canvas


def _heights(rows: Sequence[SweepRow]) -> dict[str, float]:
    """Return the height of every way, with a gap between packages."""
    heights: dict[str, float] = {}
    before, height = rows[0]["package"], -1.0
    for row in rows:
        if _named(row) in heights:
            continue
        height += 1.0 if row["package"] == before else 1.4
        heights[_named(row)] = height
        before = row["package"]
    return heights


def _panel(axes: Axes, rows: Sequence[SweepRow], heights: dict[str, float]) -> None:
    cells = [number(row, name) for row in rows for name in ("prepare_seconds", "call_seconds")]
    times = [value for value in cells if value] or [1e-6, 1.0]
    low, high = min(times), max(times)
    # Space for the figures to the right of the marks.
    limits = (low / 2, high * (high / low) ** 1.35 * 2)
    frame(axes, heights, (low, high), limits, seconds_tick)
    axes.set_xlabel("time")
    axes.set_ylim(max(heights.values()) + 0.6, -0.6)
    for row in rows:
        _mark(axes, row, heights[_named(row)], low)


def _mark(axes: Axes, row: SweepRow, height: float, low: float) -> None:
    """Draw one way's times with their figures, or write why there are none."""
    call, prepare = number(row, "call_seconds"), number(row, "prepare_seconds")
    if call is None or prepare is None:
        beside(axes, words(row), (low, height), (0, 0), color=FAINT)
        return
    colour = _COLOURS[str(row["execution"])]
    axes.plot((call, prepare), (height, height), "-", color=colour, lw=1.4, alpha=0.45)
    axes.plot(prepare, height, "D", color="white", ms=5, mec=colour, mew=1.2)
    axes.plot(call, height, "o", color=colour, ms=7, mec="white", mew=0.8)
    figures = seconds(call)
    calls = number(row, "break_even")
    if calls is not None:
        figures += {math.inf: " · never pays", 1.0: " · pays at once"}.get(
            calls, f" · pays after {calls:,.0f} calls"
        )
    beside(axes, figures, (max(call, prepare), height), (8, 0), color=INK)
