"""A fault in how views are written and read is found by the random programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from difflab.arrays import in_place
from difflab.core import ownership
from difflab.eager.tensors import operators
from difflab.graph import handle, node
from difflab.primitives import add
from tests.differential.in_place import FAMILY
from tests.differential.search import drawn

Faults = dict[str, Callable[[pytest.MonkeyPatch], None]]


def _rebound(patch: pytest.MonkeyPatch) -> None:
    """Augmented assignment makes a new value, as without changes in place."""
    patch.setattr(in_place.InPlace, "__imul__", lambda self, other: self * other)


def _unseen(patch: pytest.MonkeyPatch) -> None:
    """A view of a traced value is not read again."""
    patch.setattr(node.ViewNode, "id", property(lambda self: self._id))


def _unread(patch: pytest.MonkeyPatch) -> None:
    """A view of a tensor is not read again."""
    patch.setattr(operators.ViewedArray, "_read", lambda self: None)


def _elsewhere(patch: pytest.MonkeyPatch) -> None:
    """A change through views of views goes to other elements."""
    places = ownership.View.places
    patch.setattr(ownership.View, "places", lambda self, shape: np.flip(places(self, shape)))


def _always_a_view(patch: pytest.MonkeyPatch) -> None:
    """A reshape never copies."""
    patch.setattr(node, "copies_on_reshape", lambda *args: False)


def _in_rows(patch: pytest.MonkeyPatch) -> None:
    """Every result is in row-major order."""
    patch.setattr(node, "_in_order", lambda made, operands: made)


def _shared_copy(patch: pytest.MonkeyPatch) -> None:
    """A copy of a traced value is the value."""
    patch.setattr(node.Node, "copy", lambda self: self)


def _untaped(patch: pytest.MonkeyPatch) -> None:
    """A tensor takes the values of a change and keeps its step."""
    patch.setattr(operators, "_set_step", lambda target, made: None)


def _number_changed(patch: pytest.MonkeyPatch) -> None:
    """A number is changed for all of its names."""
    patch.setattr(handle.Handle, "is_number", lambda self: False)


def _unmasked(patch: pytest.MonkeyPatch) -> None:
    """``where=`` is left out."""
    into = in_place.into_out
    patch.setattr(
        in_place, "into_out", lambda compute, name, out, mask=True: into(compute, name, out)
    )


def _twice(patch: pytest.MonkeyPatch) -> None:
    """``add.at`` adds to an element once, however often it is named."""
    put = in_place.changed_at

    def once(name: str, target: Any, key: Any, value: Any = None) -> None:
        if name != "add":
            return put(name, target, key, value)
        target[key] = add(target[key], value)
        return None

    patch.setattr(in_place, "changed_at", once)
    patch.setattr(node, "changed_at", once)


FAULTS: Faults = {
    **{found.__name__[1:]: found for found in (_rebound, _unseen, _unread, _elsewhere)},
    **{found.__name__[1:]: found for found in (_always_a_view, _in_rows, _shared_copy, _untaped)},
    **{found.__name__[1:]: found for found in (_number_changed, _unmasked, _twice)},
}
SEEDS = {"in_rows": 2}
"""Seeds under which few programs are needed; 1 if not listed."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[name](monkeypatch)
    with np.errstate(all="ignore"), pytest.raises((AssertionError, ExceptionGroup)):
        drawn(FAMILY.programs, FAMILY.check, 1000, SEEDS.get(name, 1))
