"""From verdicts at points to the row of a method."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.graph.function import Function
from difflab.lab.domain.answers import Candidate
from difflab.lab.domain.judging import SILENT, VERDICTS, Judged, MethodJudged
from difflab.lab.domain.record import UNANSWERED, DomainRow, Silence, WorstPoint, quantiles
from difflab.lab.outcomes import Outcome
from difflab.lab.record import Status

Points = NDArray[float64]


@dataclass(frozen=True, eq=False)
class Suspects:
    """Points of the search for the worst, and the verdicts there."""

    points: Points
    found: Judged


def row_of(
    function: Function,
    candidate: Candidate,
    index: int,
    sample: Points,
    found: Judged,
    suspects: Suspects,
) -> DomainRow:
    """Return the row of one method."""
    method, mine = candidate.method, found.methods[index]
    if len(mine.silent) == len(sample):
        ended = candidate.ended or next(iter(mine.silent.values()))
        return DomainRow(
            name=method.name, family=method.family, status=ended.status, message=ended.message
        )
    counts = np.bincount(mine.verdicts - SILENT, minlength=len(VERDICTS) + 1)
    names = (UNANSWERED, *map(str, VERDICTS))
    shares = dict(zip(names, (counts / len(sample)).tolist(), strict=True))
    return DomainRow(
        name=method.name,
        family=method.family,
        status=Status.OK,
        shares={name: shares[name] for name in (*names[1:], UNANSWERED)},
        ulps=quantiles(mine.ulps),
        worst=_worst(function, (sample, mine), (suspects.points, suspects.found.methods[index])),
        silences=tuple(_silences(function, sample, mine.silent)),
        prepare_seconds=candidate.prepare_seconds,
        batch_seconds=mine.seconds,
        evaluations=mine.evaluations,
    )


def _worst(
    function: Function, sample: tuple[Points, MethodJudged], suspects: tuple[Points, MethodJudged]
) -> WorstPoint | None:
    """Return the point with the most severe verdict, and among these the largest error."""
    points = np.concatenate([sample[0], suspects[0]])
    verdicts, absolute, relative, ulps = (
        np.concatenate([getattr(block, name) for _, block in (sample, suspects)])
        for name in ("verdicts", "absolute", "relative", "ulps")
    )
    index = int(np.lexsort((_ranked(absolute), _ranked(ulps), verdicts))[-1])
    if verdicts[index] == SILENT:
        return None
    sampled = index < len(sample[0])
    _, block = sample if sampled else suspects
    within = index if sampled else index - len(sample[0])
    return WorstPoint(
        named(function, points[index]),
        str(VERDICTS[verdicts[index]]),
        block.reasons.get(within, ""),
        _known(absolute[index]),
        _known(relative[index]),
        _known(ulps[index]),
        "sample" if sampled else "search",
    )


def _known(size: float) -> float | None:
    return None if np.isneginf(size) else float(size)


def _ranked(errors: NDArray[float64]) -> NDArray[float64]:
    """Return errors that can be compared: nan, a missing derivative, is the largest."""
    return np.where(np.isnan(errors), math.inf, errors)


def named(function: Function, point: Points) -> dict[str, Any]:
    """Return a packed point as the values of the inputs."""
    values = function.split(point)
    return {
        name: np.asarray(value).tolist()
        for name, value in zip(function.inputs, values, strict=True)
    }


def _silences(function: Function, sample: Points, silent: Mapping[int, Outcome]) -> list[Silence]:
    """Return the reasons for which there is no answer, the most frequent first."""
    reasons: dict[Outcome, list[int]] = {}
    for index, why in silent.items():
        reasons.setdefault(why, []).append(index)
    found = []
    for why, indices in sorted(reasons.items(), key=lambda item: -len(item[1])):
        low, high = sample[indices].min(axis=0), sample[indices].max(axis=0)
        corners = named(function, low), named(function, high)
        found.append(Silence(str(why.status), why.message, len(indices), *corners))
    return found
