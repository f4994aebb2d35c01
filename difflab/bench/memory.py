"""Memory against recomputation: going back through a chain with fewer and fewer states kept.

The chain is run plainly, with √n segments, and by revolve with several numbers of snapshots. The
steps are counted as they run, the bytes are the peak that Python's allocators saw, and every
gradient is compared with the plain one before it counts.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from difflab.eager import checkpoint_chain, tensor
from difflab.errors import DifflabError
from difflab.lab import provenance
from difflab.lab.sweep import Cell, Task

__all__ = ["LAYOUT", "LENGTHS", "NUMBERS", "SNAPSHOTS", "tasks"]

LAYOUT = provenance.layout(
    {
        "steps": int,
        "numbers": int,
        "strategy": str,
        "snapshots": int,
        "evaluations": int,
        "recomputed": int,
        "peak_bytes": int,
        "peak_states": float,
    },
    key=("steps", "numbers", "strategy", "snapshots"),
)

LENGTHS = (64, 256, 1024)
NUMBERS = 8192
"""Numbers of a state: 64 KiB, beside which the tape's own objects weigh little."""
SNAPSHOTS = (3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


def tasks(lengths: Sequence[int] = LENGTHS, numbers: int = NUMBERS) -> Iterator[Task]:
    """Yield a task for every length and way of keeping states."""
    source = provenance.source()
    for steps in lengths:
        ways: list[tuple[str, int | None]] = [("plain", None), ("sqrt", None)]
        ways += [("revolve", kept) for kept in SNAPSHOTS if kept < steps]
        for strategy, snapshots in ways:
            key: dict[str, Cell] = {"steps": steps, "numbers": numbers}
            key |= {"strategy": strategy, "snapshots": snapshots}
            yield Task(key, partial(_measured, steps, numbers, strategy, snapshots), source)


def _measured(steps: int, numbers: int, strategy: str, snapshots: int | None) -> dict[str, Cell]:
    """Measure one way; its gradient must be the plain one."""
    wanted, _, _ = _gradient(steps, numbers, _looped)
    run = _looped
    if strategy != "plain":
        run = partial(checkpoint_chain, snapshots="sqrt" if snapshots is None else snapshots)
    _gradient(2, numbers, run)  # what is made once and kept is not the chain's
    found, evaluations, peak = _gradient(steps, numbers, run)
    if found.tobytes() != wanted.tobytes():
        raise DifflabError(f"{strategy} gives another gradient of {steps} steps than the loop")
    return {
        "evaluations": evaluations,
        "recomputed": evaluations - steps,
        "peak_bytes": peak,
        "peak_states": peak / (8 * numbers),
        "repetitions": 1,
    }


def _looped(step: Callable[[int, Any], Any], state: Any, steps: int) -> Any:
    for k in range(steps):
        state = step(k, state)
    return state


def _gradient(steps: int, numbers: int, run: Callable[..., Any]) -> tuple[Any, int, int]:
    """Return the gradient by the first state, how often a step was run, and the peak of bytes."""
    evaluations = 0

    def step(k: int, state: Any) -> Any:
        nonlocal evaluations
        evaluations += 1
        return state + 0.1 * np.sin(state)

    first = tensor(np.linspace(0.1, 1.0, numbers), requires_grad=True)
    tracemalloc.start()
    try:
        np.sum(run(step, first, steps)).backward()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert first.grad is not None
    return first.grad.numpy(), evaluations, peak
