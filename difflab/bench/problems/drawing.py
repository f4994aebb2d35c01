"""The table, the picture and the page of `difflab bench problems`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from statistics import median
from typing import TYPE_CHECKING, Unpack

from difflab.bench.pictures import METHOD_STYLES, picture, style_of
from difflab.bench.problems.profiles import CALLS, RIGHT, Profiles, share
from difflab.core.quantities import error, percent
from difflab.core.table import Cell, Column, Table
from difflab.lab.sweep import SweepRow
from difflab.report import html
from difflab.report.canvas import Label, label_ends, ticks, titled_figure
from difflab.report.style import clean, shorten
from difflab.report.terminal import Screen
from difflab.report.terminal import draw as rendered

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "page", "text"]

_MOST = 1e5  # the largest ratio that is drawn
_LEAST_ULPS, _MOST_ULPS = 0.1, 1e16
_NOTE = f"""\
right: agrees, or takes a convention at a kink; ULP: of the worst element, over all problems with
an answer; fastest: share of all problems on which the method is right and the cheapest, within 2×:
and costs at most twice as much, preparation and {CALLS:,} calls included"""


def text(rows: Sequence[SweepRow], **screen: Unpack[Screen]) -> str:
    """Return a table with a row for every method."""
    return rendered([_heading(rows), _table(rows), _NOTE], **screen)


def _heading(rows: Sequence[SweepRow]) -> str:
    names = dict.fromkeys(str(row["problem"]) for row in rows)
    sets = dict.fromkeys(name.partition("/")[0] for name in names)
    return f"{len(names):,} problems of {', '.join(sets)}, each at its start"


def _table(rows: Sequence[SweepRow]) -> Table:
    profiles = Profiles.of(rows)
    total = len(profiles.problems)
    columns = (
        Column("method"),
        *(Column(name, right=True) for name in ("right", "wrong", "unclear", "no answer")),
        *(Column(name, right=True, format=error) for name in ("median ULP", "95 %")),
        *(Column(name, right=True, format=percent) for name in ("fastest", "within 2×")),
    )
    lines = []
    for method, found in _by_method(rows).items():
        verdicts = Counter(str(row["verdict"]) for row in found if row["status"] == "ok")
        right = sum(verdicts[name] for name in RIGHT)
        answered = sorted(value for value in profiles.ulps[method] if math.isfinite(value))
        lines.append(
            (
                clean(method),
                f"{right}/{total}",
                verdicts["disagree"],
                verdicts["inconclusive"],
                total - sum(verdicts.values()),
                median(answered) if answered else None,
                answered[math.ceil(0.95 * len(answered)) - 1] if answered else None,
                share(profiles.often[method], 1.0),
                share(profiles.often[method], 2.0),
            )
        )
    return Table(columns, lines, gap=2)


def _by_method(rows: Sequence[SweepRow]) -> dict[str, list[SweepRow]]:
    found: dict[str, list[SweepRow]] = {}
    for row in rows:
        found.setdefault(str(row["method"]), []).append(row)
    return found


# --- the picture -----------------------------------------------------------------------------


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw performance profiles of one and of many derivatives, and the accuracy profile."""
    profiles = Profiles.of(rows)
    canvas = titled_figure(
        (14.0, 5.6),
        "share of the problems that a method solves",
        f"{shorten(_heading(rows), 130)} · left and middle: within a factor of the cheapest "
        "right method (Dolan, Moré 2002)",
    )
    panels = canvas.subplots(1, 3, sharey=True)
    canvas.subplots_adjust(left=0.04, right=0.925, bottom=0.1, top=0.8, wspace=0.36)
    titles = ("one derivative, prepared and called", f"{CALLS:,} derivatives")
    both = zip(panels[:2], titles, (profiles.once, profiles.often), strict=True)
    for axes, title, curves in both:
        _panel(axes, curves, 1.0, _MOST)
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlabel("cost over the cheapest right method")
        ticks(axes.xaxis, {10.0**k: f"{10**k}×" if k < 3 else f"$10^{k}$×" for k in range(6)})
    _panel(panels[2], profiles.ulps, _LEAST_ULPS, _MOST_ULPS)
    panels[2].set_title("error of the worst element", loc="left", fontsize=10)
    panels[2].set_xlabel("ULP")
    ticks(panels[2].xaxis, {10.0**k: f"$10^{{{k}}}$" if k else "1" for k in range(0, 17, 4)})
    return canvas


def _panel(axes: Axes, curves: Mapping[str, Sequence[float]], low: float, high: float) -> None:
    from matplotlib.ticker import PercentFormatter

    axes.set(xscale="log", xlim=(low, high), ylim=(0, 1.02))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.grid(visible=True)
    labels = []
    for method, values in curves.items():
        look = style_of(method)
        dashes = look.dashes if method in METHOD_STYLES else "--"
        x, y = _steps(values, low, high)
        axes.plot(x, y, dashes, color=look.colour, lw=look.width, drawstyle="steps-post")
        labels.append(Label(clean(method), high, y[-1], look.colour))
    label_ends(axes, labels)


def _steps(values: Sequence[float], low: float, high: float) -> tuple[list[float], list[float]]:
    """Return the corners of the share of values up to x."""
    inside = sorted(max(value, low) for value in values if value <= high)
    x, y = [low], [0.0]
    for count, value in enumerate(inside, 1):
        x.append(value)
        y.append(count / len(values))
    return [*x, high], [*y, y[-1]]


# --- the page --------------------------------------------------------------------------------


def page(rows: Sequence[SweepRow]) -> str:
    """Return a page with the table, the picture, and every problem that a method did not solve."""
    drawn = draw(rows).decode()
    title = "difflab bench problems"
    body = [
        f"<h1>{title}</h1>",
        f'<p class="note">{escape(_heading(rows))}</p>',
        html.table(_table(rows)),
        f'<p class="note">{escape(_NOTE)}</p>',
        f'<div class="wide">{drawn[drawn.index("<svg") :]}</div>',
        "<h2>Not solved</h2>",
        *_unsolved(rows),
    ]
    return html.document(title, body)


def _unsolved(rows: Sequence[SweepRow]) -> Iterator[str]:
    """Yield a closed list for every method, of the problems without a right answer."""
    columns = (Column("problem"), Column("outcome"), Column("reason"))
    if all(row["verdict"] in RIGHT for row in rows):
        yield '<p class="note">Every method solved every problem.</p>'
    for method, found in _by_method(rows).items():
        lines = [
            (clean(str(row["problem"])), _outcome(row), clean(str(row["message"] or "")))
            for row in found
            if row["verdict"] not in RIGHT
        ]
        if lines:
            yield f"<details><summary>{escape(clean(method))}: {len(lines)}</summary>"
            yield html.table(Table(columns, lines))
            yield "</details>"


def _outcome(row: SweepRow) -> Cell:
    outcome = str(row["verdict"] if row["status"] == "ok" else row["status"])
    return Cell(outcome, outcome)
