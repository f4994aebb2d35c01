"""Labels beside the ends of lines never overlap, and ticks of an axis have one unit."""

from __future__ import annotations

from itertools import pairwise

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation

from difflab.report.canvas import (
    Label,
    decades,
    label_ends,
    seconds_tick,
    spread,
    style,
    titled_figure,
)
from tests.bench.picture_checks import check_labels, check_page


@pytest.mark.parametrize(
    ("heights", "rooms", "ceiling"),
    [
        ([5.0, 5.0, 5.0], [4.0, 4.0, 4.0], 100.0),
        ([0.0, 100.0, 99.0, 98.0], [10.0, 5.0, 10.0, 5.0], 100.0),
        ([3.0], [4.0], 4.0),
        ([1.0, 9.0, 2.0, 8.0, 3.0], [2.0, 2.0, 2.0, 2.0, 2.0], 9.0),
    ],
)
def test_labels_never_overlap_and_keep_their_order(
    heights: list[float], rooms: list[float], ceiling: float
) -> None:
    centres = spread(heights, rooms, ceiling=ceiling)
    order = sorted(range(len(heights)), key=lambda k: heights[k])
    assert all(heights[a] <= heights[b] and centres[a] < centres[b] for a, b in pairwise(order))
    edges = [(centres[k] - rooms[k] / 2, centres[k] + rooms[k] / 2) for k in order]
    assert all(low[1] <= high[0] + 1e-9 for low, high in pairwise(edges))
    assert edges[-1][1] <= ceiling + 1e-9


def test_labels_stay_above_the_floor_and_what_does_not_fit_grows_upwards() -> None:
    assert spread([0.0, 1.0], [4.0, 4.0], ceiling=20.0, floor=-2.0) == [0.0, 4.0]
    assert spread([5.0, 5.0, 5.0], [4.0, 4.0, 4.0], ceiling=10.0, floor=0.0) == [2.0, 6.0, 10.0]


def test_labels_at_equal_ends_do_not_overlap_and_are_joined_to_them() -> None:
    with style():
        figure = Figure(figsize=(6.0, 4.0))
        axes = figure.add_subplot(xlim=(0, 1), ylim=(0, 1))
        ends = [(0.0, "\n"), (0.01, ""), (0.5, ""), (1.0, ""), (1.0, "\n\n"), (1.0, "")]
        labels = [
            Label(f"the name{more} of {k}", 1.0, y, "black", "o" * (k % 2))
            for k, (y, more) in enumerate(ends)
        ]
        label_ends(axes, labels)
        check_labels(figure)
    # The third is at its end, and the highest nearly.
    joined = [label for label in figure.findobj(Annotation) if label.arrow_patch is not None]
    assert len(joined) == 4
    # A label's marker stands beside it and does not change the data's limits.
    assert len(axes.findobj(Line2D, include_self=False)) >= 3
    assert axes.dataLim.height < 0


def test_titles_wrap_at_the_width_and_panels_are_below_them() -> None:
    with style():
        figure = titled_figure(5.0, "a long title " * 12, "a long subtitle " * 30)
        figure.subplots().set_title("a panel", loc="left")
        check_page(figure)
        check_labels(figure)


def test_what_is_too_wide_for_a_page_is_found() -> None:
    with pytest.raises(AssertionError, match=r"10\.5 inches are too wide for a page"):
        check_page(Figure(figsize=(10.5, 4.0)))


def test_an_axis_of_less_than_a_decade_has_one_unit() -> None:
    with style():
        figure = Figure()
        wide, narrow = figure.subplots(1, 2)
        for axes, high in ((wide, 1e-3), (narrow, 7e-6)):
            axes.set(yscale="log", ylim=(1.5e-6, high))
            decades(axes.yaxis, seconds_tick)
        figure.draw_without_rendering()
    assert _shown(wide) == {"10 µs", "100 µs", "1 ms"}
    assert _shown(narrow) == {"2 µs", "5 µs"}


def _shown(axes: Axes) -> set[str]:
    """Return the labels of ticks within the axis: beyond, versions of matplotlib differ."""
    low, high = axes.get_ylim()
    ticks = [*axes.yaxis.get_major_ticks(), *axes.yaxis.get_minor_ticks()]
    return {t.label1.get_text() for t in ticks if low <= t.get_loc() <= high} - {""}
