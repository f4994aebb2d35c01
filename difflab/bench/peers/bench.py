"""Value and gradient of one function by difflab and by its peers: checked results, ratios of times.

Every package computes the value and the gradient in float64 at the same points. One point is called
as in a loop of a million calls: by the package's fastest call, which the column ``call_form``
states, such as CasADi's buffer. Results are checked before any timing: at one point by the referee,
for a batch against difflab. Calls of difflab and of the peer are timed in turns, so that a drift of
the machine affects both, and the ratio of each pair of times is reported. A peer runs in a process
of its own, with difflab beside it: one that ends its process is a row that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from difflab.bench.peers.drawing import draw, table
from difflab.bench.peers.ways import SEED_OF_BATCHES, Array, Own, PeerCase
from difflab.bench.shared import layout
from difflab.core.worker import Handlers, ReportProgress, RestartedWorker
from difflab.errors import DifflabError, InputError, MethodTimeout, UnsupportedError
from difflab.graph.function import Function
from difflab.lab import provenance
from difflab.lab.sampling import paired
from difflab.lab.sweep import Cell, Row, Task, trial
from difflab.methods.peers.peer import Peer, refusals
from difflab.methods.protocol import Family
from difflab.methods.registry import peers
from difflab.methods.timer import LoopCall
from difflab.referee.ulp import exact, nearest, ulp_distance
from difflab.referee.verdict import RTOL, Verdict

__all__ = ["LAYOUT", "draw", "table", "tasks"]


SEED = "ln(x1) + x1*x2 - sin(x2)"
SEED_AT = {"x1": 2.0, "x2": 5.0}
POINTS = (1, 1_000, 1_000_000)
LIMIT = 600.0
"""Seconds of one row of a peer, after which its process is stopped."""
TRIED = 16
"""Points from which the time of a batch is extrapolated for a peer without batches."""
OWN = ("difflab", "difflab-python", "difflab-numpy", "difflab-native")

LAYOUT = layout(
    "expression point points peer version status message ulps prepare_seconds call_seconds "
    "call_form difflab_seconds ratio ratio_low ratio_high",
    key="expression point points peer",
)


def contenders(names: Sequence[str] | None = None) -> dict[str, Peer]:
    """Return difflab with its targets and the named peers, by default all installed ones.

    Raises
    ------
    InputError
        There is no such peer.

    Examples
    --------
    >>> list(contenders(["jax"]))
    ['difflab', 'difflab-python', 'difflab-numpy', 'difflab-native', 'jax']
    """
    available = peers()
    chosen: dict[str, Peer] = {name: Own(name) for name in OWN}
    for name in available if names is None else names:
        if name not in available:
            raise InputError(f"there is no peer '{name}'", hint=f"one of {', '.join(available)}")
        peer = available[name]
        assert isinstance(peer, Peer)
        if names is not None or peer.missing() is None:
            chosen[name] = peer
    return chosen


def tasks(
    case: PeerCase,
    chosen: Mapping[str, Peer],
    points: Sequence[int] = POINTS,
    budget: float = 10.0,
) -> Iterator[Task]:
    """Yield a task for every size of batch and contender, the small sizes first.

    A contender that timed out at one size is not measured at larger ones.
    """
    timeouts: dict[str, str] = {}
    apart = {
        name: partial(_apart, peer, RestartedWorker("difflab.bench.peers.bench", name))
        for name, peer in chosen.items()
        if peer is peers().get(name)
    }
    source_of = partial(provenance.source, uses=("mpmath",), timeout=budget, seed=SEED_OF_BATCHES)
    # A peer's ratio depends on the target of difflab, as difflab's own time does.
    sources = {
        name: source_of(contender, target=getattr(contender, "target", "auto"))
        for name, contender in chosen.items()
    }
    for size in sorted(points):
        for name, contender in chosen.items():
            run: Callable[..., Row] = apart.get(name, partial(measured, contender=contender))
            yield trial(
                case.key(size, peer=name),
                partial(run, case, points=size, budget=budget),
                sources[name],
                timeouts=timeouts,
                name=name,
                size=f"with {size:,}",
                version=contender.version(),
                message="",
            )


def _apart(peer: Peer, process: RestartedWorker, case: PeerCase, points: int, budget: float) -> Row:
    """Measure a peer in its process; if that ends it, `WorkerDied` says how."""
    reason = peer.missing()
    if reason is not None:
        raise UnsupportedError(reason)
    row: Row = process.request("measured", case.sent(), points, budget, timeout=LIMIT)
    return row


def measured(case: PeerCase, contender: Peer, points: int, budget: float) -> dict[str, Cell]:
    """Return the columns of one contender at one size, timed alternately with difflab.

    Raises
    ------
    UnsupportedError
        The package is not installed, or does not support the function.
    MethodTimeout
        A batch computed point by point would exceed `budget` seconds.
    """
    answer = answered(case, contender, points, budget)
    row = answer.columns()
    if answer.complaint:
        return row
    own, _ = case.own(points)
    pairs = paired(own, answer.call, budget=budget)
    return {**row, **pairs.columns("difflab_seconds")}


@dataclass(frozen=True)
class Answered:
    """A contender that has been prepared and called once, and the judgement of its answer.

    Attributes
    ----------
    call : LoopCall
        The call that is timed.
    prepare_seconds : float
        Seconds of preparing and the first call.
    complaint : str
        The error in the answer, or an empty text.
    ulps : float or None
        Its error in ULPs.
    """

    call: LoopCall
    prepare_seconds: float
    complaint: str
    ulps: float | None

    def columns(self) -> dict[str, Cell]:
        """Return the columns that are known before a call is timed."""
        row: dict[str, Cell] = {"prepare_seconds": self.prepare_seconds, "ulps": self.ulps}
        row["call_form"] = self.call.form
        if self.complaint:
            return {**row, "status": "disagree", "message": self.complaint}
        return {**row, "status": "ok"}


def answered(case: PeerCase, contender: Peer, points: int, budget: float) -> Answered:
    """Prepare a contender, call it once and judge its answer.

    Raises
    ------
    UnsupportedError
        The package is not installed, or does not support the function.
    MethodTimeout
        A batch computed point by point would exceed `budget` seconds.
    """
    reason = contender.missing()
    if reason is not None:
        raise UnsupportedError(reason)
    contender.start()
    function = contender.formula(case.function, budget)
    _check_duration(contender, function, case, points, budget)
    x = case.at(points)
    with refusals(contender.title):
        start = perf_counter()
        adapter = contender.adapter(function, None if points == 1 else points)
        arguments = adapter.arguments(x)
        # Work of the first call, such as compilation, is part of the preparation.
        answer = adapter.first(arguments)
        prepared = perf_counter() - start
        complaint, ulps = _judged(case, contender, points, answer)
        loop = adapter.loop(arguments)
        if adapter.faster is not None and not complaint:
            complaint, ulps = _judged(case, contender, points, adapter.result(loop()))
    return Answered(loop, prepared, complaint, ulps)


def _check_duration(
    contender: Peer, function: Function, case: PeerCase, points: int, budget: float
) -> None:
    """Raise if a batch computed point by point would exceed the time limit."""
    if contender.vectorised or points <= TRIED:
        return
    adapter = contender.adapter(function, TRIED)
    arguments = adapter.arguments(case.at(TRIED))
    start = perf_counter()
    adapter.call(*arguments)
    each = (perf_counter() - start) / TRIED
    if each * points > budget:
        raise MethodTimeout(
            f"not started: it computes one point at a time, {each * points:.3g} s for {points:,}; "
            f"the limit is {budget:g} s"
        )


# --- results ----------------------------------------------------------------------------------


def _judged(
    case: PeerCase, contender: Peer, points: int, answer: tuple[Array, Array]
) -> tuple[str, float | None]:
    """Return the fault of a result, or an empty text, and its error in ULPs."""
    x = case.at(points)
    value, gradient = (np.array(part, dtype=np.float64) for part in answer)
    if value.shape != x.shape[:-1] or gradient.shape != x.shape:
        shapes = f"a value of shape {value.shape} and a gradient of shape {gradient.shape}"
        return f"it returned {shapes}, not {x.shape[:-1]} and {x.shape}", None
    first = (value, gradient) if x.ndim == 1 else (value[0], gradient[0])
    complaint, ulps = _against_referee(case, contender.family, *first)
    if not complaint and x.ndim == 2:
        complaint = _against_own(case, contender.family, value, gradient)
    return complaint, ulps


def _against_referee(
    case: PeerCase, family: Family, value: Any, gradient: Array
) -> tuple[str, float | None]:
    """Judge the result at the point itself."""
    reference = case.judge.reference
    if reference is None:
        raise DifflabError(case.judge.reason)
    truth = reference.value[0]
    number = float(value)
    gap = nearest(abs(exact(number) - exact(truth))) if np.isfinite(number) else np.inf
    if not gap <= RTOL[Family.AUTOMATIC] * reference.magnitude:
        return f"the value is {number:.17g} where it should be {nearest(truth):.17g}", None
    judgement = case.judge.verdict(gradient, family)
    worst = max(ulp_distance(number, truth), judgement.max_ulp_error or 0.0)
    return (judgement.reason if judgement.verdict is Verdict.DISAGREE else ""), worst


def _against_own(case: PeerCase, family: Family, value: Array, gradient: Array) -> str:
    """Compare a batch with difflab's, element by element, on the scale of its column."""
    _, (own_value, own_gradient) = case.own(len(value))
    actual = np.column_stack([value, gradient])
    expected = np.column_stack([own_value, own_gradient])
    scale = np.maximum(np.abs(expected), np.nanmedian(np.abs(expected), axis=0))
    close = np.abs(actual - expected) <= RTOL[family] * scale
    wrong = np.argwhere(~(close | (actual == expected) | (np.isnan(actual) & np.isnan(expected))))
    if not len(wrong):
        return ""
    row, column = wrong[0].tolist()
    what = "value" if column == 0 else f"derivative {column}"
    return (
        f"{len(wrong):,} elements differ from difflab's; the first is the {what} of point {row}: "
        f"{actual[row, column]:.17g} instead of {expected[row, column]:.17g}"
    )


def handlers(report: ReportProgress, name: str) -> Handlers:
    """Import a peer and return the handlers of its process."""
    peer = peers()[name]
    assert isinstance(peer, Peer)
    peer.start()

    def run(case: PeerCase, points: int, budget: float) -> dict[str, Cell]:
        with np.errstate(all="ignore"):
            return measured(case, peer, points, budget)

    return {"measured": run}
