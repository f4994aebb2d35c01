"""Functions: calling, batches, packing, equality, other libraries' values, errors."""

from __future__ import annotations

import pickle

import mpmath
import numpy as np
import pytest
import sympy

import difflab as dl
from difflab.errors import PointError
from difflab.graph.names import natural_order

SEED = "ln(x1) + x1*x2 - sin(x2)"


def test_a_point_by_position_and_by_name() -> None:
    f = dl.parse(SEED)
    expected = 11.652071455223084  # Baydin et al. (2018), Tables 2 and 3
    assert f(2.0, 5.0) == pytest.approx(expected, rel=1e-15)
    assert f(x2=5.0, x1=2.0) == f(2.0, 5.0) == f(2, x2=5)


def test_arrays_of_one_shape_are_a_batch() -> None:
    f = dl.parse(SEED)
    x1, x2 = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.full((2, 3), 5.0)
    assert np.allclose(f(x1, x2), np.log(x1) + x1 * x2 - np.sin(x2), rtol=1e-15)
    assert dl.gradient(f)(x1, 5.0).shape == (2, 3, 2)
    assert dl.hessian(f)(x1, x2).shape == (2, 3, 2, 2)


def test_constant_outputs_take_the_shape_of_the_batch() -> None:
    f = dl.parse("x: []\n[3, x]")
    three, x = f(np.zeros(4))
    assert three.shape == x.shape == (4,)


def test_array_inputs_broadcast_over_leading_axes() -> None:
    f = dl.parse("x: [3]; s: []\nsum(x*s + x)")
    x = np.arange(6.0).reshape(2, 3)
    assert np.allclose(f(x=x, s=np.array([2.0, -1.0])), [9.0, 0.0])
    assert np.allclose(f.values(np.column_stack([[2.0, -1.0], x])), [[9.0], [0.0]])


def test_packed_points_flatten_inputs_and_outputs() -> None:
    f = dl.parse("a: []; x: [2]\n[a*x, a]")
    assert (f.n, f.m) == (3, 3)
    assert f.values(np.array([2.0, 5.0, 7.0])).tolist() == [10.0, 14.0, 2.0]
    assert f.values(np.ones((5, 3))).shape == (5, 3)


def test_natural_order() -> None:
    assert dl.parse("x10 + x2 + a").inputs == ("a", "x2", "x10")
    assert sorted(["b1", "a", "x02", "x1"], key=natural_order) == ["a", "b1", "x1", "x02"]


def test_equality_is_of_computations() -> None:
    assert dl.parse("x + y") == dl.parse("(x)+ y  # the same")
    assert hash(dl.parse("x + y")) == hash(dl.parse("x+y"))
    assert dl.parse("x + y") != dl.parse("x - y")
    assert dl.parse("x") != dl.parse("y")
    assert dl.parse("x: [2]\nx[0]") != dl.parse("x: [3]\nx[0]")


def test_functions_pickle() -> None:
    f = dl.gradient(dl.parse("y: [2]\nwhere(x > 0, sqrt(x), y[1])*y[0]"))
    again = pickle.loads(pickle.dumps(f))
    assert again == f
    assert np.array_equal(again(x=4.0, y=[2.0, 3.0]), f(x=4.0, y=[2.0, 3.0]))


def test_values_of_other_libraries() -> None:
    f = dl.parse(SEED)
    with mpmath.workdps(40):
        value = f(mpmath.mpf(2), mpmath.mpf(5))
        expected = mpmath.mpf("11.65207145522308377831038652761417054143")
        assert abs(value - expected) < mpmath.mpf(10) ** -37
    x, y = sympy.symbols("x y")
    assert f(x, y) == sympy.log(x) + x * y - sympy.sin(y)


def test_a_function_of_nodes_is_inlined() -> None:
    f = dl.parse("x*y")
    square = dl.trace(lambda t: f(t, t + 1), 1.0)
    assert square(3.0) == 12.0


def test_mpmath_says_nan_where_reals_are_undefined() -> None:
    assert mpmath.isnan(dl.parse("sqrt(x)^2")(mpmath.mpf(-1)))
    assert dl.parse("1/x")(mpmath.mpf(0)) == mpmath.inf


def test_towers_of_powers_end() -> None:
    f = dl.parse("x^x^x^x")
    assert f(9.0) == np.inf
    assert f(mpmath.mpf(9)) == mpmath.inf


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((2.0,), {}, "no value is given for the input x2"),
        ((2.0, 10**400), {}, "'x2' is too large for a float64"),
        ((1.0, 2.0, 3.0), {}, "has 2 inputs"),
        ((1.0,), {"x1": 2.0}, "given twice"),
        ((1.0,), {"x3": 2.0}, "no input 'x3'"),
        ((1.0, "5"), {}, "'x2' is not a number"),
        ((np.ones(2), np.ones(3)), {}, "batches of the inputs differ"),
    ],
)
def test_wrong_values_are_named(
    args: tuple[object, ...], kwargs: dict[str, float], message: str
) -> None:
    with pytest.raises(PointError, match=message):
        dl.parse(SEED)(*args, **kwargs)


def test_a_wrong_shape_is_named() -> None:
    with pytest.raises(
        PointError, match=r"has the shape \(3,\), but its value has the shape \(2,\)"
    ):
        dl.parse("x: [3]\nsum(x)")([1.0, 2.0])
