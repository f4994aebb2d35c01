"""Labels: beside their points, apart from markers and each other, inside the axes."""

from itertools import combinations

import pytest
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from difflab.report.comparison.plots import place_labels

ROW = [(x, 0.5) for x in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)]
COLUMN = [(0.97, y) for y in (0.1, 0.2, 0.3, 0.4)]
CLOSE = [(0.500, 0.5), (0.502, 0.5), (0.504, 0.5), (0.9, 0.9)]


@pytest.mark.parametrize("points", [ROW, COLUMN, CLOSE])
def test_labels_have_their_places_to_themselves(points):
    axes = Figure(figsize=(6, 4)).subplots()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    names = [f"method-{k}" for k in range(len(points))]
    place_labels(axes, points, names, "black")
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    inside = axes.get_window_extent()
    for box in boxes:
        assert inside.contains(box.x0, box.y0)
        assert inside.contains(box.x1, box.y1)
    for x, y in (axes.transData.transform(point) for point in points):
        marker = Bbox.from_bounds(x - 4, y - 4, 8, 8)
        assert not any(box.overlaps(marker) for box in boxes)
    shown = ", ".join(text.get_text().replace("\n", " ") for text in axes.texts)
    assert sorted(shown.replace(",", " ").split()) == names


def test_points_that_touch_share_a_label_from_left_to_right():
    axes = Figure(figsize=(6, 4)).subplots()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    place_labels(axes, CLOSE, ["b", "c", "a", "$alone$"], "black")
    assert {text.get_text() for text in axes.texts} == {"b, c, a", "$alone$"}
    assert not any(text.get_parse_math() for text in axes.texts)
