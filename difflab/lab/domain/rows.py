"""From verdicts at points to the row of a method, and where it loses digits at the worst point."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from difflab.core.dtypes import DOUBLE, FloatFormat
from difflab.diagnose.divergence import Derivative, Differentiate, first_divergence
from difflab.diagnose.point_check import derivative_faults, packed
from difflab.errors import DifflabError
from difflab.execute.long_loops import values_of
from difflab.graph.function import Function
from difflab.lab.domain.answers import Candidate
from difflab.lab.domain.judging import SILENT, VERDICTS, JudgedPoints, MethodJudged
from difflab.lab.domain.record import (
    UNANSWERED,
    DomainRow,
    LosingNode,
    Silence,
    WorstPoint,
    quantiles,
)
from difflab.lab.record import Outcome, Status
from difflab.methods.exact import EXACT
from difflab.methods.protocol import Method, Problem

Points = NDArray[float64]

LARGEST = 5_000
"""Nodes of a graph up to which the operation is searched."""
LEAST = 1e-11
"""The least relative error whose origin is searched; a smaller one is rounding."""


@dataclass(frozen=True, eq=False)
class Suspects:
    """Points of the search for the worst, and the verdicts there."""

    points: Points
    judged: JudgedPoints


def row_of(
    function: Function,
    candidate: Candidate,
    index: int,
    sample: Points,
    judged: JudgedPoints,
    suspects: Suspects,
) -> DomainRow:
    """Return the row of one method."""
    method, mine = candidate.method, judged.methods[index]
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
        worst=_worst(function, (sample, mine), (suspects.points, suspects.judged.methods[index])),
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
    silences = []
    for why, indices in sorted(reasons.items(), key=lambda item: -len(item[1])):
        low, high = sample[indices].min(axis=0), sample[indices].max(axis=0)
        corners = named(function, low), named(function, high)
        silences.append(Silence(str(why.status), why.message, len(indices), *corners))
    return silences


def in_range_over(
    row: DomainRow, function: Function | None, order: int, dtype: FloatFormat
) -> DomainRow:
    """Return a row with its format, and the range faults at the worst point."""
    if dtype is DOUBLE:
        return row
    row, worst = replace(row, dtype=dtype.name), row.worst
    if worst is None or function is None or worst.verdict == "agree":
        return row
    point = {name: np.asarray(value) for name, value in worst.point.items()}
    try:
        faults = derivative_faults(function, packed(function, point), dtype, order)
    except DifflabError:  # some functions have no derivative in a graph
        return row
    message = "; ".join(filter(None, (worst.message, *faults)))
    return replace(row, worst=replace(worst, message=message))


def losing_node(method: Method, problem: Problem, worst: WorstPoint) -> LosingNode | None:
    """Return the operation at which a method parts from the exact derivative, if there is one.

    Parameters
    ----------
    method : Method
        The method.
    problem : Problem
        The function and the settings.
    worst : WorstPoint
        The point.
    """
    function = problem.function
    size = worst.max_rel_error
    small = worst.verdict == "agree" and (size is None or size < LEAST)
    if function is None or problem.order != 1 or small or len(function.graph) > LARGEST:
        return None
    point = packed(function, {name: np.asarray(x) for name, x in worst.point.items()})
    once = replace(problem, often=False)
    try:
        with np.errstate(all="ignore"):
            divergence = first_divergence(function, point, _by(method, once), _by(EXACT, once))
    except (DifflabError, ArithmeticError, ValueError):  # a part that one of them refuses
        return None
    if divergence is None:
        return None
    where = divergence.site.span if divergence.site.text == function.text else None
    text = divergence.render((method.name, "exact")).splitlines()
    return LosingNode(
        divergence.call, where, next((t for t in text if t.startswith("its ")), text[0])
    )


def _by(method: Method, problem: Problem) -> Differentiate:
    def derivative(function: Function, point: NDArray[float64]) -> Derivative:
        values, n, m = values_of(function), function.n, function.m
        part = replace(problem, values=values, n=n, m=m, function=function)
        estimate = method.prepare(part)(point)
        shape = (function.m, function.n)
        error = np.zeros(shape) if estimate.error is None else np.reshape(estimate.error, shape)
        return Derivative(np.reshape(estimate.value, shape), np.nan_to_num(error, nan=np.inf))

    return derivative
