"""Memory of values in straight machine code, and results that share a nest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.execute.lower.schedule import Schedule
from difflab.execute.targets.llvm.arrays import NativeArrays

pytest.importorskip("llvmlite", reason="needs llvmlite: pip install 'difflab[native]'")


def test_values_take_the_memory_of_values_that_are_read_no_more() -> None:
    """Of nine sums along two axes in turn, each keeps what it reads and what it writes."""

    def sums(x: Any) -> Any:
        for k in range(9):
            x = np.outer(np.sum(x, axis=k % 2), np.cos(np.sum(x, axis=1 - k % 2)))
        return x

    x = np.random.default_rng(2).normal(size=(6, 6))
    target = NativeArrays(Schedule.of(dl.trace(sums, x)))
    assert target.layout.room <= 2 * 36 + 4 * 6
    np.testing.assert_allclose(target([x])[0], sums(x), rtol=1e-10)


def test_outputs_keep_their_memory() -> None:
    """A result that is computed early is read again at the end of the run."""

    def several(x: Any) -> Any:
        first = np.sum(x, axis=0)
        second = np.cumsum(first)
        return first, np.cumsum(np.exp(second)), np.sum(x * second, axis=1)

    x = np.random.default_rng(2).normal(size=(5, 4))
    target = NativeArrays(Schedule.of(dl.trace(several, x)))
    for found, wanted in zip(target([x]), several(x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)


@pytest.mark.parametrize("size", [1, 2, 3, 9, 16, 35])
def test_every_second_number_is_read_and_written_alone(size: int) -> None:
    x = np.random.default_rng(size).normal(size=(3, 2 * size))

    def interleaved(x: Any) -> Any:
        even, odd = x[:, ::2], x[:, 1::2]
        return np.stack([even * odd, even - odd], axis=-1), np.stack([odd, even], axis=-1) * 2.0

    native = NativeArrays(Schedule.of(dl.trace(interleaved, x)))
    for found, wanted in zip(native([x]), interleaved(x), strict=True):
        np.testing.assert_array_equal(found, wanted)
    total = dl.trace(dl.grad(lambda x: sum(np.sum(np.sin(y)) for y in interleaved(x))), x)
    found = NativeArrays(Schedule.of(total))([x])[0]
    np.testing.assert_allclose(found, dl.compile(total, target="numpy")(x), rtol=1e-13)
