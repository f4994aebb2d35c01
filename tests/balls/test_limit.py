"""Bounds, proofs and exact results end in time, and state how far they came."""

from __future__ import annotations

from time import sleep

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.balls.enclosing import enclosed
from difflab.balls.limit import ReportedProgress, in_time, reached, time_limit
from difflab.errors import InputError, MethodTimeout

LOOP = "iterate(y = x; 10000000 times; sin(y))"
"""Minutes of ball arithmetic, in operations of microseconds."""
PRODUCT = "x: [300,300]; sum(x @ x)"
"""Minutes in one operation."""


def incomplete(a: int, x: float) -> list[float]:
    with mpmath.workdps(60):
        parts = mpmath.gammainc(a, 0, x), mpmath.gammainc(a, x)
        return [float(part / mpmath.gamma(a)) for part in parts]


@pytest.mark.parametrize("a", [3, 300, 3000])
@pytest.mark.parametrize("share", [0.1, 0.9, 1.0, 1.2])
def test_the_incomplete_gamma_function(a: int, share: float) -> None:
    x = a * share
    found = dl.enclose(f"[gammainc({a}, x), gammaincc({a}, x)]", {"x": x})
    assert found.sharp
    assert incomplete(a, x) in found.value
    with mpmath.workdps(60):
        density = float(mpmath.mpf(x) ** (a - 1) * mpmath.exp(-x) / mpmath.gamma(a))
    assert density in dl.enclose(f"gammainc({a}, x)", {"x": x}).jacobian


@pytest.mark.parametrize("a", [1e8, 1e12])
def test_large_parameters_take_milliseconds(a: float) -> None:
    found = dl.enclose(f"gammainc({a!r}, x)", {"x": a})
    # DLMF 8.11.12, of which the next term is below 1e-13
    truth = 0.5 + 1 / (3 * np.sqrt(2 * np.pi * a))
    assert found.sharp
    assert not found.stopped
    assert found.value.lower == pytest.approx(truth, abs=1e-12)
    assert found.jacobian is not None
    assert found.jacobian.lower == pytest.approx(1 / np.sqrt(2 * np.pi * a), rel=1 / a)
    exact = dl.compile(dl.parse(f"gammainc({a!r}, x)"), "exact")(a)
    assert exact in found.value


@pytest.mark.parametrize(("a", "b", "x"), [(3, 1e6, 0.999), (1e6, 3, 0.5), (3, 1e4, 1e-4)])
def test_the_incomplete_beta_function(a: float, b: float, x: float) -> None:
    found = dl.enclose(f"betainc({a!r}, {b!r}, x)", {"x": x})
    n = int(max(a, b))
    with mpmath.workdps(60):  # of three and n, a sum of three binomial probabilities
        y = mpmath.mpf(x) if a == 3 else 1 - mpmath.mpf(x)
        below = sum(mpmath.binomial(n + 2, k) * y**k * (1 - y) ** (n + 2 - k) for k in range(3))
        truth = float(1 - below if a == 3 else below)
    assert found.sharp
    assert truth in found.value


@pytest.mark.parametrize(
    "formula",
    [
        *("gammainc(3, {})", "gammaincc(300, {})", "betainc(3, 2, {})", "besseli(1, {})"),
        *("besseli(2, {})", "besselk(0.5, {})", "zeta(3, {})"),
    ],
)
def test_wide_boxes_contain_the_values(formula: str, rng: np.random.Generator) -> None:
    top = 0.9 if formula.startswith("betainc") else 300.0
    box = (0.01, top)
    function = dl.parse(formula.format("min(max(x, y), y)"))
    found = dl.enclose(function, {"x": box, "y": box})
    assert np.isfinite([found.value.lower, found.value.upper]).all()
    values = [function(*point) for point in rng.uniform(*box, (50, 2))]
    assert values in found.value
    slope = dl.enclose(formula.format("x"), {"x": box}).jacobian
    assert slope is not None
    exact = dl.compile(dl.gradient(dl.parse(formula.format("x"))), "exact")
    assert [exact(x) for x in rng.uniform(*box, 10)] in slope


def test_a_long_loop_is_stopped_between_operations() -> None:
    found = dl.enclose(LOOP, {"x": 0.5}, timeout=0.3)
    assert found.stopped == "stopped after 0.3 s; at 80 bits"
    assert found.obstacles[0].kind == "undecided"
    assert found.obstacles[0].reason == found.stopped
    assert np.isnan(found.value.lower)
    assert not found.sharp


def test_an_operation_that_does_not_return_is_stopped() -> None:
    found = dl.enclose(PRODUCT, {"x": np.ones((300, 300))}, order=0, timeout=0.3)
    assert found.stopped == "stopped after 0.3 s; at 80 bits"
    assert dl.enclose("x^2", {"x": 3}).sharp
    again = dl.enclose("x: [40,40]; sum(x)", {"x": np.ones((40, 40))}, order=0)
    assert 1600.0 in again.value  # in a new process


def test_a_divided_box_keeps_what_is_proved() -> None:
    text, box = "sin(1e3*x)*cos(1e4*y)", {"x": (0.0, 1.0), "y": (0.0, 3.0)}
    found = dl.enclose(text, box, width=1e-9, timeout=0.3)
    assert found.stopped.startswith("stopped after 0.3 s; with ")
    assert found.smooth
    assert not found.sharp
    assert [-1.0, 0.0, 1.0] in found.value
    assert str(found).endswith(found.stopped)


def test_what_was_found_before_a_precision_is_reported() -> None:
    reports: list[ReportedProgress] = []
    with time_limit(600.0, reports.append):  # type: ignore[arg-type]
        enclosed(dl.parse("(x + 1e40) - 1e40"), [(0.1, 0.1)])
    assert reports[0] == "at 80 bits"
    assert reports[0].partial is None
    assert reports[1] == "at 160 bits"
    assert 0.1 in reports[1].partial.value


def stuck(function: dl.Function) -> None:
    """Run in the process, which imports this module."""
    reached("at 160 bits", lambda: len(function.inputs))
    sleep(600)


def test_a_task_in_a_process_is_stopped_with_what_it_found() -> None:
    function = dl.parse("gammainc(2, x)")  # a row for which a process is used
    with pytest.raises(MethodTimeout, match=r"stopped after 0.1 s; at 160 bits") as raised:
        in_time(stuck, function, timeout=0.1)
    assert isinstance(raised.value.progress, ReportedProgress)
    assert raised.value.progress.partial == 1


def test_proofs() -> None:
    found = dl.prove("iterate(y = x; 100000 times; sin(y))", {"x": (1, 2)}, timeout=0.3)
    assert found.verdict == "undecided"
    assert found.reason.startswith("stopped after 0.3 s; ")
    assert "pieces are proved" in found.reason
    assert dl.prove("x^2", {"x": (1, 2)}).proved


@pytest.mark.parametrize("packed", [False, True])
def test_the_target_exact(packed: bool) -> None:
    fast = dl.compile(dl.parse(LOOP), "exact", packed=packed, timeout=0.3)
    with pytest.raises(MethodTimeout, match=r"after 0.3 s; the inputs are 0.5; at 80 bits"):
        fast([0.5] if packed else 0.5)
    with pytest.raises(InputError, match="timeout is of the target 'exact'"):
        dl.compile(dl.parse("x"), timeout=1.0)


@pytest.mark.parametrize("timeout", [0, -1.0, "1", None])
def test_limits_that_are_none(timeout: object) -> None:
    for call in (dl.enclose, dl.prove):
        with pytest.raises(InputError, match="time limit must be a positive number"):
            call("x", {"x": 1.0}, timeout=timeout)  # type: ignore[operator]


def test_limits_are_nested() -> None:
    function = dl.parse("sin(x)")
    with time_limit(0.0), time_limit(600.0):
        assert enclosed(function, [(1.0, 1.0)]).stopped
    assert enclosed(function, [(1.0, 1.0)]).sharp
