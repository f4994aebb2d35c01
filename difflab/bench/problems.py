r"""Every method on problems of the library, each at its start: verdict, error and cost.

A problem is compared once, and every method of it is a row, so that the calls of all methods are
timed in turns. The performance profile of a method is the share of problems on which it is right
and costs at most τ times as much as the cheapest right method (Dolan, Moré, Math. Program. 91
(2002) 201-213):

.. math:: \rho_s(\tau) = \frac{1}{|P|} |\{p : t_{p,s} \le \tau \min_{s'} t_{p,s'}\}|

A method that gives no right answer has the cost infinity. The accuracy profile is the share of
problems on which the largest error of an element is at most so many ULP.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from statistics import median
from textwrap import fill
from typing import Unpack

from difflab.bench.shared import picture, style_of
from difflab.core.table import Cell, Column, Table
from difflab.core.wording import error, percent
from difflab.lab import provenance
from difflab.lab.compare import compare
from difflab.lab.problems.file import Problem
from difflab.lab.problems.library import problems
from difflab.lab.record import STORED, cell_types, outcome
from difflab.lab.sweep import Row, SweepRow, Task, together
from difflab.methods.registry import select
from difflab.report import html
from difflab.report.canvas import (
    FAINT,
    Axes,
    Figure,
    Label,
    label_ends,
    power_tick,
    ratio_tick,
    ticks,
    titled_figure,
)
from difflab.report.terminal import Screen, clean
from difflab.report.terminal import draw as rendered

_TITLES = {"max_ulp_error": "ulps", "max_rel_error": "relative_error"}
LAYOUT = provenance.layout(
    {
        "problem": str,
        "kind": str,
        "inputs": int,
        "outputs": int,
        **cell_types("method", "family"),
        **{_TITLES.get(each.name, each.name): each.stored or str for each in STORED},
    },
    key=("problem", "method"),
)

QUICK = 12
"""With ``quick`` one of so many problems is measured."""


def tasks(
    chosen: Sequence[Problem] | None = None,
    methods: Sequence[str] | None = None,
    *,
    quick: bool = False,
    timeout: float = 10.0,
) -> Iterator[Task]:
    """Yield one task for each problem and method.

    Parameters
    ----------
    chosen : sequence of Problem, optional
        By default the whole library.
    methods : sequence of str, optional
        As for `difflab.compare`.
    quick : bool
        Whether one problem of `QUICK` is enough.
    timeout : float
        Seconds for each method and for the referee.
    """
    listed = list(problems() if chosen is None else chosen)
    sources = {
        method.name: provenance.source(
            method, uses=("mpmath", "python-flint"), target="auto", timeout=timeout
        )
        for method in select(methods)
    }
    for one in listed[:: QUICK if quick else 1]:
        yield from together(
            {"problem": one.name}, sources, partial(_rows, one, [*sources], timeout)
        )


def _rows(one: Problem, names: Sequence[str], timeout: float) -> dict[str, Row]:
    """Return the row of every method on a problem."""
    about: Row = {"kind": one.kind, "inputs": one.n, "outputs": one.m}
    try:
        rows = compare(one.text, one.start, methods=names, timeout=timeout).methods
    except (Exception, SystemExit) as error:  # a problem or another package may fail in any way
        return {name: about | outcome(error)._asdict() for name in names}
    return {
        row.name: {
            **about,
            "family": row.family,
            **{_TITLES.get(name, name): value for name, value in row.stored().items()},
            "repetitions": len(row.samples),
        }
        for row in rows
    }


CALLS = 1000
"""Calls in the cost of many derivatives, as in the recommendation of a comparison."""
RIGHT = ("agree", "convention")
"""The verdicts that count as an answer."""


@dataclass(frozen=True)
class Profiles:
    """The figures of every method, one for every problem; infinite where there is no answer.

    Attributes
    ----------
    problems : tuple of str
    once, often : mapping of str to tuple of float
        The cost of one derivative, and of `CALLS` of them, over that of the cheapest method.
    ulps : mapping of str to tuple of float
        The largest error.
    """

    problems: tuple[str, ...]
    once: Mapping[str, tuple[float, ...]]
    often: Mapping[str, tuple[float, ...]]
    ulps: Mapping[str, tuple[float, ...]]

    @classmethod
    def of(cls, rows: Sequence[SweepRow]) -> Profiles:
        """Return the profiles of the rows of `difflab.bench.problems`."""
        names = tuple(dict.fromkeys(str(row["problem"]) for row in rows))
        by_method: dict[str, dict[str, SweepRow]] = {}
        for row in rows:
            by_method.setdefault(str(row["method"]), {})[str(row["problem"])] = row
        costs = {
            calls: {
                method: [_cost(by_problem.get(name), calls) for name in names]
                for method, by_problem in by_method.items()
            }
            for calls in (1, CALLS)
        }
        ulps = {
            method: tuple(_ulps(by_problem.get(name)) for name in names)
            for method, by_problem in by_method.items()
        }
        return cls(names, ratios(costs[1]), ratios(costs[CALLS]), ulps)


def ratios(costs: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, ...]]:
    """Return the cost of every method over the smallest cost of the same problem.

    Examples
    --------
    >>> ratios({"a": [1.0, 4.0], "b": [2.0, math.inf]})
    {'a': (1.0, 1.0), 'b': (2.0, inf)}
    """
    least = [min(column) for column in zip(*costs.values(), strict=True)]
    return {
        name: tuple(
            own / best if math.isfinite(own) else math.inf
            for own, best in zip(row, least, strict=True)
        )
        for name, row in costs.items()
    }


def share(values: Iterable[float], limit: float) -> float:
    """Return the share of values that are at most `limit`.

    Examples
    --------
    >>> share([1.0, 3.0, math.inf, 2.0], 2)
    0.5
    """
    listed = list(values)
    return sum(value <= limit for value in listed) / len(listed)


def _right(row: SweepRow | None) -> bool:
    return row is not None and row["verdict"] in RIGHT


def _cost(row: SweepRow | None, calls: int) -> float:
    """Return the seconds of preparing and calling; infinity without a right answer."""
    if row is None or not _right(row):
        return math.inf
    prepare, call = row["prepare_seconds"], row["call_seconds"]
    if prepare is None or call is None:
        return math.inf
    return float(prepare) + calls * float(call)


def _ulps(row: SweepRow | None) -> float:
    if row is None or row["ulps"] is None or row["status"] != "ok":
        return math.inf
    ulps = float(row["ulps"])
    return math.inf if math.isnan(ulps) else ulps


_MOST = 1e5  # the largest ratio that is drawn
_LEAST_ULPS, _MOST_ULPS = 0.1, 1e16
_READING = f"""\
above: the share of the problems on which a method is right
and costs at most x times as much as the cheapest right
method (Dolan, Moré 2002); further up and left is better

left: the share of the problems whose largest error
is at most x ULP

in colour: the best method of each family, the one with
the largest area under its profile of {CALLS:,} derivatives"""
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
    for method, own_rows in _by_method(rows).items():
        verdicts = Counter(str(row["verdict"]) for row in own_rows if row["status"] == "ok")
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
    by_method: dict[str, list[SweepRow]] = {}
    for row in rows:
        by_method.setdefault(str(row["method"]), []).append(row)
    return by_method


# --- the picture -----------------------------------------------------------------------------


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw performance profiles of one and of many derivatives, and the accuracy profile.

    The best method of every family has a colour, the others are grey.
    """
    profiles = Profiles.of(rows)
    strong = _best_of_families(rows, profiles.often)
    canvas = titled_figure(
        7.4,
        "share of the problems that a method solves",
        _heading(rows),
        left=0.6,
        right=1.75,
    )
    grid = canvas.subplots(2, 2, sharey=True, gridspec_kw={"wspace": 0.8, "hspace": 0.32})
    panels = grid.ravel().tolist()
    titles = ("one derivative, prepared and called", f"{CALLS:,} derivatives")
    both = zip(panels[:2], titles, (profiles.once, profiles.often), strict=True)
    for axes, title, curves in both:
        _panel(axes, curves, strong, 1.0, _MOST)
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlabel("cost over the cheapest right method")
        ticks(axes.xaxis, {10.0**k: ratio_tick(10.0**k) for k in range(6)})
    _panel(panels[2], profiles.ulps, strong, _LEAST_ULPS, _MOST_ULPS)
    panels[2].set_title("error of the worst element", loc="left", fontsize=10)
    panels[2].set_xlabel("ULP")
    ticks(panels[2].xaxis, {10.0**k: power_tick(10.0**k) for k in range(0, 17, 4)})
    panels[3].set_axis_off()
    panels[3].text(0.0, 1.0, _READING, transform=panels[3].transAxes, va="top", linespacing=1.5)
    return canvas


def _best_of_families(rows: Sequence[SweepRow], curves: Mapping[str, Sequence[float]]) -> set[str]:
    """Return the method of every family with the largest area under its profile."""
    best: dict[str, tuple[float, str]] = {}
    for method, family in {str(row["method"]): str(row["family"]) for row in rows}.items():
        best[family] = max(best.get(family, (-1.0, "")), (_area(curves[method], _MOST), method))
    return {method for _, method in best.values()}


def _panel(
    axes: Axes, curves: Mapping[str, Sequence[float]], strong: set[str], low: float, high: float
) -> None:
    axes.set(xscale="log", xlim=(low, high), ylim=(0, 1.02))
    axes.yaxis.set_major_formatter(lambda share, _: percent(share))
    axes.grid(visible=True)
    labels = []
    ends: dict[float, list[str]] = {}  # of the grey lines
    for method in sorted(curves, key=lambda name: _area(curves[name], high)):
        look, (x, y) = style_of(method), _steps(curves[method], low, high)
        if method in strong:
            axes.plot(x, y, color=look.colour, lw=2.2, drawstyle="steps-post", zorder=3)
            labels.append(Label(clean(method), high, y[-1], look.colour))
        else:
            axes.plot(x, y, color=FAINT, lw=0.7, drawstyle="steps-post")
            ends.setdefault(y[-1], []).insert(0, clean(method))
    others = [
        Label(fill(", ".join(names), 24, break_on_hyphens=False), high, end, FAINT)
        for end, names in ends.items()
    ]
    label_ends(axes, [*others, *labels])  # of equal ends the last is the highest


def _area(values: Sequence[float], high: float) -> float:
    """Return the area under a profile, up to a factor."""
    return sum(math.log(high / max(value, 1e-3)) for value in values if value <= high)


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
    for method, own_rows in _by_method(rows).items():
        lines = [
            (clean(str(row["problem"])), _outcome(row), clean(str(row["message"] or "")))
            for row in own_rows
            if row["verdict"] not in RIGHT
        ]
        if lines:
            yield f"<details><summary>{escape(clean(method))}: {len(lines)}</summary>"
            yield html.table(Table(columns, lines))
            yield "</details>"


def _outcome(row: SweepRow) -> Cell:
    outcome = str(row["verdict"] if row["status"] == "ok" else row["status"])
    return Cell(outcome, outcome)
