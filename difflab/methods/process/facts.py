"""What a method's process tells of a derivative."""

from __future__ import annotations

from dataclasses import dataclass

from difflab.methods.protocol import Size

__all__ = ["Facts"]


@dataclass(frozen=True)
class Facts:
    """What is known of a derivative once it is prepared."""

    seconds: float
    operations: int | None
    size: Size | None
