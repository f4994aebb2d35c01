"""The lines of Python that a piece of work runs, which no other process on the machine changes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from types import FrameType, ModuleType
from typing import Any

__all__ = ["lines_run"]


def lines_run(work: Callable[[], object], modules: Collection[ModuleType]) -> int:
    """Count the lines of `modules` that `work` runs, each as often as it is run."""
    files = {module.__file__ for module in modules}
    count = 0

    def traced(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        if frame.f_code.co_filename not in files:
            return None
        count += event == "line"
        return traced

    previous = sys.gettrace()
    sys.settrace(traced)
    try:
        work()
    finally:
        sys.settrace(previous)
    return count
