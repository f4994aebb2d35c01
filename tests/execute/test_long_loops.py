"""Loops of many turns: machine code where NumPy would take a turn at a time."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.bench.accuracy import FORMULAS, AccuracyCase, _fixed
from difflab.execute.long_loops import LongLoops, interpreter_of, values_of
from difflab.graph.control import Loop, WhileLoop
from difflab.graph.counts import LONG
from difflab.graph.function import Function
from difflab.lab.compare import compare
from difflab.lab.study.cases import StudyCase
from difflab.lab.study.judging import timed
from difflab.methods.protocol import Problem
from difflab.report.trace.trace import trace

pytest.importorskip("llvmlite", reason="long loops are machine code, which needs llvmlite")

TURNS = 1_000_000
RELAXED = f"iterate(y = x; {TURNS} times; y + (1 - y)/{TURNS})"
"""y ← y + (1 − y)/N, of which y_N = 1 − (1 − x)·(1 − 1/N)^N."""
LEFT = math.exp(TURNS * math.log1p(-1 / TURNS))
CHAOS = f"iterate(y = x; {TURNS} times; 4*y*(1 - y))"


@pytest.fixture
def no_long_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a loop of many turns fail that is evaluated by NumPy's kernels."""
    run = Loop.run

    def short(self: Loop, *args: Any) -> Any:
        assert self.steps * len(self.body.graph) < LONG, "a long loop ran turn by turn"
        return run(self, *args)

    monkeypatch.setattr(Loop, "run", short)


def test_values_are_those_of_the_closed_form(no_long_runs: None) -> None:
    f = dl.parse(RELAXED)
    points = np.array([[0.0], [0.25], [1.0], [3.0]])
    expected = 1 - (1 - points) * LEFT
    assert np.allclose(values_of(f)(points), expected, rtol=1e-10)
    assert np.allclose(values_of(f)(points[1]), expected[1], rtol=1e-10)


def test_a_short_loop_is_left_to_the_kernels() -> None:
    assert not isinstance(interpreter_of(dl.parse("iterate(y = x; 9 times; y*y)")), LongLoops)


def test_complex_points_and_nan_are_the_kernels() -> None:
    f = dl.parse(f"iterate(y = x; {LONG} times; y*0.9999999)")
    factor = 0.9999999**LONG
    found = values_of(f)(np.array([[2.0 + 3.0j]]))
    assert np.allclose(found, (2 + 3j) * factor)
    assert np.isnan(values_of(f)(np.array([np.nan]))).all()


def test_a_trace_runs_no_long_loop_turn_by_turn(no_long_runs: None) -> None:
    steps = trace(dl.parse(RELAXED), {"x": 0.25})
    assert dict(steps.gradient)["x"] == pytest.approx(LEFT, rel=1e-9)
    assert steps.directional[0][1] == pytest.approx(LEFT, rel=1e-9)
    assert steps.outputs[0][1] == pytest.approx(1 - 0.75 * LEFT, rel=1e-9)


def test_a_while_loop_is_compiled_once_it_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any) -> Any:
        raise AssertionError("a long loop ran turn by turn")

    monkeypatch.setattr(WhileLoop, "run", refused)
    f = dl.parse("iterate(y = x; while y > 0.5; y*0.99999)")
    (value,) = dl.evaluate(f, [1.0], interpreter_of(f))
    turns = math.ceil(math.log(0.5) / math.log(0.99999))
    assert float(value) == pytest.approx(0.99999**turns, rel=1e-9)


def test_compare_of_a_smooth_loop_runs_no_turn_in_python(no_long_runs: None) -> None:
    methods = ["finite-central", "forward", "reverse"]
    found = compare(RELAXED, {"x": 0.25}, methods=methods, timing=False)
    for row in found.methods:
        assert row.jacobian is not None
        assert row.jacobian[0, 0] == pytest.approx(LEFT, rel=1e-6)
        assert row.verdict == "inconclusive"  # the referee needs more time
        assert "takes longer than the time limit of 10 s, about" in row.message
        assert "slope" not in row.message


def test_compare_says_that_a_chaotic_recurrence_has_no_slope(no_long_runs: None) -> None:
    found = compare(CHAOS, {"x": 0.3}, methods=["forward"], timing=False)
    (row,) = found.methods
    assert row.verdict == "inconclusive"
    assert "one unit in the last place of the inputs changes the value by" in row.message
    assert row.message.endswith("not along a slope")


def test_a_comparison_over_a_domain_gives_methods_values_that_are_machine_code(
    no_long_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Seen(Exception):
        pass

    def seen(function: Function, **options: Any) -> None:
        raise Seen(Problem.of(function, **options).values)

    monkeypatch.setattr("difflab.lab.domain.compare.Problem", SimpleNamespace(of=seen))
    with pytest.raises(Seen) as caught:
        dl.compare(RELAXED, over={"x": (0.0, 1.0)}, points=2, methods=["finite-central"])
    (values,) = caught.value.args
    assert values(np.array([0.25])) == pytest.approx(1 - 0.75 * LEFT, rel=1e-9)


def test_times_of_a_study_run_no_turn_in_python(no_long_runs: None) -> None:
    case = StudyCase(RELAXED, {"x": 0.25}, ("finite-central", "reverse"), RELAXED, repeats=1)
    assert all(times.blocks for times in timed(case, case.methods).values())


def test_the_benchmark_of_accuracy_runs_no_turn_in_python(no_long_runs: None) -> None:
    point = np.array([0.25])
    case = AccuracyCase(dl.parse(RELAXED), point, np.array([[LEFT]]), RELAXED, "x=0.25")
    assert _fixed(case, FORMULAS["central difference"], 1e-6)["absolute_error"] < 1e-7
