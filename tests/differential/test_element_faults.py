"""Faults planted in the forms of arrays by their elements are found by the random programs."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from difflab import primitives as rows
from difflab.explore import element_forms
from difflab.explore.element_forms import FORMS
from tests.differential.elements import FAMILY


def signs_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return the minors instead of the cofactors' transpose."""
    cofactors = element_forms._Minors.cofactors
    monkeypatch.setattr(element_forms._Minors, "cofactors", lambda self: cofactors(self).T)


def maximum_moved_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the shift of softmax be no maximum, so that exponentials overflow."""
    monkeypatch.setitem(FORMS, rows.max_, FORMS[rows.min_])


def ties_to_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the derivative at a tie to the first of equal elements."""
    first = element_forms._folded(lambda a, b: rows.maximum(b, a))
    monkeypatch.setitem(FORMS, rows.max_, first)


def conjugated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn the other way round."""
    angle = element_forms._angle
    monkeypatch.setattr(element_forms, "_angle", lambda k, n: angle(n - k, n))


@pytest.mark.parametrize(
    "plant", [signs_forgotten, maximum_moved_through, ties_to_the_first, conjugated]
)
def test_a_planted_fault_is_found(plant: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(plant)
    plant(monkeypatch)
    run = settings(
        max_examples=150,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )(given(FAMILY.programs)(FAMILY.check))
    with pytest.raises(AssertionError):
        seed(0)(run)()
