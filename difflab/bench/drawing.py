"""The lab's three pictures: error against step, size against depth, cost against shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from difflab.bench import accuracy as accuracy_bench
from difflab.bench import cost as cost_bench
from difflab.lab.sweep import SweepRow
from difflab.report.canvas import FAINT, INK, Label, label_ends, saved, style, titled
from difflab.report.style import clean, seconds, shorten
from difflab.report.style import error as error_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["accuracy", "cost", "swell"]


class _Look(NamedTuple):
    """A line's colour (Okabe and Ito's palette), marker and stroke; none stands on one alone."""

    colour: str
    marker: str
    dashes: str = "-"
    width: float = 1.3


_BLUE, _SKY, _GREEN = "#0072B2", "#3D9BD1", "#009E73"
_ORANGE, _RED, _PURPLE, _BROWN = "#D98E00", "#D55E00", "#B5578C", "#8C6D1F"

# The complex step lies under the central difference, whose truncation error is the same.
_FORMULAS = {
    "complex step": _Look(_GREEN, "o", width=3.0),
    "forward difference": _Look(_ORANGE, "^"),
    "central difference": _Look(_RED, "s"),
    "Richardson, column 1": _Look(_PURPLE, "D"),
    "Richardson, column 2": _Look(_BROWN, "v"),
}
_METHODS = {
    "symbolic": _Look(_PURPLE, "D"),
    "finite-forward": _Look(_ORANGE, "^"),
    "finite-central": _Look(_RED, "s"),
    "richardson": _Look(_BROWN, "v"),
    "complex-step": _Look(_SKY, "P"),
    "forward": _Look(_BLUE, "o", width=2.6),
    "reverse": _Look(_GREEN, "o", width=2.6),
}
_OTHER = _Look(FAINT, ".", ":")


# --- error against step size ------------------------------------------------------------------


def accuracy(rows: Sequence[SweepRow], kind: str = "svg") -> bytes:
    """Draw the error of every difference formula against its step, slopes and floors marked.

    Parameters
    ----------
    rows : sequence of row
        Rows of `difflab.bench.accuracy` of one function at one point.
    kind : {"svg", "png", "pdf"}
        The format.

    Returns
    -------
    bytes
        The file.
    """
    from matplotlib.figure import Figure

    with style():
        canvas = Figure(figsize=(11.5, 6.2))
        titled(
            canvas,
            "error of the derivative against step size",
            f"{shorten(clean(str(rows[0]['expression'])), 90)} "
            f"at {shorten(clean(str(rows[0]['point'])), 50)} · "
            "marks: the floor, where truncation meets rounding",
        )
        lines = canvas.add_axes((0.068, 0.085, 0.56, 0.785))
        chosen = canvas.add_axes((0.845, 0.085, 0.02, 0.785), sharey=lines)
        low = _lowest(rows)
        _frame(lines, chosen, rows, low)
        _formulas(lines, rows, low)
        _own_steps(chosen, rows, low)
        return saved(canvas, kind)


def _lowest(rows: Sequence[SweepRow]) -> float:
    """Return where an error of exactly zero is drawn: below the smallest other one."""
    errors = [float(row["absolute_error"]) for row in rows if row["absolute_error"]]
    return min(errors, default=1e-16) / 4


def _frame(lines: Axes, chosen: Axes, rows: Sequence[SweepRow], low: float) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    errors = [float(row["absolute_error"]) for row in rows if row["absolute_error"]]
    lines.set(xscale="log", yscale="log", xlim=(4e-17, 0.16), ylim=(low / 3, 4 * max(errors)))
    lines.xaxis.set_major_locator(LogLocator(numticks=9))
    lines.yaxis.set_major_locator(LogLocator(numticks=11))
    for axis in (lines.xaxis, lines.yaxis):
        axis.set_minor_locator(NullLocator())
        axis.grid(visible=True)
    lines.set_xlabel("step h")
    lines.set_ylabel("largest absolute error of the derivative")
    chosen.set(xlim=(0, 1))
    chosen.set_title("difflab's methods,\nchoosing their step", loc="left", fontsize=9)
    chosen.set_axis_off()


def _formulas(axes: Axes, rows: Sequence[SweepRow], low: float) -> None:
    labels = []
    for name, look in _FORMULAS.items():
        mine = [row for row in rows if row["method"] == name and row["absolute_error"] is not None]
        found = accuracy_bench.fit(mine)
        if found is None:
            continue
        mine.sort(key=lambda row: float(row["step"] or 0))
        h = [float(row["step"] or 0) for row in mine]
        errors = [max(float(row["absolute_error"] or 0), low) for row in mine]
        axes.plot(h, errors, look.dashes, color=look.colour, lw=look.width)
        floor = (found.step, max(found.error, low))
        axes.plot(*floor, look.marker, color=look.colour, ms=8, mec=INK, zorder=3)
        slope = "" if found.slope is None else f"slope {found.slope:.2f} · "
        about = f"{slope}floor {error_text(found.error)} at {error_text(found.step)}"
        labels.append(Label(f"{name}\n{about}", h[-1], errors[-1], look.colour))
    label_ends(axes, labels, gap=12)


def _own_steps(axes: Axes, rows: Sequence[SweepRow], low: float) -> None:
    """Mark what each of difflab's methods reaches when it chooses its own step."""
    labels = []
    for row in rows:
        if row["step"] is not None or row["absolute_error"] is None:
            continue
        name = str(row["method"])
        look = _METHODS.get(name, _OTHER)
        error = float(row["absolute_error"])
        height = max(error, low)
        axes.plot(0, height, look.marker, color=look.colour, ms=7, mec=INK, mew=0.5, clip_on=False)
        labels.append(Label(f"{clean(name)}: {error_text(error)}", 0, height, look.colour))
    label_ends(axes, labels, gap=9)


# --- size against depth -----------------------------------------------------------------------

_SERIES = {
    "function tree": _Look(FAINT, "", "--"),
    "function": _Look(FAINT, "", "-"),
    "symbolic tree": _Look(_RED, "s"),
    "symbolic simplified": _Look(_ORANGE, "^"),
    "symbolic cse": _Look(_PURPLE, "D"),
    "forward": _Look(_BLUE, "o", width=2.2),
    "reverse": _Look(_GREEN, "v", width=2.2),
}
_SERIES_NAMES = {
    "function tree": "f written out",
    "function": "f itself",
    "symbolic tree": "SymPy f′ written out",
    "symbolic simplified": "SymPy f′ simplified",
    "symbolic cse": "SymPy f′ after CSE",
    "forward": "forward mode",
    "reverse": "reverse mode",
}


def swell(rows: Sequence[SweepRow], kind: str = "svg") -> bytes:
    """Draw operations against depth, a panel for each family of functions.

    Parameters
    ----------
    rows : sequence of row
        Rows of `difflab.bench.swell`.
    kind : {"svg", "png", "pdf"}
        The format.

    Returns
    -------
    bytes
        The file.
    """
    from matplotlib.figure import Figure

    families = list(dict.fromkeys(str(row["family"]) for row in rows))
    with style():
        canvas = Figure(figsize=(0.8 + 4.2 * len(families), 5.0))
        titled(
            canvas,
            "expression swell: operations of the derivative against depth",
            "written out: every shared subexpression repeated · after CSE, and in both modes: "
            "computed once · × SymPy was stopped",
        )
        panels = canvas.subplots(1, len(families), squeeze=False)[0]
        canvas.subplots_adjust(left=0.04, right=0.888, bottom=0.1, top=0.815, wspace=0.7)
        for axes, family in zip(panels, families, strict=True):
            _swell_panel(axes, [row for row in rows if row["family"] == family])
        return saved(canvas, kind)


def _swell_panel(axes: Axes, rows: Sequence[SweepRow]) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set(yscale="log")
    axes.set_title(str(rows[0]["title"]), loc="left", fontsize=10, parse_math=False)
    axes.set_xlabel("depth")
    axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))
    axes.grid(visible=True)
    deepest = max(float(row["depth"] or 0) for row in rows)
    labels = []
    for series, points in _swell_curves(rows).items():
        look = _SERIES[series]
        x, y = zip(*points, strict=True)
        axes.plot(x, y, look.dashes, color=look.colour, lw=look.width, marker=look.marker, ms=4)
        name = _SERIES_NAMES[series]
        if x[-1] < deepest:
            axes.plot(x[-1], y[-1], "x", color=INK, ms=9, mew=1.6, zorder=4)
            name = f"{name}, to {x[-1]:.0f}"
        labels.append(Label(name, deepest, y[-1], look.colour))
    label_ends(axes, labels)


def _swell_curves(rows: Sequence[SweepRow]) -> dict[str, list[tuple[float, float]]]:
    """Return the points of every series; a function without shared parts has one curve."""
    curves = {}
    for series in _SERIES:
        mine = [row for row in rows if row["series"] == series and row["operations"]]
        curves[series] = [(float(row["depth"] or 0), float(row["operations"] or 0)) for row in mine]
    if curves["function tree"] == curves["function"]:
        del curves["function tree"]
    return {series: points for series, points in curves.items() if points}


# --- cost against shape -----------------------------------------------------------------------

_AXES = {"inputs": "inputs n", "outputs": "outputs m"}
_COLUMNS = {"operations": "operations of a Jacobian", "call_seconds": "time of a call"}


def cost(rows: Sequence[SweepRow], kind: str = "svg") -> bytes:
    """Draw operations and time against inputs and outputs, with forward and reverse crossing.

    Parameters
    ----------
    rows : sequence of row
        Rows of `difflab.bench.cost`.
    kind : {"svg", "png", "pdf"}
        The format.

    Returns
    -------
    bytes
        The file.
    """
    from matplotlib.figure import Figure

    with style():
        canvas = Figure(figsize=(11.5, 8.2))
        titled(
            canvas,
            "what a Jacobian costs: forward mode pays for inputs, reverse mode for outputs",
            f"left: m = {cost_bench.FIXED} outputs · right: n = {cost_bench.FIXED} inputs · "
            "rings: where forward and reverse cross",
        )
        panels = canvas.subplots(2, 2, sharex=True, sharey="row")
        canvas.subplots_adjust(
            left=0.085, right=0.895, bottom=0.085, top=0.89, wspace=0.38, hspace=0.1
        )
        for across, along in enumerate(_AXES):
            for down, column in enumerate(_COLUMNS):
                _cost_panel(panels[down][across], rows, along, column)
            panels[1][across].set_xlabel(_AXES[along])
        for down, text in enumerate(_COLUMNS.values()):
            panels[down][0].set_ylabel(text)
        canvas.align_ylabels(panels[:, 0])
        _absentees(canvas, rows)
        return saved(canvas, kind)


def _absentees(canvas: Figure, rows: Sequence[SweepRow]) -> None:
    """Say which methods have no line, and why."""
    told: dict[str, str] = {}
    present = {row["method"] for row in rows if row["status"] == "ok"}
    for row in rows:
        if row["method"] not in present:
            told.setdefault(str(row["method"]), f"{row['method']} has no line: {row['message']}")
    text = "\n".join(shorten(clean(reason), 150) for reason in told.values())
    canvas.text(0.012, 0.008, text, fontsize=8.5, color=FAINT, va="bottom", parse_math=False)


def _cost_panel(axes: Axes, rows: Sequence[SweepRow], along: str, column: str) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    axes.set(xscale="log", yscale="log")
    curves = _curves(rows, along, column)
    sizes = sorted({size for points in curves.values() for size in points})
    axes.xaxis.set_major_locator(FixedLocator(sizes))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")
    axes.grid(visible=True)
    axes.tick_params(labelleft=True)
    if column == "call_seconds":
        axes.yaxis.set_major_formatter(lambda t, _: seconds(t).replace(".00", "").replace(".0", ""))
    labels = []
    for name, points in curves.items():
        look = _METHODS.get(name, _OTHER)
        x, y = zip(*sorted(points.items()), strict=True)
        axes.plot(x, y, look.dashes, color=look.colour, lw=look.width, marker=look.marker, ms=4)
        labels.append(Label(clean(name), sizes[-1], y[-1], look.colour))
    _mark_crossing(axes, curves, along)
    label_ends(axes, labels)


def _curves(rows: Sequence[SweepRow], along: str, column: str) -> dict[str, dict[float, float]]:
    names = dict.fromkeys(str(row["method"]) for row in rows)
    curves = {name: cost_bench.curve(rows, along, name, column) for name in names}
    return {name: points for name, points in curves.items() if points}


def _mark_crossing(axes: Axes, curves: Mapping[str, Mapping[float, float]], along: str) -> None:
    from math import exp, log

    import numpy as np

    first, second = curves.get("forward", {}), curves.get("reverse", {})
    place = cost_bench.crossing(first, second)
    if place is None:
        return
    sizes = sorted(first)
    height = exp(np.interp(log(place), np.log(sizes), np.log([first[size] for size in sizes])))
    axes.plot(place, height, "o", ms=15, mfc="none", mec=INK, mew=1.2, zorder=4)
    axes.annotate(
        f"{_AXES[along][-1]} ≈ {place:.0f}",
        (place, height),
        (0, 13),
        textcoords="offset points",
        ha="center",
        color=INK,
        fontsize=9,
    )
