"""Faults planted in the printers are found by the random programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from hypothesis import strategies as st

from difflab.language.printers import expressions
from difflab.language.printers.c import CPrinter
from tests.differential import formulas, languages, printed
from tests.differential.languages import Batch
from tests.differential.search import Family, drawn
from tests.support.languages import C


def parentheses_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a - (b - c) as a - b - c."""
    operand = expressions._operand

    def loose(name: str, argument: int, enclosed: bool, strict: bool) -> int:
        return operand(name, 0 if name == "subtract" else argument, enclosed, strict)

    monkeypatch.setattr(expressions, "_operand", loose)
    for name in ("latex", "text"):  # cached forms must not outlive the fault
        printer = import_module(f"difflab.language.printers.{name}")
        monkeypatch.setattr(printer, "_form", printer._form.__wrapped__)


def nan_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the larger of nan and a number be the number."""
    functions = {**CPrinter.notation.functions, "maximum": "fmax({0}, {1})"}
    monkeypatch.setattr(CPrinter, "notation", replace(CPrinter.notation, functions=functions))


def digits_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write constants in single precision."""
    monkeypatch.setattr(CPrinter, "number", lambda _, value, name: f"{value:.7e}")


CODE = st.builds(Batch, st.just("C"), languages.PROGRAMS)


@pytest.mark.skipif(not C.there, reason="needs gcc")
@pytest.mark.parametrize(
    ("plant", "words", "family", "programs"),
    [
        (parentheses_dropped, {"({0} - {1})", "sin({0})"}, printed.FAMILY, printed.PROGRAMS),
        (parentheses_dropped, {"({0} - {1})", "sin({0})"}, languages.FAMILY, CODE),
        (nan_ignored, {"max({0}, {1})", "({0} * {1})"}, languages.FAMILY, CODE),
        (digits_lost, {"({0} - {1})", "({0} * {1})"}, languages.FAMILY, CODE),
    ],
)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    words: set[str],
    family: Family,
    programs: st.SearchStrategy[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Formulas of a few words are drawn, so that other rows of the table move no program."""
    plant(monkeypatch)
    kept = [word for word in formulas.WORDS if word.template in words]
    monkeypatch.setattr(formulas, "WORDS", kept)
    with pytest.raises((AssertionError, ExceptionGroup)):
        drawn(programs, family.check, family.fixed, 1)


@pytest.mark.skipif(not C.there, reason="needs gcc")
def test_a_planted_fault_is_found_in_a_file_of_many_programs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nan_ignored(monkeypatch)
    kept = [word for word in formulas.WORDS if word.template in ("max({0}, {1})", "({0} * {1})")]
    monkeypatch.setattr(formulas, "WORDS", kept)
    rest: list[printed.Rest] = []
    drawn(printed.PROGRAMS, lambda program: rest.extend(printed.begin(program)), 60, 1)
    with pytest.raises(AssertionError, match="printed C"):
        printed.finish(rest)
