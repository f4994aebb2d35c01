"""Formats of floating-point numbers against NumPy's and those of ml_dtypes."""

from __future__ import annotations

import math
import pickle
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from difflab.core.dtypes import DOUBLE, FORMATS, format_of
from difflab.errors import MissingDependencyError
from difflab.referee.ulp import errors
from difflab.rounding.budget import error_budget
from difflab.rounding.dtypes import cheapest_dtypes

NATIVE = ("float64", "float32", "float16")


@pytest.mark.parametrize("name", NATIVE)
def test_formats_are_those_of_numpy(name: str, rng: np.random.Generator) -> None:
    form, info = FORMATS[name], np.finfo(name)
    assert (form.eps, form.largest, form.normal, form.bits) == (
        *map(float, (info.eps, info.max, info.smallest_normal)),
        info.bits,
    )
    values = rng.normal(size=400) * 2.0 ** rng.integers(-30, 15, 400)
    values = np.array([*values, 0.0, 65500.0 / 2, 1e5, math.inf])
    with np.errstate(over="ignore"):
        own = values.astype(name)
    assert form.cast(values).dtype == own.dtype
    assert np.array_equal(form.cast(values), own)
    finite = np.isfinite(own)
    assert np.array_equal(form.spacing(own)[finite], np.abs(np.spacing(own[finite])))
    assert form.spacing([math.nan, math.inf]).tolist() == [math.inf, math.inf]


def test_bfloat16_is_that_of_ml_dtypes_and_is_held_in_float32() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    form, info = FORMATS["bfloat16"], ml_dtypes.finfo(ml_dtypes.bfloat16)
    expected = (*map(float, (info.eps, info.max, info.smallest_normal)), info.bits)
    assert (form.eps, form.largest, form.normal, form.bits) == expected
    assert form.cast(1 / 3) == np.float32(ml_dtypes.bfloat16(1 / 3))
    assert form.cast(1 / 3).dtype == np.float32


def test_bfloat16_is_rounded_once() -> None:
    """Just above the middle between 1 and 1 + 2^-7: float32 on the way would round it down."""
    assert FORMATS["bfloat16"].cast(1 + 2.0**-8 + 2.0**-40) == 1 + 2.0**-7


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_beyond_the_range_round_to_infinity(name: str) -> None:
    form = FORMATS[name]
    middle = Fraction(form.largest) + Fraction(float(form.spacing(form.largest))) / 2
    assert form.nearest(middle) == math.inf  # ties to even
    assert form.nearest(1 - middle) == -form.largest
    assert form.nearest(Fraction(-(2**1090))) == -math.inf


def test_a_truth_beyond_float64_has_an_error_in_every_format() -> None:
    truth = np.array([mpmath.mpf(2) ** 1050, mpmath.mpf(2) ** 1050], dtype=object)
    found = errors(np.array([math.inf, 1.0]), truth, FORMATS["float16"])
    assert found.ulps.tolist() == [0.0, math.inf]


def test_a_format_is_the_same_one_in_another_process() -> None:
    assert pickle.loads(pickle.dumps(DOUBLE)) is format_of("float64") is DOUBLE


def test_budgets_in_bfloat16_need_no_package_and_its_code_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    found = error_budget("x*y + x/y", {"x": 1.7, "y": 0.3}, dtype="bfloat16").value
    assert found.proved
    assert found.outputs[0].bound > 2.0**-8
    with pytest.raises(MissingDependencyError, match=r"add it with: pip install ml_dtypes$"):
        cheapest_dtypes("x^2", {"x": (1, 2)}, tolerance=0.1, dtypes=["bfloat16"])
