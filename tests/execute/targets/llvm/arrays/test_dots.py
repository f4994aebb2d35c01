"""Products whose terms lie side by side: whole numbers, so that every order adds up to the same."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl

pytest.importorskip("llvmlite")

PRODUCTS: list[Callable[..., Any]] = [
    lambda A, x: A @ x,
    lambda A, x: A[::-1] @ x,
    lambda A, x: x @ A.T,
    lambda A, x: A[1:, 2:] @ x[2:],
    lambda A, x: np.stack([A, 2 * A]) @ x,
    lambda A, x: (A + 0.0) @ np.stack([x, -x]).T,
]


@pytest.mark.parametrize("bounds", [False, True])
@pytest.mark.parametrize("shape", [(1, 16), (3, 17), (8, 32), (13, 23), (21, 47), (64, 64)])
def test_rows_times_a_vector(
    shape: tuple[int, int], bounds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIFFLAB_CHECK", "bounds" if bounds else "")
    draw = np.random.default_rng(shape[0])
    A = draw.integers(-9, 9, shape).astype(float)
    x = draw.integers(-9, 9, shape[1]).astype(float)
    for product in PRODUCTS:
        fast = dl.compile(dl.trace(product, A, x), "native")
        assert "native" in fast.reason
        np.testing.assert_array_equal(fast(A, x), product(A, x))
