"""`dl.enclose`: formulas at random points and boxes against mpmath, kinks, bad input."""

from __future__ import annotations

import subprocess
import sys

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.balls.enclosing import enclosed
from difflab.errors import InputError, PointError
from difflab.proof.difference import bounded
from tests.balls.truth import check_contains, check_tight

FORMULAS = (
    "ln(x1) + x1*x2 - sin(x2)",
    "exp(-x1^2)*tanh(x2) + atan2(x1, x2)",
    "x1^x2/(1 + sigmoid(x1*x2))",
    "hypot(x1, x2)^1.5 + gamma(x1) - erf(x2/3)",
    "where(x1 > 0.5*x2 - 7, sqrt(x1 + x2), 0)*logaddexp(x1, -x2)",
    "max(x1, -x2) + abs(x1*x2) + mod(x1, 100)",
    "log1mexp(-x1)*digamma(x2) - acosh(1 + x1)^3/asinh(x2)",
)
EACH = pytest.mark.parametrize("formula", FORMULAS)


@EACH
def test_random_points_are_enclosed_within_an_ulp(formula: str) -> None:
    f, draw = dl.parse(formula), np.random.default_rng(11)
    for x in draw.uniform(0.3, 6.0, (15, 2)).tolist():
        e = dl.enclose(f, dict(zip(f.inputs, x, strict=True)), order=2)
        assert e.smooth
        assert e.sharp
        check_tight(e)
        check_contains(e, f, x, 2)


@EACH
def test_random_boxes_hold_the_values_and_derivatives_inside(formula: str) -> None:
    f, draw = dl.parse(formula), np.random.default_rng(12)
    for _ in range(6):
        low = draw.uniform(0.3, 4.0, 2)
        high = low + draw.uniform(0.0, 1.0, 2) * draw.choice([1e-6, 0.1, 1.0])
        box = dict(zip(f.inputs, zip(low, high, strict=True), strict=True))
        e = dl.enclose(f, box, order=2)
        assert e.smooth
        for _ in range(4):
            check_contains(e, f, draw.uniform(low, high).tolist(), 2)


def test_the_bounds_agree_with_interval_arithmetic() -> None:
    """mpmath's intervals bound the same range; neither may exclude what the other proves."""
    e = dl.enclose("exp(x)*sin(x) - ln(x)", {"x": (1, 1.25)})
    x = mpmath.iv.mpf([1, 1.25])
    other = mpmath.iv.exp(x) * mpmath.iv.sin(x) - mpmath.iv.log(x)
    assert other.a <= e.value.upper
    assert e.value.lower <= other.b
    assert e.value.width <= other.b - other.a + 1e-12


@pytest.mark.parametrize(
    ("formula", "low", "high", "least", "most"),
    [
        ("x^2 - 2*x", 0.0, 3.0, -1.0, 3.0),
        ("sin(x)", 0.0, 3.0, 0.0, 1.0),
        ("x*exp(-x)", 0.0, 4.0, 0.0, np.exp(-1)),
        ("(1 - x)^2 + x^3 - x^3", -1.0, 2.0, 0.0, 4.0),
    ],
)
def test_a_wanted_width_is_reached(
    formula: str, low: float, high: float, least: float, most: float
) -> None:
    for width in (0.1, 0.003):
        e = dl.enclose(formula, {"x": (low, high)}, width=width)
        assert e.sharp
        assert least - width <= e.value.lower <= least
        assert most <= e.value.upper <= most + width
    assert e.pieces > 1


def test_a_kink_outside_of_the_box_is_excluded_by_dividing() -> None:
    # x² - x + 0.3 is at least 0.05, which no enclosure of the whole box shows.
    e = dl.enclose("abs(x^2 - x + 0.3)", {"x": (-1, 2)})
    assert e.smooth
    assert e.pieces > 1
    assert e.jacobian.lower <= -3
    assert e.jacobian.upper >= 3


@pytest.mark.parametrize(
    ("formula", "point", "kind", "site"),
    [
        ("2 + abs(x)", 0.0, "kink", "column 5"),
        ("floor(x)", 2.0, "jump", "column 1"),
        ("1 + ln(x)", -1.0, "edge", "column 5"),
        ("3/x", 0.0, "pole", "column 1"),
        ("where(x >= 1, x, 2*x)", 1.0, "jump", "column 7"),
        ("max(x, 3*x - 2)", 1.0, "kink", "column 1"),
    ],
)
def test_an_obstacle_is_named_with_its_place(
    formula: str, point: float, kind: str, site: str
) -> None:
    e = dl.enclose(formula, {"x": point})
    (obstacle,) = e.obstacles
    assert (obstacle.kind, str(obstacle.site), obstacle.certain) == (kind, site, True)
    assert np.isnan(e.jacobian.lower).all()
    assert np.isnan(e.jacobian.upper).all()


def test_a_branch_that_is_not_taken_has_no_kink() -> None:
    assert dl.enclose("where(x > 0, x^2, abs(x))", {"x": (1, 2)}).smooth
    assert dl.enclose("where(x > 1, sqrt(x), 0)", {"x": 0}).jacobian.upper == 0.0


def test_exact_cancellation_is_exactly_zero() -> None:
    e = dl.enclose("x/3*3 - x + y/7*7", {"x": 1, "y": 2})
    assert (e.value.lower, e.value.upper) == (2.0, 2.0)
    assert e.jacobian.lower.tolist() == e.jacobian.upper.tolist() == [[0.0, 1.0]]


def test_a_value_that_is_a_float_by_an_identity_is_enclosed_on_both_sides() -> None:
    e = dl.enclose("sin(x)^2 + cos(x)^2", {"x": 1})
    assert e.value.lower == np.nextafter(1.0, 0)
    assert e.value.upper == np.nextafter(1.0, 2)
    assert abs(e.jacobian.upper) <= 5e-324


def test_control_flow_with_decided_predicates() -> None:
    def newton(x: float) -> object:
        return dl.while_loop(
            lambda s: s[0] < 4, lambda s: (s[0] + 1, (s[1] + x / s[1]) / 2), (0.0, x)
        )[1]

    f = dl.trace(newton, 2.0)
    e = enclosed(f, [(2.0, 2.0)])
    check_contains(e, f, [2.0], 1)
    assert e.smooth
    g = dl.trace(lambda x: dl.cond(x > 1, lambda v: v * v, lambda v: 2 * v - 1, x), 2.0)
    assert dl.enclose(g, {"x": 3}).jacobian.lower == 6.0
    undecided = dl.enclose(g, {"x": 1})
    assert undecided.obstacles[0].kind == "jump"
    assert not dl.enclose(g, {"x": (0.5, 2)}).smooth
    h = dl.trace(lambda x: dl.scan(lambda c, v: (c * v, c + v), 1.0, x), np.ones(3))
    point = [1.5, 0.25, -2.0]
    scanned = enclosed(h, [(v, v) for v in point])
    check_contains(scanned, h, point, 1)


def test_long_and_deep_formulas_need_no_recursion() -> None:
    deep = dl.enclose("(" * 20_000 + "x" + "+1)*1.5/1.5" * 20_000, {"x": 1})
    assert deep.value.lower <= 20_001 <= deep.value.upper
    text = "+".join(f"(1-x{k})^2 + 100*(x{k + 1}-x{k}^2)^2" for k in range(1, 100))
    f = dl.parse(text)
    x = {name: 0.1 * (place % 7) for place, name in enumerate(f.inputs)}
    e = dl.enclose(f, x)
    np.testing.assert_allclose(e.jacobian.lower[0], dl.gradient(f)(**x), rtol=1e-13, atol=1e-13)


def test_array_inputs_and_several_outputs() -> None:
    f = dl.parse("x: [3]; [sum(x^2), x*x[0]]")
    e = dl.enclose(f, {"x": [1.0, 2.0, 3.0]})
    assert e.value.lower.tolist() == [14.0, 1.0, 2.0, 3.0]
    assert e.jacobian.lower.tolist() == [[2, 4, 6], [2, 0, 0], [2, 1, 0], [3, 0, 1]]
    over = dl.enclose(f, {"x": ([1, 2, 3], [1, 2, 4])}, order=2)
    assert over.hessian.lower.shape == (4, 3, 3)
    assert over.value.upper[0] >= 21


def test_derivatives_are_those_of_the_values_of_a_custom_function() -> None:
    class Wrong(dl.CustomFunction):
        forward = staticmethod(lambda ctx, x: x * x)
        backward = staticmethod(lambda ctx, y_bar: 5.0 * y_bar)

    f = dl.trace(lambda x: Wrong.apply(x), 3.0)
    assert dl.enclose(f, {"x": 3}).jacobian.lower == 6.0


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"at": {"x": (2, 1)}}, PointError, "the lower end of the interval of 'x'"),
        ({"at": {"x": (1, 2, 3)}}, PointError, "has 3 ends"),
        ({"at": {"x": float("nan")}}, PointError, "not finite"),
        ({"at": {"y": 1}}, PointError, "no input 'y'"),
        ({"at": {"x": 1}, "order": 3}, InputError, "order must be 0, 1 or 2"),
        ({"at": {"x": 1}, "width": -1}, InputError, "width must be a positive number"),
    ],
)
def test_bad_input(arguments: dict[str, object], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        dl.enclose("x^2", **arguments)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected a formula or a Function"):
        dl.enclose(abs, {"x": 1})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("flint", "message"),
    [
        ("sys.modules['flint'] = None", "is not installed; add it with: pip install python-flint"),
        (
            "sys.path.insert(0, sys.argv[1])",
            "repair it with: pip install --force-reinstall python-",
        ),
    ],
)
def test_without_flint_the_error_says_what_to_install(
    flint: str, message: str, tmp_path: object
) -> None:
    from pathlib import Path

    (Path(str(tmp_path)) / "flint.py").write_text("raise OSError('no such library')\n")
    code = f"""
import sys
{flint}
import difflab as dl
print(dl.gradient(dl.parse("x^2"))(3.0))
try:
    dl.enclose("x^2", {{"x": 1}})
except dl.DifflabError as error:
    print(error)
"""
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.startswith("[6.]")
    assert message in ran.stdout


def test_the_difference_is_that_of_the_worst_component() -> None:
    f = dl.parse("sin(x) + y^2")
    wrong = dl.parse("[1.5*cos(x), 2*y]")
    found = bounded(f, wrong, [(0.0, 0.01), (1.0, 1.01)])
    assert found.smooth
    assert 0.5 <= found.difference <= 0.51  # half a cosine, which is at most 1
