"""Outputs of the cells of notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def without_progress(outputs: Sequence[Any]) -> list[Any]:
    """Return a cell's outputs without lines of progress, which only slow machines show."""
    return [each for each in outputs if each.get("name") != "stderr" or "\r" not in each.text]
