"""A package beside difflab: it must be there and give the same, before it is timed in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from difflab.core.optional import absence
from difflab.errors import DifflabError, UnsupportedError
from difflab.lab.sampling import RATIOS, paired
from difflab.lab.sweep import CellType, Row, Task, trial

__all__ = ["OWN", "TIMED", "in_turns", "require_same", "tool_tasks"]

OWN = "difflab"
TIMED: Mapping[str, CellType] = {"difflab_seconds": float, **RATIOS}
"""The columns of a call that was timed in turns with difflab's, beside its own."""


def tool_tasks(
    key: Mapping[str, Any],
    measures: Mapping[str, Callable[[], Row]],
    sources: Callable[[str], Row],
    timeouts: dict[str, str],
) -> Iterator[Task]:
    """Yield a task for every tool that measures one case.

    Parameters
    ----------
    key : mapping
        The case, whose name is the first value.
    measures : mapping of str to callable
        For each tool what returns its row, where its package is installed.
    sources : callable
        Returns the provenance of a tool's rows.
    timeouts : dict
        As for `difflab.lab.sweep.trial`.
    """
    case = next(iter(key.values()))
    for tool, measure in measures.items():
        what = f"{case} of {tool}"
        yield trial(
            {**key, "tool": tool},
            partial(_installed, tool, measure),
            sources(tool),
            timeouts=timeouts,
            name=what,
            size=what,
            message="",
        )


def _installed(tool: str, measure: Callable[[], Row]) -> Row:
    missing = None if tool in (OWN, "compiled") else absence(tool)
    if missing is not None:
        raise UnsupportedError(missing)
    return measure()


def require_same(tool: str, found: NDArray[Any], expected: NDArray[Any], near: float) -> None:
    """Raise if a result differs from difflab's by more than `near`, relative to the largest."""
    scale = float(np.max(np.abs(expected)))
    if found.shape != expected.shape or not np.allclose(found, expected, 0, near * scale):
        raise DifflabError(f"{tool} and difflab differ: {found[:3]} and {expected[:3]}")


def in_turns(
    own: Callable[[], object], call: Callable[[], object], prepared: float, budget: float
) -> Row:
    """Return the row of a call that was prepared in some seconds, timed in turns with difflab's."""
    times = paired(own, call, budget=budget).columns("difflab_seconds")
    return {"status": "ok", "prepare_seconds": prepared, **times}
