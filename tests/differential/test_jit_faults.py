"""A guard of `jit` that is left out is found by the random programs."""

from __future__ import annotations

from typing import Any

import pytest

from difflab.execute.jit.reads import Reads
from tests.differential.jit import FAMILY
from tests.differential.search import drawn


# Seeds under which few programs are needed.
@pytest.mark.parametrize(
    ("guard", "first"),
    [("entries", 0), ("attributes", 8), ("cells", 0), ("containers", 0), ("arrays", 2)],
)
def test_a_guard_that_is_left_out_is_found(
    guard: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    adopt = Reads._adopt

    def forgetful(self: Reads, search: Any) -> None:
        setattr(search, guard, [])
        adopt(self, search)

    monkeypatch.setattr(Reads, "_adopt", forgetful)
    with pytest.raises((AssertionError, ExceptionGroup)):
        drawn(FAMILY.programs, FAMILY.check, FAMILY.fixed + FAMILY.fresh, first)
