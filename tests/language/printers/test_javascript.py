"""JavaScript: the printed functions run in Node.js and give the function's values."""

import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.graph.function import Function
from difflab.language import parse
from difflab.language.printers import javascript, python
from difflab.primitives import TABLE
from tests.language.printers.test_code import EDGES, functions, in_python, point_of, repeated
from tests.language.printers.test_statements import derived, start
from tests.primitives.test_spellings import NEAR_ZEROS, NEAR_ZEROS_ATOL
from tests.support.node import needs_node, run, script
from tests.support.special_rows import FARTHER

FORMULAS = 200
POINTS = [(0.37, 0.81), (0.92, 0.44), (0.55, 0.66)]
ULPS = 4.0


def unary() -> list[str]:
    """Return the functions of one number, each shifted into its domain."""
    shifts = {"acosh": "1 + ", "log1mexp": "-1 + "}
    return [
        f"{row.names[0]}({shifts.get(name, '')}{{0}})"
        for name, row in TABLE.items()
        if row.shape is None and row.arity == 1 and row.names and name not in FARTHER
    ]


def pairs() -> list[str]:
    """Return the functions of two numbers."""
    called = [
        f"{row.names[0]}({{0}}, {{1}})"
        for name, row in TABLE.items()
        if row.shape is None and row.arity == 2 and row.names and name not in FARTHER
    ]
    return [*called, "{0} + {1}", "{0}*{1}", "{0}/{1}", "{0}^{1}", "{0}^3", "{0}^0.5*{1}"]


def formulas() -> list[str]:
    """Return formulas whose rounding errors are not amplified: products of functions."""
    rng = np.random.default_rng(5)
    single = [each.format("x") + " + 0*y" for each in unary()]
    double = [each.format("x", "y") for each in pairs()]
    factors = list(itertools.product(unary(), [*unary(), *pairs()]))
    drawn = [factors[k] for k in rng.choice(len(factors), FORMULAS, replace=False)]
    mixed = [f"{a.format('x')}*{b.format('y', 'x')}" for a, b in drawn]
    return (single + double + mixed)[:FORMULAS]


def assert_close(found: Any, expected: Any, what: str, ulps: float = ULPS) -> None:
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    with np.errstate(all="ignore"):
        allowed = ulps * np.spacing(np.abs(expected))
        if any(f"{name}(" in what for name in NEAR_ZEROS):
            allowed = np.maximum(allowed, NEAR_ZEROS_ATOL)
        near = np.abs(found - expected) <= allowed
    assert (same | near).all(), f"{what}: {found}, not {expected}"


@needs_node
def test_two_hundred_formulas_are_within_four_ulp_of_python() -> None:
    texts = formulas()
    assert len(set(texts)) == FORMULAS
    programs = [parse(text) for text in texts]
    for function, text, found in zip(
        programs, texts, run([script(f, POINTS) for f in programs]), strict=True
    ):
        assert_close(found, [in_python(function, point) for point in POINTS], text)


@needs_node
def test_gradients_of_every_third_agree_with_python() -> None:
    """Their sums cancel, so that the bound is relative to the largest entry and looser."""
    texts = [text for text in formulas()[::3] if "digamma" not in text]
    found = [(text, dl.gradient(parse(text))) for text in texts]
    results = run([script(f, POINTS) for _, f in found])
    for (text, function), result in zip(found, results, strict=True):
        expected = np.array([in_python(function, point) for point in POINTS])
        np.testing.assert_allclose(
            result, expected, rtol=2e-14, atol=1e-14 * np.abs(expected).max(), err_msg=text
        )


@needs_node
def test_programs_arrays_and_repetition_agree() -> None:
    every = [*functions(), *repeated()]
    results = run([script(f, [point_of(f)]) for f in every])
    for function, found in zip(every, results, strict=True):
        np.testing.assert_allclose(
            found[0], function.values(point_of(function)), rtol=1e-13, atol=1e-15
        )


@needs_node
def test_loops_and_branches_agree_with_python() -> None:
    every = derived()
    for function, found in zip(every, run([script(f, [start(f)]) for f in every]), strict=True):
        expected = in_python(function, start(function))
        np.testing.assert_allclose(found[0], expected, rtol=1e-13, atol=1e-15)


@needs_node
def test_derivatives_keep_digits_and_nan_at_the_edges() -> None:
    programs: list[Function] = []
    for program, _, _ in EDGES:
        function = parse(program.removeprefix("derivative of "))
        programs.append(dl.gradient(function) if program.startswith("derivative") else function)
    results = run([script(f, [point]) for f, (_, point, _) in zip(programs, EDGES, strict=True)])
    for (program, point, exact), found in zip(EDGES, results, strict=True):
        with mpmath.workdps(40):
            names = {"x": mpmath.mpf(point[0]), "exp": mpmath.exp, "mpf": mpmath.mpf}
            expected = float(eval(exact, {**names, "nan": math.nan, "inf": math.inf}))
        assert found[0, 0] == pytest.approx(expected, rel=1e-15, abs=0.0, nan_ok=True), program


@needs_node
def test_special_functions_are_those_of_mpmath() -> None:
    at = np.concatenate([np.linspace(-5.9, 6.1, 61), [1e-300, 1e-9, 20.5, 26.0, 170.2]])
    exact = {"erf": mpmath.erf, "erfc": mpmath.erfc, "gamma": mpmath.gamma}
    results = run([script(parse(f"{name}(x)"), at[:, None]) for name in exact])
    for (name, call), found in zip(exact.items(), results, strict=True):
        expected = [float(call(mpmath.mpf(x))) for x in at]
        assert_close(found[:, 0], expected, name, 16.0 if name == "gamma" else ULPS)


def test_names_of_javascript_are_not_taken() -> None:
    text = javascript(parse("double*for_ + var + let - function_*abs(NaN_)*Math"))
    assert "function f(Math_, NaN_" in text
    assert "let_" in text


@pytest.mark.parametrize("program", ["exp_remainder(y, 0, x)", "cos_remainder(1, y, x)"])
def test_what_javascript_has_not_is_said(program: str) -> None:
    with pytest.raises(UnsupportedError, match="JavaScript has no function for"):
        javascript(parse(program))


def test_what_is_not_used_is_not_defined() -> None:
    assert javascript(parse("exp(x)")).count("function") == 1
    assert javascript(parse("max(x, 1)")).count("function") == 2
    assert "const {" not in javascript(parse("x + y"))


def test_expressions_stay_short() -> None:
    for program in ("-" * 5000 + "x", "exp(" * 5000 + "x" + ")" * 5000):
        assert max(map(len, javascript(parse(program)).splitlines())) < 400
    assert python(parse("x")) != javascript(parse("x"))
