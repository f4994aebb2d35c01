"""Labels beside the ends of lines never overlap."""

from __future__ import annotations

from itertools import pairwise

import pytest

from difflab.report.canvas import spread


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
