"""Faults planted in the printers are found by the random programs."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from difflab.language.printers import forms
from difflab.language.printers.c import CPrinter
from difflab.primitives import helpers
from tests.differential.languages import FAMILY, PROGRAMS, Batch
from tests.support.languages import C


def parentheses_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a - (b - c) as a - b - c."""
    operand = forms._operand

    def loose(name: str, argument: int, enclosed: bool, strict: bool) -> int:
        return operand(name, 0 if name == "subtract" else argument, enclosed, strict)

    monkeypatch.setattr(forms, "_operand", loose)


def nan_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the larger of nan and a number be the number."""
    wrong = "static double maximum(double a, double b)\n{\n    return fmax(a, b);\n}"
    monkeypatch.setitem(helpers.C, "maximum", wrong)


def digits_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write constants in single precision."""
    monkeypatch.setattr(CPrinter, "number", lambda _, value, name: f"{value:.7e}")


# Seeds under which few programs are needed.
@pytest.mark.skipif(not C.there, reason="needs gcc")
@pytest.mark.parametrize("plant", [parentheses_dropped, nan_ignored, digits_lost])
def test_a_planted_fault_is_found(plant: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(plant)
    plant(monkeypatch)
    run = settings(
        max_examples=FAMILY.fixed,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )(given(st.builds(Batch, st.just("C"), PROGRAMS))(FAMILY.check))
    with pytest.raises((AssertionError, ExceptionGroup)):
        seed(1)(run)()
