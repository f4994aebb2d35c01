"""One model define-by-run, define-then-run, traced and compiled: cost of calls and preparing.

Every way computes the value and the gradient in float64 at the same points, and its answer is
judged as in `difflab.bench.peers.bench` before anything is timed. Its calls are timed in turns with
those of the way without preparation that it is compared with. Preparing includes the first call.
Before that, the package is used once on another function, so that what it loads into a process is
not counted, and compiled code that earlier processes left on disk is not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from difflab.bench.columns import layout
from difflab.bench.peers.bench import Answered, answered
from difflab.bench.peers.case import SEED_OF_BATCHES, PeerCase
from difflab.bench.peers.execution_drawing import draw, table
from difflab.bench.peers.ways import OWN, WAYS, Way, cold, contenders
from difflab.errors import DifflabError
from difflab.lab import provenance
from difflab.lab.outcomes import trial
from difflab.lab.sampling import paired
from difflab.lab.sweep import Cell, Task
from difflab.language import parse

__all__ = ["LAYOUT", "OWN", "POINTS", "break_even", "contenders", "draw", "table", "tasks"]

LAYOUT = layout(
    "expression point points way package execution version status message ulps prepare_seconds "
    "call_seconds call_form baseline baseline_prepare_seconds baseline_seconds ratio ratio_low "
    "ratio_high break_even",
    key="expression point points way",
)

POINTS = (1, 1_000, 100_000)
Prepared = Callable[[Way], Answered]


def tasks(
    case: PeerCase, chosen: Mapping[str, Way], points: Sequence[int], budget: float = 10.0
) -> Iterator[Task]:
    """Yield a task for every size of batch and way, the small sizes first."""
    timeouts: dict[str, str] = {}
    warm: set[str] = set()
    for size in sorted(points):
        known: dict[str, Answered] = {}
        ready = partial(_prepared, case, size, budget, known, warm)
        for way in chosen.values():
            source = provenance.source(
                way.peer,
                uses=("mpmath",),
                target=getattr(way.peer, "target", None),
                timeout=budget,
                seed=SEED_OF_BATCHES,
            )
            yield trial(
                case.key(size, way=way.name),
                partial(_measured, way, budget, ready),
                source,
                timeouts=timeouts,
                name=way.name,
                size=f"with {size:,}",
                package=way.package,
                execution=way.execution,
                version=way.peer.version(),
                message="",
                baseline=way.baseline,
            )


def break_even(prepare: float, call: float, base_prepare: float, base_call: float) -> float:
    """Return after how many calls preparing is repaid: infinity if never.

    Both first calls are part of preparing, so the first of them counts as one call.

    Examples
    --------
    >>> break_even(2.0, 0.5, 1.0, 1.0), break_even(0.5, 2.0, 1.0, 1.0), break_even(0.5, 1, 1, 2)
    (3.0, inf, 1.0)
    """
    if call >= base_call:
        return math.inf
    return 1.0 + max(0, math.ceil((prepare - base_prepare) / (base_call - call)))


def _measured(way: Way, budget: float, ready: Prepared) -> dict[str, Cell]:
    found = ready(way)
    row = found.columns()
    if found.complaint:
        return row
    base = _baseline(way, ready)
    times = paired((base or found).call, found.call, budget=budget).columns("baseline_seconds")
    if base is None:
        return {**row, "call_seconds": times["call_seconds"]}
    row |= {**times, "baseline_prepare_seconds": base.prepare_seconds}
    if base is not found:
        # The ratio is of calls in turns, so a drift of the machine is not in it.
        each = times["baseline_seconds"]
        call = each * times["ratio"]
        row["break_even"] = break_even(found.prepare_seconds, call, base.prepare_seconds, each)
    return row


def _baseline(way: Way, ready: Prepared) -> Answered | None:
    """Return the way that `way` is compared with; None if that one has no right answer."""
    try:
        found = ready(WAYS[way.baseline])
    except (DifflabError, ArithmeticError, RuntimeError):
        return None
    return None if found.complaint else found


def _prepared(
    case: PeerCase,
    points: int,
    budget: float,
    known: dict[str, Answered],
    warm: set[str],
    way: Way,
) -> Answered:
    """Prepare a way once for each size of batch, in a process that has used the package before."""
    if way.name not in known:
        with cold():
            if way.name not in warm and way.peer.missing() is None:
                other = PeerCase(parse("exp(t)*t"), np.array([0.5]), "exp(t)*t", "t = 0.5")
                answered(other, way.peer, points=1, budget=budget)
                warm.add(way.name)
            known[way.name] = answered(case, way.peer, points, budget)
    return known[way.name]
