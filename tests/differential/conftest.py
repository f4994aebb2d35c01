"""The seed of the fresh programs, which the head of every report names, and the tier."""

from __future__ import annotations

import os
import secrets

import pytest

FRESH = int(os.environ.get("DIFFLAB_SEED") or 1_000_000 + secrets.randbelow(10**9))


def pytest_report_header() -> str:
    return f"differential tests: DIFFLAB_SEED={FRESH} repeats the fresh random programs"


@pytest.fixture
def fresh_seed() -> int:
    """A seed that differs from run to run, or the one in DIFFLAB_SEED."""
    return FRESH


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    """Whether this is a run of all tests: ``--full``, or no such option."""
    return bool(request.config.getoption("full", True))
