"""The pattern of a Jacobian, against known ones, against values alone, and at sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import difflab as dl
from difflab.autodiff.sparsity import reach, sparsity
from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.graph.function import Function
from difflab.primitives import TABLE
from difflab.testing.strategies import expressions, points
from tests.support.orders import orders
from tests.support.rows import for_each

Matrix = NDArray[np.bool_]


def influence(function: Function, seed: int) -> Matrix:
    """Return which outputs change when an input does, from values at random points alone."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(0.5, 2.0, (4, function.n))
    before = function.values(base)
    changed = np.zeros((function.m, function.n), np.bool_)
    for column in range(function.n):
        moved = base.copy()
        moved[:, column] *= 1.01
        after = function.values(moved)
        same = (after == before) | (np.isnan(after) & np.isnan(before))
        changed[:, column] = ~same.all(axis=0)
    return changed


def pattern(function: Function) -> Matrix:
    found: Matrix = sparsity(function).toarray()
    return found


V, M, S = np.ones(6), np.ones((3, 4)), 3 * np.eye(3) + 1
EXACT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "slices": (lambda x: x[1:] * x[:-1] + x[::-1][1:], (V,)),
    "steps": (lambda x: x[1::2] - x[::2], (V,)),
    "one number of an array": (lambda x: x[2] * x[3:], (V,)),
    "row and column": (lambda a: a[1, :] * a[2, 1], (M,)),
    "broadcast": (lambda a, b: a * b[:, None], (M, np.ones(3))),
    "reshape": (lambda a: a.reshape(4, 3) * 2 + a.T, (M,)),
    "sum of rows": (lambda a: np.sum(np.exp(a), axis=1), (M,)),
    "sum of columns": (lambda a: np.sum(a**2, axis=0), (M,)),
    "mean": (lambda a: np.mean(a), (M,)),
    "product of rows": (lambda a: np.prod(a, axis=1), (M,)),
    "norm of columns": (lambda a: np.linalg.norm(a, axis=0), (M,)),
    "softmax of rows": (lambda a: dl.arrays.softmax(a, axis=-1), (M,)),
    "logsumexp": (lambda a: dl.arrays.logsumexp(a, axis=0), (M,)),
    "concatenate": (lambda x, y: np.concatenate([x, y * 2, x]), (V, np.ones(2))),
    "stack": (lambda x, y: np.stack([x[:2], y], axis=1), (V, np.ones(2))),
    "repeated places": (lambda x: x[np.array([0, 0, 3])] ** 2, (V,)),
    "diagonal": (lambda a: np.diagonal(a) * np.diag(a)[::-1], (S,)),
    "matrix of a diagonal": (lambda x: np.diag(x), (V,)),
    "vectors": (lambda x, y: x @ y, (V, V)),
    "matrix and vector": (lambda a, x: a @ x, (M, np.ones(4))),
    "vector and matrix": (lambda x, a: x @ a, (np.ones(3), M)),
    "matrices": (lambda a, b: a @ b, (M, np.ones((4, 2)))),
    "stacks of matrices": (lambda a, b: a @ b, (np.ones((2, 3, 4)), np.ones((2, 4, 2)))),
    "one matrix for a stack": (lambda a, b: a @ b, (np.ones((2, 3, 4)), np.ones((4, 2)))),
    "constant matrix": (lambda x: np.arange(1.0, 13.0).reshape(3, 4) @ x, (np.ones(4),)),
    "right-hand sides": (lambda b: np.linalg.solve(S, b), (np.ones((3, 2)),)),
    "one right-hand side": (lambda b: np.linalg.solve(S, b), (np.ones(3),)),
    "system": (lambda a: np.linalg.solve(a + S, np.ones(3)), (np.ones((3, 3)),)),
    "inverse": (lambda a: np.linalg.inv(a + S), (np.ones((3, 3)),)),
    "determinants": (lambda a: np.linalg.det(a), (np.arange(18.0).reshape(2, 3, 3),)),
    "comparison": (lambda x, y: np.where(x > 1, y, 0), (V, V)),
    "a condition carries nothing": (lambda x: (x > 0) * 1.0 + np.floor(x), (V,)),
}
CONDITIONS = {"comparison", "a condition carries nothing"}


@for_each("name", [name for name in EXACT if name not in CONDITIONS])
def test_pattern_is_what_values_depend_on(name: str) -> None:
    function = dl.trace(EXACT[name][0], *EXACT[name][1])
    assert np.array_equal(pattern(function), influence(function, 1))


def test_conditions_carry_no_derivative() -> None:
    chosen = dl.trace(*_case("comparison"))
    assert np.array_equal(pattern(chosen), np.hstack([np.zeros((6, 6)), np.eye(6)]))
    assert not pattern(dl.trace(*_case("a condition carries nothing"))).any()
    assert np.array_equal(pattern(dl.trace(lambda x: x + np.argmax(x), V)), np.eye(6))


def _case(name: str) -> tuple[Any, ...]:
    code, examples = EXACT[name]
    return (code, *examples)


def test_a_running_sum_mixes_its_axis_alone() -> None:
    function = dl.trace(lambda a: np.cumsum(a, axis=1), M)
    found = pattern(function)
    assert np.array_equal(found, np.kron(np.eye(3), np.ones((4, 4))))
    assert not (influence(function, 1) & ~found).any()


@for_each("name", sorted(TABLE))
def test_elementwise_rows_pass_what_has_a_derivative(name: str) -> None:
    row = TABLE[name]
    if row.shape is not None or row.arity is None or not row.samples:
        return
    function = _applied(row)
    rng = np.random.default_rng(3)
    low, high = np.array(row.samples[orders(row) :]).T
    slopes = dl.jacobian(function)(*(rng.uniform(low, high, (20, len(low))).T))
    assert not ((slopes[:, 0] != 0).any(axis=0) & ~pattern(function)[0]).any()


def _applied(row: Primitive) -> Function:
    """Return the row's function of its arguments, with its orders as constants."""
    from difflab.graph.builder import Builder

    builder = Builder()
    count = orders(row)
    fixed = [builder.constant(low) for low, _ in row.samples[:count]]
    inputs = [builder.input(f"x{place}") for place in range(count, len(row.samples))]
    return Function.build(builder, inputs, [builder.emit(row, [*fixed, *inputs])], ["y"])


@given(st.lists(expressions(("x", "y", "z")), min_size=1, max_size=4), points(("x", "y", "z")))
@settings(max_examples=40, deadline=None)
def test_random_programs_depend_on_no_more_than_the_pattern(
    texts: list[str], point: dict[str, float]
) -> None:
    function = dl.parse(f"[{', '.join(texts)}]")
    slopes = dl.jacobian(function)(**{name: point[name] for name in function.inputs})
    assert not ((slopes != 0) & ~np.isnan(slopes) & ~pattern(function)).any()


def test_a_jacobian_has_a_pattern_too_of_a_derivative_is_seen() -> None:
    function = dl.parse("[x*y, y*z, x*z]")
    assert np.array_equal(
        pattern(dl.jacobian(function)).any(axis=1).reshape(3, 3), pattern(function)
    )


def test_long_sums_and_long_chains_are_contracted() -> None:
    """Sets of inputs for each partial sum would be 10^10 entries here."""
    n = 100_000
    total = dl.trace(_chained, np.ones(n // 100))
    assert sparsity(total).nnz == n // 100
    text = dl.parse("+".join(f"x{i}*x{i + 1}" for i in range(n // 5)))
    assert sparsity(dl.gradient(text)).nnz == 2 * (n // 5)


def _chained(x: Any) -> Any:
    total = x[0]
    for i in range(1, len(x)):
        total = np.sin(total) + x[i]
    return total


def test_sets_of_inputs_are_not_kept_for_partial_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would have n²/2 entries together; the answer has 2n."""
    n = 2000
    monkeypatch.setattr(reach, "ENTRIES_LIMIT", 10 * n)
    terms, sums = np.arange(n), n + np.arange(n)
    tails = np.concatenate([terms, sums[:-1]])
    heads = np.concatenate([sums, sums[1:]])
    found = reach.reached(2 * n, tails, heads, terms, np.append(terms, sums[-1]))
    assert found.nnz == 2 * n


def test_partial_results_that_are_used_twice_go_level_by_level() -> None:
    def prefixes(x: Any) -> Any:
        state, states = x[0], [x[0] * 1.0]
        for i in range(1, 60):
            state = np.sin(state) * x[i] + state
            states.append(state)
        return np.stack(states)

    function = dl.trace(prefixes, np.ones(60))
    assert np.array_equal(pattern(function), np.tril(np.ones((60, 60))))


def test_both_ends_give_one_answer() -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        count, n = 12, 3
        tails, heads = np.sort(rng.integers(n, count, (2, 25)), axis=0)
        tails, heads = tails[tails < heads], heads[tails < heads]
        tails, heads = np.append(tails, [0, 1, 2]), np.append(heads, rng.integers(n, count, n))
        targets = rng.integers(n, count, 5)
        reachable = np.eye(count, dtype=np.int64)
        step = np.eye(count, dtype=np.int64)
        step[heads, tails] = 1
        for _ in range(count):
            reachable = (step @ reachable > 0).astype(np.int64)
        found = reach.reached(count, tails, heads, np.arange(n), targets).toarray()
        assert np.array_equal(found, reachable[targets][:, :n] > 0)


def test_a_dense_derivative_of_many_variables_is_refused() -> None:
    function = dl.trace(lambda x: dl.arrays.softmax(x), np.ones(100_000))
    with pytest.raises(UnsupportedError, match=r"not sparse.*up to [12]0,000,[0-9]{3},000 entries"):
        dl.sparse_jacobian(function)
    assert sparsity(dl.trace(lambda x: np.sum(dl.arrays.softmax(x) ** 2), np.ones(100_000))).nnz
