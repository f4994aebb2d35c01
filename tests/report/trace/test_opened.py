"""Evaluation traces with calls closed and loops opened."""

from __future__ import annotations

import json
from typing import Any

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError
from difflab.report.trace import lines
from difflab.report.trace.steps import EvaluationTrace
from difflab.report.trace.text import latex, table
from difflab.report.trace.trace import trace

AT = {"x": 0.5, "w": 2.0}


def gate(x: Any, w: Any) -> Any:
    return 1 / (1 + np.exp(-x * w))


def cell(x: Any, w: Any) -> Any:
    opened = gate(x, w)
    return x * opened + np.tanh(opened), opened * w


def swish(x: Any, w: Any) -> Any:
    return x * gate(x, w)


def chained(x: Any, w: Any) -> Any:
    a, b = cell(*cell(x, w))
    return a - b


def formulas(steps: EvaluationTrace) -> list[str]:
    return [step.formula for step in steps.primal]


def test_a_closed_call_is_one_step_and_one_contribution_to_each_argument() -> None:
    steps = trace(dl.trace(swish, 0.5, 2.0), AT, open="none")
    assert formulas(steps) == ["x", "w", "gate(v₋₁, v₀)", "v₋₁ × v₁"]
    assert steps.tangents is not None
    assert steps.adjoints is not None
    slope_x = float(mpmath.diff(lambda x: 1 / (1 + mpmath.exp(-2 * x)), 0.5))
    slope_w = float(mpmath.diff(lambda w: 1 / (1 + mpmath.exp(-w / 2)), 2))
    tangent = steps.tangents.head[2]
    assert tangent.formula == "∂v₁/∂v₋₁ v̇₋₁ + ∂v₁/∂v₀ v̇₀"
    assert tangent.value == pytest.approx(slope_x, rel=1e-14)
    through_gate = [row for row in steps.adjoints if row.partial.startswith("v̄₁ ∂v₁")]
    assert [row.shown for row in through_gate] == ["v̄₋₁", "v̄₀"]
    assert through_gate[0].contribution == pytest.approx(0.5 * slope_x, rel=1e-14)
    assert through_gate[1].contribution == pytest.approx(0.5 * slope_w, rel=1e-14)
    assert [row.accumulates for row in through_gate] == [True, False]


def test_a_closed_call_has_a_step_for_each_result() -> None:
    steps = trace(dl.trace(chained, 0.5, 2.0), AT, open="none")
    called = ["cell(v₋₁, v₀)", "cell(v₋₁, v₀)", "cell(v₁, v₂)", "cell(v₁, v₂)"]
    assert formulas(steps)[2:] == [*called, "v₃ − v₄"]
    assert steps.adjoints is not None
    assert [row.partial for row in steps.adjoints][3:] == [
        "v̄₃ ∂v₃/∂v₁ + v̄₄ ∂v₄/∂v₁",
        "v̄₃ ∂v₃/∂v₂ + v̄₄ ∂v₄/∂v₂",
        "v̄₁ ∂v₁/∂v₋₁ + v̄₂ ∂v₂/∂v₋₁",
        "v̄₁ ∂v₁/∂v₀ + v̄₂ ∂v₂/∂v₀",
    ]


@pytest.mark.parametrize("opened", ["none", "cell", ["cell", "gate"], "all"])
def test_what_is_opened_changes_no_derivative(opened: Any) -> None:
    def values(x: Any, w: Any) -> Any:
        for _ in range(2):
            opened = 1 / (1 + mpmath.exp(-x * w))
            x, w = x * opened + mpmath.tanh(opened), opened * w
        return x - w

    steps = trace(dl.trace(chained, 0.5, 2.0), AT, open=opened)
    found = dict(steps.gradient)
    for place, name in enumerate(AT):
        order = tuple(int(place == k) for k in range(2))
        assert found[name] == pytest.approx(float(mpmath.diff(values, (0.5, 2), order)), rel=1e-13)
    assert dict(steps.directional)["y"] == pytest.approx(found["x"], rel=1e-13)


def test_a_call_in_an_opened_call_stays_closed() -> None:
    steps = trace(dl.trace(chained, 0.5, 2.0), AT, open="cell", mode="reverse")
    assert [text for text in formulas(steps) if "gate" in text] == ["gate(v₋₁, v₀)", "gate(v₅, v₄)"]
    assert {step.call for step in steps.primal if "gate" in step.formula} == {"cell"}


def test_an_opened_loop_has_the_steps_of_all_turns() -> None:
    logistic = dl.parse("iterate(y = x; 3 times; 4*y*(1 - y))")
    assert len(formulas(trace(logistic, {"x": 0.3}))) < 6
    steps = trace(logistic, {"x": 0.3}, open="scan")
    y, expected = 0.3, []
    for _ in range(3):
        y = 4 * y * (1 - y)
        expected.append(y)
    assert [step.value for step in steps.primal if step.value in expected] == expected
    assert steps.outputs == (("y", expected[-1]),)

    def third(x: Any) -> Any:
        for _ in range(3):
            x = 4 * x * (1 - x)
        return x

    assert dict(steps.gradient)["x"] == pytest.approx(float(mpmath.diff(third, 0.3)), rel=1e-13)


def test_a_loop_over_arrays_opens_to_its_elements() -> None:
    def summed(w: Any) -> Any:
        return dl.scan(lambda c, x: (np.tanh(c * w) + x, c[0] * x), np.ones(2), np.arange(3.0))

    f = dl.trace(lambda w: np.sum(summed(w)[1]) + summed(w)[0][1], 0.5)
    closed, opened = trace(f, {"w": 0.5}), trace(f, {"w": 0.5}, open="all")
    assert not any("scan" in text for text in formulas(opened))
    assert dict(opened.outputs)["y"] == pytest.approx(dict(closed.outputs)["y"], rel=1e-15)
    assert dict(opened.gradient)["w"] == pytest.approx(dict(closed.gradient)["w"], rel=1e-14)


def test_an_opened_branch_shows_the_function_that_is_chosen() -> None:
    f = dl.trace(lambda x: dl.cond(x > 0, np.sqrt, lambda x: 0 * x + 3 * x, x), 1.0)
    positive, negative = (trace(f, {"x": x}, open="cond") for x in (4.0, -4.0))
    assert formulas(positive) == ["x", "√v₀"]
    assert dict(positive.gradient) == {"x": 0.25}
    assert "√v₀" not in formulas(negative)
    assert dict(negative.gradient) == {"x": 3.0}


def test_a_loop_with_a_condition_opens_to_the_turns_of_the_point() -> None:
    f = dl.parse("iterate(y = x; while y < 100; y*y*a)")
    for x, turns in ((3.0, 3), (50.0, 1), (200.0, 0)):
        steps = trace(f, {"x": x, "a": 1.0}, open="all", mode="reverse")
        assert len(formulas(steps)) == 2 + 2 * turns, (x, turns)
        assert dict(steps.gradient)["x"] == 2**turns * x ** (2**turns - 1)
    back = trace(dl.gradient(f), {"x": 3.0, "a": 1.0}, open="all", mode="reverse")
    assert not any("while_loop" in text for text in formulas(back))
    assert back.outputs[0][1] == pytest.approx([7 * 3.0**8, 8 * 3.0**7])
    assert dict(back.gradient)["x"] == 56 * 3.0**7


def test_what_cannot_be_opened_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    f = dl.parse("iterate(y = x; 3 times; 4*y*(1 - y))")
    with pytest.raises(InputError, match="nothing in the graph that can be opened is called 'gat'"):
        trace(f, {"x": 0.3}, open="gat")
    monkeypatch.setattr(lines, "LARGEST", 8)
    with pytest.raises(InputError, match="'scan' has too many turns to be opened here"):
        trace(f, {"x": 0.3}, open="scan")


def test_a_custom_function_keeps_its_derivative() -> None:
    class Seven(dl.CustomFunction):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * x

        @staticmethod
        def backward(ctx: Any, bar: Any) -> Any:
            return 7.0 * bar

    f = dl.trace(lambda x: Seven.apply(x) + x, 2.0)
    for opened in (None, "all", "none"):
        steps = trace(f, {"x": 2.0}, open=opened, mode="reverse")
        assert dict(steps.gradient) == {"x": 8.0}


def test_every_format_shows_the_closed_call() -> None:
    steps = trace(dl.trace(swish, 0.5, 2.0), AT, open="none")
    assert "v₁ = gate(v₋₁, v₀)" in table(steps)
    assert r"v_{1} = \mathrm{gate}(v_{-1}, v_{0})" in latex(steps)
    assert json.loads(steps.to_json())["primal"][2]["formula"] == "gate(v₋₁, v₀)"


@pytest.mark.parametrize("opened", ["none", "cell", "all"])
def test_adjoints_are_the_sums_of_the_contributions_that_are_shown(opened: str) -> None:
    steps = trace(dl.trace(chained, 0.5, 2.0), AT, open=opened)
    assert steps.adjoints is not None
    sums: dict[str, float] = {}
    for row in steps.adjoints:
        assert row.accumulates == (row.name in sums)
        sums[row.name] = sums.get(row.name, 0.0) + row.contribution
        assert row.value == pytest.approx(sums[row.name], rel=1e-13)
