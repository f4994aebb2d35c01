"""One sentence: which method to use for this function at this point, from what was measured.

Correct first, then exact, then cheap. May import `difflab.lab.record`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from difflab.core.wording import counted
from difflab.lab.record import Comparison, MethodRow, Status

__all__ = ["recommend"]

CALLS = 1000
"""Derivatives over which preparing is spread: an optimisation takes as many."""

ACCURATE = 8.0
"""Errors up to this many ULPs, or this many times the least, are as good as the least."""

NOISE = 1.5
"""Two times within this factor count as equal: a busy machine makes such differences."""


def recommend(comparison: Comparison) -> str:
    """Return which method to use here, and why.

    Among the methods that the referee confirms, those as accurate as the best are kept, and
    of these the cheapest over a thousand derivatives is named; where times are close, the one
    with the fewest operations.
    """
    judged = [row for row in comparison.methods if row.status is Status.OK]
    right = [row for row in judged if row.verdict == "agree"]
    opening = "Use {} here: "
    if not right:
        right = [row for row in judged if row.verdict == "convention"]
        opening = "The derivative does not exist here; for a usual convention take {}: "
    if not right:
        return _nothing(comparison, judged)
    accurate = _accurate(right)
    best = _cheapest(accurate, _sweeps(comparison))
    sentence = opening.format(best.name) + ", ".join(_reasons(best))
    return sentence + _crossover(best, accurate) + _warning(judged) + "."


def _nothing(comparison: Comparison, judged: Sequence[MethodRow]) -> str:
    if not judged:
        return "No method gave a derivative here, for the reasons that stand in its row."
    unclear = [row.message for row in judged if row.verdict == "inconclusive"]
    if unclear:
        why = Counter(unclear).most_common(1)[0][0] or comparison.reference.status
        return f"No method can be recommended here: {why}."
    return "Use none of these methods here: the referee contradicts every one."


def _accurate(rows: Sequence[MethodRow]) -> list[MethodRow]:
    least = min(_inaccuracy(row) for row in rows)
    return [row for row in rows if _inaccuracy(row) <= max(ACCURATE, ACCURATE * least)]


def _inaccuracy(row: MethodRow) -> float:
    """Return the error in ULPs; zero where no entry could be measured so."""
    ulps = row.max_ulp_error
    return 0.0 if ulps is None else math.inf if math.isnan(ulps) else ulps


def _sweeps(comparison: Comparison) -> dict[str, int]:
    """Return how many sweeps each mode takes: forward one per input, reverse one per output."""
    expression = comparison.expression
    return {
        "forward": sum(math.prod(variable.shape) for variable in expression.inputs),
        "reverse": sum(math.prod(variable.shape) for variable in expression.outputs),
    }


def _cheapest(rows: Sequence[MethodRow], sweeps: Mapping[str, int]) -> MethodRow:
    """Return the row that costs least; of those that cost alike the one with less to do."""
    costs = [_cost(row) for row in rows]
    least = min(costs)
    close = [row for row, cost in zip(rows, costs, strict=True) if cost <= NOISE * least]

    def work(row: MethodRow) -> tuple[float, int]:
        operations = math.inf if row.operations is None else row.operations
        return operations, sweeps.get(row.name, 0)

    return min(close or rows, key=work)


def _cost(row: MethodRow) -> float:
    """Return the seconds of `CALLS` derivatives; equal for all where nothing was timed."""
    if row.prepare_seconds is None or row.call_seconds is None:
        return 0.0
    return row.prepare_seconds + CALLS * row.call_seconds


def _reasons(row: MethodRow) -> list[str]:
    reasons = []
    if row.max_ulp_error is not None and math.isfinite(row.max_ulp_error):
        ulps = row.max_ulp_error
        error = f"{ulps:.1g}" if ulps < 100 else f"{ulps:.1e}"
        reasons.append("correctly rounded" if ulps <= 0.5 else f"within {error} ULP")
    if row.operations is not None:
        reasons.append(counted(row.operations, "operation"))
    elif row.function_evaluations:
        reasons.append(f"{counted(row.function_evaluations, 'evaluation')} of the function")
    if row.prepare_seconds is not None and row.call_seconds is not None:
        reasons.append(
            f"prepared in {_duration(row.prepare_seconds)} and called in "
            f"{_duration(row.call_seconds)}"
        )
    return reasons or ["the referee confirms it"]


def _crossover(best: MethodRow, accurate: Sequence[MethodRow]) -> str:
    """Say from how many calls on another accurate method costs less."""
    if best.call_seconds is None or best.prepare_seconds is None:
        return ""
    faster = [
        row
        for row in accurate
        if row.call_seconds is not None
        and row.prepare_seconds is not None
        and row.call_seconds * NOISE < best.call_seconds
    ]
    if not faster:
        return ""
    other = min(faster, key=lambda row: row.call_seconds or 0.0)
    assert other.call_seconds is not None
    assert other.prepare_seconds is not None
    gain = best.call_seconds - other.call_seconds
    calls = max(other.prepare_seconds - best.prepare_seconds, 0.0) / gain
    return (
        f"; from about {_rounded(calls)} calls on, {other.name} costs less "
        f"({_duration(other.call_seconds)} a call)"
    )


def _warning(judged: Sequence[MethodRow]) -> str:
    wrong = [row.name for row in judged if row.verdict == "disagree"]
    return f"; wrong here: {', '.join(wrong)}" if wrong else ""


def _rounded(number: float) -> str:
    """Return a number to one digit, as an estimate deserves."""
    if number < 1:
        return "1"
    magnitude = 10 ** math.floor(math.log10(number))
    return f"{round(number / magnitude) * magnitude:,.0f}"


def _duration(seconds: float) -> str:
    """Return seconds for people.

    Examples
    --------
    >>> _duration(1.234e-6), _duration(0.0456), _duration(12.0)
    ('1.2 µs', '46 ms', '12 s')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return (
                f"{seconds / scale:.2g} {unit}"
                if seconds < 100 * scale
                else (f"{seconds / scale:.0f} {unit}")
            )
    return f"{seconds * 1e9:.0f} ns"
