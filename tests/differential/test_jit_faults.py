"""A guard of `jit` that is left out is found by the random programs."""

from __future__ import annotations

from typing import Any

import pytest

from difflab.eager.recording.record import TapedArray
from difflab.execute.jit.reads import Reads
from tests.differential.jit import FAMILY
from tests.differential.search import drawn

PROGRAMS = FAMILY.fixed + FAMILY.fresh


def is_found(first: int) -> bool:
    """Whether the programs of one of a few seeds fail: versions of Hypothesis draw differently."""
    for seed in range(first, first + 5):
        try:
            drawn(FAMILY.programs, FAMILY.check, PROGRAMS, seed)
        except (AssertionError, ExceptionGroup):
            return True
    return False


# Seeds under which few programs are needed.
@pytest.mark.parametrize(
    ("guard", "first"),
    [
        ("entries", 1),
        ("attributes", 12),
        ("cells", 3),
        ("containers", 1),
        ("arrays", 1),
        ("tensors", 2),
        ("results", 2),
        ("sizes", 2),
    ],
)
def test_a_guard_that_is_left_out_is_found(
    guard: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    adopt = Reads._adopt

    def forgetful(self: Reads, search: Any) -> None:
        setattr(search, guard, [])
        adopt(self, search)

    monkeypatch.setattr(Reads, "_adopt", forgetful)
    assert is_found(first)


def test_a_read_of_a_tensor_that_is_not_noted_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def unnoted(self: TapedArray, note: Any) -> Any:
        return lambda: None

    monkeypatch.setattr(TapedArray, "__difflab_noted__", unnoted)
    assert is_found(2)
