r"""The true derivative of the solution of ODEs, by two high precisions that must agree.

The values at the end are computed by extrapolation of the modified midpoint rule (Gragg, Bulirsch,
Stoer; Hairer, Nørsett & Wanner, II.9) with FLINT's numbers of many digits, from values of the right
side alone, and differentiated by central differences. That is done with two
precisions, which have different numbers of columns, steps and differences, and must agree.
``python -m tests.bench.ode_truths`` writes it to ``truths/odes.json``.
"""

from __future__ import annotations

import json
import operator
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from difflab.balls.library import arb, precision
from difflab.bench.solvers.odes import DATA, known, right_side
from difflab.bench.solvers.problem import SolverProblem, problems
from difflab.core.primitive import Primitive
from difflab.errors import ConvergenceError
from difflab.graph.function import evaluate
from difflab.graph.interpreters import ElementInterpreter
from difflab.language import parse

__all__ = ["truth"]

DIGITS = ((30, 8), (38, 9))
"""The decimals to which each of the two solutions is computed, and the columns of extrapolation."""
AGREED = 1e-13
"""The relative difference of the two derivatives that is still an agreement."""

Rate = Callable[[Any, Sequence[Any]], list[Any]]


def truth(problem: SolverProblem) -> dict[str, Any]:
    """Compute the derivative with both precisions.

    Raises
    ------
    ConvergenceError
        They do not agree.
    """
    (_, one), (value, two) = (_derivative(problem, *settings) for settings in DIGITS)
    size = np.max(np.abs(two), axis=1, keepdims=True)
    bound = float(np.max(np.abs(one - two) / np.where(size == 0, 1, size)))
    if not bound < AGREED:
        raise ConvergenceError(f"the two derivatives of {problem.name} differ by {bound:.1e}")
    jacobian = [[float(entry) for entry in row] for row in two]
    return {"value": list(map(float, value)), "jacobian": jacobian, "bound": bound}


def _derivative(problem: SolverProblem, digits: int, columns: int) -> tuple[Any, Any]:
    """Return the values at the last time and their derivatives by the parameters."""
    with precision(int(3.33 * digits) + 40):
        at = [arb(value) for value in problem.at.values()]
        step = arb(2) ** -int(1.1 * digits)
        rows = []
        for k, value in enumerate(at):
            width = step * (abs(value) if value != 0 else 1)
            ends = []
            for sign in (1, -1):
                moved = [*at[:k], value + sign * width, *at[k + 1 :]]
                ends.append(_solved(problem, moved, digits, columns))
            pairs = zip(*ends, strict=True)
            rows.append([(up - down) / (2 * width) for up, down in pairs])
        return _solved(problem, at, digits, columns), np.array(rows, dtype=object).T


def _solved(problem: SolverProblem, p: list[Any], digits: int, columns: int) -> list[Any]:
    """Return the solution at the last time; breaks of f lie between two integrations."""
    rate = right_side(problem, _Numbers())
    first, last = (arb(end) for end in problem.named("between"))
    y = [arb(value) for value in problem.start.values()]
    times = [first, *_breaks(problem, p), last]
    for start, end in pairwise(times):
        y = _integrated(lambda t, y: rate(t, y, p), start, end, y, 10.0**-digits, columns)
    return y


def _breaks(problem: SolverProblem, p: list[Any]) -> list[Any]:
    """Return the times at which f has a kink: an expression of the parameters."""
    text = problem.header.get("breaks")
    if text is None:
        return []
    expression, known = parse(text), dict(zip(problem.at, p, strict=True))
    found = evaluate(expression, [known[name] for name in expression.inputs], _Numbers())
    return [one.mid() for one in found]


def _integrated(
    rate: Rate, start: Any, end: Any, y: list[Any], tolerance: float, columns: int
) -> list[Any]:
    t, h = start, (end - start) / 100
    while t < end:
        last = float(t + h) >= float(end)
        h = (end - t).mid() if last else h
        state, error = _extrapolated(rate, t, y, h, columns)
        size = 1 + max(abs(float(one)) for one in y)
        ratio = error / (tolerance * size)
        if ratio <= 1:
            t, y = (end if last else (t + h).mid()), [one.mid() for one in state]
        factor = (0.1 / max(ratio, 1e-20)) ** (1 / (2 * columns))
        h = (h * min(max(factor, 0.2), 3.0)).mid()
    return y


def _extrapolated(
    rate: Rate, t: Any, y: list[Any], h: Any, columns: int
) -> tuple[list[Any], float]:
    """Return the state after a step and the difference of the last two columns."""
    slope = rate(t, y)
    rows: list[list[Any]] = []
    for k in range(1, columns + 1):
        row = [_midpoint(rate, t, y, h, slope, 2 * k)]
        for j in range(1, k):
            weight = 1 / ((arb(k) / (k - j)) ** 2 - 1)
            pairs = zip(row[j - 1], rows[-1][j - 1], strict=True)
            row.append([a + (a - b) * weight for a, b in pairs])
        rows.append(row)
    best, other = rows[-1][-1], rows[-1][-2]
    return best, max(abs(float((a - b).mid())) for a, b in zip(best, other, strict=True))


def _midpoint(rate: Rate, t: Any, y: list[Any], h: Any, slope: list[Any], steps: int) -> list[Any]:
    """Return the state after a step by the modified midpoint rule, smoothed."""
    part = h / steps
    before, state = y, [a + part * b for a, b in zip(y, slope, strict=True)]
    for k in range(1, steps):
        now = rate(t + k * part, state)
        before, state = state, [a + 2 * part * b for a, b in zip(before, now, strict=True)]
    now = rate(t + h, state)
    pairs = zip(before, state, now, strict=True)
    return [(a + b + part * c) / 2 for a, b, c in pairs]


class _Numbers(ElementInterpreter):
    """Interpreter whose values are FLINT's numbers; a condition is that of their midpoints."""

    def constant(self, value: Any, name: str | None) -> Any:
        """Return a number exactly."""
        return arb.pi() if name == "pi" else arb.const_e() if name else arb(value)

    def _scalar(self, primitive: Primitive) -> Callable[..., Any]:
        forms: dict[str, Callable[..., Any]] = {
            "add": operator.add,
            "subtract": operator.sub,
            "multiply": operator.mul,
            "divide": operator.truediv,
            "negative": operator.neg,
            "power": operator.pow,
            "square": lambda x: x * x,
            "absolute": abs,
            "maximum": lambda a, b: a if float(a) > float(b) else b,
        }
        return forms.get(primitive.name) or operator.methodcaller(primitive.name)


def main(names: Sequence[str]) -> None:
    """Compute the truths of some problems, all where none is named, and write them."""
    truths = dict(known()) if DATA.exists() else {}
    for problem in problems():
        if problem.kind == "ode" and (problem.name in names or not names):
            truths[problem.name] = truth(problem)
            sys.stdout.write(f"{problem.name}: {truths[problem.name]['bound']:.1e}\n")
            sys.stdout.flush()
            DATA.parent.mkdir(exist_ok=True)
            text = json.dumps(dict(sorted(truths.items())), indent=1)
            DATA.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
