"""`explain`: which operation went wrong first, and where a gradient of zero comes from."""

from __future__ import annotations

import math
import sys
from collections import Counter
from typing import Any

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.diagnose import Explanation
from difflab.diagnose.findings import AnomalyKind
from difflab.errors import PointError
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.primitives import TABLE

NETWORK = "W: [3, 2]; x: [2]; b: [3]; sum(relu(W @ x + b))"


def explained(text: str, **at: Any) -> Explanation:
    return dl.explain(dl.parse(text), at)


@pytest.mark.parametrize(
    ("text", "x", "kind", "place", "call"),
    [
        ("1 + log(x - 3)", 2.0, AnomalyKind.NAN, "log(x - 3)", "log(-1)"),
        ("2*sqrt(x)", -4.0, AnomalyKind.NAN, "sqrt(x)", "sqrt(-4)"),
        ("sin(x)/(x - 2)", 2.0, AnomalyKind.INFINITE, "sin(x)/(x - 2)", f"{math.sin(2.0)!r} / 0"),
        ("log(x) + 1", 0.0, AnomalyKind.INFINITE, "log(x)", "log(0)"),
        ("exp(x) + 1", 1000.0, AnomalyKind.OVERFLOW, "exp(x)", "exp(1000)"),
        ("exp(x)/exp(x)", 1000.0, AnomalyKind.OVERFLOW, "exp(x)", "exp(1000)"),
        ("1/exp(x)", 1000.0, AnomalyKind.OVERFLOW, "exp(x)", "exp(1000)"),
        ("x*x", 1e200, AnomalyKind.OVERFLOW, "x*x", "1e200 * 1e200"),
    ],
)
def test_names_the_operation_that_made_it(
    text: str, x: float, kind: AnomalyKind, place: str, call: str
) -> None:
    first = explained(text, x=x).first
    assert first is not None
    start, end = first.site.span or (0, 0)
    assert (first.kind, text[start:end], first.call) == (kind, place, call)
    assert not first.gradient


@pytest.mark.parametrize(
    ("text", "x", "exact"),
    [
        ("x + 1 - x", 1e16, 1.0),
        ("1 - cos(x)", 1e-9, 2 * float(mpmath.sin(5e-10)) ** 2),
        ("(x + 1)^2 - x^2 - 2*x", 1e12, 1.0),
        ("x: [3]; sum(x)", [1e16, 1.0, -1e16], 1.0),
        ("x: [3]; dot(x, x - x + 1)", [1e16, 1.0, -1e16], 1.0),
    ],
)
def test_total_cancellation(text: str, x: Any, exact: float) -> None:
    first = explained(text, x=x).first
    assert first is not None
    assert first.kind is AnomalyKind.CANCELLATION
    assert first.exact == pytest.approx(exact, rel=1e-15, abs=0)
    assert abs(first.result - exact) >= 0.4 * exact


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("x - y", {"x": 3.0, "y": 3.0}),  # zero, and right
        ("x^2 - y^2", {"x": 3.0, "y": 3.0 + 1e-9}),  # digits are lost, not all of them
        ("sin(x) - sin(x)", {"x": 0.3}),
    ],
)
def test_right_differences_are_no_cancellation(text: str, at: dict[str, float]) -> None:
    assert explained(text, **at).ok


def test_a_pole_in_the_gradient_alone() -> None:
    # d sqrt(x)/dx = 1/(2 sqrt(x)), infinite at 0, where sqrt itself is 0.
    found = explained("y + 3*sqrt(x)", x=0, y=1)
    (first,) = found.findings
    assert first.gradient
    assert first.kind is AnomalyKind.INFINITE
    assert (first.derivative_of, first.inputs) == ("sqrt(0)", ("x",))
    assert first.site.span == (6, 13)
    assert "column 7" in str(first)


def test_zero_times_infinity_in_the_gradient_names_the_infinity() -> None:
    # x·sqrt(x) has the derivative 1.5·sqrt(x), but by the product rule 0 + 0·inf = nan.
    f = dl.parse("x*sqrt(x)")
    assert np.isnan(dl.gradient(f)(0.0)).all()
    first = dl.explain(f, [0.0]).first
    assert first is not None
    assert (first.kind, first.derivative_of) == (AnomalyKind.INFINITE, "sqrt(0)")


def test_overflow_in_the_gradient_alone() -> None:
    # d/dx 1/x = -1/x^2: 1e400 at 1e-200, while 1/x is 1e200.
    first = explained("1/x", x=1e-200).first
    assert first is not None
    assert (first.gradient, first.kind) == (True, AnomalyKind.OVERFLOW)


@pytest.mark.parametrize(
    ("text", "x"),
    [
        ("where(x > 0, sqrt(x), 0) + x", 0.0),
        ("where(x > 0, log(x), x)", -1.0),
        ("max(x, 0)*0 + where(x == 0, 1, sin(x)/x) + x", 0.0),
        ("x: [2]; y = log(x); z = where(x > 0, y, x); z[0] + z[1]", [-1.0, 2.0]),
    ],
)
def test_untaken_branches_are_not_blamed(text: str, x: Any) -> None:
    assert explained(text, x=x).ok


def test_only_the_element_that_counts_is_blamed() -> None:
    # log gives nan at [0], untaken, and at [2], taken.
    found = explained("x: [3]; c: [3]; sum(where(c > 0, log(x), 0))", x=[-1, 2, -3], c=[0, 1, 1])
    assert found.first is not None
    assert (found.first.element, found.first.call) == ((2,), "log(-3)")


def test_elements_and_points() -> None:
    found = explained("x: [2]; sum(log(x))", x=np.array([[1, 2], [3, 4], [5, -6], [0, 1]]))
    assert found.first is not None
    assert (found.first.point, found.first.element, found.first.call) == (2, (1,), "log(-6)")
    assert found.points == 2
    assert "element [1], at point 2 of the batch" in str(found.first)


def test_a_batch_whose_results_are_finite_is_searched_too() -> None:
    found = explained("sign(exp(x)) + x", x=np.array([1.0, 2.0, 1000.0]))
    assert found.first is not None
    assert (found.first.point, found.first.kind, found.points) == (2, AnomalyKind.OVERFLOW, 0)


def test_several_outputs() -> None:
    found = explained("[x*y, y/z]", x=1, y=2, z=0)
    assert found.first is not None
    assert found.first.call == "2 / 0"
    assert not found.flat


def test_an_input_that_is_not_finite() -> None:
    first = dl.explain(dl.parse("x + 1"), [np.nan]).first
    assert first is not None
    assert str(first) == "value at column 1: the input 'x' is nan"


@pytest.mark.parametrize(
    ("text", "x", "operation", "reason"),
    [
        ("relu(x)", -3.2, "relu", "-3.2 ≤ 0"),
        ("max(x, 2)", 1.0, "maximum", "2 is selected"),
        ("min(x, 2)", 3.0, "minimum", "2 is selected"),
        ("clip(x, 0, 1)", 3.0, "clip", "a bound"),
        ("where(x > 0, x, 0)", -1.0, "where", "other branch"),
        ("floor(x)", 1.5, "floor", "piecewise constant"),
        ("sign(x)", 1.5, "sign", "piecewise constant"),
        ("where(x > 0, 1, 2)", 1.0, "greater", "a comparison"),
        ("x^2", 0.0, "power", "its derivative is 0 at this point"),
        ("0*x", 5.0, "multiply", "a factor is 0"),
        ("x - x", 5.0, "subtract", "cancel"),
        # sigmoid'(-800) = e^-800 to all digits, 3.7e-348; 1 - tanh(400)^2 = 4e^-800.
        ("sigmoid(x)", -800.0, "sigmoid", "saturated, its derivative 3.7e-348"),
        ("tanh(x)", 400.0, "tanh", "saturated, its derivative 1.5e-347"),
    ],
)
def test_what_blocks_a_gradient(text: str, x: float, operation: str, reason: str) -> None:
    f = dl.parse(text)
    assert dl.gradient(f)(x).tolist() == [0.0]
    (flat,) = dl.explain(f, [x]).flat
    assert flat.path
    assert flat.blocks[0].operation == operation
    assert reason in flat.blocks[0].reason
    assert "gradient exactly 0" in str(flat)


def test_no_path() -> None:
    found = explained("x: [2]; y: [2]; z: []; x[0]^2 + z", x=[1, 2], y=[1, 2], z=1)
    assert [(flat.name, flat.path, flat.element) for flat in found.flat] == [
        ("x", False, (1,)),
        ("y", False, ()),
    ]
    assert list(map(str, found.flat)) == [
        "x[1]: no path to the output",
        "y: no path to the output",
    ]


def test_a_network_with_a_dead_unit() -> None:
    # W x + b = (5, -3, 0): units 1 and 2 are dead.
    W = [[1, 2], [-1, -1], [0, 0]]
    found = explained(NETWORK, W=W, x=[1.0, 2.0], b=[0, 0, 0])
    assert [(flat.name, flat.count, flat.element) for flat in found.flat] == [
        ("W", 4, (1, 0)),
        ("b", 2, (1,)),
    ]
    assert found.flat[1].blocks[0].call == "relu(-3)"


def test_gradients_of_zero_in_a_batch() -> None:
    (flat,) = explained("relu(x)*y", x=np.array([1.0, -1.0, 2.0, -5.0]), y=3.0).flat[:1]
    assert (flat.name, flat.points, flat.point) == ("x", 2, 1)
    assert "-1 ≤ 0" in str(flat)


def test_all_well_says_so() -> None:
    found = explained("ln(x1) + x1*x2 - sin(x2)", x1=2, x2=5)
    assert found.ok
    assert str(found) == "no nan, infinity, overflow or total cancellation in value or gradient"


def test_points_are_checked() -> None:
    with pytest.raises(PointError, match="no value is given for the input y"):
        explained("x*y", x=1)


def test_a_long_chain_is_linear() -> None:
    """Twice the function calls at twice the length, and no recursion."""
    calls = []
    for length in (500, 1_000, 2_000):
        builder = Builder()
        x = h = builder.input("x")
        for _ in range(length):
            h = builder.emit(TABLE["sin"], (h,))
        h = builder.emit(TABLE["log"], (builder.emit(TABLE["negative"], (h,)),))
        f = Function.build(builder, [x], [h], ["y"])
        tally: Counter[str] = Counter()
        sys.setprofile(lambda frame, event, arg, tally=tally: tally.update([event]))
        try:
            found = dl.explain(f, [1.0])
        finally:
            sys.setprofile(None)
        assert found.first is not None
        assert found.first.operation == "log"
        calls.append(tally.total())
    assert calls[2] - calls[1] <= 2.1 * (calls[1] - calls[0])


def test_the_findings_stand_in_the_order_of_evaluation() -> None:
    # y + 1 - y cancels at 1e16, after log and before sqrt; the gradient of z^0.5 comes last.
    found = explained("log(x) + (y + 1 - y) + sqrt(x) + z^0.5", x=-1, y=1e16, z=0)
    assert [(finding.operation, finding.gradient) for finding in found.findings] == [
        ("log", False),
        ("subtract", False),
        ("sqrt", False),
        (found.findings[-1].operation, True),
    ]
    assert found.findings[-1].inputs == ("z",)
    assert found.first is found.findings[0]
    assert str(found).count("then: ") == 3
