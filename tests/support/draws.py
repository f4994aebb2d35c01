"""Generators of random numbers that depend on a name only.

A test's data must be the same whatever runs before it, so no test draws from a generator of its
module: it takes the fixture ``rng``, which is seeded with the name of the test. Data that a module
draws while it is imported comes from a generator that no function uses
(`tests/support/test_draws.py`).
"""

from __future__ import annotations

import zlib

import numpy as np

__all__ = ["generator"]


def generator(name: str) -> np.random.Generator:
    """Return a generator that is seeded with a name."""
    return np.random.default_rng(zlib.crc32(name.encode()))
