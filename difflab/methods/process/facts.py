"""What a method's process tells of a derivative."""

from __future__ import annotations

from dataclasses import dataclass

from difflab.methods.protocol import Size

__all__ = ["PreparedFacts"]


@dataclass(frozen=True)
class PreparedFacts:
    """What is known of a derivative once it is prepared."""

    seconds: float
    operations: int | None
    size: Size | None
