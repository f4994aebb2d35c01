"""Sizes: hand-counted cases, and trees far too large to build."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.graph.counts import Counts
from difflab.graph.function import Function


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


def cell(h: Any, u: Any) -> Any:
    return np.tanh(W @ h + u), np.sum(h * h)


W = np.cos(np.arange(9.0)).reshape(3, 3)


def looped(turns: int) -> Function:
    return dl.trace(lambda x: dl.scan(cell, x, np.ones((turns, 3)))[0], np.ones(3))


def test_sizes_with_more_digits_than_python_writes_are_shown() -> None:
    def chain(x: Any) -> Any:
        for _ in range(20_000):
            x = 4 * x * (1 - x)
        return x

    counts = dl.count(dl.trace(chain, 0.3))
    assert counts.tree == 6 * 2**20_000 - 5  # tree(n) = 2 tree(n - 1) + 5 and tree(0) = 1
    # log10(6) + 20,000 log10(2) = 6021.4
    assert (
        repr(counts) == "Counts(tree=about 1e6021, dag=60003, operations=60000, arithmetic=60000)"
    )


def test_a_loop_has_the_operations_of_its_turns() -> None:
    # 3 rows of 3 products and 2 sums, 3 sums, 3 tanh; 3 squares and 2 sums
    a_turn = 3 * (3 + 2) + 3 + 3 + 3 + 2
    counts = dl.count(looped(50))
    assert (counts.operations, counts.arithmetic) == (50 * 5, 50 * a_turn)

    def unrolled(x: Any) -> Any:
        for u in np.arange(300.0).reshape(50, 2, 3):
            (x, y) = cell(x, u[0])
            x = x + 0 * y
        return x

    assert dl.count(dl.trace(unrolled, np.ones(3))).operations == 50 * 5 + 50 * 2


def test_the_size_of_a_loop_is_that_of_its_text() -> None:
    short, long = dl.count(looped(5)), dl.count(looped(50_000))
    assert (short.tree, short.dag) == (long.tree, long.dag)
    assert long.operations == 10_000 * short.operations


def test_loops_in_loops_and_branches_are_counted() -> None:
    inner = lambda y: dl.scan(lambda c, _: (np.sin(c), None), y, length=7)[0]  # noqa: E731
    outer = dl.trace(lambda x: dl.scan(lambda c, _: (inner(c) * c, None), x, length=11)[0], 1.0)
    assert dl.count(outer).operations == 11 * (7 + 1)
    branch = dl.trace(lambda x: dl.cond(x > 0, inner, lambda x: 2 * x, x), 1.0)
    assert dl.count(branch).operations == 1 + 7 + 1
    loop = dl.trace(lambda a: dl.while_loop(lambda x: x < 9, lambda x: x * x, a), 2.0)
    assert dl.count(loop).operations == 2
