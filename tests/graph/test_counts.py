"""Sizes: hand-counted cases, and trees far too large to build."""

from __future__ import annotations

import pytest

import difflab as dl
from difflab.graph.counts import Counts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", Counts(tree=1, dag=1, operations=0, arithmetic=0)),
        ("x + 1", Counts(tree=3, dag=3, operations=1, arithmetic=1)),
        ("ln(x1) + x1*x2 - sin(x2)", Counts(tree=9, dag=7, operations=5, arithmetic=5)),
        ("y = x*x; y*y", Counts(tree=7, dag=3, operations=2, arithmetic=2)),
        ("[x*y, x*y + 1]", Counts(tree=8, dag=5, operations=2, arithmetic=2)),
        ("x: [3]\nx[0]*x[1]", Counts(tree=3, dag=2, operations=1, arithmetic=1)),
        ("W: [4, 3]; x: [3]\nW @ x", Counts(3, 3, 1, 4 * 3 + 4 * 2)),
        ("W: [4, 3]\nsum(W*W, [0])", Counts(4, 3, 2, 12 + 3 * 3)),
        ("x: [5]\nsum(sin(x[1:])*x[:-1])", Counts(5, 4, 3, 4 + 4 + 3)),
    ],
)
def test_by_hand(text: str, expected: Counts) -> None:
    assert dl.count(dl.parse(text)) == expected


def test_shared_squares_double_the_tree_exactly() -> None:
    depth = 500
    lines = ["y0 = x", *(f"y{i + 1} = y{i}*y{i}" for i in range(depth)), f"y{depth}"]
    counts = dl.count(dl.parse("\n".join(lines)))
    assert counts.tree == 2 ** (depth + 1) - 1
    assert counts.dag == depth + 1
