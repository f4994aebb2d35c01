"""The recommendation: which method to use for this function at this point, in one sentence.

Correctness comes first, then accuracy, then cost. Costs that the measurement cannot distinguish
are a tie, which the operation counts decide, and then a fixed order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from difflab.core.wording import counted, error, rounded, seconds
from difflab.lab.record import Comparison, MethodRow, Status
from difflab.lab.sampling import quartiles

SHOWN = 4
"""Elements of a derivative that the sentence states at a kink."""
EXACT = "exact"
"""The method whose every result is correctly rounded, about a thousand times as slow."""

TEN_DIGITS = 1e6
"""ULPs up to which a method is preferred to `EXACT`."""

CALLS = 1000
"""Derivatives over which the preparation is amortised, as many as in an optimisation."""

ACCURATE = 8.0
"""Errors up to this many ULPs, or this many times the smallest, count as equally accurate."""

ROUNDED = 0.5
"""ULPs of a correctly rounded result at most."""

NOISE = 1.5
"""Costs within this factor are a tie, however small the spread of the samples: memory layout and
other load on the processor cause such differences between equal programs, and all samples of one
process share them."""

ORDER = (
    *("reverse", "forward", "symbolic", "complex-step"),
    *("richardson", "finite-central", "finite-forward"),
)
"""The order that decides a tie of equal operations; methods of other packages follow."""


_OPENINGS = {
    "agree": "Use {} here: ",
    "convention": "The derivative does not exist here; {} gives ",
    "declared": "For the derivative that this function declares, which is not its own, use {}: ",
}
"""The first words of the sentence, by the best verdict of a method."""


def recommend(comparison: Comparison) -> str:
    """Return which method to use at the point of a comparison, and why.

    Among the methods that the referee confirms, those as accurate as the best are kept, and the
    cheapest of these over a thousand derivatives is recommended. `EXACT` is, where no other method
    has ten digits; elsewhere it is mentioned. A method ties with it if its
    fastest samples lie within the spread of both, each up to the upper quartile, or if it costs
    less than `NOISE` times as much. Of the methods that tie, the one with the fewest operations
    is recommended, then the first in a fixed order; the sentence states this.
    """
    first = comparison.methods[0].dtype if comparison.methods else ""
    judged = [r for r in comparison.methods if r.status is Status.OK and r.dtype == first]
    verdicts = {row.verdict for row in judged}
    verdict = next((verdict for verdict in _OPENINGS if verdict in verdicts), None)
    if verdict is None:
        return _nothing(comparison, judged)
    right = [row for row in judged if row.verdict == verdict]
    accurate = _accurate(right)
    best, *others = _tied(accurate)
    sentence = _OPENINGS[verdict].format(best.name)
    if best.verdict == "convention":
        sentence += f"{_value(best)}, between the one-sided derivatives: "
    sentence += ", ".join(_reasons(best))
    sentence += _tie(best, others) + _crossover(best, accurate) + _sharper(best, right)
    return sentence + _others(judged, best) + "."


def _value(row: MethodRow) -> str:
    """Return the first elements of a method's derivative."""
    elements = np.ravel([] if row.jacobian is None else row.jacobian)
    texts = [f"{number + 0.0:.6g}" for number in elements[:SHOWN].tolist()]
    if elements.size == 1:
        return texts[0]
    return f"({', '.join(texts)}{', …' * (elements.size > SHOWN)})"


def _nothing(comparison: Comparison, judged: Sequence[MethodRow]) -> str:
    if not judged:
        return "No method gave a derivative here; the row of each method states the reason."
    unclear = [row.message for row in judged if row.verdict == "inconclusive"]
    if unclear:
        why = Counter(unclear).most_common(1)[0][0] or comparison.reference.status
        return f"No method can be recommended here: {why}."
    return "Use none of these methods here: the referee contradicts every one."


def _accurate(rows: Sequence[MethodRow]) -> list[MethodRow]:
    """Return the most accurate rows, without `EXACT` unless no other has ten digits."""
    others = [row for row in rows if row.name != EXACT]
    if any(_inaccuracy(row) <= TEN_DIGITS for row in others):
        rows = others
    least = min(_inaccuracy(row) for row in rows)
    return [row for row in rows if _inaccuracy(row) <= max(ACCURATE, ACCURATE * least)]


def _inaccuracy(row: MethodRow) -> float:
    """Return the error in ULPs; zero if no element has one."""
    return row.ulps or 0.0


def _tied(rows: Sequence[MethodRow]) -> list[MethodRow]:
    """Return the rows whose cost ties with the smallest, in order of preference.

    The true cost may lie as far below the smallest sample as the samples spread above it.
    """
    costs = [_cost(row) for row in rows]
    cheapest, upper = min(costs, key=lambda cost: cost[0])
    close = [
        row
        for row, (least, high) in zip(rows, costs, strict=True)
        if least <= max(high / (least or 1.0) * upper, NOISE * cheapest)
    ]
    position = {name: rank for rank, name in enumerate(ORDER)}
    ranks = {row.name: (_operations(row), position.get(row.name, len(ORDER))) for row in rows}
    return sorted(close or rows, key=lambda row: ranks[row.name])


def _operations(row: MethodRow) -> float:
    return math.inf if row.operations is None else row.operations


def _cost(row: MethodRow) -> tuple[float, float]:
    """Return the least seconds of `CALLS` derivatives, and those by the upper quartiles.

    Both are zero if nothing was timed.
    """
    if row.prepare_seconds is None or row.call_seconds is None:
        return 0.0, 0.0
    least = row.prepare_seconds + CALLS * row.call_seconds
    prepare = quartiles(row.prepare_samples or [row.prepare_seconds])[2]
    call = quartiles(row.samples or [row.call_seconds])[2]
    return least, max(least, prepare + CALLS * call)


def _tie(best: MethodRow, others: Sequence[MethodRow]) -> str:
    """Return the clause about a method that ties, and the criterion that decided."""
    if not others:
        return ""
    other = others[0]
    why = "a fixed order decides"
    if _operations(best) < _operations(other):
        why = (
            "its operation count is unknown"
            if other.operations is None
            else "it has more operations"
        )
    if best.call_seconds is None:
        return f"; {other.name} ties, since nothing was timed, and {why}"
    lows, highs = zip(_cost(best), _cost(other), strict=True)
    return (
        f"; {other.name} ties within the measured spread of {seconds(min(lows))} to "
        f"{seconds(max(highs))} for {CALLS:,} derivatives, and {why}"
    )


def _reasons(row: MethodRow) -> list[str]:
    reasons = []
    if row.ulps is not None and math.isfinite(row.ulps):
        within = f"within {error(row.ulps)} ULP"
        reasons.append("correctly rounded" if row.ulps <= ROUNDED else within)
    if row.operations is not None:
        reasons.append(counted(row.operations, "operation"))
    elif row.function_evaluations:
        reasons.append(f"{counted(row.function_evaluations, 'evaluation')} of the function")
    if row.prepare_seconds is not None and row.call_seconds is not None:
        form = f" by {row.call_form}" if row.call_form else ""
        reasons.append(
            f"prepared in {seconds(row.prepare_seconds)} and called in "
            f"{seconds(row.call_seconds)}{form}"
        )
    return reasons or ["the referee confirms it"]


def _crossover(best: MethodRow, accurate: Sequence[MethodRow]) -> str:
    """Return the clause stating from how many calls on another accurate method costs less."""
    if best.call_seconds is None or best.prepare_seconds is None:
        return ""
    faster = [
        row
        for row in accurate
        if row.call_seconds is not None
        and row.prepare_seconds is not None
        and quartiles(row.samples or [row.call_seconds])[2] * NOISE < best.call_seconds
    ]
    if not faster:
        return ""
    other = min(faster, key=lambda row: row.call_seconds or 0.0)
    assert other.call_seconds is not None
    assert other.prepare_seconds is not None
    gain = best.call_seconds - other.call_seconds
    calls = max(other.prepare_seconds - best.prepare_seconds, 0.0) / gain
    return (
        f"; from about {rounded(calls)} calls on, {other.name} costs less "
        f"({seconds(other.call_seconds)} a call)"
    )


def _sharper(best: MethodRow, right: Sequence[MethodRow]) -> str:
    """Return the clause about `EXACT` where the recommended method is not correctly rounded."""
    exact = next((row for row in right if row.name == EXACT), best)
    if exact is best or _inaccuracy(best) <= ROUNDED:
        return ""
    cost = "" if exact.call_seconds is None else f", in {seconds(exact.call_seconds)} a call"
    return f"; {exact.name} is correctly rounded{cost}"


def _others(judged: Sequence[MethodRow], best: MethodRow) -> str:
    """Return the clauses about methods that follow a declared rule instead, and wrong ones."""
    declared, wrong = (
        [row.name for row in judged if row.verdict == verdict]
        for verdict in ("declared", "disagree")
    )
    text = ""
    if declared and best.verdict != "declared":
        verb = "gives" if len(declared) == 1 else "give"
        text = f"; {', '.join(declared)} {verb} the derivative that the function declares instead"
    return text + (f"; wrong here: {', '.join(wrong)}" if wrong else "")
