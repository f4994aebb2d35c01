"""Errors of indices, shapes and NumPy arrays are reported at the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.errors import IndexingError, InputError, ShapeError, TapeError

MATRIX = dl.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)


def assigned(key: Any, value: Any, recorded: bool) -> None:
    with dl.enable_grad() if recorded else dl.no_grad():
        y = MATRIX * 1.0
        y[key] = value


INDICES: list[Any] = ["a", 1.5, 5, (0, 0, 0), slice(0, "a"), slice(None, None, 0), [[0, 1], [1]]]


@pytest.mark.parametrize("key", INDICES, ids=str)
def test_indices(key: Any) -> None:
    with pytest.raises(IndexingError, match=r"test_messages\.py"):
        MATRIX[key]


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("key", [*INDICES[:4], [0, 7], np.array([True])], ids=str)
def test_indices_of_assignments(key: Any, recorded: bool) -> None:
    with pytest.raises(IndexingError, match=r"test_messages\.py"):
        assigned(key, 1.0, recorded)


@pytest.mark.parametrize("recorded", [True, False])
def test_values_of_assignments(recorded: bool) -> None:
    with pytest.raises(ShapeError, match=r"test_messages\.py"):
        assigned(0, np.ones(2), recorded)
    with pytest.raises(InputError):
        assigned(0, "a", recorded)


SHAPES: dict[str, Callable[[Any], Any]] = {
    "reshape by a word": lambda x: x.reshape("a"),
    "reshape by a fraction": lambda x: x.reshape(2.5),
    "reshape by nothing": lambda x: x.reshape(None),
    "reshape by both": lambda x: np.reshape(x, (2, "a")),
    "sum along a word": lambda x: x.sum("a"),
    "sum along a fraction": lambda x: x.sum(1.5),
    "transpose by a word": lambda x: x.transpose("a"),
    "swapaxes": lambda x: np.swapaxes(x, 0, 9),
    "swapaxes below": lambda x: x.swapaxes(0, -9),
    "moveaxis from": lambda x: np.moveaxis(x, 9, 0),
    "moveaxis to": lambda x: np.moveaxis(x, 0, 9),
    "expand_dims": lambda x: np.expand_dims(x, 9),
    "expand_dims by a word": lambda x: np.expand_dims(x, "a"),
    "broadcast_to a number": lambda x: np.broadcast_to(x, 5),
    "broadcast_to less than nothing": lambda x: np.broadcast_to(x, (-1, 2, 3)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str) -> None:
    with pytest.raises(ShapeError, match=r"test_messages\.py"):
        SHAPES[name](MATRIX)


def test_types_and_lists() -> None:
    with pytest.raises(InputError, match="astype"):
        MATRIX.astype("zzz")
    with pytest.raises(InputError, match="a list with rows of different lengths"):
        np.add(MATRIX, [[1], [2, 3]])


def test_arrays_of_numpys_do_not_take_tensors() -> None:
    """For a single element NumPy raises its own error, with ours as the cause."""
    z = np.zeros(3)
    x = dl.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with pytest.raises(TapeError, match=r"z\[:\] = x") as caught:
        z[:] = x
    assert "dl.tensor(np.zeros(n))" in str(caught.value)
    with pytest.raises(ValueError, match="sequence") as numpys:
        z[0] = np.sin(x[0])
    assert isinstance(numpys.value.__cause__, TapeError)
    assert "z[0] = np.sin(x[0])" in str(numpys.value.__cause__)
    assert "np.stack" in str(numpys.value.__cause__)
