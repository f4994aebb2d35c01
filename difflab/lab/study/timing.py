"""Times of the calls of a case: in blocks, each prepared anew and paired with the yardstick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from difflab.execute.long_loops import interpreter_of
from difflab.lab.effort import Effort
from difflab.lab.measure import CallCost, MethodCall, answer, in_turns
from difflab.lab.study.cases import Case
from difflab.methods.protocol import Method, Prepared, Problem
from difflab.methods.registry import select


@dataclass
class Times:
    """Samples of one method.

    Attributes
    ----------
    prepare : list of float
        Seconds of each preparation.
    blocks : list of (list of float, list of float)
        For each block the seconds of a call, and of the yardstick, one element per round.
    peak_bytes : int or None
        The peak memory of a call.
    first : bool
        Whether a block has the first call only, which may include compilation.
    """

    prepare: list[float] = field(default_factory=list)
    blocks: list[tuple[list[float], list[float]]] = field(default_factory=list)
    peak_bytes: int | None = None
    first: bool = False

    @property
    def spent(self) -> float:
        """Seconds of one preparation and one call in the last block."""
        return self.prepare[-1] + min(self.blocks[-1][0])


def timed(case: Case, names: Sequence[str]) -> dict[str, Times]:
    """Return the times of the methods `names` of a case.

    Each of the ``case.repeats`` blocks prepares every method anew and samples all calls and the
    yardstick in turns, so that two blocks share neither code objects nor a disturbance. A method
    whose first block took a good part of its time limit has that block only; one that fails here,
    having succeeded when it was judged, has the blocks until then.
    """
    from difflab.diagnose.point_check import checked_point, packed
    from difflab.language import parse

    function = parse(case.text)
    x = packed(function, checked_point(function, case.point, on=interpreter_of(function)))
    problem = Problem.of(
        function, order=case.order, timeout=case.timeout, target=case.target, often=True
    )
    effort = Effort(problem, x)
    methods = {
        name: effort.stoppable(method) for name, method in zip(names, select(names), strict=True)
    }
    times = {name: Times() for name in methods}
    with np.errstate(all="ignore"):
        for _ in range(case.repeats):
            _block(methods, problem, x, times)
            methods = {
                name: method
                for name, method in methods.items()
                if times[name].blocks and times[name].spent * case.repeats < case.timeout
            }
            if not methods:
                break
    return times


def _block(methods: dict[str, Method], problem: Problem, x: Any, times: dict[str, Times]) -> None:
    """Add a block to the times of each method; those that fail get none."""
    calls: dict[str, MethodCall] = {}
    for name, method in list(methods.items()):
        try:
            found = answer(method, problem, x, preparations=1)
        except (Exception, SystemExit):  # a method of another package may raise anything
            del methods[name]
            continue
        times[name].prepare.extend(found.prepare_samples)
        calls[name] = found.call
    reference = MethodCall(cast(Prepared, yardstick), x)
    costs = in_turns([*calls.values(), reference])
    yard = costs.pop()
    for name, cost in zip(calls, costs, strict=True):
        if isinstance(cost, CallCost) and isinstance(yard, CallCost):
            # Call and yardstick are sampled in every round until the call's budget is spent.
            rounds = min(len(cost.samples), len(yard.samples))
            times[name].blocks.append(([*cost.samples[:rounds]], [*yard.samples[:rounds]]))
            times[name].peak_bytes = cost.peak_bytes
            times[name].first = times[name].first or cost.first
        else:
            del methods[name]


_STEPS = 400


def yardstick(x: Any) -> float:
    """Take 400 steps of the logistic map; `x` is ignored.

    Examples
    --------
    >>> 0 < yardstick(None) < 1
    True
    """
    y = 0.3
    for _ in range(_STEPS):
        y = 3.9 * y * (1.0 - y)
    return y
