"""Machine code on rows: the values of exact arithmetic, in rows of every length."""

import numpy as np
import pytest

import difflab as dl
from difflab.errors import ConsistencyError
from difflab.execute.targets.llvm import target as native_target
from difflab.execute.targets.llvm.target import NativeTarget
from difflab.execute.targets.llvm.writer import MOST_ELEMENTS
from tests.support.rows import for_each

pytest.importorskip("llvmlite")

LENGTHS = (1, 2, 3, 5, 8, MOST_ELEMENTS)


def outputs(x, m):
    """m outputs of integers, exact in any order of operations; some are inputs or constants."""
    n = len(x)
    made = [x[(k + 1) % n] * x[k % n] + k for k in range(m)]
    made[0] = x[n - 1]
    made[m // 2] = x[0] * 0 + 7 if m > 1 else made[0]
    return made


def compiled(n, m):
    f = dl.trace(lambda x: np.stack(outputs(x, m)), np.ones(n))
    return dl.compile(f, target="native", threads=2)


def whole_numbers(count, n):
    return np.random.default_rng(n).integers(-1000, 1000, (count, n)).astype(float)


@pytest.fixture
def in_place(monkeypatch):
    def refused(self, points, out):
        raise AssertionError("the rows were copied")

    monkeypatch.setattr(NativeTarget, "_copied_rows", refused)


@pytest.mark.parametrize("n", LENGTHS)
@for_each("m", LENGTHS)
def test_rows_have_the_values_of_exact_arithmetic(n, m, in_place):
    fast = compiled(n, m)
    for count in (16, 17, 1003):
        points, out = whole_numbers(count, n), np.full((count, m), np.nan)
        fast.rows(points, count, out)
        expected = np.stack([np.broadcast_to(row, count) for row in outputs(points.T, m)], axis=1)
        assert np.array_equal(out, expected)


def test_threads_share_the_rows(in_place):
    fast, points = compiled(2, 2), whole_numbers(1_500_001, 2)
    out = np.full((len(points), 2), np.nan)
    fast.rows(points, len(points), out)
    assert np.array_equal(out[:, 0], points[:, 1])
    assert not np.isnan(out).any()


def test_truth_values_are_numbers(in_place):
    fast = dl.compile(dl.parse("[x < y, x*y]"), target="native")
    points, out = whole_numbers(100, 2), np.empty((100, 2))
    fast.rows(points, 100, out)
    assert np.array_equal(out, np.stack([points[:, 0] < points[:, 1], points.prod(axis=1)], axis=1))


@pytest.mark.parametrize("rows", ["few", "strided", "long"])
def test_other_rows_are_copied(rows, monkeypatch):
    n = MOST_ELEMENTS + 1 if rows == "long" else 3
    fast, count = compiled(n, 2), 1 if rows == "few" else 100
    points = whole_numbers(count, n)
    if rows == "strided":
        points = np.asfortranarray(points)
    monkeypatch.setattr(NativeTarget, "_rows_in_place", None)
    out = np.empty((count, 2))
    fast.rows(points, 100, out)
    expected = np.stack([np.broadcast_to(row, count) for row in outputs(points.T, 2)], axis=1)
    assert np.array_equal(out, expected)


def test_the_checked_mode_finds_rows_outside_of_their_array(monkeypatch):
    monkeypatch.setenv("DIFFLAB_CHECK", "bounds")
    fast, points, out = compiled(2, 2), whole_numbers(100, 2), np.empty((100, 2))
    fast.rows(points, 100, out)
    start_of = native_target.start_of
    monkeypatch.setattr(native_target, "start_of", lambda array: start_of(array) + 8)
    with pytest.raises(ConsistencyError, match="outside of the arrays"):
        fast.rows(points, 100, out)
