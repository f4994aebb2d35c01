"""The step-size sweep reproduces published tables, and its fits the orders of the formulas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from difflab.bench.accuracy import FORMULAS, LAYOUT, AccuracyCase, Fit, draw, fit, steps, tasks
from difflab.lab.sweep import SweepRow, run
from difflab.language import parse
from difflab.referee.referee import refer
from tests.bench.picture_checks import check_picture, texts

Read = Callable[[str], Any]


def made_case(text: str, *point: float) -> AccuracyCase:
    function = parse(text)
    truth = refer(function, list(point), timeout=100.0)
    return AccuracyCase(function, np.array(point), truth.jacobian, text, "here")


def quotient(name: str, text: str, x: float, h: float) -> float:
    values = parse(text).values
    return float(FORMULAS[name].quotient(values, np.array([x]), h)[0, 0])


@pytest.fixture
def figure_3(reference: Read, tmp_path: Path) -> list[SweepRow]:
    data = reference("baydin")["figure3"]
    text = data["formula"].removeprefix("f = ").partition(" evaluated")[0]
    assert "8*x*x" in text
    return run(tmp_path / "a.csv", LAYOUT, tasks(made_case(text, float(data["x0"])), steps(8)))


def test_figure_3_of_baydin_is_reproduced(figure_3: list[SweepRow], reference: Read) -> None:
    found = {(row["method"], row["step"]): row["absolute_error"] for row in figure_3}
    exact = float(reference("baydin")["figure3"]["exact"])
    for row in reference("baydin")["figure3"]["rows"]:
        # The errors are measured from the truth's nearest double, a rounding of half an ULP.
        for kind in ("forward", "central"):
            error = found[f"{kind} difference", float(row["h"])]
            assert error == pytest.approx(
                row[f"{kind}_abs_error"], rel=1e-12, abs=np.spacing(exact)
            )


def test_slopes_are_the_orders_of_the_formulas(figure_3: list[SweepRow]) -> None:
    for name, formula in FORMULAS.items():
        found = fit([row for row in figure_3 if row["method"] == name])
        assert found is not None
        assert found.slope == pytest.approx(formula.order, rel=0.01)


def test_floors_are_where_theory_has_them(figure_3: list[SweepRow], reference: Read) -> None:
    """Numerical Recipes 5.7: √ε for forward, ε^⅔ for central differences, ε for complex step."""
    theory = reference("finite_difference")["theory"]
    eps = float(theory["eps"])
    expected = {
        "forward difference": eps**0.5,
        "central difference": eps ** (2 / 3),
        "Richardson, column 1": eps ** (4 / 5),
        "complex step": eps,
    }
    for name, relative in expected.items():
        found = fit([row for row in figure_3 if row["method"] == name])
        assert found is not None
        assert relative / 30 < found.error / 9.066 < 30 * relative


def test_methods_with_their_own_step_reach_the_floor(figure_3: list[SweepRow]) -> None:
    own = {row["method"]: row["relative_error"] for row in figure_3 if row["step"] is None}
    bounds = {"symbolic": 1e-15, "finite-forward": 1e-7, "finite-central": 1e-10}
    bounds |= {"richardson": 1e-13, "complex-step": 1e-15, "forward": 1e-15, "reverse": 1e-15}
    for name, bound in bounds.items():
        assert 0 <= float(own[name] or 0) <= bound, name


def test_published_step_table_of_martins(reference: Read) -> None:
    case = reference("finite_difference")["martins"]
    for h, complex_step, forward, _, central in case["published_fd_table"]["rows"]:
        found = quotient("complex step", case["expr"], 1.5, h)
        assert found == pytest.approx(complex_step, abs=6e-6)
        if h < 1e-10:
            continue  # rounding noise differs between implementations of sin and exp
        assert quotient("forward difference", case["expr"], 1.5, h) == pytest.approx(
            forward, abs=2e-5
        )
        assert quotient("central difference", case["expr"], 1.5, h) == pytest.approx(
            central, abs=2e-5
        )


def test_published_forward_errors_of_martins(reference: Read) -> None:
    case = reference("finite_difference")["martins"]
    exact = float(case["derivatives_0_to_5"][1])
    published = case["published_errors_forward"]
    error = abs(quotient("forward difference", case["expr"], 1.5, 1e-4) - exact)
    assert error == pytest.approx(float(published["1e-4"]), rel=1e-3)
    assert abs(quotient("complex step", case["expr"], 1.5, 1e-20) - exact) <= 1.8e-15


def test_published_forward_differences_of_exp(reference: Read) -> None:
    case = reference("finite_difference")["exp_at_0"]
    for h, value in case["published_forward"].items():
        assert quotient("forward difference", "exp(x)", 0.0, float(h)) == pytest.approx(
            float(value), abs=1e-15
        )


def test_several_inputs_and_outputs_count_their_largest_error(tmp_path: Path) -> None:
    case = made_case("[x*y^2, sin(x)]", 0.5, 2.0)
    rows = run(tmp_path / "a.csv", LAYOUT, tasks(case, [1e-2]))
    (row,) = [row for row in rows if row["method"] == "forward difference"]
    # ∂(x y²)/∂y: the truncation error is exactly x·h = 5e-3, the largest of the four.
    assert row["absolute_error"] == pytest.approx(5e-3, rel=1e-9)
    assert row["relative_error"] == pytest.approx(5e-3 / 4.0, rel=1e-9)


def test_a_step_that_leaves_the_domain_is_a_row(tmp_path: Path) -> None:
    rows = run(tmp_path / "a.csv", LAYOUT, tasks(made_case("log(x)", 0.01), [0.1]))
    (row,) = [row for row in rows if row["method"] == "central difference"]
    assert (row["status"], row["absolute_error"]) == ("failed", None)
    assert row["message"] == "its derivative is not finite"


def test_complex_step_is_left_out_where_it_does_not_apply(tmp_path: Path) -> None:
    rows = run(tmp_path / "a.csv", LAYOUT, tasks(made_case("abs(x)", 2.0), [1e-3]))
    assert "complex step" not in {row["method"] for row in rows}
    (own,) = [row for row in rows if row["method"] == "complex-step"]
    assert own["absolute_error"] is None
    assert own["status"] != "ok"


def made(order: int, noise: float) -> list[SweepRow]:
    """Return rows of an ideal formula: h^order above, noise/h below."""
    return [
        {
            "step": h,
            "absolute_error": h**order + noise / h,
            "relative_error": h**order + noise / h,
        }
        for h in steps(8)
    ]


@pytest.mark.parametrize("order", [1, 2, 4])
def test_fit_recovers_the_law_it_is_given(order: int) -> None:
    found = fit(made(order, 1e-16))
    assert found is not None
    assert found.slope == pytest.approx(order, rel=0.02)
    # The least of h^p + ε/h is at h = (ε/p)^(1/(p+1)).
    best = (1e-16 / order) ** (1 / (order + 1))
    assert best / 3 < found.step < best * 3


def test_fit_of_nothing_is_nothing() -> None:
    assert fit([]) is None
    assert fit([{"step": 1e-3, "absolute_error": None, "relative_error": None}]) is None
    one = fit([{"step": 1e-3, "absolute_error": 1e-5, "relative_error": 1e-5}])
    assert one == Fit(None, 1e-3, 1e-5)


def test_steps_hit_the_powers_of_ten() -> None:
    assert {10.0**-k for k in range(1, 17)} <= {float(f"{h:.1e}") for h in steps(2)}
    assert len(steps(8)) == 4 * len(steps(2)) - 3


# --- the picture


def picture_rows(expression: str = "sin(x)") -> list[SweepRow]:
    common: SweepRow = {"expression": expression, "point": "x = 1", "status": "ok"}
    rows: list[SweepRow] = [
        {
            **common,
            "method": "central difference",
            "step": h,
            "absolute_error": h * h + 1e-16 / h,
            "relative_error": h * h + 1e-16 / h,
        }
        for h in steps(2)
    ]
    own: SweepRow = {**common, "method": "reverse", "step": None, "absolute_error": 0.0}
    refused: SweepRow = {**common, "method": "complex-step", "step": None, "status": "unsupported"}
    return [*rows, {**own, "relative_error": 0.0}, {**refused, "absolute_error": None}]


def test_the_picture_of_accuracy_in_every_format() -> None:
    check_picture(draw, picture_rows())


def test_accuracy_names_slope_and_floor() -> None:
    shown = texts(draw(picture_rows(), "svg"))
    assert "central difference" in shown
    assert "slope 2.00" in shown
    assert "reverse: 0" in shown
    assert "complex-step" not in shown


@pytest.mark.parametrize(
    "text", ["x^2 + $y_1$", "<script>alert(1)</script>", "a\x1b[31mb", "x" * 5000]
)
def test_text_stays_text(text: str) -> None:
    picture = draw(picture_rows(text), "svg").decode()
    assert "<script" not in picture
    assert "\x1b" not in picture
    assert len(picture) < 500_000
