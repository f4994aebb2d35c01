"""Colorings of rows and columns at once, and acyclic ones: right on every matrix, and few."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

import difflab as dl
from difflab.autodiff.sparsity import dependence
from difflab.autodiff.sparsity.acyclic import color_acyclic, substitution
from difflab.autodiff.sparsity.bicoloring import color_both
from difflab.autodiff.sparsity.coloring import color_symmetric
from difflab.errors import InputError
from difflab.report import spy

Matrix = NDArray[np.bool_]

matrices = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(0, 10**6)).map(
    lambda drawn: np.random.default_rng(drawn[2]).random(drawn[:2]) < drawn[2] % 7 / 8
)


def arrow(n: int) -> sparse.csr_array[Any]:
    """An arrowhead: a dense first row, a dense first column and a diagonal."""
    i = np.arange(n)
    places = (np.concatenate([i, 0 * i, i]), np.concatenate([i, i, 0 * i]))
    found = sparse.csr_array((np.ones(3 * n, np.bool_), places), shape=(n, n))
    found.sum_duplicates()
    return found


@given(matrices)
@settings(max_examples=150, deadline=None)
def test_every_entry_is_alone_in_the_sweep_of_one_of_its_colors(matrix: Matrix) -> None:
    columns, rows = color_both(sparse.csr_array(matrix))
    for i, j in np.argwhere(matrix):
        pushed = columns[j] >= 0 and matrix[i, columns == columns[j]].sum() == 1
        pulled = rows[i] >= 0 and matrix[rows == rows[i], j].sum() == 1
        assert pushed or pulled


def has_cycle(matrix: Matrix, members: Matrix) -> bool:
    """A graph is a forest if removing leaves repeatedly leaves nothing."""
    inside = matrix & members & members[:, None] & ~np.eye(len(matrix), dtype=np.bool_)
    while True:
        leaves = inside.sum(axis=0) == 1
        if not leaves.any():
            return bool(inside.any())
        inside[leaves] = False
        inside[:, leaves] = False


@given(matrices)
@settings(max_examples=100, deadline=None)
def test_no_cycle_has_two_colors_and_entries_follow_by_substitution(half: Matrix) -> None:
    n = min(half.shape)
    matrix = half[:n, :n] | half[:n, :n].T
    pattern = sparse.csr_array(matrix)
    colors = color_acyclic(pattern)
    for a in range(colors.max() + 1):
        off = matrix & ~np.eye(n, dtype=np.bool_)
        assert not off[np.ix_(colors == a, colors == a)].any()
        for b in range(a):
            assert not has_cycle(matrix, (colors == a) | (colors == b))
    values = np.random.default_rng(n).integers(1, 99, (n, n))
    whole = np.where(matrix, values + values.T, 0).astype(np.float64)
    products = [whole[:, colors == color].sum(axis=1) for color in range(colors.max() + 1)]
    found = substitution(pattern, colors).entries(np.concatenate(products))
    assert np.array_equal(found, whole[pattern.nonzero()])


def test_known_acyclic_chromatic_numbers() -> None:
    """Of trees 2, of cycles 3, of complete graphs n; a grid's is 3 (B. Grünbaum, 1973)."""
    path = sparse.diags_array([1, 1], offsets=[-1, 1], shape=(30, 30), dtype=bool).tocsr()
    assert color_acyclic(path).max() + 1 == 2
    ring = path.tolil()
    ring[0, 29] = ring[29, 0] = True
    assert color_acyclic(ring.tocsr()).max() + 1 == 3
    assert color_acyclic(sparse.csr_array(np.ones((6, 6), np.bool_))).max() + 1 == 6
    tree = sparse.lil_array((31, 31), dtype=np.bool_)
    for child in range(1, 31):
        tree[child, (child - 1) // 2] = tree[(child - 1) // 2, child] = True
    assert color_acyclic(tree.tocsr()).max() + 1 == 2
    assert color_symmetric(tree.tocsr()).max() + 1 == 3


@pytest.mark.parametrize("n", [10, 100_000])
def test_an_arrowhead_of_any_size_takes_three_colors(n: int) -> None:
    columns, rows = color_both(arrow(n))
    assert (columns.max() + 1, rows.max() + 1) == (2, 1)
    assert color_symmetric(arrow(n)).max() + 1 == 2


def test_several_dense_rows_and_columns() -> None:
    matrix = np.eye(40, dtype=np.bool_)
    matrix[:3] = matrix[:, :2] = True
    columns, rows = color_both(sparse.csr_array(matrix))
    assert columns.max() + 1 + rows.max() + 1 <= 6


def test_the_jacobian_of_an_arrowhead() -> None:
    n = 100_000
    function = dl.trace(
        lambda x: np.concatenate([np.sum(x**2, keepdims=True), x[1:] ** 2 * x[0]]), np.ones(n)
    )
    derivative = dl.sparse_jacobian(function)
    assert (derivative.mode, derivative.sweeps) == ("bidirectional", (2, 1))
    x = np.linspace(0.5, 1.5, n)
    found = derivative(x)
    assert np.array_equal(found[[0], :].toarray()[0], 2 * x)
    assert np.array_equal(found[:, [0]].toarray()[1:, 0], x[1:] ** 2)
    assert np.array_equal(found.diagonal()[1:], 2 * x[1:] * x[0])
    compiled = dl.compile(derivative.function)
    assert abs(derivative.expand(compiled(x)) - found).max() == 0


def test_an_acyclic_coloring_takes_fewer_sweeps() -> None:
    function = dl.parse("x: [200]; sum(100*(x[1:] - x[:-1]^2)^2 + (1 - x[:-1])^2)")
    star, acyclic = dl.sparse_hessian(function), dl.sparse_hessian(function, "acyclic")
    assert (star.sweeps, acyclic.sweeps) == ((3, 0), (2, 0))
    assert dl.sparse_hessian(function, "auto").sweeps == (2, 0)
    x = np.linspace(-1.0, 1.0, 200)
    expected = dl.hessian(function)(x)
    assert np.allclose(acyclic(x).toarray(), expected, rtol=0, atol=1e-9)
    assert np.array_equal(np.unique(acyclic.directions), [0, 1])


def test_pictures_and_text_show_both_directions() -> None:
    derivative = dl.sparse_jacobian(dl.parse("x: [6]; [sum(x), x[0]*x[1:]]"))
    shown = spy.text(derivative, "J")
    assert "sweeps    2 forward and 1 reverse instead of 6, by coloring rows and columns" in shown
    assert set(derivative.directions.tolist()) == {0, 1, 2}
    assert b"<svg" in spy.picture(derivative, "J", "svg")


def test_unknown_modes_and_colorings_are_refused() -> None:
    function = dl.parse("x: [3]; sum(x^2)")
    with pytest.raises(InputError, match="unknown mode 'both'") as refused:
        dl.sparse_jacobian(function, "both")  # type: ignore[arg-type]
    assert "bidirectional" in str(refused.value)
    with pytest.raises(InputError, match="unknown coloring 'cyclic'"):
        dl.sparse_hessian(function, "cyclic")  # type: ignore[arg-type]


def program(x: Any, y: Any) -> Any:
    """Slices, sums, products, branches and a dense column, on two arrays."""
    joined = np.concatenate([x[1:] * x[:-1], np.where(y > 0, np.sin(y), y**3)])
    return np.concatenate([joined * x[0], np.sum(y, keepdims=True), x[::2] + x[3]])


@pytest.mark.parametrize("large", [1, 10**9])
def test_the_pattern_has_every_nonzero_at_a_thousand_points(
    large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependence, "LARGE", large)
    function = dl.trace(program, np.ones(7), np.ones(5))
    rng = np.random.default_rng(11)
    dense = dl.jacobian(function)(rng.normal(size=(1000, 7)), rng.normal(size=(1000, 5)))
    seen = (dense != 0).any(axis=0)
    pattern = dl.sparse_jacobian(function).pattern.toarray()
    assert not (seen & ~pattern).any()
    assert pattern.sum() == seen.sum()


@pytest.mark.parametrize("feeds", [1, 2, 12])
def test_arrays_with_many_feeds_get_vertices(feeds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependence, "LARGE", 1)
    monkeypatch.setattr(dependence, "MOST_FEEDS", feeds)
    function = dl.trace(lambda x: x[:-4] + x[1:-3] * x[2:-2] + x[3:-1] * x[4:], np.ones(20))
    expected = sum(np.eye(16, 20, k) for k in range(5))
    assert np.array_equal(dl.sparse_jacobian(function).pattern.toarray(), expected)


def test_a_million_variables_take_no_vertex_for_each_operation() -> None:
    """The graph has ten operations on arrays; only inputs and outputs get vertices."""
    n = 1_000_000
    function = dl.trace(lambda x: x[:-2] - 2 * x[1:-1] ** 2 + np.sin(x[2:]), np.ones(n))
    edges, _, _ = dependence.dependence(function)
    assert edges.count < 2 * n
    assert len(edges.ends()[0]) == 3 * (n - 2)
    assert dl.sparse_jacobian(function).sweeps == (3, 0)
