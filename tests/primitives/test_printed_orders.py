"""Functions of constant orders in printed code of every language, against mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.language import printers
from tests.primitives.test_remainders import FAR, FORMS, MODERATE, NEAR, exact
from tests.primitives.test_remainders import allowed as allowed_error
from tests.support.languages import JAVASCRIPT, LANGUAGES, STAN, C, Language
from tests.support.rows import failures

ALL = [C, JAVASCRIPT, *LANGUAGES, STAN]
POSIX = {"C", "Fortran", "CUDA", "CUDA on a GPU"}
INTEGERS = (0, 1, 2, 5, -3)
DENSITY = "gammainc_derivative"
TRUTHS: dict[str, tuple[Callable[[Any, Any], Any], tuple[float, ...], float]] = {
    "besselj": (mpmath.besselj, INTEGERS, 4.0),
    "bessely": (mpmath.bessely, INTEGERS, 8.0),
    "besseli": (mpmath.besseli, (*INTEGERS, 10), 16.0),
    "besselk": (mpmath.besselk, (*INTEGERS, 10), 12.0),
    "gammainc": (
        lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
        (0.1, 0.5, 1, 2.5, 7, 30, 99.5),
        8.0,
    ),
    "gammaincc": (
        lambda a, x: mpmath.gammainc(a, x, mpmath.inf, regularized=True),
        (0.5, 1, 2.5, 7, 30, 99.5),
        12.0,
    ),
    "gammainc_derivative": (
        lambda a, x: x ** (a - 1) * mpmath.exp(-x) / mpmath.gamma(a),
        (0.5, 2, 7),
        8.0,
    ),
}
"""The function, orders and bound in ULP; of J and Y beyond the turning point, of √(J² + Y²)."""


def points() -> list[float]:
    rng = np.random.default_rng(8)
    drawn = [*rng.uniform(0, 5, 25), *rng.uniform(0, 40, 25), *10 ** rng.uniform(-20, 2.5, 20)]
    return [*map(float, drawn), 1.0, 30.0, 99.5, 400.0]


@cache
def expected_values(name: str, order: float) -> list[tuple[Any, float]]:
    """Return the values at all points and what code may err by; every language is held to them."""
    truth, _, ulps = TRUTHS[name]
    found = []
    with mpmath.workdps(40):
        for x in points():
            expected = truth(order, mpmath.mpf(x))
            size = abs(expected)
            if name in ("besselj", "bessely") and x > max(0.8, abs(order)):
                size = mpmath.hypot(mpmath.besselj(order, x), mpmath.bessely(order, x))
            found.append((expected, max(ulps * math.ulp(float(size)), 5e-324)))
    return found


@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.parametrize("language", ALL, ids=lambda each: each.name)
def test_printed_code_of_an_order_agrees_with_mpmath(
    name: str, language: Language, tmp_path: Path
) -> None:
    orders = TRUTHS[name][1]
    text = "gammainc({0}, x)" if name == DENSITY else f"{name}({{0}}, x)"
    functions = [dl.parse(text.format(order)) for order in orders]
    if name == DENSITY:
        functions = [dl.gradient(function) for function in functions]
    if name in ("besselj", "bessely") and language.name not in POSIX:
        pytest.skip("those of any order are held by test_printed_special.py")
    if not language.there:
        pytest.skip(f"needs {language.needed}")
    at = np.array(points())[:, None]
    found = language.values(functions, [at] * len(functions), tmp_path)
    with mpmath.workdps(40):
        for order, values in zip(orders, found, strict=True):
            truths = expected_values(name, order)
            for x, value, (expected, allowed) in zip(
                points(), values[:, 0].tolist(), truths, strict=True
            ):
                close = abs(value - expected) <= allowed
                assert close or value == float(expected), (order, x, value, float(expected))


REMAINDERS_AT = (*NEAR, *MODERATE, *FAR, -0.7, 2.9)


@cache
def remainders(name: str, k: int, j: int) -> list[Any]:
    return [exact(FORMS[name, k], x, j) for x in REMAINDERS_AT]


@pytest.mark.parametrize("language", ALL, ids=lambda each: each.name)
def test_printed_remainders_agree_with_mpmath(language: Language, tmp_path: Path) -> None:
    if not language.there:
        pytest.skip(f"needs {language.needed}")
    at = np.array(REMAINDERS_AT)
    cases = [(name, k, j) for name, k in FORMS for j in range(3)]
    functions = [dl.parse(f"{name}({k}, {j}, x)") for name, k, j in cases]
    for (name, k, j), values in zip(
        cases, language.values(functions, [at[:, None]] * len(cases), tmp_path), strict=True
    ):
        for x, value, expected in zip(
            at.tolist(), values[:, 0].tolist(), remainders(name, k, j), strict=True
        ):
            assert abs(value - expected) <= allowed_error(name, k, x, expected), (name, k, j, x)


EDGES = [0.0, 5e-324, -1.0, math.inf, -math.inf, math.nan, 800.0, 1e300]


AT_EDGES = [
    *(f"{name}({order}, x)" for name in TRUTHS if name != DENSITY for order in (1, 2)),
    *(f"{name}({k}, 1, x)" for name, k in FORMS),
    *("gammainc(100, x)", "gammaincc(100, x)"),
]


@pytest.mark.skipif(not C.there, reason="needs gcc")
def test_printed_code_has_the_kernels_values_at_edges(tmp_path: Path) -> None:
    functions = [dl.parse(text) for text in AT_EDGES]
    # SciPy's J and Y are nan far away, where POSIX's have values.
    edges = [EDGES[: -1 if text.startswith(("besselj", "bessely")) else None] for text in AT_EDGES]
    values = C.values(functions, [np.array(each)[:, None] for each in edges], tmp_path)
    with failures(len(AT_EDGES)) as noted, np.errstate(all="ignore"):
        for text, f, at, found in zip(AT_EDGES, functions, edges, values, strict=True):
            with noted(text):
                expected = np.array([f(x) for x in at])
                close = 1e-13 if "100" in text else 1e-14  # at 800 SciPy's Q errs by 64 ULP
                np.testing.assert_allclose(found[:, 0], expected, rtol=close, atol=1e-300)


def test_other_orders_are_refused_with_the_functions_name() -> None:
    for text in ("exp_remainder(k, 0, x)", "cos_remainder(1, j, x)"):
        name = text.partition("(")[0]
        with pytest.raises(UnsupportedError, match=f"C99 has no function for '{name}"):
            printers.c(dl.parse(text), "f")


def test_printed_python_computes_derivatives_of_constant_orders() -> None:
    function = dl.gradient(dl.parse("besselk(0, x) * gammainc(3, x) + exp_remainder(2, 0, x)"))
    names: dict[str, Any] = {}
    exec(printers.python(function, "f"), names)

    def form(x: Any) -> Any:
        p = mpmath.gammainc(3, 0, x, regularized=True)
        return mpmath.besselk(0, x) * p + (mpmath.exp(x) - 1 - x) / x**2

    for x in (0.3, 1.7, 25.0):
        with mpmath.workdps(40):
            expected = float(mpmath.diff(form, mpmath.mpf(x)))
        assert names["f"](x)[0] == pytest.approx(expected, rel=1e-14)


DERIVATIVES = [
    ("erfcx(x)", [-3.0, -0.1, 0.0, 0.7, 1.5, 40.0, 1e6]),
    ("log_ndtr(x)", [-1e6, -3.0, -0.75, -0.1, 0.0, 0.7, 1.5, 30.0]),
    ("gammainc(2.5, x)", [1e-9, 0.5, 1.5, 40.0]),
    ("gammainc(1e10, x)", [1e10, 1e10 + 1e5]),
    ("gammaincc(0.5, x)", [0.01, 3.0, 90.0]),
    ("betainc(2, 3.5, x)", [1e-9, 0.2, 0.9]),
    ("betainc(1e5, 2e5, x)", [0.3333, 0.334]),
    ("lambertw(x)", [-0.3678794411714423, -0.3, -0.01, 0.0, 2.0, 1e300]),
    ("sigmoid(x)", [-700.0, -1e-9, 0.3, 40.0]),
]


@pytest.mark.parametrize("language", [C, JAVASCRIPT], ids=lambda each: each.name)
def test_printed_derivatives_are_those_of_the_evaluator(language: Language, tmp_path: Path) -> None:
    """Which `test_derivatives.py` holds to mpmath."""
    if not language.there:
        pytest.skip(f"needs {language.needed}")
    functions, points = [], []
    for text, at in DERIVATIVES:
        function = dl.parse(text)
        for _ in range(3):
            function = dl.gradient(function)
            functions.append(function)
            points.append(np.array(at)[:, None])
    found = language.values(functions, points, tmp_path)
    for function, at, values in zip(functions, points, found, strict=True):
        wanted = np.ravel(function.values(at))
        np.testing.assert_allclose(
            values[:, 0], wanted, rtol=2e-14, atol=1e-300, err_msg=str(function)
        )
