"""Views of arrays have NumPy's offsets, strides and shapes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from difflab.errors import ConsistencyError
from difflab.lower.nests import View

ENTRIES: list[Any] = [0, -1, (None, None, None), (1, None, 2), (None, None, -1), (2, 2, 1)]


def places(view: View) -> Any:
    """Return the index of each element of a view."""
    found = view.ref.offset + sum(
        np.indices(view.shape)[axis] * step for axis, step in enumerate(view.ref.strides)
    )
    return np.broadcast_to(found, view.shape)


@pytest.mark.parametrize("shape", [(3,), (3, 2), (2, 3, 2)])
def test_keys_select_as_numpys_do(shape: tuple[int, ...]) -> None:
    elements = np.arange(np.prod(shape)).reshape(shape)
    for key in itertools.product(ENTRIES, repeat=len(shape)):
        for opened in (key, (None, *key), (*key, None), (Ellipsis, *key), key[:-1]):
            picked = elements[tuple(slice(*e) if isinstance(e, tuple) else e for e in opened)]
            view = View.whole(0, shape).indexed(opened)
            assert view.shape == picked.shape
            np.testing.assert_array_equal(places(view), picked)


def test_transposed_views() -> None:
    view = View.whole(0, (2, 3, 4)).transposed((2, 0, 1))
    elements = np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1)
    np.testing.assert_array_equal(places(view), elements)


def test_diagonals_broadcasts_and_stretches() -> None:
    elements, view = np.arange(27).reshape(3, 3, 3), View.whole(0, (3, 3, 3))
    diagonals = np.diagonal(elements, axis1=-2, axis2=-1)
    np.testing.assert_array_equal(places(view.diagonal()), diagonals)
    np.testing.assert_array_equal(places(view.stretch(-2, 2, -2, 2)), elements[:, ::-2])
    wide = np.broadcast_to(elements[0], (2, 3, 3))
    first = View.whole(0, (3, 3)).broadcast((2, 3, 3))
    np.testing.assert_array_equal(places(first), wide)
    assert View.whole(0, (1, 3)).broadcast((2, 1, 3)).ref.strides == (0, 0, 1)  # short code
    with pytest.raises(ConsistencyError, match="cannot be broadcast"):
        first.broadcast((3, 3))
    with pytest.raises(ConsistencyError, match="cannot be broadcast"):
        first.broadcast((4, 3, 3))


@pytest.mark.parametrize("key", [(3, 0), (-4, 0), (0, 0, 0)])
def test_keys_outside_are_refused(key: tuple[int, ...]) -> None:
    with pytest.raises(ConsistencyError):
        View.whole(0, (3, 2)).indexed(key)


def test_reshaped_views() -> None:
    for shape, order, wanted in [
        ((4, 3), (0, 1), (2, 2, 3)),
        ((4, 3), (0, 1), (2, 6)),
        ((2, 3, 4), (0, 2, 1), (2, 2, 2, 3)),
        ((2, 3, 4), (1, 0, 2), (3, 8)),
        ((2, 3, 4), (2, 1, 0), (24,)),
        ((6, 1, 2), (0, 1, 2), (3, 1, 4)),
        ((6, 4), (1, 0), (4, 2, 3)),
    ]:
        array = np.arange(np.prod(shape)).reshape(shape).transpose(order)
        found = View.whole(0, shape).transposed(order).reshaped(wanted)
        moved = np.reshape(array, wanted)
        assert (found is None) == (not np.shares_memory(moved, array))
        if found is not None:
            np.testing.assert_array_equal(places(found), moved)


def test_reshaped_arrays_of_nothing() -> None:
    view = View.whole(0, (0, 2)).reshaped((2, 0, 3))
    assert view is not None
    assert (view.ref.strides, view.shape) == ((0, 3, 1), (2, 0, 3))
