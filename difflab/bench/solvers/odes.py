"""ODEs whose solution is differentiated: the right side, and the true derivative at the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from difflab.bench.solvers.problem import SolverProblem, Truth
from difflab.graph.control import prepared
from difflab.graph.function import Function, evaluate

DATA = Path(__file__).parent / "truths" / "odes.json"
"""Written by `tests.bench.ode_truths`."""


def judge(problem: SolverProblem) -> Truth:
    """Return the true derivative of a solution at the last time, which is data."""
    found = known()[problem.name]
    return Truth(
        np.array(found["value"], dtype=float),
        np.array(found["jacobian"], dtype=float),
        float(found["bound"]),
        "extrapolation with two precisions of 28 digits and more, which agree",
    )


@cache
def known() -> dict[str, Any]:
    """Return value, derivative and bound by the name of the problem."""
    found: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))
    return found


def right_side(problem: SolverProblem, library: Any) -> Callable[..., list[Any]]:
    """Return ``f(t, y, p)`` of lists of numbers of any library; `library` is an interpreter."""
    function: Function = problem.function
    names = {name: ("y", k) for k, name in enumerate(problem.start)}
    names |= {name: ("p", k) for k, name in enumerate(problem.at)}
    names["t"] = ("t", 0)
    run = prepared(function, library) if library is not None else None

    def rate(t: Any, y: Any, p: Any) -> list[Any]:
        parts = {"t": [t], "y": y, "p": p}
        values = [parts[names[name][0]][names[name][1]] for name in function.inputs]
        found = evaluate(function, values) if run is None else run(values)
        # A program that returns a list has one output of its elements.
        return [one for out in found for one in (out if np.ndim(out) else [out])]

    return rate
