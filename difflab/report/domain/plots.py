"""The picture of a comparison over a domain: verdicts as hues, errors as shades."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.wording import error, significant
from difflab.lab.domain.box import Box
from difflab.lab.domain.judging import SILENT, VERDICTS, MethodJudged
from difflab.lab.domain.record import UNANSWERED, DomainComparison, DomainRow
from difflab.referee.verdict import Verdict
from difflab.report.canvas import (
    FAINT,
    INK,
    WIDTH,
    Axes,
    Figure,
    captions,
    inlined,
    power_tick,
    saved,
    style,
    titled,
)
from difflab.report.domain.view import domain_text
from difflab.report.terminal import clean, shorten

Array = NDArray[np.float64]
_Extent = tuple[float, float, float, float]

HUES = {
    "agree": "#0072B2",
    "convention": "#009E73",
    "declared": "#CC79A7",
    "inconclusive": "#E69F00",
    "disagree": "#B2182B",
    UNANSWERED: "#B8BABD",
}
"""Five of Okabe and Ito's colours, the red darker, which the colour-blind tell apart; and grey."""

DARKEST = 16
"""The decimal digits that are lost where a shade is the darkest: all of float64."""
_PALEST, _WRONG = 0.18, 0.7


def _depth(ulps: Array) -> Array:
    """Return the shade of errors in ULP, from 0 for a rounding to 1 for all digits.

    Examples
    --------
    >>> _depth(np.array([0.5, 1e8, np.nan, -np.inf])).tolist()
    [0.0, 0.5, 1.0, 0.0]
    """
    sizes = np.where(np.isnan(ulps), np.inf, ulps)
    with np.errstate(divide="ignore"):
        digits = np.log10(np.maximum(sizes, 1.0))
    depth: Array = np.clip(digits / DARKEST, 0.0, 1.0)
    return depth


def colours(judged: MethodJudged) -> Array:
    """Return the colour of every point, ``(N, 3)``."""
    from matplotlib.colors import to_rgb

    names = [*map(str, VERDICTS), UNANSWERED]
    hues = np.array([to_rgb(HUES[name]) for name in names])[judged.verdicts]
    shade = _PALEST + (1 - _PALEST) * _depth(judged.ulps)
    # A wrong answer is never pale, nor is a point without one.
    wrong = judged.verdicts == VERDICTS.index(Verdict.DISAGREE)
    shade = np.where(wrong, np.maximum(shade, _WRONG), shade)
    shade = np.where(judged.verdicts == SILENT, 1.0, shade)[:, None]
    rgb: Array = hues * shade + (1 - shade)
    return rgb


PAIRED = 6
"""The inputs of a matrix of pairs, at most."""
LONGEST = 88
"""The characters of a formula that is written in full, with its mark."""


def picture(result: DomainComparison, kind: str) -> bytes:
    """Return the picture as the bytes of a file.

    Parameters
    ----------
    result : DomainComparison
        The comparison.
    kind : {"svg", "png", "pdf"}
        The format.

    Raises
    ------
    InputError
        The format is none of these.
    """
    with style():
        return saved(figure(result), kind)


def inline_svg(result: DomainComparison) -> str:
    """Return the picture as an ``<svg>`` element that uses the text colour of its page."""
    with style():
        return inlined(figure(result))


def figure(result: DomainComparison) -> Figure:
    """Return the picture as a matplotlib figure.

    Over one input: the error of every method against it. Over two: a map for every method, with
    the verdict as colour and the error as shade. Over more: a matrix of pairs of the inputs for
    the worst method, whose cells have the colour of the worst point in them.
    """
    from matplotlib.figure import Figure

    dimensions = len(result.box.moving)
    answered = [k for k, row in enumerate(result.methods) if row.shares]
    size = 1 if dimensions > 2 else max(len(answered), 1)
    columns = min(size, 2 if dimensions == 1 or size == 4 else 3)
    rows = math.ceil(size / columns)
    head, foot = 1.2, 0.95
    each = {1: 1.7, 2: 2.6}.get(dimensions, 8.4)
    canvas = Figure(figsize=(WIDTH, head + foot + rows * each))
    tall = canvas.get_figheight()
    _head(canvas, result)
    space: dict[str, Any] = {"left": 0.085, "right": 0.975, "top": 1 - (head + 0.22) / tall}
    space |= {
        "bottom": (foot + 0.12) / tall,
        "hspace": 0.66 if dimensions == 1 else 0.42,
        "wspace": 0.33,
    }
    if answered and dimensions > 2:
        _pairs(canvas, result, _worst(result, answered), space)
    elif answered:
        grid = canvas.subplots(rows, columns, squeeze=False, gridspec_kw=space).ravel()
        for axes, k in zip(grid, answered, strict=False):
            _panel(axes, result, k)
        for axes in grid[len(answered) :]:
            axes.set_visible(False)
    _legend(canvas, result)
    return canvas


def _worst(result: DomainComparison, answered: Sequence[int]) -> int:
    """Return the method with the most severe verdict, and among these the largest error."""
    return max(answered, key=lambda k: _severity(result.methods[k]))


def _severity(row: DomainRow) -> tuple[int, float]:
    if row.worst is None:
        return -1, 0.0
    size = row.worst.max_ulp_error
    ulps = 0.0 if size is None else math.inf if math.isnan(size) else size
    return [*map(str, VERDICTS)].index(row.worst.verdict), ulps


def _head(canvas: Figure, result: DomainComparison) -> None:
    """Write the formula, with the operation marked at which the worst method loses its digits."""
    titled(canvas, "verdicts and errors over a domain", shorten(f"over {domain_text(result)}", 105))
    rows = [row for row in result.methods if row.worst is not None and row.worst.node is not None]
    row = max(rows, key=_severity, default=None)
    text = result.expression.text
    node = None if row is None or row.worst is None else row.worst.node
    span = None if node is None else node.span
    inch = canvas.get_figheight()
    plain = len(text) <= LONGEST and text.isprintable()
    shown = text if plain else shorten(clean(text), LONGEST)
    if span is not None and plain:
        # The formula three times, of one width: its mark, the marked part, and the rest.
        mark = " " * span[0] + "█" * (span[1] - span[0])
        _typed(canvas, 1 - 0.70 / inch, mark, HUES["inconclusive"], alpha=0.45)
    _typed(canvas, 1 - 0.70 / inch, shown, INK)
    if node is not None and row is not None:
        said = f"{clean(row.label)} loses its digits in {clean(node.call)}"
        captions(canvas, [(0.94, shorten(said, 110), 9.0, INK, "normal")])


def _typed(canvas: Figure, height: float, text: str, colour: str, alpha: float = 1.0) -> None:
    canvas.text(
        0.012,
        height,
        text,
        va="top",
        fontsize=10.5,
        family="DejaVu Sans Mono",
        color=colour,
        alpha=alpha,
        parse_math=False,
    )


def _panel(axes: Axes, result: DomainComparison, k: int) -> None:
    """Draw one method over one input or two."""
    row, judged, inputs = result.methods[k], result.judged[k], result.box.moving.tolist()
    names = _names(result)
    if len(inputs) == 1:
        _along(axes, result, inputs[0], judged)
        axes.set_ylabel("error in ULP", fontsize=8.5)
    else:
        _map_over(
            axes, _units_of(result.box, result.points, inputs), _extent(result, inputs), judged
        )
        axes.set_ylabel(names[1], fontsize=9, labelpad=1)
        _scaled(axes.yaxis, result, inputs[1])
        _scaled(axes.xaxis, result, inputs[0])
        _cross(axes, result, row, inputs)
    axes.set_xlabel(names[0], fontsize=9, labelpad=1)
    axes.tick_params(labelsize=8.5)
    largest = "" if row.ulps is None else f"{error(row.ulps[99])} ULP"
    axes.set_title(shorten(clean(row.label), 20), loc="left", fontsize=9.5, fontweight="bold")
    axes.set_title(largest, loc="right", fontsize=8.5, color=FAINT)
    for label in (axes.xaxis.label, axes.yaxis.label, axes.title):
        label.set_parse_math(False)


def _along(axes: Axes, result: DomainComparison, index: int, judged: MethodJudged) -> None:
    """Draw the error of one method along one input."""
    logarithmic = result.box.logarithmic[index]
    x = _units_of(result.box, result.points, [index])[:, 0]
    _errors_along(axes, x if logarithmic else result.points[:, index], judged)
    if logarithmic:
        axes.set_xlim(-0.03, 1.03)
    _scaled(axes.xaxis, result, index)


def _pairs(canvas: Figure, result: DomainComparison, k: int, space: dict[str, Any]) -> None:
    """Draw the matrix of pairs of one method: the error along each input on the diagonal."""
    inputs = result.box.moving.tolist()[:PAIRED]
    names, judged = _names(result), result.judged[k]
    units = _units_of(result.box, result.points, inputs)
    grid = canvas.subplots(len(inputs), len(inputs), squeeze=False, gridspec_kw=space)
    for i, down in enumerate(inputs):
        for j, across in enumerate(inputs):
            axes = grid[i, j]
            axes.tick_params(labelsize=8.5)
            if j > i:
                axes.set_visible(False)
            elif i == j:
                _along(axes, result, down, judged)
                axes.set_title(
                    f"error along {names[i]}, in ULP", fontsize=8.5, loc="left", parse_math=False
                )
            else:
                _pair(axes, units[:, [j, i]], _extent(result, [across, down]), judged)
                _scaled(axes.xaxis, result, across)
                _scaled(axes.yaxis, result, down)
                _cross(axes, result, result.methods[k], [across, down])
            if i == len(inputs) - 1:
                axes.set_xlabel(names[j], fontsize=8.5, parse_math=False)
            if j == 0 and i:
                axes.set_ylabel(names[i], fontsize=8.5, parse_math=False)
    more = len(result.box.moving) - len(inputs)
    said = f"{clean(result.methods[k].label)}, the worst method\nevery cell: its worst point"
    if more:
        said += f"\n{more} more inputs are not shown"
    canvas.text(0.98, space["top"], said, ha="right", va="top", fontsize=10, parse_math=False)


def _names(result: DomainComparison) -> list[str]:
    """Return the name of every input that varies."""
    names = [
        f"{clean(item.name)}[{','.join(map(str, index))}]" if index else clean(item.name)
        for item in result.expression.inputs
        for index in np.ndindex(item.shape)
    ]
    return [shorten(names[index], 16) for index in result.box.moving]


def _extent(result: DomainComparison, inputs: Sequence[int]) -> _Extent:
    """Return the ends of two axes, in the units of their scale: left, right, bottom, top."""
    box = result.box
    (left, right), (bottom, top) = (
        (0.0, 1.0) if box.logarithmic[index] else (float(box.low[index]), float(box.high[index]))
        for index in inputs
    )
    return left, right, bottom, top


def _scaled(axis: Any, result: DomainComparison, index: int) -> None:
    """Label an axis in the units of the input."""
    low, high = float(result.box.low[index]), float(result.box.high[index])
    if not result.box.logarithmic[index]:
        # As many digits as tell the ends of a narrow interval apart.
        ratio = max(abs(low), abs(high)) / (high / 2 - low / 2)
        digits = min(5 + math.ceil(math.log10(ratio)), 17)
        axis.get_major_locator().set_params(nbins=5)
        axis.set_major_formatter(lambda value, _: significant(value, digits))
        return
    first, last = math.log10(abs(low)), math.log10(abs(high))
    powers = np.arange(math.ceil(min(first, last)), math.floor(max(first, last)) + 1.0)
    step = next(k for k in (1, 2, 3, 5, 10, 20, 50, 100, 200) if 5 * k >= len(powers))
    powers = powers[powers % step == 0] if len(powers) > 2 else np.linspace(first, last, 3)
    names = [significant(math.copysign(10.0**power, low), 3) for power in powers]
    axis.set_ticks((powers - first) / (last - first), names)


def _cross(axes: Axes, result: DomainComparison, row: DomainRow, inputs: Sequence[int]) -> None:
    """Mark the worst point of a method on a map."""
    if row.worst is None:
        return
    point = np.concatenate([np.ravel(row.worst.point[v.name]) for v in result.expression.inputs])
    at = _units_of(result.box, point[None], inputs)[0]
    extent = _extent(result, inputs)
    x, y = (extent[2 * s] + at[s] * (extent[2 * s + 1] - extent[2 * s]) for s in (0, 1))
    axes.plot(x, y, "o", ms=7, mfc="none", mec=INK, mew=1.1, clip_on=False, zorder=5)


def _legend(canvas: Figure, result: DomainComparison) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    present = [
        name
        for name in HUES
        if any(row.shares.get(name) for row in result.methods)
        or any(row.worst and row.worst.verdict == name for row in result.methods)
    ]
    labels = {UNANSWERED: "no answer"}
    handles: list[Any] = [Patch(color=HUES[name], label=labels.get(name, name)) for name in present]
    if len(result.box.moving) > 1:
        circle: dict[str, Any] = {"ls": "", "marker": "o", "mfc": "none", "mec": INK}
        handles.append(Line2D([], [], label="worst point", **circle))
    canvas.legend(handles=handles, loc="lower left", ncols=len(handles), frameon=False, fontsize=9)
    said = "shade: from 1 ULP (pale) to all digits lost (full)"
    if len(result.box.moving) <= 2:
        said += "; figures above panels: not exceeded at 99 % of the points"
    canvas.text(0.012, 0.38 / canvas.get_figheight(), said, fontsize=9, color=FAINT)


EXACT = 1e-3
"""The position of an error of zero on the logarithmic axis."""
HIGHEST = 1e20
"""The position of an error that is infinite, or larger."""
GRID = 180
"""Pixels along a side of a map."""
CELLS = 60
"""Cells along a side of a panel of pairs, at most."""
FILLED = 6
"""The mean number of points of a cell, so that few are empty."""


def _errors_along(axes: Axes, x: Array, judged: MethodJudged) -> None:
    """Draw the error in ULP against one input, in its scale; wrong points are crosses."""
    wrong = judged.verdicts == VERDICTS.index(Verdict.DISAGREE)
    ulps = np.where(np.isnan(judged.ulps), np.inf, judged.ulps)
    height = np.clip(ulps, EXACT, HIGHEST)
    inked = np.maximum(colours(judged) * 0.85, 0.0)
    for chosen, shape, size in ((~wrong, ".", 5.0), (wrong, "x", 16.0)):
        looks: dict[str, Any] = {"s": size, "marker": shape, "lw": 0.8, "rasterized": True}
        axes.scatter(x[chosen], height[chosen], c=inked[chosen], **looks)
    axes.set(yscale="log", ylim=(EXACT / 3, HIGHEST * 5))
    axes.axhline(1.0, color=INK, lw=0.5, alpha=0.5)
    powers = {10.0**k: power_tick(10.0**k) for k in (5, 10, 15)}
    heights = {EXACT: "0", 1.0: "1", **powers, HIGHEST: r"$\geq 10^{20}$"}
    axes.set_yticks([*heights], [*heights.values()])
    axes.minorticks_off()
    beyond = int((ulps >= HIGHEST).sum())
    if beyond:
        text = f"{beyond:,} of {len(x):,} points at $10^{{20}}$ ULP or more, or infinite"
        axes.text(0.99, 0.86, text, transform=axes.transAxes, ha="right", va="top", fontsize=8.5)


def _map_over(axes: Axes, units: Array, extent: _Extent, judged: MethodJudged) -> None:
    """Draw a map over two inputs: every pixel has the colour of the nearest point.

    Parameters
    ----------
    units : ndarray (N, 2)
        The points in the unit square.
    extent : tuple of float
        The ends of either axis, in its scale: left, right, bottom, top.
    """
    from scipy.spatial import KDTree

    ticks = (np.arange(GRID) + 0.5) / GRID
    pixels = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    nearest = KDTree(units).query(pixels)[1]
    image = colours(judged)[nearest].reshape(GRID, GRID, 3)
    axes.imshow(image, origin="lower", extent=extent, aspect="auto", interpolation="nearest")


def _pair(axes: Axes, units: Array, extent: _Extent, judged: MethodJudged) -> None:
    """Draw a projection onto two inputs: every cell has the colour of its worst point."""
    side = int(np.clip(np.sqrt(len(units) / FILLED), 1, CELLS))
    cells = np.clip((units * side).astype(int), 0, side - 1)
    order = np.lexsort((np.where(np.isnan(judged.ulps), np.inf, judged.ulps), judged.verdicts))
    image = np.ones((side, side, 3))
    image[cells[order, 1], cells[order, 0]] = colours(judged)[order]
    axes.imshow(image, origin="lower", extent=extent, aspect="auto", interpolation="nearest")


def _units_of(box: Box, points: Array, inputs: Sequence[int]) -> Array:
    """Return points as those of the unit cube of some inputs, each in its scale."""
    parts = []
    for index in inputs:
        low, high, x = box.low[index], box.high[index], points[:, index]
        if box.logarithmic[index]:
            low, high, x = (np.log(np.abs(part)) for part in (low, high, x))
        parts.append((x - low) / (high - low))
    return np.stack(parts, axis=1)
