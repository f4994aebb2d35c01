"""Error budgets: functions whose truth is known, proofs, domains, dtypes, scale."""

from __future__ import annotations

import cProfile
import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.errors import DifflabError, DomainError, InputError, ParseError
from difflab.rounding.budget import Budget, error_budget

QUADRATIC = "(-b + sqrt(b^2 - 4*a*c))/(2*a)"
RUMP = "333.75*b^6 + a^2*(11*a^2*b^2 - b^6 - 121*b^4 - 2) + 5.5*b^8 + a/(2*b)"
VARIANCE = "x: [4]; sum(x^2)/4 - (sum(x)/4)^2"
DATA = [10000.0, 10001.0, 10002.0, 10004.1]


def mean(x: list[mpmath.mpf]) -> mpmath.mpf:
    return sum(x) / len(x)


KNOWN = [
    # The other form of the root, -2c/(b + √…), does not cancel (Higham, §1.8).
    (QUADRATIC, {"a": 1.0, "b": 1e5, "c": 1.0}, "sqrt", 2.0**31,
     lambda p: -2 * p["c"] / (p["b"] + mpmath.sqrt(p["b"] ** 2 - 4 * p["a"] * p["c"]))),
    # S. M. Rump, Algorithms for verified inclusions, 1988: -54767/66192 = -0.827396…
    (RUMP, {"a": 77617.0, "b": 33096.0}, "power", 1e16, lambda p: -mpmath.mpf(54767) / 66192),
    (VARIANCE, {"x": DATA}, "sum", 1e7,
     lambda p: mean([(v - mean(p["x"])) ** 2 for v in p["x"]])),
    # Kepler's equation near its corner: E - e sin E loses what E and sin E have in common.
    ("E - k*sin(E)", {"E": 1e-3, "k": 1 - 1e-9}, "sin", 1e7,
     lambda p: p["E"] - p["k"] * mpmath.sin(p["E"])),
    ("x: [3]; y: [3]; dot(x, y)", {"x": [1e10, 1.1, -1e10], "y": [1.0, 1.0, 1.0000001]}, "matmul",
     1e6, lambda p: mpmath.fdot(p["x"], p["y"])),
    ("log(exp(a) + exp(b))", {"a": 1.5, "b": -0.3}, "log", 4.0,
     lambda p: mpmath.log(mpmath.exp(p["a"]) + mpmath.exp(p["b"]))),
]  # fmt: skip


@pytest.mark.parametrize(("text", "at", "operation", "ulps", "truth"), KNOWN)
def test_the_worst_operation_of_published_examples(
    text: str, at: dict[str, object], operation: str, ulps: float, truth: Callable[..., object]
) -> None:
    part = error_budget(text, at).value
    with mpmath.workdps(60):
        exactly = np.frompyfunc(mpmath.mpf, 1, 1)
        point = {name: exactly(value) if np.ndim(value) == 0 else [*map(mpmath.mpf, value)]
                 for name, value in at.items()}  # type: ignore[call-overload]  # fmt: skip
        error = abs(mpmath.mpf(part.outputs[0].value) - truth(point))
    assert part.contributions[0].operation == operation
    assert part.contributions[0].ulps >= ulps / 4
    assert error <= part.outputs[0].bound
    assert part.proved
    # What ball arithmetic measures is the error, and not a bound of it.
    assert float(error) == pytest.approx(part.outputs[0].error, rel=1e-4, abs=1e-300)


def test_a_difference_of_near_numbers_is_exact_and_magnifies() -> None:
    (only,) = error_budget(QUADRATIC, {"a": 1, "b": 1e5, "c": 1}).value.contributions
    assert only.operation == "sqrt"
    assert only.local == 0.5
    assert only.magnification == pytest.approx(2.0**32, rel=1e-9)


def test_the_gradient_has_its_own_graph_and_budget() -> None:
    found = error_budget("(1 - cos(x))/x^2", {"x": 1e-4})
    assert found.gradient is not None
    names = {each.operation for each in found.gradient.contributions}
    assert {"cos", "sin"} <= names
    with mpmath.workdps(60):
        x = mpmath.mpf(1e-4)
        truth = mpmath.diff(lambda t: (1 - mpmath.cos(t)) / t**2, x)
    (output,) = found.gradient.outputs
    assert abs(output.value - truth) <= output.bound + output.remainder
    assert found.gradient.ulps > 1e6 * found.value.ulps  # it loses far more digits than the value


@pytest.mark.parametrize("text", ["hypot(x, x)^2", "hypot(x, x)*hypot(x, x)", "sqrt(x + x)^2"])
def test_the_error_of_a_root_counts_where_its_square_has_a_derivative_without_it(text: str) -> None:
    """hypot(16, 16) is 22.62…, whose square in float64 is not 512."""
    function = dl.parse(text)
    (output,) = error_budget(function, {"x": 16.0}).value.outputs
    error = abs(float(function(16.0)) - (32.0 if "sqrt" in text else 512.0))
    assert 0 < error <= output.bound


def test_several_outputs_have_a_budget_each() -> None:
    found = error_budget("[x*y, x - y, exp(x)]", {"x": 1.1, "y": 3.3})
    assert [each.name for each in found.value.outputs] == ["y1", "y2", "y3"]
    assert found.gradient is not None
    assert found.gradient.kind == "jacobian"
    assert len(found.gradient.outputs) == 6


def test_a_function_without_inputs_has_no_gradient() -> None:
    found = error_budget("pi/3 + 0.1")
    assert found.gradient is None
    assert found.proved


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_other_dtypes_have_their_own_units(dtype: str) -> None:
    text = "x*y + 0.1*sqrt(x) - y/x"
    found = error_budget(text, {"x": 1.7, "y": 0.3}, dtype=dtype)
    kind = np.dtype(dtype).type
    x, y = kind(1.7), kind(0.3)
    assert found.value.outputs[0].value == float(x * y + kind(0.1) * np.sqrt(x) - y / x)
    a, b = float(x), float(y)
    assert found.point == {"x": a, "y": b}
    error = abs(found.value.outputs[0].value - (a * b + 0.1 * math.sqrt(a) - b / a))
    assert float(np.spacing(kind(1))) / 1000 < error <= found.value.outputs[0].bound
    assert found.proved
    assert "constant" in {each.operation for each in found.value.contributions}


def test_an_overflow_in_the_dtype_is_named() -> None:
    with pytest.raises(DomainError, match=r"exp\(12\) overflows in float16") as caught:
        error_budget("1 + exp(x)", {"x": 12}, dtype="float16")
    assert caught.value.span == (4, 10)


def test_an_overflow_on_the_way_to_finite_results_is_no_bounded_error() -> None:
    """The slope of atan at 1e20 is 1e-40 in truth, and 0 in float32, where 1e40 is infinite."""
    found = error_budget("atan(x^5)", {"x": 1e4}, dtype="float32")
    gradient = found.gradient.outputs[0]
    assert (gradient.value, gradient.proved) == (0.0, False)
    assert "overflows in float32" in found.gradient.reason
    assert found.value.proved


# --- proofs -----------------------------------------------------------------------------------


def test_a_jump_within_the_rounding_is_not_proved() -> None:
    found = error_budget("floor(x/3*3) + y", {"x": 3.3, "y": 1.0})
    assert found.value.proved
    found = error_budget("floor(x*10 - y)", {"x": 0.3, "y": 2.0})
    assert not found.value.proved
    assert "jump" in found.value.reason


def test_a_kink_within_the_rounding_is_a_reason_for_the_gradient_alone() -> None:
    found = error_budget("abs(x/3 - y)", {"x": 0.3, "y": 0.3 / 3})
    assert found.value.proved


def test_a_kernel_that_errs_more_than_documented_is_reported() -> None:
    from unittest.mock import patch

    from difflab.primitives import exp

    wrong = {**exp._computers, np: lambda x: np.exp(x) * (1 + 1e-13)}
    with patch.dict(exp._computers, wrong):
        found = error_budget("exp(x)*y", {"x": 1.3, "y": 0.7})
    assert not found.value.proved
    assert "less accurate than documented" in found.value.reason


def test_the_proof_may_be_left_out() -> None:
    found = error_budget("x*y", {"x": 1.3, "y": 0.7}, prove=False)
    assert not found.proved
    assert found.value.reason == "not requested"
    assert math.isinf(found.value.outputs[0].error)


# --- how much the budget exceeds the errors ---------------------------------------------------

BENIGN = [
    "x*y + x/y",
    "sqrt(x*x + y*y)*(x + y)",
    "(x + 0.1)*(y + 0.2)*(x + 0.3)*(y + 0.4)",
    "x/(1 + y/(1 + x/(1 + y)))",
    "exp(x)*y + sqrt(x)",
]


@pytest.mark.parametrize("text", BENIGN)
def test_the_budget_is_not_vacuous(text: str, rng: np.random.Generator) -> None:
    """Half of the bound is seen with basic operations, an eighth of it with functions."""
    worst = 0.0
    for _ in range(60):
        x, y = rng.uniform(0.5, 2.0, 2)
        for part in error_budget(text, {"x": x, "y": y}).parts:
            worst = max(worst, *(each.error / each.bound for each in part.outputs if each.bound))
    assert worst <= 1.0
    assert worst >= (0.1 if "exp" in text else 0.4)


# --- domains ----------------------------------------------------------------------------------


def test_a_domain_has_means_and_a_worst_point() -> None:
    found = error_budget("(1 - cos(x))/x^2", over={"x": (1e-3, 1.0)}, points=32)
    first = found.value.contributions[0]
    assert found.points == 32
    assert first.operation == "cos"
    assert first.ulps < first.worst
    assert float(found.point["x"]) < 0.1  # the digits are lost near 0
    alone = error_budget("(1 - cos(x))/x^2", found.point)
    assert alone.gradient is not None
    assert found.gradient is not None
    assert alone.gradient.outputs == found.gradient.outputs
    assert found.proved


def test_inputs_outside_of_the_domain_have_values() -> None:
    found = error_budget("x*y", {"y": 3.3}, over={"x": (1.0, 2.0)}, points=4)
    assert found.over == {"x": (1.0, 2.0)}
    assert float(found.point["y"]) == 3.3


# --- scale ------------------------------------------------------------------------------------


def calls_of(terms: int) -> int:
    """Return the number of calls of Python for the budget of a sum of so many terms."""
    function = dl.parse(" + ".join(f"sin(x*{k}.5)*y" for k in range(1, terms + 1)))
    profile = cProfile.Profile()
    profile.runcall(error_budget, function, {"x": 0.3, "y": 1.1}, prove=False)
    return sum(entry.callcount for entry in profile.getstats())


def test_the_work_is_linear_in_the_size_of_the_graph() -> None:
    calls_of(10)
    small, large = calls_of(200), calls_of(800)
    assert large <= 4.4 * small


def test_too_many_outputs_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    import difflab.rounding.budget as module

    monkeypatch.setattr(module, "WORK", 100)
    found = error_budget("x: [50]; sum(x*x*x)", {"x": np.linspace(1, 2, 50)})
    assert found.gradient is not None
    assert 1 <= len(found.gradient.outputs) < 50
    assert found.gradient.omitted == 50 - len(found.gradient.outputs)


def test_nodes_of_array_programs_contribute_by_all_elements() -> None:
    found = error_budget("W: [3, 2]; x: [2]; norm(W @ x)", {"W": np.ones((3, 2)) / 3, "x": [1, 2]})
    part: Budget = found.value
    assert {"matmul", "norm"} == {each.operation for each in part.contributions}
    assert part.proved


# --- errors -----------------------------------------------------------------------------------


def test_errors_name_the_fault() -> None:
    with pytest.raises(ParseError):
        error_budget("x*(y", {"x": 1, "y": 2})
    with pytest.raises(InputError, match="unknown dtype 'float8'"):
        error_budget("x", {"x": 1}, dtype="float8")
    with pytest.raises(InputError, match="points of error_budget is an integer"):
        error_budget("x", over={"x": (0, 1)}, points=0)
    with pytest.raises(DomainError, match="log"):
        error_budget("log(x)", {"x": -1})
    with pytest.raises(DifflabError, match="is unknown: it cannot be bounded"):
        error_budget("x: [2, 2]; sum(qr(x)[0])", {"x": np.eye(2) + 0.1})


def test_an_infinite_derivative_is_no_overflow() -> None:
    with pytest.raises(
        DomainError, match=r"the gradient is not finite: 0\.5 / 0 is inf in float64"
    ):
        dl.error_budget("sqrt(x)", {"x": 0})
    with pytest.raises(DomainError, match=r"log\(-.*\) is nan in float64 at x = -0\."):
        dl.error_budget("log(x)", over={"x": (-1, 1)})


def test_code_without_a_graph_is_refused() -> None:
    with pytest.raises(InputError, match="takes the text of a formula or a Function, not function"):
        dl.error_budget(lambda x: x, {"x": 1.0})  # type: ignore[arg-type]


def test_the_digits_of_a_domain_are_those_of_its_worst_point() -> None:
    found = dl.error_budget("exp(x) - 1", over={"x": (1e-3, 1)}, points=8)
    assert "At the worst of 8 points the value may lose" in found.table()
