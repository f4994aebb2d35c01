"""Greedy star colorings: the lowest color that the definition allows, vertex by vertex."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from difflab.autodiff.sparsity.coloring import color_star
from tests.support.rows import for_each

Matrix = NDArray[np.bool_]


def random_graph(draw: np.random.Generator, sides: int) -> Matrix:
    """A symmetric matrix; with two sides no entry joins vertices of one side."""
    n = int(draw.integers(1, 9))
    matrix = draw.uniform(size=(n, n)) < draw.uniform(0.1, 0.7)
    side = draw.integers(0, sides, n)
    if sides == 2:
        matrix &= side[:, None] != side[None, :]
    found: Matrix = matrix | matrix.T
    return found


def has_two_colored_path(matrix: Matrix, names: list[object]) -> bool:
    """Whether a path of four named vertices has at most two names, or neighbors have one."""
    for a, b, c, d in permutations([v for v, name in enumerate(names) if name is not None], 4):
        joined = matrix[a, b] and matrix[b, c] and matrix[c, d]
        if joined and names[a] == names[c] and names[b] == names[d]:
            return True
    return any(
        names[a] is not None and names[a] == names[b]
        for a, b in np.argwhere(matrix).tolist()
        if a != b
    )


def lowest_colors(matrix: Matrix, order: list[int]) -> list[int]:
    """Colors by the definition: vertices outside of `order` separate all their neighbors."""
    colors = [-1] * len(matrix)
    for v in order:
        for color in range(len(order)):
            names: list[object] = [None if c < 0 else c for c in colors]
            names[v] = color
            apart = all(
                names[a] != names[b]
                for w in set(range(len(matrix))) - set(order)
                for a, b in permutations(np.flatnonzero(matrix[w]).tolist(), 2)
                if names[a] is not None
            )
            if apart and not has_two_colored_path(matrix, names):
                colors[v] = color
                break
    return colors


@for_each("seed", range(60))
def test_each_vertex_gets_the_lowest_color_that_the_definition_allows(seed: int) -> None:
    draw = np.random.default_rng(seed)
    matrix = random_graph(draw, 1)
    order = draw.permutation(len(matrix))
    if seed % 2:
        order = order[: draw.integers(0, len(order) + 1)]
    found = color_star(sparse.csr_array(matrix), order)
    assert found.tolist() == lowest_colors(matrix, order.tolist())


@for_each("seed", range(60))
def test_sides_of_a_bipartite_graph_have_colors_of_their_own(seed: int) -> None:
    draw = np.random.default_rng(seed)
    matrix = random_graph(draw, 2)
    order = draw.permutation(len(matrix))
    colors = color_star(sparse.csr_array(matrix), order, bipartite=True)
    side = sides_of(matrix)
    names = [(int(color), int(s)) for color, s in zip(colors, side, strict=True)]
    assert min(colors) == 0
    assert not has_two_colored_path(matrix, list(names))


def sides_of(matrix: Matrix) -> NDArray[np.int64]:
    """A side, 0 or 1, for each vertex of a bipartite graph."""
    side = np.full(len(matrix), -1)
    for v in range(len(matrix)):
        reached = {v: 0} if side[v] < 0 else {}
        while reached:
            w, s = reached.popitem()
            side[w] = s
            reached |= {u: 1 - s for u in np.flatnonzero(matrix[w]).tolist() if side[u] < 0}
    return side
