"""The panels of a picture over a domain: error along one input, maps over two, pairs of more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from difflab.lab.domain.box import Box
from difflab.lab.domain.judging import VERDICTS, MethodJudged
from difflab.report.canvas import INK
from difflab.report.domain.shades import colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Array = NDArray[np.float64]

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


def along(axes: Axes, x: Array, judged: MethodJudged) -> None:
    """Draw the error in ULP against one input, in its scale; wrong points are crosses."""
    wrong = judged.verdicts == len(VERDICTS) - 1
    ulps = np.where(np.isnan(judged.ulps), np.inf, judged.ulps)
    height = np.clip(ulps, EXACT, HIGHEST)
    inked = np.maximum(colours(judged) * 0.85, 0.0)
    for chosen, shape, size in ((~wrong, ".", 5.0), (wrong, "x", 16.0)):
        looks: dict[str, Any] = {"s": size, "marker": shape, "lw": 0.8, "rasterized": True}
        axes.scatter(x[chosen], height[chosen], c=inked[chosen], **looks)
    axes.set(yscale="log", ylim=(EXACT / 3, HIGHEST * 5))
    axes.axhline(1.0, color=INK, lw=0.5, alpha=0.5)
    powers = {10.0**k: f"$10^{{{k}}}$" for k in (5, 10, 15)}
    heights = {EXACT: "0", 1.0: "1", **powers, HIGHEST: r"$\geq 10^{20}$"}
    axes.set_yticks([*heights], [*heights.values()])
    axes.minorticks_off()
    beyond = int((ulps >= HIGHEST).sum())
    if beyond:
        text = f"{beyond:,} of {len(x):,} points at $10^{{20}}$ ULP or more, or infinite"
        axes.text(0.99, 0.86, text, transform=axes.transAxes, ha="right", va="top", fontsize=8)


def map_over(axes: Axes, units: Array, extent: Sequence[float], judged: MethodJudged) -> None:
    """Draw a map over two inputs: every pixel has the colour of the nearest point.

    Parameters
    ----------
    units : ndarray (N, 2)
        The points in the unit square.
    extent : sequence of float
        The ends of either axis, in its scale: left, right, bottom, top.
    """
    from scipy.spatial import KDTree

    ticks = (np.arange(GRID) + 0.5) / GRID
    pixels = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    nearest = KDTree(units).query(pixels)[1]
    image = colours(judged)[nearest].reshape(GRID, GRID, 3)
    axes.imshow(image, origin="lower", extent=_box(extent), aspect="auto", interpolation="nearest")


def pair(axes: Axes, units: Array, extent: Sequence[float], judged: MethodJudged) -> None:
    """Draw a projection onto two inputs: every cell has the colour of its worst point."""
    side = int(np.clip(np.sqrt(len(units) / FILLED), 1, CELLS))
    cells = np.clip((units * side).astype(int), 0, side - 1)
    order = np.lexsort((np.where(np.isnan(judged.ulps), np.inf, judged.ulps), judged.verdicts))
    image = np.ones((side, side, 3))
    image[cells[order, 1], cells[order, 0]] = colours(judged)[order]
    axes.imshow(image, origin="lower", extent=_box(extent), aspect="auto", interpolation="nearest")


def _box(extent: Sequence[float]) -> Any:
    return tuple(extent)


def units_of(box: Box, points: Array, inputs: Sequence[int]) -> Array:
    """Return points as those of the unit cube of some inputs, each in its scale."""
    parts = []
    for place in inputs:
        low, high, x = box.low[place], box.high[place], points[:, place]
        if box.logarithmic[place]:
            low, high, x = (np.log(np.abs(part)) for part in (low, high, x))
        parts.append((x - low) / (high - low))
    return np.stack(parts, axis=1)
