"""The subexpression at fault is found, on the taken path only."""

from __future__ import annotations

from time import perf_counter, sleep

import numpy as np
import pytest

import difflab as dl
from difflab.diagnose import anomalies
from difflab.diagnose.point_check import check_domain, checked_point
from difflab.errors import DomainError
from difflab.primitives import TABLE


@pytest.mark.parametrize(
    ("text", "x", "place", "message"),
    [
        ("1 + log(x - 2)", 1.0, "log(x - 2)", "log is undefined at the point: its argument is -1"),
        ("sqrt(-x)*0 + x", 4.0, "sqrt(-x)", "sqrt is undefined"),
        ("3/(x - x)", 2.0, "3/(x - x)", "divide is undefined"),
        ("9^9^9^9*x", 1.0, "9^9^9", "power overflows"),
        ("x^0.5 + 1", -2.0, "x^0.5", "power is undefined"),
        ("asin(2*x)", 1.0, "asin(2*x)", "asin is undefined"),
    ],
)
def test_names_the_subexpression(text: str, x: float, place: str, message: str) -> None:
    with pytest.raises(DomainError, match=message.replace("(", r"\(")) as caught:
        check_domain(dl.parse(text), [x])
    start, end = caught.value.span or (0, 0)
    assert text[start:end] == place


@pytest.mark.parametrize(
    "text", ["where(x > 0, log(x), 0)", "max(sqrt(x), 2)*0 + x", "where(x == 0, 1, sin(x)/x)"]
)
def test_untaken_branches_do_not_count(text: str) -> None:
    value = 0.0 if "max" not in text else 1.0
    check_domain(dl.parse(text), [value])


def test_arrays() -> None:
    f = dl.parse("x: [3]\nsum(log(x))")
    check_domain(f, [np.array([1.0, 2.0, 3.0])])
    with pytest.raises(DomainError, match="log is undefined at the point: its argument is -2"):
        check_domain(f, [np.array([1.0, -2.0, 3.0])])


def test_an_overflow_is_not_blamed_for_what_is_undefined_elsewhere() -> None:
    f = dl.parse("exp(x) + log(-x)")
    with pytest.raises(DomainError, match="log is undefined at the point: its argument is -800"):
        check_domain(f, [800.0])
    with pytest.raises(DomainError, match="the input 'x' is not a finite number"):
        check_domain(f, [np.inf])


@pytest.mark.parametrize(
    ("text", "x"),
    [("exp(x)/(1 + exp(x))", 800.0), ("log(cosh(x))", 1000.0), ("exp(x) - exp(x)", 800.0)],
)
def test_what_only_floating_point_cannot_hold_is_no_fault_of_the_point(text: str, x: float) -> None:
    f = dl.parse(text)
    assert not np.isfinite(f(x))
    check_domain(f, [x])


@pytest.mark.parametrize(
    ("text", "at", "at_fault"),
    [
        ("cos_remainder(2, 0, atanh(x))", 1.5, "atanh is undefined"),  # mpmath: TypeError
        ("besseli(1e5, x)", 1e6, "besseli"),  # mpmath: NoConvergence
        ("polygamma(3, x)", -4.0, "polygamma is undefined"),
    ],
)
def test_functions_that_mpmath_cannot_compute_are_named(
    text: str, at: float, at_fault: str
) -> None:
    with pytest.raises(DomainError, match=at_fault):
        checked_point(dl.parse(text), {"x": at})


def test_a_value_that_mpmath_does_not_return_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of mpmath cannot be interrupted, so that it is made in a process."""
    monkeypatch.setattr(anomalies, "SECONDS", 0.5)
    started = perf_counter()
    assert anomalies.computed(sleep, [TABLE["betainc"]], 60.0) is None
    assert perf_counter() - started < 30
    assert anomalies.computed(abs, [TABLE["betainc"]], -2.0) == 2.0
