"""Faults planted in what other libraries compute are found by the random programs of libraries."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import strategies as st

from difflab.errors import PointError, UnsupportedError
from tests.differential import array_programs
from tests.differential.libraries import FAMILY
from tests.differential.search import drawn

pytest.importorskip("torch", reason="needs PyTorch: pip install 'difflab[peers]'")

import torch

from difflab.core import pytorch
from difflab.graph import function, values
from difflab.primitives import cumulative

WORDS = ("cumprod", "multiply", "argmax", "sin", "sum", "index")


def doubled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute recurrences by products of coefficients, which overflow."""
    monkeypatch.setitem(cumulative.COMPUTED, pytorch.__name__, cumulative._doubled)


def single_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave indices as integers, of which PyTorch makes float32."""
    monkeypatch.setattr(pytorch, "argmax", lambda x, axis: torch.argmax(x, dim=axis))


def single_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make zeros of PyTorch's default type."""
    monkeypatch.setattr(pytorch, "zeros", lambda shape, dtype=None: torch.zeros(shape, dtype=dtype))


def integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave integers as they are."""
    monkeypatch.setattr(values, "as_floats", lambda value: value)


def created_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Create tensors on the host."""
    monkeypatch.setattr(function, "device_context", lambda values: nullcontext())


# Seeds under which few programs are needed.
@pytest.mark.parametrize(
    ("plant", "seed"),
    [
        *((doubled, 1), (single_places, 0), (single_zeros, 0), (integers, 0)),
        (created_on_the_host, 0),
    ],
)
def test_a_planted_fault_is_found(plant: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_programs, "_NAMES", st.sampled_from(WORDS))
    plant(monkeypatch)
    with pytest.raises((AssertionError, PointError, UnsupportedError)):
        drawn(FAMILY.programs, FAMILY.check, 4000, seed)
