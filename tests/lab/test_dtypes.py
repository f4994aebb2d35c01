"""Comparisons in float32, float16 and bfloat16: rounding, ULP, ranges and refusals.

Expected values are mpmath's, rounded to the format here by exact fractions.
"""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.core.dtypes import DOUBLE, FORMATS, formats
from difflab.differences.sampling import Sampler, ladder, probe
from difflab.errors import InputError, PointError
from difflab.graph.evaluate import RoundedInterpreter
from difflab.referee.ulp import errors

DIGITS = {"float32": (24, -126), "float16": (11, -14), "bfloat16": (8, -126)}
"""The bits of the significand, and the exponent of the least normal number."""
COARSE = tuple(DIGITS)


def ulp(number: Fraction, dtype: str) -> Fraction:
    """Return the spacing of the numbers of a format at one."""
    digits, least = DIGITS[dtype]
    exponent = least
    while Fraction(2) ** (exponent + 1) <= abs(number):
        exponent += 1
    return Fraction(2) ** (exponent - digits + 1)


def rounded(number: Fraction, dtype: str) -> Fraction:
    """Return the nearest number of a format, ties to even, for one inside its range."""
    unit = ulp(number, dtype)
    low, rest = divmod(number, unit)
    up = rest > unit / 2 or (rest == unit / 2 and low % 2 == 1)
    return (low + up) * unit


def fraction(number) -> Fraction:
    sign, mantissa, exponent, _ = number._mpf_
    return (-1) ** sign * Fraction(mantissa) * Fraction(2) ** exponent


@pytest.mark.parametrize("dtype", COARSE)
def test_rounding_is_to_nearest_even(dtype, rng):
    size = rng.normal(size=300) * 2.0 ** rng.uniform(-30, 14, 300)
    if dtype != "float16":
        size = size * 2.0 ** rng.uniform(-110, 100, 300)
    unit = [float(ulp(Fraction(each), dtype)) for each in size]
    near = [float(rounded(Fraction(each), dtype)) for each in size]
    ties = [each + u / 2 for each, u in zip(near, unit, strict=True)]
    for values in (size, np.array(ties)):
        expected = [float(rounded(Fraction(each), dtype)) for each in values]
        assert FORMATS[dtype].rounded(values).tolist() == expected
        assert [FORMATS[dtype].nearest(Fraction(each)) for each in values] == expected
        spacing = [float(ulp(Fraction(e), dtype)) for e in expected]
        assert [FORMATS[dtype].spacing(each) for each in expected] == spacing


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_rounding_is_numpys(dtype, rng):
    values = rng.normal(size=2000) * 2.0 ** rng.uniform(-180, 150, 2000)
    values = np.append(
        values, [0.0, -0.0, math.inf, -math.inf, math.nan, 65519.99, 65520.0, 2**-25]
    )
    with np.errstate(all="ignore"):
        expected = values.astype(dtype).astype(float)
    found = FORMATS[dtype].rounded(values)
    np.testing.assert_array_equal(found, expected)
    assert (np.signbit(found) == np.signbit(expected)).all()


def test_rounding_to_bfloat16_is_that_of_ml_dtypes(rng):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = (rng.normal(size=2000) * 2.0 ** rng.uniform(-140, 127, 2000)).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = values.astype(ml_dtypes.bfloat16).astype(float)
    np.testing.assert_array_equal(FORMATS["bfloat16"].rounded(values), expected)


def test_float64_is_itself_and_other_names_are_refused():
    assert formats(None) == [DOUBLE]
    assert [DOUBLE.spacing(each) for each in (0.0, 1.0, 1e-310)] == [5e-324, 2.0**-52, 5e-324]
    with pytest.raises(InputError, match="unknown dtype 'half'"):
        dl.compare("x", {"x": 1}, dtype="half")


@pytest.mark.parametrize("dtype", COARSE)
@pytest.mark.parametrize("method", ["forward", "reverse", "finite-central", "richardson"])
def test_errors_are_in_ulp_of_the_dtype_at_the_rounded_point(dtype, method):
    at = {"x": 0.3, "y": 1.7}
    found = dl.compare("exp(x)*sin(y)", at, methods=[method], dtype=[dtype], timing=False)
    x, y = (rounded(Fraction(value), dtype) for value in at.values())
    assert found.point == {"x": float(x), "y": float(y)}
    with mpmath.workdps(60):
        a, b = (mpmath.mpf(each.numerator) / each.denominator for each in (x, y))
        truth = [mpmath.exp(a) * mpmath.sin(b), mpmath.exp(a) * mpmath.cos(b)]
        truth = [fraction(each) for each in truth]
    (row,) = found.methods
    gaps = [abs(Fraction(v) - t) for v, t in zip(row.jacobian[0], truth, strict=True)]
    expected = max(gap / ulp(rounded(t, dtype), dtype) for gap, t in zip(gaps, truth, strict=True))
    assert row.max_ulp_error == pytest.approx(float(expected), rel=1e-12)
    vague = method == "finite-central" and dtype == "bfloat16"  # it has two digits
    assert (row.dtype, row.verdict) == (dtype, "inconclusive" if vague else "agree"), row.message
    if method in ("forward", "reverse"):
        assert 0 < row.max_ulp_error < 2.5  # a few roundings
        assert all(rounded(Fraction(v), dtype) == v for v in row.jacobian[0])
    assert "the truth is that of the rounded point" in found.environment["dtype"]
    assert f"{method} {dtype}" in found.table()


def test_there_is_a_row_for_each_method_and_dtype():
    found = dl.compare(
        "x^2*y",
        {"x": 3, "y": 0.1},
        methods=["forward", "exact"],
        dtype="float64,bfloat16",
        timing=False,
    )
    rows = [(row.name, row.dtype, str(row.status)) for row in found.methods]
    assert rows == [
        ("forward", "float64", "ok"),
        ("exact", "float64", "ok"),
        ("forward", "bfloat16", "ok"),
        ("exact", "bfloat16", "unsupported"),
    ]
    assert found.point == {"x": 3.0, "y": 0.1}  # that of the first dtype
    again = type(found).to_dict(found)
    assert [row["dtype"] for row in again["methods"]] == ["float64"] * 2 + ["bfloat16"] * 2


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("symbolic", "SymPy's code computes with Python floats"),
        ("complex-step", "complex numbers of two float64"),
        ("exact", "as many digits as it needs"),
    ],
)
def test_methods_without_the_dtype_say_why(method, reason):
    found = dl.compare("sin(x)", {"x": 1}, methods=[method], dtype="float16", timing=False)
    (row,) = found.methods
    assert (str(row.status), row.verdict) == ("unsupported", None)
    assert row.message.startswith("not in float16")
    assert reason in row.message


def row_of(text, at, method="reverse", dtype="float16"):
    found = dl.compare(text, at, methods=[method], dtype=dtype, timing=False)
    return found.methods[0]


def test_overflow_of_the_derivative_is_named_and_infinite():
    row = row_of("exp(x)", {"x": 12})
    assert row.jacobian.tolist() == [[math.inf]]
    # e^12 is 162,754.79…; the largest float16 is 65,504.
    assert "overflow in exp(12) = 162754.791: float16 ends at 65504" in row.message
    assert row.verdict == "agree"  # infinity is the rounded derivative


def test_overflow_on_the_way_to_a_finite_derivative_is_wrong():
    row = row_of("exp(x)/exp(y)", {"x": 12, "y": 11})
    assert row.verdict == "disagree"
    assert "overflow in exp(12)" in row.message
    assert row_of("exp(x)/exp(y)", {"x": 12, "y": 11}, dtype="bfloat16").verdict == "agree"


def test_underflow_is_named():
    row = row_of("exp(-x)*y", {"x": 18, "y": 2})
    # e^-18 is 1.5e-8, and half the least float16 is 2^-25 = 3.0e-8.
    assert "underflow in exp(-18) = 1.52" in row.message
    assert "float16 begins at 6.0e-8" in row.message
    assert row.jacobian.tolist() == [[0.0, 0.0]]


def test_nan_is_named():
    row = row_of("exp(x) - exp(y)", {"x": 12, "y": 12}, method="finite-central")
    assert "overflow in exp(12)" in row.message


def test_a_point_beyond_the_range_is_refused():
    with pytest.raises(PointError, match="the point has 100000, and float16 ends at 65504"):
        dl.compare("x", {"x": 1e5}, dtype="float16")


def test_second_derivatives_are_judged_in_the_dtype():
    found = dl.compare(
        "sin(x)*y", {"x": 0.5, "y": 2}, order=2, methods=["reverse"], dtype="float16", timing=False
    )
    (row,) = found.methods
    assert row.verdict == "agree", row.message
    expected = np.array([[-2 * math.sin(0.5), math.cos(0.5)], [math.cos(0.5), 0]])
    assert np.abs(row.jacobian - expected).max() < 2.0**-10


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_over_a_domain_every_dtype_has_rows(dtype):
    found = dl.compare(
        "exp(x)*y",
        over={"x": (0, 2), "y": (0.5, 1)},
        points=30,
        methods=["forward", "exact"],
        dtype=["float64", dtype],
    )
    assert [(row.name, row.dtype) for row in found.methods] == [
        ("forward", "float64"),
        ("exact", "float64"),
        ("forward", dtype),
        ("exact", dtype),
    ]
    coarse = found.methods[2]
    assert coarse.shares["agree"] == 1.0
    worst = coarse.worst
    x, y = worst.point["x"], worst.point["y"]
    assert (x, y) == tuple(float(rounded(Fraction(each), dtype)) for each in (x, y))
    assert 0.2 < coarse.ulps[100] < 3
    assert str(found.methods[3].status) == "unsupported"
    assert f"forward {dtype}" in found.table()


def test_over_a_domain_the_overflow_is_named():
    found = dl.compare(
        "exp(x)/exp(y)",
        over={"x": (11.2, 12), "y": (11.2, 12)},
        points=10,
        methods=["reverse"],
        dtype="float16",
    )
    (row,) = found.methods
    assert row.shares["disagree"] == 1.0
    assert "overflow in exp(11" in row.worst.message


@pytest.mark.parametrize(
    ("peer", "dtypes"), [("jax", COARSE), ("torch", COARSE), ("autograd", ("float32", "float16"))]
)
def test_peers_compute_in_the_dtype(peer, dtypes):
    pytest.importorskip(peer)
    found = dl.compare(
        "exp(x)*sin(y) + 1/3", {"x": 0.3, "y": 1.7}, methods=[peer], dtype=COARSE, timing=False
    )
    for row in found.methods:
        if row.dtype not in dtypes:
            assert str(row.status) == "unsupported"
            continue
        assert row.verdict == "agree", (row.dtype, row.message)
        assert row.max_ulp_error < 4
        assert all(rounded(Fraction(v), row.dtype) == v for v in row.jacobian[0])


def test_torch_overflows_in_float16_as_difflab_does():
    pytest.importorskip("torch")
    row = row_of("exp(x)", {"x": 12}, method="torch")
    assert row.jacobian.tolist() == [[math.inf]]
    assert "overflow in exp(12)" in row.message


def test_the_steps_of_a_loop_are_rounded():
    text, x = "iterate(y = x; 6 times; 3.2*y*(1 - y))", 0.3
    row = row_of(text, {"x": x}, method="forward")
    value, slope = (rounded(Fraction(x), "float16"), Fraction(1))
    factor = rounded(Fraction(3.2), "float16")
    for _ in range(6):  # forward mode by hand, every operation rounded
        a, b = rounded(factor * value, "float16"), rounded(1 - value, "float16")
        a_dot = rounded(factor * slope, "float16")
        parts = rounded(a_dot * b, "float16"), rounded(a * -slope, "float16")
        value, slope = rounded(a * b, "float16"), rounded(sum(parts), "float16")
    assert row.jacobian.tolist() == [[float(slope)]]


def test_a_loop_is_evaluated_in_each_dtype_by_itself():
    f = dl.parse("iterate(y = x; 6 times; 3.2*y*(1 - y))")
    x = float(rounded(Fraction(0.3), "float16"))
    factor = rounded(Fraction(3.2), "float16")
    plain, coarse = x, Fraction(x)
    for _ in range(6):
        plain = 3.2 * plain * (1 - plain)
        left, right = rounded(factor * coarse, "float16"), rounded(1 - coarse, "float16")
        coarse = rounded(left * right, "float16")
    point, on = np.array([x]), RoundedInterpreter(FORMATS["float16"])
    for _ in range(2):  # what is kept of one is not used by the other
        assert f.values(point)[0] == pytest.approx(plain, rel=1e-14)
        assert f.values(point, on)[0] == float(coarse)


@pytest.mark.parametrize("dtype", COARSE)
def test_arguments_of_differences_are_moved_within_the_dtype(dtype):
    form = FORMATS[dtype]
    sampler = Sampler(lambda points: points, 1, 1, rounded=form.rounded)
    x, units = form.rounded(np.array([0.3])), 0.37 * 2.0 ** -np.arange(3.0, 7.0)[:, None]
    moved = probe(sampler, x, x, units)[2]
    again = ladder(sampler, x, np.array([0]), units * x)[1]
    for each in (moved, again):
        assert all(rounded(Fraction(v), dtype) == v for v in each.ravel())


def test_the_unit_is_that_of_the_rounded_truth():
    # 1 - 2^-12 rounds to 1, where the spacing is 2^-10; below 1 it is 2^-11.
    truth = np.array([1 - 2.0**-12, 70_000.0], dtype=object)
    found = errors(np.array([1.0, math.inf]), truth, FORMATS["float16"])
    assert found.ulps.tolist() == [0.25, 0.0]
