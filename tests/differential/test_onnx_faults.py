"""Faults planted in the forms of models of ONNX are found by the random programs of models."""

from __future__ import annotations

from typing import Any

import pytest

from difflab.interop.formats.onnx.spelling import SPELLINGS
from tests.differential.onnx_models import FAMILY
from tests.differential.search import drawn

pytest.importorskip("onnx", reason="needs ONNX: pip install 'difflab[onnx]'")


def exchanged(model: Any, names: Any, *_: Any) -> str:
    """Choose the other branch."""
    return str(model.operator("Where", names[0], names[2], names[1]))


def in_reverse(model: Any, names: Any, shapes: Any, out: Any, **key: Any) -> str:
    """Join the parts in reverse."""
    return CONCATENATE(model, names[::-1], shapes, out, **key)


CONCATENATE = SPELLINGS["concatenate"]
FAULTS = {
    "where": exchanged,
    "maximum": SPELLINGS["minimum"],
    "concatenate": in_reverse,
}


# Seeds under which few programs are needed.
@pytest.mark.parametrize(("name", "seed"), [("where", 0), ("maximum", 3), ("concatenate", 0)])
def test_a_planted_fault_is_found(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SPELLINGS, name, FAULTS[name])
    with pytest.raises(AssertionError):
        drawn(FAMILY.programs, FAMILY.check, FAMILY.fixed, seed)
