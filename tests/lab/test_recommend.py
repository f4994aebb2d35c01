"""Which method is recommended: right, exact, cheap; and what the clock cannot tell apart."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from difflab.lab.compare import compare
from difflab.lab.recommend import recommend
from difflab.lab.record import Comparison, Expression, MethodRow, ReferenceRow, Status, Variable
from difflab.methods.protocol import Family


def row(name: str, ulps: float | None, prepare: float, call: float, **more: Any) -> MethodRow:
    fields: dict[str, Any] = {
        "family": Family.AUTOMATIC,
        "status": Status.OK,
        "verdict": "agree",
        "max_ulp_error": ulps,
        "prepare_seconds": prepare,
        "call_seconds": call,
    }
    return MethodRow(name=name, **(fields | more))


def advice(*rows: MethodRow) -> str:
    comparison = Comparison(
        expression=Expression("x + y", (Variable("x"), Variable("y")), (Variable("f"),)),
        point={},
        order=1,
        value=np.zeros(1),
        reference=ReferenceRow(np.zeros((1, 1)), 50, 0.0, "smooth"),
        methods=rows,
    )
    return recommend(comparison)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # Accuracy comes before speed, and being right before both.
        ([row("fast", 1e8, 0.0, 1e-9), row("exact", 1.0, 0.0, 1e-3)], "Use exact here"),
        ([row("wrong", 0.0, 0.0, 0.0, verdict="disagree"), row("b", 1.0, 1, 1)], "Use b here"),
        # Correct rounding is not worth a thousand times the cost where ten digits are right.
        (
            [row("reverse", 100.0, 1e-6, 4e-5), row("exact", 0.4, 0.0, 0.4)],
            "Use reverse here: within 100 ULP, prepared in 1.00 µs and called in 40.0 µs; "
            "exact is correctly rounded, in 400 ms a call.",
        ),
        # A thousand calls decide, and preparing counts.
        ([row("a", 1.0, 1.0, 1e-6), row("b", 1.0, 0.0, 1e-4)], "Use b here"),
        ([row("a", 1.0, 1.0, 1e-6), row("b", 1.0, 0.0, 1e-2)], "Use a here"),
        # Where times are alike, operations decide.
        (
            [row("a", 1.0, 0.0, 1e-4, operations=9), row("b", 1.0, 0.0, 1.2e-4, operations=5)],
            "Use b here",
        ),
        # Where these are too, a fixed order, in which other packages' methods are the last.
        (
            [row(m, 1.0, 0.0, 1e-4, operations=4) for m in ("plug-in", "forward", "reverse")],
            "Use reverse here",
        ),
        ([row(m, 1.0, 0.0, 1e-4) for m in ("b", "a", "symbolic")], "Use symbolic here"),
        ([row(m, 1.0, 0.0, 1e-4) for m in ("b", "a")], "Use b here"),
        ([row("a", 1.0, 1.0, 1e-6, verdict="inconclusive")], "No method can be recommended"),
        ([row("a", 1.0, 1.0, 1e-6, verdict="disagree")], "Use none of these"),
    ],
)
def test_recommendations(rows: list[MethodRow], expected: str) -> None:
    sentence = advice(*rows)
    assert sentence.startswith(expected)
    assert sentence.endswith(".")
    assert len(re.findall(r"\.(?:\s|$)", sentence)) == 1


def disturbed(name: str, times: list[float], **more: Any) -> MethodRow:
    """Return a row whose calls took these times, its preparing none."""
    return row(name, 1.0, 0.0, min(times), samples=tuple(times), **more)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # The slower one's fastest sample lies within the spread of the faster: a tie.
        ([1e-6, 4e-6, 4e-6, 4e-6], [3e-6, 3e-6, 3e-6, 3e-6], "Use b here"),
        # It lies above: no tie, whatever the operations are.
        ([1e-6, 2e-6, 2e-6, 9e-6], [5e-6, 5e-6, 5e-6, 5e-6], "Use a here"),
        # So it does where its own samples spread as far: a tie.
        ([1e-6, 1e-6, 1e-6, 1e-6], [3e-6, 9e-6, 9e-6, 9e-6], "Use b here"),
        # A difference that neither one's samples show is still within what cannot be told.
        ([1e-6, 1e-6, 1e-6, 1e-6], [1.4e-6, 1.4e-6, 1.4e-6, 1.4e-6], "Use b here"),
    ],
)
def test_what_is_within_the_measured_spread_is_a_tie(
    first: list[float], second: list[float], expected: str
) -> None:
    sentence = advice(disturbed("a", first, operations=9), disturbed("b", second, operations=5))
    assert sentence.startswith(expected)
    assert ("within the measured spread" in sentence) == (expected == "Use b here")


def test_a_tie_says_what_decided() -> None:
    times = [1e-6, 2e-6, 3e-6]
    rows = [disturbed("reverse", times, operations=4), disturbed("forward", times, operations=4)]
    assert advice(*rows).endswith(
        "; forward ties within the measured spread of 1.00 ms to 2.50 ms for 1,000 derivatives, "
        "and a fixed order decides."
    )
    rows.append(disturbed("symbolic", times, operations=3))
    assert advice(*rows).startswith("Use symbolic here")
    assert advice(*rows).endswith("and it has more operations.")
    unknown = disturbed("plug-in", times)
    assert advice(rows[0], unknown).endswith("and its operation count is unknown.")
    untimed = [replace(row, call_seconds=None, samples=()) for row in rows[:2]]
    assert advice(*untimed).endswith(
        "; forward ties, since nothing was timed, and a fixed order decides."
    )


def test_noise_does_not_change_what_is_recommended() -> None:
    """Equal programs whose samples are disturbed every second time, by up to 20 times as much."""
    random = np.random.default_rng(0)

    def noisy(name: str, seconds: float) -> MethodRow:
        slowed = np.where(random.random(15) < 0.5, random.uniform(1, 20, 15), 1.0)
        return disturbed(name, (seconds * slowed).tolist(), operations=4)

    for _ in range(300):
        rows = [noisy("symbolic", 1.3e-6), noisy("forward", 1e-6), noisy("reverse", 1e-6)]
        sentence = advice(*rows)
        assert sentence.startswith("Use reverse here")
        assert "; forward ties within the measured spread" in sentence


def test_a_slow_start_that_pays_is_mentioned() -> None:
    # 1 s more to prepare, 0.1 ms less a call: ten thousand calls.
    sentence = advice(row("quick", 1.0, 0.0, 1.01e-4), row("late", 1.0, 1.0, 1e-6))
    assert sentence.startswith("Use quick here")
    assert "from about 10,000 calls on, late costs less (1.00 µs a call)" in sentence


@pytest.mark.parametrize(("at", "shown"), [(0.0, "0"), (-1.0, "-1")])
def test_at_a_kink_the_value_is_stated(at: float, shown: str) -> None:
    found = compare("abs(x)", {"x": 0.0}, methods=["reverse"], timing=False)
    (row,) = found.methods
    other = replace(found, methods=(replace(row, jacobian=np.array([[at]])),))
    sentence = recommend(other)
    assert sentence.startswith(
        f"The derivative does not exist here; reverse gives {shown}, between the one-sided"
        " derivatives: "
    )


def test_of_many_elements_at_a_kink_the_first_are_stated() -> None:
    text = "x: [6]; sum(abs(x))"
    found = compare(text, {"x": np.zeros(6)}, methods=["reverse"], timing=False)
    assert "reverse gives (0, 0, 0, 0, …), between" in recommend(found)
