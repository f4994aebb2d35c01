"""Checkers of gradients graded: how many planted faults each finds, and its false alarms."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from math import gcd
from statistics import median
from typing import NamedTuple

from benchmarks.graders.corpus import DTYPES, PLANTED, RIGHT, GradientCase, case
from benchmarks.graders.drawing import draw
from benchmarks.graders.faults import FAULTS
from benchmarks.graders.graders import GRADERS, Grader, Judgement
from difflab.errors import InputError, described
from difflab.lab import provenance
from difflab.lab.record import Status
from difflab.lab.sweep import Cell, Row, Task, trial

__all__ = ["LAYOUT", "QUICK", "draw", "tasks"]

_SHOWN = 3  # failures of a checker in the message of a row
LAYOUT = provenance.layout(
    {
        "grader": str,
        "fault": str,
        "dtype": str,
        "stride": int,
        "status": str,
        "cases": int,
        "accepted": int,
        "rejected": int,
        "unjudged": int,
        "failed": int,
        "evaluations": float,
        "seconds": float,
        "misjudged": str,
        "message": str,
    },
    key=("grader", "fault", "dtype", "stride"),
)
QUICK = 23
"""Of how many consecutive cases the quick benchmark takes one."""


def tasks(*, quick: bool = False, every: int = 1) -> Iterator[Task]:
    """Yield a task for every checker, class of faults and precision.

    Parameters
    ----------
    quick : bool
        Whether to take one of `QUICK` cases.
    every : int
        Of how many consecutive cases one is taken, unless `quick`.

    Raises
    ------
    InputError
        A slice with this stride would lack classes of faults.
    """
    stride = QUICK if quick else every
    if stride < 1 or gcd(stride, len(FAULTS)) > 1:
        raise InputError(
            f"one of {stride} cases would leave out classes of faults",
            hint=f"give a number that has no divisor in common with {len(FAULTS)}, such as 5",
        )
    return _tasks(stride)


def _tasks(stride: int) -> Iterator[Task]:
    numbers = cache(partial(_numbers, stride))
    for name, grader in GRADERS.items():
        source = provenance.source(uses=(grader.package,), measured_by=__name__)
        for fault in ("", *FAULTS):
            for dtype in DTYPES:
                key: Row = {"grader": name, "fault": fault, "dtype": dtype, "stride": stride}
                yield trial(key, partial(_measured, grader, numbers, fault, dtype), source)


def _numbers(stride: int) -> Mapping[tuple[str, str], list[int]]:
    """Return the numbers of the cases of every class and precision."""
    found: dict[tuple[str, str], list[int]] = {}
    for number in range(RIGHT.start, PLANTED.stop, stride):
        made = case(number)
        found.setdefault((made.fault, made.dtype), []).append(number)
    return found


class _Graded(NamedTuple):
    """A judgement with its time; without one, the reason."""

    number: int
    judgement: Judgement | None
    seconds: float
    reason: str = ""


def _measured(
    grader: Grader,
    numbers: Callable[[], Mapping[tuple[str, str], list[int]]],
    fault: str,
    dtype: str,
) -> dict[str, Cell]:
    """Return the row of one checker, class and precision."""
    grader.load()
    graded = [_graded(grader, case(number)) for number in numbers().get((fault, dtype), [])]
    judged = [entry for entry in graded if entry.judgement is not None]
    accepted = [entry for entry in judged if entry.judgement and entry.judgement.accepted]
    reasons = [f"{entry.number}: {entry.reason}" for entry in graded if entry.reason]
    wrong = accepted if fault else [entry for entry in judged if entry not in accepted]
    row: dict[str, Cell] = {
        "status": Status.OK,
        "cases": len(graded),
        "accepted": len(accepted),
        "rejected": len(judged) - len(accepted),
        "unjudged": sum(entry.judgement.unjudged for entry in judged if entry.judgement),
        "failed": len(graded) - len(judged),
        "misjudged": " ".join(str(entry.number) for entry in wrong),
        "message": "; ".join(reasons[:_SHOWN]),
        "repetitions": 1,
    }
    if judged:
        row["evaluations"] = median(e.judgement.evaluations for e in judged if e.judgement)
        row["seconds"] = median(entry.seconds for entry in judged)
    return row


def _graded(grader: Grader, made: GradientCase) -> _Graded:
    start = time.perf_counter()
    try:
        judgement = grader(made)
    except Exception as error:  # a checker of another package may fail in any way
        return _Graded(made.number, None, 0.0, described(error))
    return _Graded(made.number, judgement, time.perf_counter() - start)
