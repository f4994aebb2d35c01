"""A Laplacian in every way against the dimension: error, operations, time and memory.

Three functions: a network, whose Hessian is dense; a potential of all pairs; a sum of terms of
one coordinate each. The error is that at one point, against a closed form at 40 digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from difflab.bench.operators.ways import FUNCTIONS, OWN, WAYS, points_of
from difflab.bench.shared import (
    BLUE,
    BROWN,
    GREEN,
    ORANGE,
    OTHER_STYLE,
    PURPLE,
    RED,
    SKY,
    CurveStyle,
    layout,
    picture,
    plot_curve,
)
from difflab.lab import provenance
from difflab.lab.sweep import Cell, Row, SweepRow, Task, trial
from difflab.report.canvas import (
    FAINT,
    Axes,
    Figure,
    decades,
    seconds_tick,
    ticks,
    titled_figure,
)

LAYOUT = layout(
    "function inputs way status message points operations relative_error call_seconds peak_bytes",
    key="function inputs way",
)

DIMENSIONS = (2, 4, 8, 16, 32, 64, 128)
POINTS = 100
BUDGET = 0.2
"""Seconds in which a call is repeated."""


def tasks(*, quick: bool = False, timeout: float = 10.0) -> Iterator[Task]:
    """Yield a task for every function, dimension and way; `quick` keeps four dimensions.

    A way that takes longer than `timeout` for one call is not tried at a larger dimension.
    """
    source = provenance.source(timeout=timeout)
    for name in FUNCTIONS:
        slow: set[str] = set()
        for n in DIMENSIONS[:4] if quick else DIMENSIONS:
            for way in WAYS:
                key: Row = {"function": name, "inputs": n, "way": way}
                yield trial(key, partial(_measured, name, n, way, timeout, slow), source)


def _measured(name: str, n: int, way: str, timeout: float, slow: set[str]) -> dict[str, Cell]:
    """Measure one way."""
    if way in slow:
        return {"status": "timeout", "message": "not tried: a smaller dimension took too long"}
    function, points = FUNCTIONS[name], points_of(n, POINTS)
    weights = function.weights(n)
    prepared = WAYS[way](function, points, weights)
    values, expected = np.asarray(prepared.call()), function.exact(points[0], weights)
    seconds = _shortest(prepared.call)
    if seconds > timeout:
        slow.add(way)
    return {
        "status": "ok",
        "points": POINTS,
        "operations": prepared.operations,
        "relative_error": abs(float(values[0]) - expected) / max(abs(expected), 1e-300),
        "call_seconds": seconds,
        "peak_bytes": prepared.peak(),
    }


def _shortest(call: Any) -> float:
    """Return the seconds of the fastest of at least two calls."""
    shortest, spent, calls = float("inf"), 0.0, 0
    while calls < 2 or spent < BUDGET:
        start = perf_counter()
        call()
        seconds = perf_counter() - start
        shortest, spent, calls = min(shortest, seconds), spent + seconds, calls + 1
    return shortest


# --- the picture -----------------------------------------------------------------------------

STYLES: Mapping[str, CurveStyle] = {
    "collapsed": CurveStyle(BLUE, "o", width=2.6),
    "jets": CurveStyle(SKY, "P"),
    "forward-reverse": CurveStyle(GREEN, "o"),
    "reverse": CurveStyle(RED, "s"),
    "symbolic": CurveStyle(PURPLE, "D"),
    "hutchinson": CurveStyle(ORANGE, "^"),
    "jax reverse": CurveStyle(RED, "s", "--"),
    "jax forward-reverse": CurveStyle(GREEN, "o", "--"),
    "jax linearize": CurveStyle(BROWN, "v", "--"),
    "jax jet": CurveStyle(SKY, "P", "--"),
    "folx": CurveStyle(BLUE, "X", "--"),
    "torch reverse": CurveStyle(RED, "s", ":"),
    "torch forward-reverse": CurveStyle(GREEN, "o", ":"),
}
PANELS = {"call_seconds": "time of a call", "relative_error": "relative error at a point"}


def cheapest(rows: Sequence[SweepRow], column: str) -> dict[tuple[str, int], str]:
    """Return difflab's exact way of the least operations or time for each function and dimension.

    Examples
    --------
    >>> row = {"function": "pairs", "inputs": 4, "status": "ok"}
    >>> rows = [{**row, "way": "jets", "operations": 5}, {**row, "way": "reverse", "operations": 4}]
    >>> cheapest(rows, "operations")
    {('pairs', 4): 'reverse'}
    """
    least: dict[tuple[str, int], SweepRow] = {}
    for row in rows:
        exact = row["way"] in OWN and row["way"] != "hutchinson"
        if row["status"] != "ok" or not exact or row[column] is None:
            continue
        key = str(row["function"]), int(row["inputs"] or 0)
        if key not in least or float(row[column] or 0) < float(least[key][column] or 0):
            least[key] = row
    return {key: str(row["way"]) for key, row in least.items()}


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw time and error against the dimension, and maps of the cheapest way."""
    points = max(int(row["points"] or 0) for row in rows)
    canvas = titled_figure(
        11.6,
        "Laplacians: one collapsed pass, nested sweeps, formulas and estimates",
        f"{points} points · solid: difflab · dashed: JAX and folx · dotted: PyTorch · "
        "an error of 0 is at 10⁻¹⁷",
        bottom=1.75,
    )
    grid = canvas.subplots(len(FUNCTIONS) + 1, len(PANELS), gridspec_kw={"hspace": 0.45})
    for panels, (name, function) in zip(grid, FUNCTIONS.items(), strict=False):
        panels[0].set_title(function.summary, fontsize=10, loc="left")
        for axes, (column, label) in zip(panels, PANELS.items(), strict=True):
            _panel(axes, [row for row in rows if row["function"] == name], column)
            axes.set_ylabel(label)
    fewest = {"operations": "fewest operations", "call_seconds": "least time"}
    for axes, (column, title) in zip(grid[-1], fewest.items(), strict=True):
        _map(axes, rows, column)
        axes.set_title(f"difflab's way of the {title}", fontsize=10, loc="left")
        axes.set_xlabel("dimension n")
    _legend(canvas, rows)
    return canvas


def _panel(axes: Axes, rows: Sequence[SweepRow], column: str) -> None:
    axes.set(xscale="log", yscale="log")
    sizes = sorted({int(row["inputs"] or 1) for row in rows})
    ticks(axes.xaxis, {size: f"{size}" for size in sizes})
    axes.grid(visible=True)
    if column == "call_seconds":
        decades(axes.yaxis, seconds_tick)
    for way, look in STYLES.items():
        curve = {
            int(row["inputs"] or 1): max(float(row[column] or 0), 1e-17)
            for row in rows
            if row["way"] == way and row["status"] == "ok" and row[column] is not None
        }
        if curve:
            plot_curve(axes, list(curve), list(curve.values()), look)


def _map(axes: Axes, rows: Sequence[SweepRow], column: str) -> None:
    """Colour each function and dimension by the cheapest way."""
    best = cheapest(rows, column)
    sizes = sorted({n for _, n in best})
    for down, name in enumerate(FUNCTIONS):
        for across, n in enumerate(sizes):
            way = best.get((name, n))
            colour = STYLES.get(way or "", OTHER_STYLE).colour
            axes.fill_between([across, across + 1], down, down + 1, color=colour, lw=0)
    axes.set_xticks([k + 0.5 for k in range(len(sizes))], [str(n) for n in sizes])
    axes.set_yticks([k + 0.5 for k in range(len(FUNCTIONS))], list(FUNCTIONS))
    axes.set(xlim=(0, max(len(sizes), 1)), ylim=(len(FUNCTIONS), 0))
    axes.tick_params(length=0)


def _legend(canvas: Figure, rows: Sequence[SweepRow]) -> None:
    from matplotlib.lines import Line2D

    present = {str(row["way"]) for row in rows if row["status"] == "ok"}
    handles = [
        Line2D([], [], color=s.colour, ls=s.dashes, lw=s.width, marker=s.marker, ms=5, label=way)
        for way, s in STYLES.items()
        if way in present
    ]
    canvas.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0, 0.02), ncols=4, frameon=False
    )
    absent = [way for way in STYLES if way not in present]
    if absent:
        text = f"not installed or refused: {', '.join(absent)}"
        canvas.text(0.012, 0.008, text, fontsize=8.5, color=FAINT, va="bottom")
