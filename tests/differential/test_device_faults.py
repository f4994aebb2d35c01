"""What is left on the host by a fault is found by the random programs of devices."""

from __future__ import annotations

from typing import Any

import pytest

from difflab.autodiff.engine import recipe
from difflab.eager.recording import plan
from difflab.eager.sweep.replay import RECORDED_SWEEPS
from difflab.errors import DifflabError
from difflab.graph import interpreters
from tests.differential.devices import FAMILY
from tests.differential.search import drawn


@pytest.mark.parametrize(
    ("module", "name", "fault"),
    [
        (recipe, "in_library_of", lambda value, array: array),
        (interpreters, "_home", lambda carriers: None),
        (plan, "sent_to", lambda home, array: array),
    ],
    ids=["tapes", "evaluation", "moves"],
)
def test_an_array_that_stays_on_the_host_is_found(
    module: Any, name: str, fault: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, fault)
    try:
        with pytest.raises((DifflabError, TypeError)):
            drawn(FAMILY.programs, FAMILY.check, FAMILY.fixed + FAMILY.fresh, 1)
    finally:  # sweeps that were recorded with the fault serve no other test
        RECORDED_SWEEPS.clear()
