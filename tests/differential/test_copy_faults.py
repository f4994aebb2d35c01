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

from difflab.execute.targets.llvm.arrays import expansion, groups, loop_detection, nests

WORDS = ("neighbours", "neighbours", "concatenate", "stack", "index", "sum", "sin", "multiply")

ENOUGH = 4000
"""Programs for a fault that one of 300 shows: under these seeds one of the first 50 does, but
another version of Hypothesis draws others."""
SEEDS = (0, 4)


def all_in_registers(steps: Any) -> Any:
    """What a nest writes is never read from memory, not even before it is written."""
    return dict.fromkeys([step.out.root for step in steps], -1)


def latest_write(self: Any, ref: Any, step: Any) -> bool:
    """An operand may be that of the first of several results."""
    writes = self.written.get(ref.root, ())
    return not writes or writes[0].out == ref.squeezed(step.domain)


FAULTS: dict[str, tuple[int, list[tuple[Any, str, Any]]]] = {
    "parts apart are taken as side by side": (
        4,
        [(loop_detection, "in_order", lambda strides, shape: True)],
    ),
    "no zeros around a part": (4, [(expansion._Expansion, "_fill_around", lambda *args: None)]),
    "neighbours are read in the nest that writes them": (
        0,
        [(groups.OpenNest, "_unchanged", lambda self, ref, step: True)],
    ),
    "one of several results is read": (0, [(groups.OpenNest, "_unchanged", latest_write)]),
    "read from registers before it is there": (
        0,
        [
            (nests, "first_written", all_in_registers),
            (nests, "first_written", all_in_registers),
        ],
    ),
}
"""A seed of `SEEDS`, and what is replaced."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_programs, "_NAMES", st.sampled_from(WORDS))
    seed, replaced = FAULTS[name]
    for where, attribute, fault in replaced:
        monkeypatch.setattr(where, attribute, fault)
    with pytest.raises((AssertionError, ConsistencyError, NotImplementedError, ExceptionGroup)):
        drawn(FAMILY.programs, FAMILY.check, ENOUGH, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_without_a_fault_there_is_no_difference(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_programs, "_NAMES", st.sampled_from(WORDS))
    drawn(FAMILY.programs, FAMILY.check, 200, seed)
