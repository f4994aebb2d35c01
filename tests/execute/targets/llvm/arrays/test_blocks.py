"""Products of many terms: of whole numbers, so that every order adds up to the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl

pytest.importorskip("llvmlite")

from difflab.execute.lower.schedule import Schedule
from difflab.execute.targets.llvm.arrays import NativeArrays, blocks

TERMS = blocks.TERMS
PRODUCTS: list[Callable[..., Any]] = [
    lambda a, b: a.T @ b,
    lambda a, b: (a.T + 0.0) @ b,
    lambda a, b: np.stack([a.T, 2 * a.T]) @ b,
]


@pytest.mark.parametrize("bounds", [False, True])
@pytest.mark.parametrize("terms", [TERMS - 1, TERMS, TERMS + 1, 2 * TERMS, 3 * TERMS + 5])
@pytest.mark.parametrize("sides", [(4, 17), (5, 8), (9, 50)])
def test_products_of_many_terms(
    sides: tuple[int, int], terms: int, bounds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIFFLAB_CHECK", "bounds" if bounds else "")
    draw = np.random.default_rng(terms)
    a, b = (draw.integers(-9, 9, (terms, side)).astype(float) for side in sides)
    for product in PRODUCTS:
        fast = dl.compile(dl.trace(product, a, b), "native")
        assert "native" in fast.reason
        np.testing.assert_array_equal(fast(a, b), product(a, b))


def test_operands_that_many_blocks_read_are_read_in_parts() -> None:
    for rows, parts in ((4, 0), (9, 1)):
        a, b = np.ones((4 * TERMS, rows)), np.ones((4 * TERMS, 16))
        source = NativeArrays(Schedule.of(dl.trace(lambda a, b: a.T @ b, a, b))).source
        assert len(re.findall(rf"= add i64 %i\d+, {TERMS}\n", source)) == parts, rows
