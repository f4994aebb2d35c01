"""Pull-backs of tapes that are built the same way again and again, as in a training loop.

At the second `backward` over tapes of one structure, the reverse sweep is run on the nodes of a
graph; from then on the code of this graph is run, without the decisions of the sweep.
"""

from __future__ import annotations

import threading
from contextvars import Context
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from difflab.core.devices import module_of
from difflab.eager.recording.tape import Accumulation, TapeStep
from difflab.eager.sweep.backward import pull_back
from difflab.eager.sweep.pulled import GraphCalculator
from difflab.eager.sweep.script import SweepFunction, sweep_function

__all__ = ["replayed"]

LONGEST = 1000
"""Most steps of a tape whose sweep is recorded; longer tapes rarely recur."""
LARGEST = 1 << 17
"""Most elements of a recorded sweep's values: a replay frees few of them before it ends."""
REMEMBERED = 256


ONCE, NEVER = 1, 0
RECORDED_SWEEPS: dict[Any, SweepFunction | int] = {}
"""By the structure of the tape: the recorded sweep, or `ONCE` or `NEVER` before it is recorded.

Also by plan and array module: the latest sweep over a tape whose last step has this plan, tried
first.
"""


class WalkedTape(NamedTuple):
    """The steps in the order of the sweep, the leaves, and a key of the structure."""

    steps: list[TapeStep]
    leaves: list[Accumulation]
    key: Any


def replayed(root: TapeStep, seed: Any, *, keep: bool) -> list[tuple[Accumulation, Any]] | None:
    """Return the result of `pull_back` by a recorded sweep; None if there is none for this tape.

    The sweep is recorded at the second tape of a structure.
    """
    xp = module_of(seed)
    latest: Any = RECORDED_SWEEPS.get((root.plan, xp))
    if latest is not None:
        found: Any = _quiet().run(latest, root, seed, keep)
        if found is not None:
            return found  # type: ignore[no-any-return]
    tape = _walk(root)
    if tape is None:
        return None
    key = (tape.key, xp)
    recorded = RECORDED_SWEEPS.get(key)
    if recorded is None:
        if len(RECORDED_SWEEPS) >= REMEMBERED:
            RECORDED_SWEEPS.clear()
        RECORDED_SWEEPS[key] = ONCE
    elif recorded == ONCE:
        recorded = RECORDED_SWEEPS[key] = _pull_back_of(tape, seed, xp)
    if callable(recorded):
        RECORDED_SWEEPS[root.plan, xp] = recorded
        return _quiet().run(recorded, root, seed, keep)
    return None


def _pull_back_of(tape: WalkedTape, seed: Any, xp: Any) -> SweepFunction | int:
    """Return the pull-back of tapes of this structure; `NEVER` if it computes too much."""
    on = GraphCalculator(tape.steps, seed, xp)
    found = dict(pull_back(tape.steps[0], on.seed, keep=True, calculator=on, show=_no_hooks))
    if on.computed_elements() > LARGEST:
        return NEVER
    # A leaf may be on the tape by an index alone, which has no derivative.
    leaves = {leaf: found[leaf] for leaf in tape.leaves if leaf in found}
    return sweep_function(tape.steps, leaves, on) if len(leaves) == len(tape.leaves) else NEVER


class _Quiet(threading.local):
    """A context per thread in which NumPy does not warn of nan and infinity."""

    context: Context | None = None


_QUIET = _Quiet()


def _quiet() -> Context:
    """Return the thread's context; entering it is faster than changing NumPy's state twice."""
    if _QUIET.context is None:
        _QUIET.context = Context()
        _QUIET.context.run(np.seterr, all="ignore")
    return _QUIET.context


def _walk(root: TapeStep) -> WalkedTape | None:
    """Return the tape from `root` on; None if it has hooks or irregular steps, or is too long."""
    steps: list[TapeStep] = []
    leaves: list[Accumulation] = []
    key: list[Any] = []
    indices: dict[Any, int] = {root: 0}
    order: list[tuple[int, TapeStep]] = []
    following: TapeStep | None = root
    while following is not None:
        step, following = following, None
        edges, plan = step.edges, step.plan
        if edges is None:
            step.check()
        observed = step.hooks or step.retained is not None
        if observed or not plan.regular or len(steps) == LONGEST:
            return None
        steps.append(step)
        key += (plan, step.numbers)
        for edge in edges or ():
            index = indices.get(edge)
            if index is None and edge is not None:
                index = indices[edge] = len(indices)
                if isinstance(edge, Accumulation):
                    index = indices[edge] = -index  # a leaf differs from a step
                    leaves.append(edge)
                    key.append(edge.dtype)
                elif following is None:
                    following = edge
                else:
                    heappush(order, (-edge.number, edge))
            key.append(index)
        if order:  # the newest step is next; a chain needs no heap
            if following is not None:
                heappush(order, (-following.number, following))
            _, following = heappop(order)
            key.append(indices[following])
    return WalkedTape(steps, leaves, tuple(key))


def _no_hooks(step: TapeStep, bar: Any) -> Any:
    """Return the cotangent: no step has hooks or a retained gradient."""
    return bar
