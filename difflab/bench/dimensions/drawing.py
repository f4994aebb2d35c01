"""The picture of a family, costs against n and m and maps of the cheapest method; and its page."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from textwrap import fill
from typing import Any

from difflab.bench.dimensions.winners import (
    COLUMNS,
    Cost,
    Interval,
    PowerLaw,
    SizedCosts,
    costs,
    envelope,
    laws,
    pays,
    size_of,
)
from difflab.bench.shared import picture, plot_curve, style_of
from difflab.core.table import Column, Table
from difflab.core.wording import bytes_text, seconds
from difflab.lab.sweep import SweepRow
from difflab.report import html
from difflab.report.canvas import (
    FAINT,
    INK,
    WIDTH,
    Axes,
    Figure,
    decades,
    seconds_tick,
    ticks,
    titled_figure,
)
from difflab.report.terminal import clean, shorten

CALLS = (1, 1_000, 1_000_000)
"""The numbers of calls of the picture's maps."""

_FIGURES = {
    "operations": "operations of a Jacobian",
    "call_seconds": "time of a call",
    "peak_bytes": "memory of a call",
    "prepare_seconds": "time of preparing",
}
_RIGHT = 2.45
"""Inches beside the panels, for the methods."""


def _exponent_text(law: PowerLaw) -> str:
    """Return a power law's exponents with their intervals, a line for each.

    Examples
    --------
    >>> from difflab.bench.dimensions.winners import Exponent
    >>> _exponent_text(PowerLaw(1.0, {"n": Exponent(2.0, 1.95, 2.05)}, 6))
    'n^2.00 [1.95, 2.05]'
    """
    return "\n".join(
        f"{size}^{exponent.value:z.2f} [{exponent.low:z.2f}, {exponent.high:z.2f}]"
        for size, exponent in law.exponents.items()
    )


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw a family's costs against each size that varies, and maps of the cheapest method."""
    varying = [size for size in ("n", "m") if len({row[size] for row in rows}) > 1] or ["n"]
    lines = len(varying)
    methods = len({row["method"] for row in rows})
    canvas = titled_figure(
        max(4.4 + 3.9 * lines, 1.2 + 0.56 * methods),
        "cost of a Jacobian against the sizes of the family",
        f"{shorten(clean(str(rows[0]['family'])), 45)} · dashed, hatched: extrapolated after "
        "a timeout · cheapest: with preparation",
        right=_RIGHT,
    )
    inch = 1 / canvas.get_figheight()
    grid = canvas.add_gridspec(2 * lines, 2, bottom=3.6 * inch, wspace=0.36, hspace=0.6)
    for down, size in enumerate(varying):
        for across, column in enumerate(_FIGURES):
            cell = grid[2 * down + across // 2, across % 2]
            _panel(canvas.add_subplot(cell), rows, size, column)
    maps = canvas.add_gridspec(1, 3, top=2.7 * inch, wspace=0.24)
    for across, calls in enumerate(CALLS):
        _map(canvas.add_subplot(maps[0, across]), costs(rows), calls)
    _legend(canvas, rows)
    return canvas


def _panel(axes: Axes, rows: Sequence[SweepRow], size: str, column: str) -> None:
    """Draw one figure of all methods against one size, at the median of the other."""
    other = "m" if size == "n" else "n"
    others = sorted({int(row[other] or 1) for row in rows})
    fixed = others[len(others) // 2]
    chosen = [row for row in rows if int(row[other] or 1) == fixed]
    fitted = laws(rows, column)
    axes.set(xscale="log", yscale="log")
    sizes = sorted({int(row[size] or 1) for row in rows})
    ticks(axes.xaxis, {k: str(k) for k in sizes[:: 1 + len(sizes) // 8]})
    axes.grid(visible=True)
    axes.set_xlabel(f"{size}   ({other} = {fixed})" if len(others) > 1 else size)
    axes.set_title(_FIGURES[column], loc="left", fontsize=9.5)
    for name in dict.fromkeys(str(row["method"]) for row in chosen):
        own = [row for row in chosen if row["method"] == name]
        _curve(axes, own, size, column, fitted.get(name))
    if column.endswith("seconds"):
        decades(axes.yaxis, seconds_tick)
    elif column == "peak_bytes":
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter(lambda b, _: bytes_text(int(b)) if b >= 1 else "")


def _curve(
    axes: Axes, rows: Sequence[SweepRow], size: str, column: str, law: PowerLaw | None
) -> None:
    """Draw one method: the measurements, and dashed the fitted law beyond its timeouts."""
    look = style_of(str(rows[0]["method"]))
    measured = [
        (float(row[size] or 1), float(row[column] or 0))
        for row in rows
        if row["status"] == "ok" and row[column]
    ]
    if measured:
        x, y = zip(*measured, strict=True)
        plot_curve(axes, x, y, look)
    beyond = [
        (float(row[size] or 1), law.at(*size_of(row)))
        for row in rows
        if law is not None and row["status"] == "timeout"
    ]
    if beyond:
        x, y = zip(*measured[-1:], *beyond, strict=True)
        axes.plot(x, y, "--", color=look.colour, lw=1.0, marker=look.marker, mfc="none", ms=4)


def _map(axes: Axes, by_size: Mapping[tuple[int, int], Mapping[str, Cost]], calls: int) -> None:
    """Draw a cell for every size in the colour of the method that costs least."""
    from matplotlib.patches import Rectangle

    n_sizes, m_sizes = (sorted({size[axis] for size in by_size}) for axis in (0, 1))
    axes.set(xlim=(0, len(n_sizes)), ylim=(0, len(m_sizes)), xlabel="n", ylabel="m")
    ticks(axes.xaxis, {k + 0.5: str(n) for k, n in enumerate(n_sizes)})
    ticks(axes.yaxis, {k + 0.5: str(m) for k, m in enumerate(m_sizes)})
    axes.grid(visible=False)
    axes.tick_params(length=0)
    times = "1 call" if calls == 1 else f"{calls:,} calls"
    axes.set_title(f"cheapest, {times}", loc="left", fontsize=9)
    for (n, m), cell in by_size.items():
        corner = n_sizes.index(n), m_sizes.index(m)
        if not cell:
            axes.text(corner[0] + 0.5, corner[1] + 0.5, "–", ha="center", va="center", color=FAINT)
            continue
        name = min(cell, key=lambda name: cell[name].total(calls))
        axes.add_patch(
            Rectangle(
                corner, 1, 1, facecolor=style_of(name).colour, edgecolor="white", lw=1.2,
                hatch="///" if cell[name].extrapolated else None,
            )
        )  # fmt: skip
        if len(n_sizes) <= 6 and len(m_sizes) <= 3:  # else the colours alone name the methods
            centre = corner[0] + 0.5, corner[1] + 0.5
            box = {"facecolor": style_of(name).colour, "edgecolor": "none", "pad": 0.5}
            axes.text(
                *centre, shorten(clean(name), 14).replace("-", "-\n"), ha="center", va="center",
                fontsize=8.5, rotation=90 if len(n_sizes) > 2 else 0, color="white", bbox=box,
            )  # fmt: skip


def _legend(canvas: Figure, rows: Sequence[SweepRow]) -> None:
    """Write the methods beside the panels, with the exponents of their calls or why none ran."""
    from matplotlib.lines import Line2D

    fitted = laws(rows, "call_seconds")
    inch = 1 / canvas.get_figheight()
    left, top, step = 1 - (_RIGHT - 0.1) / WIDTH, canvas.subplotpars.top, 0.56 * inch
    for k, name in enumerate(dict.fromkeys(str(row["method"]) for row in rows)):
        look = style_of(name)
        own = [row for row in rows if row["method"] == name]
        law = fitted.get(name)
        about = "" if law is None else f"call ~ {_exponent_text(law)}".replace("\n", " ·\n")
        if not any(row["status"] == "ok" for row in own):
            about = fill(shorten(clean(f"{own[0]['status']}: {own[0]['message']}"), 56), 30)
        y = top - k * step
        sample = [left, left + 0.022], [y - 0.07 * inch] * 2
        canvas.add_artist(
            Line2D(*sample, ls=look.dashes, color=look.colour, marker=look.marker, ms=5)
        )
        canvas.text(left + 0.03, y, clean(name), color=INK, fontsize=9, va="top")
        canvas.text(
            left + 0.03, y - 0.17 * inch, about,
            color=FAINT, fontsize=8.5, va="top", parse_math=False,
        )  # fmt: skip


_PAGE_STYLE = """
.difflab .map { border-collapse: separate; border-spacing: 2px; width: auto; }
.difflab .map th { text-align: center; border: 0; }
.difflab .map td { border: 0; border-radius: 3px; padding: .4rem .5rem; min-width: 5.2rem;
  text-align: center; color: #fff; font-size: .78rem; line-height: 1.25; white-space: nowrap; }
.difflab .map td.none { color: inherit; background: none; }
.difflab .map td.extrapolated { background-image: repeating-linear-gradient(135deg,
  transparent 0 5px, rgba(255, 255, 255, .38) 5px 7px); text-shadow: 0 0 3px #000; }
.difflab .control { display: flex; gap: .8rem; align-items: center; flex-wrap: wrap;
  margin: .6rem 0; }
.difflab input[type=range] { flex: 1; max-width: 26rem; }
.difflab select { font: inherit; }
.difflab td { white-space: pre-line; }
.difflab .costs { background: #fff; border-radius: 6px; }
"""
_TITLES = {
    "operations": "operations",
    "call_seconds": "time of a call",
    "peak_bytes": "memory of a call",
    "prepare_seconds": "preparation",
}


def page(rows: Sequence[SweepRow]) -> str:
    """Return a page without network access: maps over n and m, with a slider of the calls.

    Parameters
    ----------
    rows : sequence of row
        Rows of one family.
    """
    by_size = costs(rows)
    methods = list(dict.fromkeys(str(row["method"]) for row in rows))
    family = str(rows[0]["family"])
    body = [
        "<h1>Cost of a Jacobian against the sizes of the family</h1>",
        f"<pre>{escape(family)}</pre>",
        "<h2>The cheapest method, preparation included</h2>",
        '<div class="control"><label for="calls">number of calls</label>'
        '<input id="calls" type="range" min="0" max="9" step="0.25" value="3">'
        '<output id="shown" for="calls"></output></div>',
        '<div class="scroll"><table class="map" id="winners"></table></div>',
        "<h2>When does preparing pay?</h2>",
        '<div class="control"><label for="first">Calls for which</label>'
        '<select id="first"></select><label for="second">costs no more than</label>'
        '<select id="second"></select></div>',
        '<div class="scroll"><table class="map" id="breakeven"></table></div>',
        '<p class="note">Cost: seconds of preparing once and of all calls. Hatched: extrapolated '
        "by the fitted power law, because the method timed out at that size. "
        "–: no method, or never.</p>",
        "<h2>Fitted exponents, with intervals of 95 %</h2>",
        html.table(_exponents(rows, methods)),
        '<p class="note">Least squares on logarithms over the upper half of each range of sizes.'
        "</p>",
        "<h2>Costs</h2>",
        f'<img class="costs wide" alt="Costs against the sizes" src="{_image(rows)}">',
        *_unanswered(rows),
        f"<footer>{escape(_about(rows))}</footer>",
    ]
    script = files("difflab.bench.dimensions").joinpath("page.js").read_text("utf-8")
    data = _script_data(_data(by_size, methods))
    return html.document(
        "Cost against dimensions",
        [
            f"<style>{_PAGE_STYLE}</style>",
            *body,
            f'<script type="application/json" id="data">{data}</script>',
        ],
        script=script,
    )


def _data(by_size: SizedCosts, methods: Sequence[str]) -> dict[str, Any]:
    """Return the data of the script: for each size, the intervals of calls, and the costs."""
    n_sizes, m_sizes = (sorted({size[axis] for size in by_size}) for axis in (0, 1))
    cells = {f"{n},{m}": _cell(cell) for (n, m), cell in by_size.items()}
    colours = {name: style_of(name).colour for name in methods}
    return {"n": n_sizes, "m": m_sizes, "colours": colours, "cells": cells}


def _cell(cell: Mapping[str, Cost]) -> dict[str, Any]:
    pairs = {
        first: {second: _ends(pays(cost, its)) for second, its in cell.items() if second != first}
        for first, cost in cell.items()
    }
    others = envelope(cell)
    return {
        "costs": {name: [cost.prepare, cost.call] for name, cost in cell.items()},
        "extrapolated": [name for name, cost in cell.items() if cost.extrapolated],
        "cheapest": {name: _ends(interval) for name, interval in others.items()},
        "pays": pairs,
    }


def _ends(interval: Interval | None) -> list[float | None] | None:
    """Return an interval for JSON; None as its end is unbounded."""
    if interval is None:
        return None
    low, high = interval
    return [low, None if math.isinf(high) else high]


def _script_data(data: Mapping[str, Any]) -> str:
    """Return JSON that cannot end its element."""
    return json.dumps(data, allow_nan=False, ensure_ascii=True).replace("<", "\\u003c")


def _exponents(rows: Sequence[SweepRow], methods: Sequence[str]) -> Table:
    fitted = {column: laws(rows, column) for column in COLUMNS}
    lines = [
        [clean(name)]
        + [
            _exponent_text(fitted[column][name]) if name in fitted[column] else "–"
            for column in COLUMNS
        ]
        for name in methods
    ]
    return Table([Column("method"), *(Column(_TITLES[column]) for column in COLUMNS)], lines)


def _unanswered(rows: Sequence[SweepRow]) -> list[str]:
    """Return the part about missing answers; empty if every method had all."""
    missing = _absent(rows)
    return ["<h2>Without an answer</h2>", html.table(missing)] if missing.rows else []


def _absent(rows: Sequence[SweepRow]) -> Table:
    """Return the first size at which each method had no answer, and why."""
    first: dict[tuple[str, str], SweepRow] = {}
    for row in rows:
        if row["status"] != "ok":
            first.setdefault((str(row["method"]), str(row["status"])), row)
    lines = [
        [clean(name), f"n = {row['n']}, m = {row['m']}", status, clean(str(row["message"]))]
        for (name, status), row in first.items()
    ]
    return Table([Column(text) for text in ("method", "first at", "status", "why")], lines)


def _image(rows: Sequence[SweepRow]) -> str:
    return "data:image/svg+xml;base64," + b64encode(draw(rows, "svg")).decode("ascii")


def _about(rows: Sequence[SweepRow]) -> str:
    first = rows[0]
    longest = max(float(row["prepare_seconds"] or 0) for row in rows)
    return (
        f"difflab {first['difflab']}, Python {first['python']}, {first['cpu']}, "
        f"{first['threads']} threads, at most {float(first['timeout'] or 0):g} s a method; "
        f"longest preparation {seconds(longest)}"
    )
