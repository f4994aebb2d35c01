"""Operations and time of a Jacobian as functions of its number of inputs and outputs.

The cost of forward mode grows with the inputs, that of reverse mode with the outputs (Baydin et
al. 2018, §3), so for f: Rⁿ → Rᵐ there are sizes at which their costs cross.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import exp, log

import numpy as np

from difflab.bench.shared import METHOD_STYLES, OTHER_STYLE, layout, picture, plot_curve
from difflab.graph.counts import count
from difflab.lab import measure, provenance
from difflab.lab.problems import crossover
from difflab.lab.sweep import Cell, SweepRow, Task, trial
from difflab.language import parse
from difflab.methods.protocol import Method, Problem
from difflab.methods.registry import installed
from difflab.report.canvas import (
    FAINT,
    INK,
    Axes,
    Figure,
    Label,
    beside,
    decades,
    label_ends,
    seconds_tick,
    ticks,
    titled_figure,
)
from difflab.report.terminal import clean, shorten

LAYOUT = layout(
    "inputs outputs method status message function_operations operations prepare_seconds "
    "call_seconds call_form",
    key="inputs outputs method",
)

FIXED = 8
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


def tasks(
    sizes: Sequence[int] | None = None, timeout: float = 10.0, *, quick: bool = False
) -> Iterator[Task]:
    """Yield a task for every method and shape: n varies with m = `FIXED`, then m with n = `FIXED`.

    The sizes are by default `SIZES`, of which `quick` keeps the first five. After a method's
    first timeout in a direction no larger size is tried; the rows of those sizes report this.
    """
    if sizes is None:
        sizes = SIZES[:5] if quick else SIZES
    methods = installed()
    sources = {
        name: provenance.source(method, target="auto", timeout=timeout)
        for name, method in methods.items()
    }
    for direction in ("inputs", "outputs"):
        timeouts: dict[str, str] = {}
        for size in sizes:
            n, m = (size, FIXED) if direction == "inputs" else (FIXED, size)
            for name, method in methods.items():
                yield trial(
                    {"inputs": n, "outputs": m, "method": name},
                    partial(_cost, method, n, m, timeout),
                    sources[name],
                    timeouts=timeouts,
                    name=name,
                    size=f"at n = {n}, m = {m}",
                )


def _cost(method: Method, n: int, m: int, timeout: float) -> dict[str, Cell]:
    """Measure one method on one shape."""
    function = parse(crossover(n, m))
    problem = Problem.of(function, timeout=timeout)
    x = np.linspace(0.3, 0.7, function.n)
    answer = measure.answer(method, problem, x)
    work = count(function).operations
    operations = answer.call.prepared.operations
    if operations is None:
        operations = answer.estimate.evaluations * work
    (called,) = measure.in_turns([answer.call])
    if isinstance(called, BaseException):
        raise called
    return {
        "status": "ok",
        "function_operations": work,
        "operations": operations,
        "prepare_seconds": min(answer.prepare_samples),
        **called.columns(),
    }


def crossing(first: Mapping[float, float], second: Mapping[float, float]) -> float | None:
    """Return the size at which two curves on logarithmic axes cross, or None.

    Parameters
    ----------
    first, second : mapping of float to float
        Positive values by positive size.

    Examples
    --------
    >>> crossing({1: 10.0, 4: 40.0}, {1: 20.0, 4: 20.0})
    2.0
    """
    sizes = sorted(set(first) & set(second))
    gaps = [log(first[size] / second[size]) for size in sizes]
    for k, (a, b) in enumerate(pairwise(gaps)):
        if a == 0:
            return float(sizes[k])
        if a * b < 0:
            left, right = log(sizes[k]), log(sizes[k + 1])
            return round(exp(left + (right - left) * a / (a - b)), 12)
    return float(sizes[-1]) if gaps and gaps[-1] == 0 else None


def curve(rows: Sequence[SweepRow], along: str, method: str, column: str) -> dict[float, float]:
    """Return one method's values of a column by size, along "inputs" or "outputs"."""
    other = "outputs" if along == "inputs" else "inputs"
    return {
        float(row[along] or 0): float(row[column] or 0)
        for row in rows
        if row["method"] == method and row[other] == FIXED and row["status"] == "ok" and row[column]
    }


# --- the picture -----------------------------------------------------------------------------

_AXES = {"inputs": "inputs n", "outputs": "outputs m"}
_QUANTITIES = {"operations": "operations of a Jacobian", "call_seconds": "time of a call"}


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw operations and time against inputs and outputs, with forward and reverse crossing."""
    canvas = titled_figure(
        7.6,
        "cost of a Jacobian: forward mode grows with inputs, reverse mode with outputs",
        f"left: m = {FIXED} outputs · right: n = {FIXED} inputs · "
        "rings: where forward and reverse cross",
        right=1.1,
        bottom=0.75,
    )
    space = {"wspace": 0.38, "hspace": 0.1}
    panels = canvas.subplots(2, 2, sharex=True, sharey="row", gridspec_kw=space)
    for across, along in enumerate(_AXES):
        for down, column in enumerate(_QUANTITIES):
            _panel(panels[down][across], rows, along, column)
        panels[1][across].set_xlabel(_AXES[along])
    for down, text in enumerate(_QUANTITIES.values()):
        panels[down][0].set_ylabel(text)
    canvas.align_ylabels(panels[:, 0])
    _name_absent(canvas, rows)
    return canvas


def _name_absent(canvas: Figure, rows: Sequence[SweepRow]) -> None:
    """Write which methods have no line, and why."""
    reasons: dict[str, str] = {}
    present = {row["method"] for row in rows if row["status"] == "ok"}
    for row in rows:
        if row["method"] not in present:
            reasons.setdefault(str(row["method"]), f"{row['method']} has no line: {row['message']}")
    text = "\n".join(shorten(clean(reason), 150) for reason in reasons.values())
    canvas.text(0.012, 0.008, text, fontsize=8.5, color=FAINT, va="bottom", parse_math=False)


def _panel(axes: Axes, rows: Sequence[SweepRow], along: str, column: str) -> None:
    axes.set(xscale="log", yscale="log")
    curves = _curves(rows, along, column)
    sizes = sorted({size for points in curves.values() for size in points})
    axes.grid(visible=True)
    ticks(axes.xaxis, {size: f"{size:g}" for size in sizes})
    if column == "call_seconds":
        decades(axes.yaxis, seconds_tick)
    labels = []
    for name, points in curves.items():
        curve_style = METHOD_STYLES.get(name, OTHER_STYLE)
        x, y = zip(*sorted(points.items()), strict=True)
        plot_curve(axes, x, y, curve_style)
        labels.append(Label(clean(name), sizes[-1], y[-1], curve_style.colour))
    _mark_crossing(axes, curves, along)
    label_ends(axes, labels)


def _curves(rows: Sequence[SweepRow], along: str, column: str) -> dict[str, dict[float, float]]:
    names = dict.fromkeys(str(row["method"]) for row in rows)
    curves = {name: curve(rows, along, name, column) for name in names}
    return {name: points for name, points in curves.items() if points}


def _mark_crossing(axes: Axes, curves: Mapping[str, Mapping[float, float]], along: str) -> None:
    first, second = curves.get("forward", {}), curves.get("reverse", {})
    size = crossing(first, second)
    if size is None:
        return
    sizes = sorted(first)
    height = exp(np.interp(log(size), np.log(sizes), np.log([first[n] for n in sizes])))
    axes.plot(size, height, "o", ms=15, mfc="none", mec=INK, mew=1.2, zorder=4)
    name = f"{_AXES[along][-1]} ≈ {size:.0f}"
    beside(axes, name, (size, height), (0, 13), ha="center", va="baseline", color=INK, fontsize=9)
