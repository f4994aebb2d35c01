"""The page of a family: a map of the cheapest method for any number of calls, and break-evens."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from difflab.bench.dimensions.drawing import draw, exponent_text
from difflab.bench.dimensions.winners import (
    COLUMNS,
    Cost,
    Interval,
    SizedCosts,
    costs,
    envelope,
    laws,
    pays,
)
from difflab.bench.pictures import style_of
from difflab.core.quantities import seconds
from difflab.core.table import Column, Table
from difflab.lab.sweep import SweepRow
from difflab.report import html
from difflab.report.terminal import clean

_STYLE = """
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
    found = costs(rows)
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
    data = _script_data(_data(found, methods))
    return html.document(
        "Cost against dimensions",
        [
            f"<style>{_STYLE}</style>",
            *body,
            f'<script type="application/json" id="data">{data}</script>',
        ],
        script=script,
    )


def _data(found: SizedCosts, methods: Sequence[str]) -> dict[str, Any]:
    """Return the data of the script: for each size, the intervals of calls, and the costs."""
    n_sizes, m_sizes = (sorted({size[axis] for size in found}) for axis in (0, 1))
    cells = {f"{n},{m}": _cell(cell) for (n, m), cell in found.items()}
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
            exponent_text(fitted[column][name]) if name in fitted[column] else "–"
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
