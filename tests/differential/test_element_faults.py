"""Faults planted in the forms of arrays by their elements are found by the random programs."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from difflab import primitives as rows
from difflab.explore import elements, scalars
from difflab.explore.elements import FORMS
from tests.differential.elements import FAMILY
from tests.differential.search import drawn


def signs_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return the minors instead of the cofactors' transpose."""
    cofactors = elements._Minors.cofactors
    monkeypatch.setattr(elements._Minors, "cofactors", lambda self: cofactors(self).T)


def maximum_moved_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the shift of softmax be no maximum, so that exponentials overflow."""
    monkeypatch.setitem(FORMS, rows.max_, FORMS[rows.min_])


def ties_to_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the derivative at a tie to the first of equal elements."""
    first = elements._folded(lambda a, b: rows.maximum(b, a))
    monkeypatch.setitem(FORMS, rows.max_, first)


def conjugated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn the other way round."""
    angle = elements._angle
    monkeypatch.setattr(elements, "_angle", lambda k, n: angle(n - k, n))


def equal_elements_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sort without keeping the order of equal elements."""
    monkeypatch.setattr(elements.rows, "less_equal", rows.less)


def indices_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take no index as one that counts from the end."""
    monkeypatch.setattr(elements, "_from_the_start", lambda place, size: place)


def signs_of_zero_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every diagonal element of R a positive sign."""
    monkeypatch.setattr(elements, "_reflected", lambda a: [1.0] * a.shape[1])


def one_turn_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write out one turn less than a loop takes."""
    monkeypatch.setattr(scalars, "SPARE_TURNS", -1)


def sweep_beyond_the_last_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the reverse sweep take the turns that the loop did not take."""
    chosen = scalars._chosen

    def always(going: Any, after: Any, before: Any) -> Any:
        inside = sys._getframe(1).f_locals
        return after if "earlier" in inside else chosen(going, after, before)

    monkeypatch.setattr(scalars, "_chosen", always)


# Seeds under which few programs are needed.
@pytest.mark.parametrize(
    ("plant", "seed"),
    [
        *((signs_forgotten, 1), (maximum_moved_through, 0), (ties_to_the_first, 0)),
        *((conjugated, 1), (equal_elements_exchanged, 0), (indices_from_the_start, 0)),
        *((signs_of_zero_columns, 0), (one_turn_less, 2), (sweep_beyond_the_last_turn, 1)),
    ],
)
def test_a_planted_fault_is_found(plant: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        drawn(FAMILY.programs, FAMILY.check, FAMILY.fixed, seed)
