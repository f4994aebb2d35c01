"""Faults in what machine code writes in place, and in one nest, are found by random programs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from difflab.errors import ConsistencyError
from tests.differential import array_programs
from tests.differential.arrays import FAMILY
from tests.differential.search import drawn

pytest.importorskip("llvmlite", reason="needs llvmlite: pip install 'difflab[native]'")

from difflab.execute.targets.llvm.arrays import copy_elision, expansion, nests, sharing, vectors

WORDS = ("neighbours", "neighbours", "concatenate", "stack", "index", "sum", "sin", "multiply")

ENOUGH = 4000
"""Programs for a fault that one of 300 shows: which are drawn depends on the modules loaded."""


def all_in_registers(steps: Any) -> Any:
    """What a nest writes is never read from memory, not even before it is written."""
    return dict.fromkeys([step.out.root for step in steps], -1)


def latest_write(self: Any, ref: Any, step: Any) -> bool:
    """An operand may be that of the first of several results."""
    writes = self.written.get(ref.root, ())
    return not writes or writes[0].out == sharing._squeezed(ref, step.domain)


FAULTS: dict[str, list[tuple[Any, str, Any]]] = {
    "parts apart are taken as side by side": [
        (copy_elision, "in_order", lambda strides, shape: True)
    ],
    "no zeros around a part": [(expansion._Expansion, "_fill_around", lambda *args: None)],
    "neighbours are read in the nest that writes them": [
        (sharing.OpenNest, "_unchanged", lambda self, ref, step: True)
    ],
    "one of several results is read": [(sharing.OpenNest, "_unchanged", latest_write)],
    "read from registers before it is there": [
        (nests, "first_written", all_in_registers),
        (vectors, "first_written", all_in_registers),
    ],
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_programs, "_NAMES", st.sampled_from(WORDS))
    for where, attribute, fault in FAULTS[name]:
        monkeypatch.setattr(where, attribute, fault)
    with pytest.raises((AssertionError, ConsistencyError, NotImplementedError, ExceptionGroup)):
        drawn(FAMILY.programs, FAMILY.check, ENOUGH, 0)


def test_without_a_fault_there_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_programs, "_NAMES", st.sampled_from(WORDS))
    drawn(FAMILY.programs, FAMILY.check, 600, 0)
