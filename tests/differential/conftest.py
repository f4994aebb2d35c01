"""The seed of the programs of one state of the code, and the tier."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def seed_of_the_code() -> int:
    """A seed that differs from change to change; DIFFLAB_SEED, in the report, sets another."""
    return int(os.environ["DIFFLAB_SEED"])


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    """Whether this is a run of all tests: ``--full``, or no such option."""
    return bool(request.config.getoption("full", True))
