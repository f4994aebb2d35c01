"""Sixty traps: what each method promises at the places where derivatives go wrong.

Four things are promised now: the referee is right everywhere; the plain engine is right wherever
double precision leaves room for it; where the formula itself overflows or cancels its answer is
never silently called right; and the rows of the table that exist for such cases are right.
Rewriting a formula so that it does not cancel is another matter (stabilisation).
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from difflab.autodiff import gradient
from difflab.errors import DomainError
from difflab.graph.counts import count
from difflab.graph.function import Function
from difflab.lab.compare import compare
from difflab.language import parse
from difflab.referee.referee import Reference, refer
from tests.support.rows import for_each

DATA = Path(__file__).parents[1] / "data"
TRAPS: dict[str, Any] = {
    case["id"].removeprefix("trap_"): case for case in json.loads((DATA / "traps.json").read_text())
}

# No derivative, or none in both directions: what the referee finds instead.
ROUGH = {
    "sqrt_at0": "singular",
    "cbrt_0": "singular",
    "sqrt_sq_at0": "kink",
    "abs_pos0": "kink",
    "relu_at0": "kink",
    "where_log": "jump",
    "atan2_0_0": "jump",
    "logneg": "undefined",
    "log_at0": "undefined",
    "removable": "undefined",
}
# The formula overflows or cancels in doubles; the verdict must not be a silent "agree".
BEYOND_DOUBLES = {
    "norm_underflow",
    "lse_1000",
    "lse_5vars",
    "sigmoid_-800",
    "sigmoid_alt_800",
    "logcosh_1000",
    "exp_ratio",
    "1mcos_0.01",
    "1mcos_1e-08",
    "xmsin_0.0001",
    "tan_sin",
    "asinh_formula",
    "poly7",
}
# One mode's order of multiplication underflows, the other's does not.
ONE_MODE = {"sigmoid_-700": "forward"}
# The value's formula cancels, its derivative's does not.
VALUE_CANCELS = {"log1px_1e-05", "log1px_1e-17", "log_ratio"}
# What the engine gives where there is no derivative; all are among the accepted answers.
CONVENTION = {
    "sqrt_at0": math.inf,
    "cbrt_0": math.inf,
    "sqrt_sq_at0": math.nan,
    "abs_pos0": 0.0,
    "relu_at0": 0.0,
    "where_log": 0.0,
    "atan2_0_0": math.nan,
    "logneg": math.nan,
    "log_at0": math.inf,
    "removable": math.nan,
}
EXACT = [
    name for name in TRAPS if name not in ROUGH and name not in BEYOND_DOUBLES | ONE_MODE.keys()
]
MODES = ("forward", "reverse")


def posed(name: str) -> tuple[Function, NDArray[np.float64], NDArray[np.float64]]:
    """Return the function, the point, and the true gradient (nan where there is none)."""
    case = TRAPS[name]
    function = parse(case["expr"])
    point = np.array([float(case["point"][variable]) for variable in function.inputs])
    truth = [case["grad"][variable] for variable in function.inputs]
    return function, point, np.array([math.nan if v == "undefined" else float(v) for v in truth])


def refereed(name: str) -> Reference:
    function, point, _ = posed(name)
    return refer(function, point.tolist(), timeout=30.0)


def verdicts(name: str) -> dict[str, str]:
    """Return the verdict on each mode, or how the comparison was refused."""
    case = TRAPS[name]
    at = {variable: float(value) for variable, value in case["point"].items()}
    try:
        result = compare(case["expr"], at=at, methods=list(MODES), timing=False)
    except DomainError as error:
        return dict.fromkeys(MODES, f"refused: {error.message}")
    return {row.name: str(row.verdict) for row in result.methods}


def test_every_trap_has_its_expectation() -> None:
    assert len(TRAPS) == 60
    groups = [set(ROUGH), BEYOND_DOUBLES, set(ONE_MODE), set(EXACT)]
    assert sum(map(len, groups)) == 60
    assert set.union(*groups) == set(TRAPS)
    assert set(CONVENTION) == set(ROUGH)
    assert set(EXACT) >= VALUE_CANCELS


# --- the referee ------------------------------------------------------------------------------


@for_each("name", sorted(set(TRAPS) - set(ROUGH)))
def test_the_referee_is_right(name: str) -> None:
    _, _, truth = posed(name)
    found = refereed(name)
    assert found.status == "smooth"
    np.testing.assert_allclose(found.jacobian.ravel(), truth, rtol=4e-16, atol=5e-324)
    value = float(TRAPS[name]["value"])
    assert float(found.value[0]) == pytest.approx(value, rel=4e-16, abs=5e-324)


@pytest.mark.parametrize("name", ROUGH)
def test_the_referee_sees_what_is_wrong_with_the_point(name: str) -> None:
    assert refereed(name).status == ROUGH[name]


@pytest.mark.parametrize(
    ("name", "left", "right"), [("abs_pos0", -1, 1), ("relu_at0", 0, 1), ("sqrt_sq_at0", -1, 1)]
)
def test_the_referee_reports_both_sides_of_a_kink(name: str, left: int, right: int) -> None:
    found = refereed(name)
    assert (float(found.left[0, 0]), float(found.right[0, 0])) == (left, right)


# --- the engine -------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@for_each("name", EXACT)
def test_the_engine_is_right(name: str, mode: str) -> None:
    function, point, truth = posed(name)
    found = gradient(function, mode).values(point)
    np.testing.assert_allclose(found, truth, rtol=1e-15, atol=5e-324)
    if name not in VALUE_CANCELS:
        value = float(TRAPS[name]["value"])
        np.testing.assert_allclose(function.values(point), [value], rtol=1e-15, atol=5e-324)


@for_each("name", EXACT)
def test_what_is_right_is_called_right(name: str) -> None:
    assert set(verdicts(name).values()) == {"agree"}


@pytest.mark.parametrize("name", CONVENTION)
@pytest.mark.parametrize("mode", MODES)
def test_the_engine_keeps_its_conventions(name: str, mode: str) -> None:
    function, point, _ = posed(name)
    found = gradient(function, mode).values(point)
    np.testing.assert_array_equal(found, np.full(function.n, CONVENTION[name]))


@pytest.mark.parametrize("name", ["abs_pos0", "relu_at0", "where_log"])
def test_a_convention_is_called_one(name: str) -> None:
    assert set(verdicts(name).values()) == {"convention"}


@pytest.mark.parametrize("name", ["logneg", "log_at0", "removable"])
def test_an_undefined_point_is_refused_by_name(name: str) -> None:
    primitive = "divide" if name == "removable" else "log"
    assert all(
        found.startswith(f"refused: {primitive} is undefined") for found in verdicts(name).values()
    )


@pytest.mark.parametrize("name", ["sqrt_sq_at0", "atan2_0_0"])
def test_not_a_number_is_never_called_right(name: str) -> None:
    assert not set(verdicts(name).values()) & {"agree", "convention"}


# --- beyond double precision ------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(BEYOND_DOUBLES))
def test_what_the_formula_loses_is_not_called_right(name: str) -> None:
    function, point, truth = posed(name)
    found = verdicts(name)
    for mode in MODES:
        answer = gradient(function, mode).values(point)
        right = np.allclose(answer, truth, rtol=1e-12, atol=5e-324)
        assert not right, "this trap is mastered now: move it"
        refused = found[mode].startswith("refused: ") and "overflows" in found[mode]
        assert refused or found[mode] in ("disagree", "inconclusive")


@pytest.mark.parametrize("name", ONE_MODE)
def test_one_mode_is_right_and_the_other_is_found_out(name: str) -> None:
    function, point, truth = posed(name)
    found = verdicts(name)
    for mode in MODES:
        right = np.allclose(gradient(function, mode).values(point), truth, rtol=1e-14, atol=0)
        assert right == (mode == ONE_MODE[name])
        assert found[mode] == ("agree" if right else "disagree")


# The table's own rows for what the formulas above lose: (text, point, value, derivatives).
ROWS = [
    ("softplus(x)", {"x": 800.0}, "800", {"x": "1"}),
    ("softplus(x)", {"x": -800.0}, "trap softplus_m800", {}),
    ("sigmoid(x)", {"x": -800.0}, "trap sigmoid_-800", {}),
    ("sigmoid(x)", {"x": -700.0}, "trap sigmoid_-700", {}),
    ("sigmoid(x)", {"x": 36.0}, "trap sigmoid_36", {}),
    ("sigmoid(x)", {"x": 800.0}, "trap sigmoid_alt_800", {}),
    ("log1p(x)", {"x": 1e-17}, "trap log1px_1e-17", {}),
    ("log1p(x)", {"x": 1e-05}, "trap log1px_1e-05", {}),
    ("hypot(x, y)", {"x": 1e-200, "y": 1e-200}, "trap norm_underflow", {}),
    ("hypot(x, y)", {"x": 3.0, "y": 4.0}, "trap norm_3_4", {}),
    ("asinh(x)", {"x": -1e6}, "trap asinh_formula", {}),
    ("2*atanh(x)", {"x": 1e-18}, "trap log_ratio", {}),
]


@pytest.mark.parametrize(("text", "at", "value", "slopes"), ROWS)
@pytest.mark.parametrize("mode", MODES)
def test_the_tables_rows_keep_what_the_formulas_lose(
    text: str, at: dict[str, float], value: str, slopes: dict[str, str], mode: str
) -> None:
    if value.startswith("trap "):
        trap = TRAPS[value.removeprefix("trap ")]
        assert at == {variable: float(number) for variable, number in trap["point"].items()}
        value, slopes = trap["value"], trap["grad"]
    function = parse(text)
    point = np.array([at[variable] for variable in function.inputs])
    truth = [float(slopes[variable]) for variable in function.inputs]
    # e^-800 lies below the smallest double: zero is its nearest.
    np.testing.assert_allclose(function.values(point), [float(value)], rtol=1e-15, atol=5e-324)
    found = gradient(function, mode).values(point)
    np.testing.assert_allclose(found, truth, rtol=1e-15, atol=5e-324)


@for_each("name", TRAPS)
def test_reverse_gradient_takes_at_most_four_functions(name: str) -> None:
    function, _, _ = posed(name)
    assert count(gradient(function)).operations <= 4 * count(function).operations
