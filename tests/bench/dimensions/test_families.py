"""Members of families have the shapes and values that the sizes give."""

from __future__ import annotations

import numpy as np
import pytest

import difflab as dl
from difflab.bench.dimensions.families import formula_family, python_family
from difflab.bench.renaming import renamed
from difflab.errors import InputError


@pytest.mark.parametrize(
    ("text", "sizes", "shape", "value"),
    [
        ("x: [n]; sum(x*x)/n", ("n",), (3, 1), lambda x: [np.mean(x * x)]),
        ("x: [n]; W: [m, n]; W@x", ("n", "m"), (9, 2), lambda x: x[:6].reshape(2, 3) @ x[6:]),
        ("iterate(y = x; n times; 2*y)", ("n",), (1, 1), lambda x: 8 * x),
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
