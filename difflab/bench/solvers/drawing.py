"""The picture of derivatives of solvers: errors by problem, and against the tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from difflab.bench.pictures import (
    BLUE,
    BROWN,
    GREEN,
    ORANGE,
    OTHER_STYLE,
    PURPLE,
    RED,
    SKY,
    CurveStyle,
    picture,
    plot_curve,
)
from difflab.lab.sweep import SweepRow, number
from difflab.report.canvas import FAINT, INK, Label, label_ends, titled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


VIOLET, CRIMSON = "#7570B3", "#B3261E"
STYLES = {
    "implicit": CurveStyle(BLUE, "o", width=2.4),
    "unrolled": CurveStyle(SKY, "v", "--"),
    "rk45 unrolled": CurveStyle(SKY, "v", "--"),
    "rk45 forward": CurveStyle(BLUE, "^", width=2.0),
    "rk45 adjoint": CurveStyle(GREEN, "D"),
    "taylor unrolled": CurveStyle(ORANGE, "v", "--"),
    "taylor forward": CurveStyle(PURPLE, "^", width=2.0),
    "taylor adjoint": CurveStyle(BROWN, "D"),
    "dopri8 unrolled": CurveStyle(SKY, "<", "--"),
    "dopri8 forward": CurveStyle(BLUE, ">"),
    "dopri8 adjoint": CurveStyle(GREEN, "p"),
    "diffrax unrolled": CurveStyle(VIOLET, "v", "--"),
    "diffrax backsolve": CurveStyle(VIOLET, "D"),
    "torchdiffeq dopri5": CurveStyle(CRIMSON, "d"),
    "torchdiffeq dopri8": CurveStyle(CRIMSON, "p", "--"),
    "cvodes forward": CurveStyle(INK, "^"),
    "cvodes adjoint": CurveStyle(INK, "D"),
    "scipy differences": CurveStyle(RED, "s"),
    "jax custom_root": CurveStyle(GREEN, "^"),
    "jax unrolled": CurveStyle(GREEN, "<", "--"),
    "torch unrolled": CurveStyle(ORANGE, ">", "--"),
    "casadi rootfinder": CurveStyle(PURPLE, "P"),
    "advect implicit_root": CurveStyle(BROWN, "d"),
}
SMALLEST, LARGEST, REFUSED = 1e-17, 10.0, 300.0
"""The range of errors; further ones lie on its ends, and what has no result beyond."""


@picture
def draw(rows: Sequence[SweepRow]) -> Figure:
    """Draw the errors at the smallest tolerance by problem, and medians against the tolerance."""
    problems = list(dict.fromkeys(str(row["problem"]) for row in rows))
    ways = [way for way in STYLES if any(row["way"] == way for row in rows)]
    ways += sorted({str(row["way"]) for row in rows} - set(ways))
    height = 1.9 + 0.21 * len(problems)
    canvas = titled_figure(
        (11.6, max(height, 4.6)),
        "derivatives of solvers: relative error against the true derivative of the solution",
        "left: at the smallest tolerance · × beyond the line: refused, no convergence or too slow"
        " · right: median over the problems that every tolerance solves",
    )
    top, bottom = 1 - 0.95 / max(height, 4.6), 0.62 / max(height, 4.6)
    left, right = canvas.subplots(1, 2, width_ratios=(2.2, 1))
    canvas.subplots_adjust(left=0.165, right=0.865, bottom=bottom, top=top, wspace=0.12)
    _errors(left, rows, problems, ways)
    _tolerances(right, rows, ways)
    return canvas


def _errors(
    axes: Axes, rows: Sequence[SweepRow], problems: Sequence[str], ways: Sequence[str]
) -> None:
    """Draw one dot for each problem and way."""
    smallest = min(number(row, "tolerance") or 0.0 for row in rows)
    axes.set(xscale="log", xlim=(SMALLEST / 2, REFUSED * 4), ylim=(len(problems) - 0.5, -0.5))
    axes.set_xticks([10.0**power for power in range(-15, 1, 3)])  # none beyond the line
    axes.set_yticks(range(len(problems)), problems, fontsize=7.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True)
    axes.axvline(30.0, color=FAINT, lw=0.8)
    axes.set_xlabel("relative error of the derivative")
    for row in rows:
        if (number(row, "tolerance") or 0.0) != smallest:
            continue
        style = STYLES.get(str(row["way"]), OTHER_STYLE)
        place = problems.index(str(row["problem"]))
        spread = (ways.index(str(row["way"])) + 0.5) / len(ways) - 0.5
        error = number(row, "relative_error")
        if error is None:
            axes.plot(REFUSED, place + 0.7 * spread, "x", color=style.colour, ms=4, mew=1.0)
            continue
        x = min(max(error, SMALLEST), LARGEST)
        axes.plot(x, place + 0.7 * spread, style.marker, color=style.colour, ms=4.2)


def _tolerances(axes: Axes, rows: Sequence[SweepRow], ways: Sequence[str]) -> None:
    """Draw a curve for each way, labelled at its end."""
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("tolerance of the solver")
    axes.yaxis.tick_left()
    axes.grid(visible=True)
    sizes = sorted({number(row, "tolerance") or 0.0 for row in rows})
    labels = []
    for way in ways:
        errors = {
            size: {
                str(row["problem"]): number(row, "relative_error")
                for row in rows
                if row["way"] == way and number(row, "tolerance") == size
            }
            for size in sizes
        }
        own = [size for size in sizes if errors[size]]
        solved = [
            name
            for name in errors[own[0]]
            if all(errors[size].get(name) is not None for size in own)
        ]
        style = STYLES.get(way, OTHER_STYLE)
        if not solved:
            continue
        curve = [
            max(median([errors[size][name] or 0.0 for name in solved]), SMALLEST) for size in own
        ]
        plot_curve(axes, own, curve, style)
        labels.append(Label(way, sizes[-1], curve[-1], style.colour))
    label_ends(axes, labels)
