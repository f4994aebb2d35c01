"""Constants that are rounded while a derivative is built are found."""

from __future__ import annotations

import pytest

from difflab.graph import identities
from tests.differential.constants import FAMILY
from tests.differential.search import drawn

SEED = 3
"""Under which few programs are needed."""


def test_a_rounded_constant_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn(FAMILY.programs, FAMILY.check, 10, SEED)
    monkeypatch.setattr(identities, "_exactly", identities.folded)
    with pytest.raises(AssertionError):
        drawn(FAMILY.programs, FAMILY.check, 60, SEED)
