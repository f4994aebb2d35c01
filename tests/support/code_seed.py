"""A seed of random programs that depends on the code alone."""

from __future__ import annotations

import hashlib
from pathlib import Path

__all__ = ["code_seed"]

ROOT = Path(__file__).parents[2]
FOLDERS = ("benchmarks", "difflab", "tests/differential")
"""The code that the programs run, and the code that draws and checks them."""
LEAST, SIZE = 1_000_000, 10**9
"""Seeds below are those of the programs that every state of the code checks."""


def code_seed(root: Path = ROOT) -> int:
    """Return a seed that differs from change to change: a hash of the code.

    Each change is tested with programs of its own, and one state of the code has one result,
    wherever and however often it is tested.
    """
    digest = hashlib.sha256()
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return LEAST + int.from_bytes(digest.digest()[:8], "big") % SIZE
