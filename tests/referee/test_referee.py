"""The referee against published derivatives, algebra and what kinks, poles and edges are."""

from __future__ import annotations

import math
import re
from typing import Any

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.errors import DifflabError, MethodTimeout, UnsupportedError
from difflab.lab.problems import FAMILIES, helmholtz
from difflab.methods.protocol import Estimate, Family
from difflab.referee.referee import Referee, Reference, refer
from difflab.referee.verdict import judge
from tests.support.rows import for_each

mp = mpmath.mp
DIGITS = 34  # the reference data have about 40
DECIMAL = re.compile(r"(?<![\w.])(\d*)\.(\d+)(?:e(-?\d+))?")


def judged(text: str, *point: float, order: int = 1, timeout: float = 20.0) -> Reference:
    return refer(dl.parse(text), point, order=order, timeout=timeout)


def exact_decimals(text: str) -> str:
    """Write decimals as ratios of integers: the data take 0.1 as a tenth, not as a double."""

    def ratio(match: re.Match[str]) -> str:
        whole, part, exponent = match.groups()
        power = len(part) - int(exponent or 0)
        return f"({int(whole + part)}/{10**power})"

    return DECIMAL.sub(ratio, text)


def assert_close(found: Any, text: str) -> None:
    with mp.workdps(60):
        truth = mp.mpf(text)
        close = abs(found - truth) <= mp.mpf(10) ** -DIGITS * abs(truth)
        assert close, f"{mp.nstr(found, 40)} is not {text}"


def assert_case(case: dict[str, Any], reference: Reference, inputs: tuple[str, ...]) -> None:
    assert reference.status == "smooth"
    assert reference.linear.all()
    assert reference.digits >= 25
    assert_close(reference.value[0], case["value"])
    for column, name in enumerate(inputs):
        assert_close(reference.exact[0, column], case["grad"][name])


def packed(case: dict[str, Any], inputs: tuple[str, ...]) -> list[float]:
    return [float(case["point"][name]) for name in inputs]


def test_mgh_gradients_and_values(reference: Any) -> None:
    for case in reference("mgh"):
        f = dl.parse(exact_decimals(case["expr"]))
        assert_case(case, refer(f, packed(case, f.inputs), timeout=60), f.inputs)


def test_mgh_hessians(reference: Any) -> None:
    cases = [case for case in reference("mgh") if "hess" in case]
    assert len(cases) > 30
    for case in cases:
        f = dl.parse(exact_decimals(case["expr"]))
        found = refer(f, packed(case, f.inputs), order=2, timeout=60)
        places = [case["vars"].index(name) for name in f.inputs]
        assert found.status == "smooth"
        for i, row in enumerate(places):
            for j, column in enumerate(places):
                assert_close(found.exact[i, j], case["hess"][row][column])


def test_helmholtz(reference: Any) -> None:
    for case in reference("helmholtz"):
        if len(case["vars"]) <= 22:
            f = dl.parse(exact_decimals(case["expr"]))
            assert_case(case, refer(f, packed(case, f.inputs), timeout=60), f.inputs)


def test_helmholtz_of_fifty_substances_takes_two_values_an_input(reference: Any) -> None:
    (case,) = (case for case in reference("helmholtz") if case["id"] == "helmholtz_baydin_n50")
    f = dl.parse(exact_decimals(helmholtz(50)))
    found = refer(f, list(FAMILIES["helmholtz"].point(50).values()), timeout=600)
    assert_case(case, found, f.inputs)
    assert found.evaluations <= 2 * 50 + 6


def test_published_derivatives_of_orders_one_and_two(reference: Any) -> None:
    cases = [case for case in reference("higher_order")["cases"] if case["order"] <= 2]
    assert len(cases) > 30
    for case in cases:
        found = judged(exact_decimals(case["expr"]), float(case["x"]), order=case["order"])
        assert_close(found.exact[0, 0], case["value"])


IRREGULAR = {
    "trap_sqrt_at0": ("singular", math.nan, math.inf),
    "trap_sqrt_sq_at0": ("kink", -1, 1),
    "trap_abs_pos0": ("kink", -1, 1),
    "trap_relu_at0": ("kink", 0, 1),
    "trap_where_log": ("jump", 0, math.inf),
    "trap_logneg": ("undefined", math.nan, math.nan),
    "trap_log_at0": ("undefined", math.nan, math.nan),
    "trap_removable": ("undefined", 1, 1),
    "trap_cbrt_0": ("singular", math.inf, math.inf),
    "trap_atan2_0_0": ("jump", 0, 0),
}


def test_traps(reference: Any) -> None:
    for case in reference("traps"):
        f = dl.parse(exact_decimals(case["expr"]))
        found = refer(f, packed(case, f.inputs), timeout=100.0)
        if case["id"] in IRREGULAR:
            status, left, right = IRREGULAR[case["id"]]
            assert found.status == status, case["id"]
            assert [float(found.left[0, 0]), float(found.right[0, 0])] == pytest.approx(
                [left, right], nan_ok=True
            ), case["id"]
            continue
        assert found.status == "smooth", case["id"]
        for column, name in enumerate(f.inputs):
            truth = mp.mpf(case["grad"][name])
            if abs(truth) > 5e-324:
                assert_close(found.exact[0, column], case["grad"][name])
            else:
                assert abs(found.exact[0, column] - truth) < mp.mpf("1e-340")


def test_the_seed() -> None:
    found = judged("ln(x1) + x1*x2 - sin(x2)", 2.0, 5.0)
    assert float(found.value[0]) == 11.652071455223084
    with mp.workdps(60):
        assert abs(found.exact[0, 1] - (2 - mp.cos(5))) < mp.mpf(10) ** -50
    assert found.jacobian.tolist() == [[5.5, 1.7163378145367738]]
    assert found.error_bound < 1e-60
    assert found.evaluations <= 10


@pytest.mark.parametrize(
    ("text", "point", "left", "right"),
    [
        ("abs(x)", 0.0, -1, 1),
        ("3*x + abs(x - 2)", 2.0, 2, 4),
        ("max(x, 2*x)", 0.0, 1, 2),
        ("clip(x, 0, 1)", 1.0, 1, 0),
        ("abs(sin(x))", 0.0, -1, 1),
        ("abs(x)*exp(x)", 0.0, -1, 1),
        ("sqrt(x^2)", 0.0, -1, 1),
        ("hypot(x, 0)", 0.0, -1, 1),
        ("1e-250*abs(x)", 0.0, -1e-250, 1e-250),
    ],
)
def test_kinks_are_found_with_both_slopes(
    text: str, point: float, left: float, right: float
) -> None:
    found = judged(text, point)
    assert found.status == "kink"
    assert math.isnan(found.jacobian[0, 0])
    assert [float(found.left[0, 0]), float(found.right[0, 0])] == [left, right]


@for_each(
    ("text", "point", "derivative"),
    [
        ("x*abs(x)", 0.0, 0.0),
        ("abs(x)^3", 0.0, 0.0),
        ("x^2", 0.0, 0.0),
        ("sqrt(x^2 + 1e-300)", 0.0, 0.0),  # smooth, but only within 1e-150 of 0
        ("x + sqrt(x^2 + 1e-300)", 0.0, 1.0),
        ("1e-200*atan(1e200*x)", 0.0, 1.0),
        ("where(x == 0, 0, x^2*sin(1/x))", 0.0, 0.0),
        ("where(x != 0, sin(x)/x, 1)", 0.0, 0.0),
        ("floor(x)", 2.5, 0.0),
        ("x - x", 1e308, 0.0),
        ("1/(1 + exp(-x))", -740.0, 4.199559e-322),
        ("tanh(x)", 400.0, 4 * math.exp(-400) ** 2),
        ("log(x)", 5e-324, math.inf),  # beyond the largest double
    ],
)
def test_smooth_points_that_look_otherwise(text: str, point: float, derivative: float) -> None:
    found = judged(text, point)
    assert found.status == "smooth"
    assert found.jacobian[0, 0] == pytest.approx(derivative, rel=1e-6, abs=0)


@for_each(
    ("text", "point", "status", "value", "left", "right"),
    [
        ("sqrt(x)", 0.0, "singular", math.inf, math.nan, math.inf),
        ("-sqrt(-x)", 0.0, "singular", math.inf, math.inf, math.nan),
        ("asin(x)", 1.0, "singular", math.inf, math.inf, math.nan),
        ("acos(x)", 1.0, "singular", -math.inf, -math.inf, math.nan),
        ("sqrt(abs(x))", 0.0, "singular", math.nan, -math.inf, math.inf),
        ("where(x > 0, x*log(x), 0)", 0.0, "singular", math.nan, 0, -math.inf),
        ("where(x > 0, sqrt(x), 0)", 0.0, "singular", math.nan, 0, math.inf),
        ("x^1.5", 0.0, "one-sided", 0, math.nan, 0),
        ("x + x^1.1", 0.0, "one-sided", 1, math.nan, 1),
        ("3*x + 0*sqrt(1 - x)", 1.0, "one-sided", 3, 3, math.nan),
        ("floor(x)", 2.0, "jump", math.nan, 0, 0),
        ("mod(x, 2)", 4.0, "jump", math.nan, 1, 1),
        ("x*x + sign(x)", 0.0, "jump", math.nan, 0, 0),
        ("where(x < 1, 2*x, 5*x)", 1.0, "jump", math.nan, 2, 5),
        ("(x^2 - 1)/(x - 1)", 1.0, "undefined", math.nan, 1, 1),
        ("1/x", 0.0, "undefined", math.nan, math.nan, math.nan),
        ("where(x == 0, 0, x*sin(1/x))", 0.0, "unresolved", math.nan, math.nan, math.nan),
    ],
)
def test_points_without_a_derivative_are_named(
    text: str, point: float, status: str, value: float, left: float, right: float
) -> None:
    found = judged(text, point)
    assert found.status == status
    sides = [found.jacobian[0, 0], float(found.left[0, 0]), float(found.right[0, 0])]
    assert sides == pytest.approx([value, left, right], nan_ok=True)


def test_the_scale_of_a_zero_is_that_of_the_other_inputs() -> None:
    assert judged("hypot(x, y)", 0.0, 1e-200).jacobian.tolist() == [[0.0, 1.0]]
    assert judged("x + y*atan(x/y)", 0.0, 1e-200).jacobian.tolist() == [[2.0, 0.0]]


def test_digits_lost_inside_the_function_are_doubled_back() -> None:
    """1 - cos(x) is zero at any precision below 120 digits."""
    found = judged("y + y*(1 - cos(x))/x^2", 1e-60, 1.0)
    assert found.jacobian[0].tolist() == pytest.approx([-1e-60 / 12, 1.5], rel=1e-15)
    assert found.value[0] == pytest.approx(1.5)


def test_several_outputs_resolve_each_on_its_own() -> None:
    found = judged("[x*y, x + abs(y), 3, floor(x)]", 2.0, 0.0)
    assert found.regularity.tolist() == [
        ["smooth", "smooth"],
        ["smooth", "kink"],
        ["smooth", "smooth"],
        ["jump", "smooth"],
    ]
    assert found.jacobian[0].tolist() == [0.0, 2.0]
    assert found.status == "jump"


@pytest.mark.parametrize(
    ("text", "linear"),
    [
        ("x*y", True),
        ("cbrt(x*y)", False),
        ("min(abs(x), abs(y))", False),
        ("x^2 + y^3", True),
        ("x + y", True),
    ],
)
def test_partial_derivatives_do_not_make_a_derivative(text: str, linear: bool) -> None:
    found = judged(text, 0.0, 0.0)
    assert found.status == "smooth"
    assert found.linear.tolist() == [linear]


@pytest.mark.parametrize(
    ("text", "status", "left", "right"),
    [
        ("x*abs(x)", "kink", -2, 2),
        ("abs(x)", "kink", 0, 0),  # the second derivative is a delta
        ("abs(x)^3", "smooth", 0, 0),
        ("x^4 + cos(x)", "smooth", -1, -1),
    ],
)
def test_second_derivatives_at_zero(text: str, status: str, left: float, right: float) -> None:
    found = judged(text, 0.0, order=2)
    assert found.status == status
    assert [float(found.left[0, 0]), float(found.right[0, 0])] == [left, right]


def test_a_mixed_second_derivative_with_a_kink() -> None:
    found = judged("x*abs(y)", 1.0, 0.0, order=2)
    assert found.regularity[0, 1] == found.regularity[1, 0] == "kink"
    assert [float(found.left[0, 1]), float(found.right[0, 1])] == [-1, 1]


def test_hessians_are_of_one_output() -> None:
    with pytest.raises(UnsupportedError, match="one output"):
        judged("[x, x*x]", 1.0, order=2)


def test_without_inputs_there_is_nothing_to_resolve() -> None:
    found = judged("pi")
    assert found.exact.shape == (1, 0)
    assert found.status == "smooth"


def test_no_time_is_unresolved_but_has_a_value() -> None:
    found = judged("x*y", 2.0, 3.0, timeout=0.0)
    assert found.status == "unresolved"
    assert np.isnan(found.jacobian).all()
    assert float(found.value[0]) == 6.0


class Clock:
    """A clock that an evaluation moves by a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        for module in ("differences", "refine", "referee"):
            monkeypatch.setattr(f"difflab.referee.{module}.perf_counter", lambda: self.now)

    def cubes(self, x: Any) -> list[Any]:
        self.now += 1.0
        return [sum((value**3 for value in x), mp.zero)]


def test_what_was_judged_when_the_time_ended_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Referee(Clock(monkeypatch).cubes, [2.0] * 1000, timeout=600.0).reference()
    assert found.status == "unresolved"
    assert found.evaluations <= 602
    resolved = found.regularity[0] == "smooth"
    assert 0 < found.judged <= resolved.sum() < found.components == 1000
    assert (found.jacobian[0][resolved] == 12.0).all()
    assert np.isnan(found.jacobian[0][~resolved]).all()
    places = np.flatnonzero(resolved)
    assert places.min() < 200
    assert places.max() > 800  # spread over all of them


def test_methods_are_judged_by_the_components_that_were(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Referee(Clock(monkeypatch).cubes, [2.0] * 1000, timeout=600.0).reference()
    right = np.full((1, 1000), 12.0)
    said = judge(Estimate(right, None, 0), found, Family.AUTOMATIC)
    assert said.verdict == "inconclusive"
    assert said.reason == f"the referee's time limit ended after {found.judged} of 1,000 components"
    wrong = right.copy()
    wrong[0, np.flatnonzero(found.regularity[0] == "smooth")[-1]] = 11.0
    assert judge(Estimate(wrong, None, 0), found, Family.AUTOMATIC).verdict == "disagree"


def test_a_hessian_that_takes_far_too_long_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    found = Referee(clock.cubes, [2.0] * 100, order=2, timeout=60.0).reference()
    assert found.status == "unresolved"
    assert clock.now < 60.0


def test_all_conditioning_together_takes_the_time_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    referee = Referee(clock.cubes, [2.0] * 20, timeout=100.0)
    referee.reference()
    began = clock.now
    known = [referee.sensitivity([(0, i)]) for i in range(20)]
    assert clock.now - began <= 101.0 + 5
    assert known[0]
    assert not known[-1]
    assert referee.sensitivity([(0, 0)]) == known[0]  # asked again it takes no time
    wrong = Estimate(np.full((1, 20), 12.001), None, 0)
    late = judge(wrong, referee.reference(), Family.AUTOMATIC, sensitivity=lambda _: {})
    assert late.verdict == "inconclusive"
    assert "time limit ended" in late.reason


def test_too_many_inputs_to_write_down_are_refused() -> None:
    with pytest.raises(MethodTimeout, match="1,000,000 inputs are too many for 1 s"):
        refer(dl.parse("x: [1000000]; sum(x)"), np.zeros(1_000_000).tolist(), timeout=1.0)


def test_any_callable_of_mpmath_numbers_can_be_judged() -> None:
    found = Referee(lambda x: [mp.zeta(x[0]) * x[1]], [3.0, 2.0]).reference()
    with mp.workdps(60):
        assert abs(found.exact[0, 0] - 2 * mp.zeta(3, derivative=1)) < mp.mpf(10) ** -30


def test_sensitivity_to_half_an_ulp_of_inputs_and_literals() -> None:
    ulp = math.ulp(1.25)
    assert Referee.of(dl.parse("x^2"), [1.25]).sensitivity([(0, 0)]) == {(0, 0): pytest.approx(ulp)}
    literal = Referee.of(dl.parse("0.1*x"), [1.25]).sensitivity([(0, 0)])
    assert literal[0, 0] == pytest.approx(math.ulp(0.1) / 2)
    assert Referee.of(dl.parse("3*x + pi*x"), [1.25]).sensitivity([(0, 0)]) == {(0, 0): 0.0}
    assert Referee.of(dl.parse("sqrt(x)"), [0.0]).sensitivity([(0, 0)]) == {(0, 0): math.inf}
    cubic = Referee.of(dl.parse("x^3"), [1.25], order=2).sensitivity([(0, 0)])
    assert cubic[0, 0] == pytest.approx(6 * ulp / 2)


# --- values that cannot be computed -------------------------------------------------------------


class OddError(Exception):
    """An exception whose message cannot be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no message")


@pytest.mark.parametrize("error", [OddError(), KeyError("x"), ZeroDivisionError(), OSError(5)])
def test_whatever_values_raise_is_a_reason(error: Exception) -> None:
    def values(x: list[Any]) -> list[Any]:
        raise error

    with pytest.raises(DifflabError, match=f"values fail: {type(error).__name__}"):
        Referee(values, [1.0]).reference()


def test_elements_before_a_failure_are_kept() -> None:
    calls: list[Any] = []

    def values(x: list[Any]) -> list[Any]:
        calls.append(x)
        if len(calls) > 40:
            raise OddError
        return [sum(number * number for number in x)]

    found = Referee(values, [1.0, 2.0]).reference()
    assert found.regularity.shape == (1, 2)
    calls[:] = []
    Referee(values, [3.0]).sensitivity([(0, 0)])  # and then it fails


def test_where_mpmath_fails_the_proof_remains() -> None:
    found = judged("betainc(1e5, 1e5, x)", 0.5)  # NoConvergence
    assert found.proved.all()
    # The density of a binomial at its middle, which is a quotient of factorials.
    with mpmath.workdps(40):
        truth = mpmath.mpf(0.5) ** (2 * 10**5 - 2) / mpmath.beta(10**5, 10**5)
        assert abs(found.exact[0, 0] - truth) < abs(truth) * mpmath.mpf(10) ** -30
