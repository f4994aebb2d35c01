"""The seed of the fresh programs, which the head of every report names, and the tier."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def fresh_seed() -> int:
    """A seed that differs from run to run, or the one in DIFFLAB_SEED: see `tests/conftest.py`."""
    return int(os.environ["DIFFLAB_SEED"])


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    """Whether this is a run of all tests: ``--full``, or no such option."""
    return bool(request.config.getoption("full", True))
