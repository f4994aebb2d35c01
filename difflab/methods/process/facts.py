"""Facts about a derivative that a method's process reports."""

from __future__ import annotations

from dataclasses import dataclass

from difflab.methods.protocol import Size

__all__ = ["PreparedFacts"]


@dataclass(frozen=True)
class PreparedFacts:
    """Time, operations and size of a prepared derivative."""

    seconds: float
    operations: int | None
    size: Size | None
