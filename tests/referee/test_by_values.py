"""The referee of float64 values: its bound holds the error, and its digits are honest."""

import math

import mpmath
import numpy as np
import pytest

from difflab.errors import UnsupportedError
from difflab.methods.protocol import Estimate, Family
from difflab.referee.by_values import reference_by_values
from difflab.referee.verdict import judge

SMOOTH = [
    (np.sin, mpmath.sin),
    (np.exp, mpmath.exp),
    (np.sqrt, mpmath.sqrt),
    (lambda x: np.log(x) / x, lambda x: mpmath.log(x) / x),
    (lambda x: 1 / (1 + x**2), lambda x: 1 / (1 + x**2)),
    (lambda x: np.sin(50 * x), lambda x: mpmath.sin(50 * x)),
    (lambda x: 1e8 + np.cos(x), mpmath.cos),
    (lambda x: x**3 - 2 * x, lambda x: x**3 - 2 * x),
]


@pytest.mark.parametrize("point", [0.01, 0.7, 3.0, 40.0])
@pytest.mark.parametrize(("values", "exact"), SMOOTH)
def test_the_bound_holds_the_error(values, exact, point):
    found = reference_by_values(values, [point])
    right = float(mpmath.diff(exact, mpmath.mpf(point)))
    assert found.status == "smooth"
    assert abs(found.jacobian[0, 0] - right) <= 10 * found.bounds[0, 0]
    if found.digits:
        assert abs(found.jacobian[0, 0] - right) <= 10 ** (1 - found.digits) * abs(right)


@pytest.mark.parametrize(
    ("values", "point", "status"),
    [
        (np.abs, 0.0, "kink"),
        (lambda x: np.maximum(x, 1.0), 1.0, "kink"),
        (lambda x: np.where(x >= 0, np.sqrt(np.abs(x)) ** 5, np.nan), 0.0, "one-sided"),
        (np.floor, 2.0, "unresolved"),
        (lambda x: np.where(x > 0, np.nan, x), 1.0, "undefined"),
        (lambda x: x**2, 0.0, "smooth"),
        (lambda x: np.full(x.shape, 3.0), 1.0, "smooth"),
    ],
)
def test_what_it_sees_at_kinks_and_edges(values, point, status):
    found = reference_by_values(values, [point])
    assert found.status == status
    if status == "kink":
        sides = sorted([float(found.left[0, 0]), float(found.right[0, 0])])
        assert sides == pytest.approx([min(values(np.array([-1.0, 2.0])) * 0), 1.0]) or (
            sides == pytest.approx([-1.0, 1.0])
        )


@pytest.mark.parametrize("digits", [4, 6, 9])
def test_rounded_values_have_few_digits(digits):
    found = reference_by_values(lambda x: np.round(np.sin(x), digits), [1.0])
    assert found.digits < digits
    if found.status == "smooth":
        assert abs(found.jacobian[0, 0] - math.cos(1.0)) <= 10 * found.bounds[0, 0]
    else:
        assert found.status == "unresolved"


def test_several_outputs_and_inputs():
    values = lambda x: np.stack([x[:, 0] * x[:, 1], np.sin(x[:, 1])], axis=1)  # noqa: E731
    found = reference_by_values(values, [2.0, 3.0])
    assert found.jacobian == pytest.approx(
        np.array([[3.0, 2.0], [0.0, math.cos(3.0)]]), rel=1e-9, abs=0.0
    )
    assert found.bounds[1, 0] == 0.0


def test_a_time_limit_leaves_elements_open():
    found = reference_by_values(lambda x: np.sum(x, axis=1)[:, None], [1.0, 2.0], timeout=0.0)
    assert found.regularity.tolist() == [["smooth", "unresolved"]]
    assert (found.judged, found.components) == (1, 2)


def test_second_derivatives_are_refused():
    with pytest.raises(UnsupportedError, match="more digits than float64"):
        reference_by_values(np.sin, [1.0], order=2)


@pytest.mark.parametrize(
    ("error", "verdict"), [(0.0, "agree"), (1e-7, "agree"), (1e-3, "disagree"), (-2.0, "disagree")]
)
def test_a_verdict_takes_the_bound_into_account(error, verdict):
    truth = reference_by_values(lambda x: 1e8 + np.sin(x), [1.0])
    value = np.array([[math.cos(1.0) + error]])
    found = judge(Estimate(value, None, 0), truth, Family.AUTOMATIC)
    assert found.verdict == verdict


def test_a_bound_as_large_as_the_derivative_judges_nothing():
    truth = reference_by_values(lambda x: 1e14 + np.sin(x), [1.0])
    found = judge(Estimate(np.array([[0.4]]), None, 0), truth, Family.AUTOMATIC)
    assert found.verdict == "inconclusive"


def test_stairs_hide_a_slope_only_where_they_are_low() -> None:
    """Parts of log(x + sqrt(x^2 + 1)) cancel at -1e6: it is a step function, 232 wide."""

    def stepped(x: np.ndarray) -> np.ndarray:
        return np.log(x + np.sqrt(x**2 + 1.0))

    found = reference_by_values(stepped, [-1e6])
    truth = 1.0 / math.hypot(1e6, 1.0)
    assert abs(found.jacobian[0, 0] - truth) <= found.bounds[0, 0] <= 0.05 * truth
    # The same steps, too few of them: their slope is as good an answer as zero.
    rough = reference_by_values(lambda x: np.round(1000.0 * x) / 1000.0, [0.1234])
    assert rough.status == "unresolved"


@pytest.mark.parametrize("scale", [1e-300, 1e-250, 1e250])
def test_huge_derivatives_are_no_overflow(scale: float) -> None:
    found = reference_by_values(np.log, [scale])
    assert found.jacobian[0, 0] == pytest.approx(1.0 / scale, rel=1e-9)
    assert found.bounds[0, 0] <= 1e-9 / scale
