"""The layout: what must hold of every placement, whatever the graph."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from difflab.drawing.layout import Curve, Placement, place
from difflab.drawing.network import layers


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:
    count = draw(st.integers(1, 25))
    sizes = draw(
        st.lists(st.tuples(st.floats(20, 150), st.floats(20, 60)), min_size=count, max_size=count)
    )
    edges = [
        (draw(st.integers(0, target - 1)), target)
        for target in range(1, count)
        for _ in range(draw(st.integers(0, 3)))
    ]
    return sizes, edges


def points(curve: Curve) -> list[tuple[float, float]]:
    """Sample the lead, the Bézier and the second lead."""
    a, b, c, d = curve.leave, curve.first, curve.second, curve.enter
    path = [curve.start]
    for step in range(25):
        t = step / 24
        weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
        path.append(
            tuple(sum(w * p[k] for w, p in zip(weights, (a, b, c, d), strict=True)) for k in (0, 1))
        )
    return [*path, curve.end]


def inside(point: tuple[float, float], placed: Placement, box: int) -> bool:
    (x, y), (w, h) = placed.centres[box], placed.sizes[box]
    return abs(point[0] - x) < 0.5 * w - 0.01 and abs(point[1] - y) < 0.5 * h - 0.01


def test_layers_are_longest_paths() -> None:
    assert layers(6, [(0, 1), (1, 2), (0, 3), (2, 3), (3, 5), (4, 5)]) == [0, 1, 2, 3, 0, 4]
    assert layers(6, [(0, 1), (1, 2), (0, 3), (2, 3), (3, 5), (4, 5)], late=[4])[4] == 3


@given(networks(), st.booleans())
def test_every_arrow_goes_forward_and_no_box_is_hit(
    network: tuple[list[tuple[float, float]], list[tuple[int, int]]], horizontal: bool
) -> None:
    sizes, edges = network
    placed = place(sizes, edges, horizontal=horizontal)
    axis = 0 if horizontal else 1
    for source, target in edges:
        assert placed.centres[source][axis] < placed.centres[target][axis]
    for a, b in itertools.combinations(range(len(sizes)), 2):
        (xa, ya), (xb, yb) = placed.centres[a], placed.centres[b]
        (wa, ha), (wb, hb) = placed.sizes[a], placed.sizes[b]
        assert abs(xa - xb) >= 0.5 * (wa + wb) - 1e-6 or abs(ya - yb) >= 0.5 * (ha + hb) - 1e-6
    curves = [curve for _, curve in placed.trunks] + [arrow.curve for arrow in placed.arrows]
    for curve in curves:
        for point in points(curve):
            assert not any(inside(point, placed, box) for box in range(len(sizes)))
            assert -0.01 <= point[0] <= placed.width + 0.01
            assert -0.01 <= point[1] <= placed.height + 0.01


@given(networks())
def test_every_use_has_its_own_arrow_that_ends_at_its_target(
    network: tuple[list[tuple[float, float]], list[tuple[int, int]]],
) -> None:
    sizes, edges = network
    placed = place(sizes, edges)
    assert sorted(arrow.edge for arrow in placed.arrows) == list(range(len(edges)))
    tips = set()
    for arrow in placed.arrows:
        (x, y), (w, h) = placed.centres[edges[arrow.edge][1]], placed.sizes[edges[arrow.edge][1]]
        assert arrow.tip[0] == pytest.approx(x - 0.5 * w)
        assert abs(arrow.tip[1] - y) < 0.5 * h
        tips.add((round(arrow.tip[0], 3), round(arrow.tip[1], 3)))
    assert len(tips) == len(edges)


def test_crossings_that_can_be_avoided_are() -> None:
    # 0-3 and 1-2 cross in the order of the numbers, and not in the other.
    placed = place([(30, 30)] * 4, [(0, 3), (1, 2)])
    y = [centre[1] for centre in placed.centres]
    assert (y[0] < y[1]) == (y[3] < y[2])


def test_the_first_box_is_on_top() -> None:
    placed = place([(30, 30)] * 6, [(0, 5), (1, 4), (2, 3)])
    y = [centre[1] for centre in placed.centres]
    assert y[0] < y[1] < y[2]


def test_a_chain_is_straight() -> None:
    placed = place([(30 + k, 30) for k in range(40)], [(k, k + 1) for k in range(39)])
    assert max(y for _, y in placed.centres) == pytest.approx(min(y for _, y in placed.centres))


def test_fan_out_is_one_trunk_that_parts() -> None:
    # 0 feeds every later box of a chain: one trunk along the chain, not eleven parallel lines.
    edges = [(k, k + 1) for k in range(11)] + [(0, k) for k in range(2, 12)]
    placed = place([(30, 30)] * 12, edges)
    assert len(placed.trunks) == 10
    assert len(placed.junctions) == 10


def test_five_thousand_layers_need_no_recursion() -> None:
    placed = place([(30, 30)] * 5000, [(k, k + 1) for k in range(4999)], horizontal=False)
    assert placed.height > placed.width


def test_no_boxes() -> None:
    assert place([], []).centres == []
