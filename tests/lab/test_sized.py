"""Members of families have the shapes and values that the sizes give."""

from __future__ import annotations

import numpy as np
import pytest

import difflab as dl
from difflab.errors import InputError, ParseError
from difflab.lab.problems.sized import formula_family, python_family, renamed


def _product(x):
    """W is 2 by 4, x has 6 elements, of which the last 4 are taken."""
    return 2 * (x[:8].reshape(2, 4) @ x[10:])


@pytest.mark.parametrize(
    ("text", "sizes", "shape", "value"),
    [
        ("x: [n]; sum(x*x)/n", ("n",), (3, 1), lambda x: [np.mean(x * x)]),
        ("x: [n]; W: [m, n]; W@x", ("n", "m"), (9, 2), lambda x: x[:6].reshape(2, 3) @ x[6:]),
        ("iterate(y = x; n times; 2*y)", ("n",), (1, 1), lambda x: 8 * x),
        ("x: [2*n]; W: [m, n+1]; W@x[n-1:]*m", ("n", "m"), (14, 2), _product),
        ("x: [floor(n/2) + m²]; sum(x)", ("n", "m"), (5, 1), lambda x: [np.sum(x)]),
        ("iterate(y = x; 2*n - 1 times; 2*y)", ("n",), (1, 1), lambda x: 32 * x),
        ("x: [n]; [n*x[0], n/2]", ("n",), (3, 2), lambda x: [3 * x[0], 1.5]),
    ],
)
def test_sizes_stand_in_shapes_loops_and_numbers(text, sizes, shape, value):
    family = formula_family(text)
    function, point = family.member(3, 2)
    assert family.sizes == sizes
    assert (function.n, function.m) == shape
    np.testing.assert_allclose(function.values(point[None])[0], value(point), rtol=1e-15)


def test_only_whole_names_are_replaced():
    assert renamed("n + nn + x.n + sin(n) # n", {"n": "7"}) == "7 + nn + x.7 + sin(7) # n"
    assert renamed("y[3]*y + y₂", {"y": "z"}) == "z[3]*z + y₂"


@pytest.mark.parametrize(
    ("text", "message", "marked"),
    [
        ("x: [n/2]; x", "n/2 is 1.5 for n = 3; the size must be an integer", "n/2"),
        ("W: [m, n - 5]; W", "n - 5 is -2 for n = 3; the size must be at least 1", "n - 5"),
        ("x: [1/(n - 3)]; x", "is inf for n = 3", "1/(n - 3)"),
        ("x: [m*(n - 3)]; x", "is 0 for m = 2, n = 3; the size must be at least 1", "m*(n - 3)"),
        ("x: [n]; x[n/m]", "n/m is 1.5 for n = 3, m = 2; the index must be an integer", "n/m"),
        ("iterate(y = x; m - n times; y)", "number of steps must be at least 0", "m - n"),
    ],
)
def test_a_size_that_is_none_is_marked(text, message, marked):
    with pytest.raises(InputError) as error:
        formula_family(text).member(3, 2)
    assert message in error.value.message
    start, end = error.value.span
    assert error.value.text[start:end] == marked


@pytest.mark.parametrize("text", ["x: [2n]; x", "x: [k*n]; x", "x: [2*n*]; x", "x: [n, 2*n; x"])
def test_what_is_no_integer_expression_is_a_syntax_error(text):
    with pytest.raises(ParseError):
        formula_family(text).member(3, 2)


@pytest.mark.parametrize(
    ("text", "message"), [("x*y", "has no size"), ("n = 3; x*n*m", "n is a size")]
)
def test_a_formula_without_sizes_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        formula_family(text)


def test_a_python_family_returns_a_callable_or_a_function():
    def family(n, m):
        return lambda W, x: W @ x, (np.ones((m, n)), np.arange(n))

    function, point = python_family("k", family, ["n", "m"]).member(4, 2)
    np.testing.assert_array_equal(function.values(point[None])[0], [6, 6])
    recorded = dl.parse("x: [2]; x*x")
    assert python_family("k", lambda n: (recorded, [1, 2]), ["n"]).member(5, 1)[0] is recorded


@pytest.mark.parametrize(
    ("build", "parameters", "message"),
    [
        (lambda k: None, ["k"], "parameter 'k'"),
        (lambda: None, [], "no parameter"),
        (lambda n: np.sin, ["n"], "must return a function and its example arguments"),
        (lambda n: (dl.parse("x*y"), 1.0), ["n"], "1 arguments for a function of 2"),
    ],
)
def test_other_python_functions_are_refused(build, parameters, message):
    with pytest.raises(InputError, match=message):
        python_family("k", build, parameters).member(1, 1)
