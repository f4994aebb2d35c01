"""A product by one element that takes the faster method at any number is found."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from difflab.execute.lower.arrays.source import SourceWriter
from tests.differential import array_programs
from tests.differential.arrays import FAMILY
from tests.differential.search import drawn

WORDS = ("scaled", "scaled", "sin", "multiply", "sum", "index")
SEED = 10
"""Under which few programs are needed."""


def always_dot(self: SourceWriter, op: Any, out: str) -> str:
    """Write the method `dot`, which gives 0 for the product of 0 and an infinity."""
    x, y = map(self._name, op.reads)
    if max(len(self.layout.shape(number)) for number in op.reads) > 2:
        return f"matmul({x}, {y}{f', {out}' if out else ''})"
    return f"{x}.dot({y}{f', {out}' if out else ''})"


def test_a_product_by_zero_is_that_of_matmul(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_programs, "_NAMES", st.sampled_from(WORDS))
    drawn(FAMILY.programs, FAMILY.check, 200, SEED)
    monkeypatch.setattr(SourceWriter, "_product", always_dot)
    with pytest.raises(AssertionError):
        drawn(FAMILY.programs, FAMILY.check, 4000, SEED)
