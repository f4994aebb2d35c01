"""The seed of the fresh programs, which the head of every report names."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def fresh_seed() -> int:
    """A seed that differs from run to run, or the one in DIFFLAB_SEED: see `tests/conftest.py`."""
    return int(os.environ["DIFFLAB_SEED"])
