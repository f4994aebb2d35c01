"""Colourings: right on every matrix, and as few colours as is known to be possible on some."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from difflab.autodiff.sparsity.coloring import color_columns, color_symmetric

Matrix = NDArray[np.bool_]
Colors = NDArray[np.int64]


def banded(n: int, width: int) -> Matrix:
    rows, columns = np.indices((n, n))
    found: Matrix = abs(rows - columns) <= width
    return found


def arrow(n: int, tip: int) -> Matrix:
    found = np.eye(n, dtype=np.bool_)
    found[tip, :] = found[:, tip] = True
    return found


def cycle(n: int) -> Matrix:
    return banded(n, 1) | (abs(np.subtract.outer(np.arange(n), np.arange(n))) == n - 1)


def columns_of(matrix: Matrix) -> Colors:
    return color_columns(sparse.csr_array(matrix))


def symmetric_of(matrix: Matrix) -> Colors:
    return color_symmetric(sparse.csr_array(matrix))


def is_star_coloring(matrix: Matrix, colors: Colors) -> bool:
    """Look at every pair of neighbours and every path of four vertices."""
    joined = matrix & ~np.eye(len(matrix), dtype=np.bool_)
    if any(colors[a] == colors[b] for a, b in zip(*np.nonzero(joined), strict=True)):
        return False
    return not any(
        joined[a, b] and joined[b, c] and joined[c, d] and len({*colors[[a, b, c, d]]}) < 3
        for a, b, c, d in permutations(range(len(matrix)), 4)
    )


matrices = st.integers(1, 9).flatmap(
    lambda m: st.integers(1, 9).flatmap(
        lambda n: st.lists(st.booleans(), min_size=m * n, max_size=m * n).map(
            lambda entries: np.array(entries).reshape(m, n)
        )
    )
)
graphs = st.integers(1, 7).flatmap(
    lambda n: st.lists(st.booleans(), min_size=n * n, max_size=n * n).map(
        lambda entries: np.tril(np.array(entries).reshape(n, n))
    )
)


@given(matrices)
@settings(deadline=None)
def test_columns_of_one_color_meet_in_no_row(matrix: Matrix) -> None:
    colors = columns_of(matrix)
    for color in range(colors.max() + 1):
        assert (matrix[:, colors == color].sum(axis=1) <= 1).all()


@given(graphs)
@settings(max_examples=60, deadline=None)
def test_no_path_of_four_has_two_colors(half: Matrix) -> None:
    matrix = half | half.T
    assert is_star_coloring(matrix, symmetric_of(matrix))


def test_the_check_itself_finds_a_path_of_two_colors() -> None:
    assert not is_star_coloring(banded(4, 1), np.array([0, 1, 0, 1]))
    assert not is_star_coloring(banded(2, 1), np.array([0, 0]))
    assert is_star_coloring(banded(4, 1), np.array([0, 1, 2, 0]))


@pytest.mark.parametrize("width", [0, 1, 2, 5])
def test_a_band_takes_as_many_colors_as_it_is_wide(width: int) -> None:
    assert columns_of(banded(40, width)).max() + 1 == 2 * width + 1


def test_known_star_chromatic_numbers() -> None:
    """Of paths, cycles (G. Fertin, A. Raspaud and B. Reed, 2004), stars and complete graphs."""
    assert symmetric_of(banded(30, 1)).max() + 1 == 3
    assert symmetric_of(cycle(5)).max() + 1 == 4
    assert symmetric_of(np.ones((6, 6), np.bool_)).max() + 1 == 6
    assert symmetric_of(np.eye(6, dtype=np.bool_)).max() + 1 == 1


@pytest.mark.parametrize("tip", [0, 3, 9])
def test_an_arrow_takes_two_colors_where_symmetry_counts(tip: int) -> None:
    assert columns_of(arrow(10, tip)).max() + 1 == 10
    assert symmetric_of(arrow(10, tip)).max() + 1 == 2


def test_many_columns_are_colored_in_one_go() -> None:
    n = 50_000
    band = sparse.diags_array(
        [np.ones(n - abs(k)) for k in (-1, 0, 1)], offsets=[-1, 0, 1], dtype=np.bool_
    ).tocsr()
    assert color_columns(band).max() + 1 == 3
    assert color_symmetric(band).max() + 1 == 3
    hub = sparse.csr_array(
        (np.ones(2 * n, np.bool_), ([0] * n + [*range(n)], [*range(n)] + [0] * n)), shape=(n, n)
    )
    assert color_symmetric(hub).max() + 1 == 2


def test_the_order_by_degree_is_tried_where_the_given_one_is_not_best() -> None:
    """A path 0-2-3-1 of columns: its two ends, taken first, leave a third color for column 3."""
    matrix = np.zeros((3, 4), np.bool_)
    for row, pair in enumerate([(0, 2), (2, 3), (3, 1)]):
        matrix[row, pair] = True
    assert columns_of(matrix).max() + 1 == 2
