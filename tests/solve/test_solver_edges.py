"""Solvers at the edges: far starts, extreme scales, bounds, lists, and what is refused."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import integrate, optimize

import difflab as dl
from difflab.errors import ConvergenceError, InputError
from difflab.solve import Bounds, fixed_point, ivp, linear, minimize, quad, root


@pytest.mark.parametrize("start", [1e2, 1e6, 1e9, 1e20])
@pytest.mark.parametrize("a", [2.0, 1e-8, 4e-20])
def test_a_far_start_does_not_loosen_the_tolerance(start: float, a: float) -> None:
    found = root(lambda x, a: x * x - a, start, a, maxiter=200).x
    slope = dl.grad(lambda a: root(lambda x, a: x * x - a, start, a, maxiter=200).x)(a)
    assert float(found) == pytest.approx(np.sqrt(a), rel=1e-14)
    assert float(slope) == pytest.approx(0.5 / np.sqrt(a), rel=1e-13)


def test_a_far_start_that_has_no_time_to_arrive_is_an_error() -> None:
    with pytest.raises(ConvergenceError):
        root(lambda x: x * x - 2, 1e40)


def test_unknowns_of_different_sizes_are_each_accurate() -> None:
    def f(x, a):
        return [x[0] ** 2 - a, x[1] - 1e12]

    found = dl.jacobian(lambda a: root(f, np.ones(2), a).x)(4e-20)
    assert root(f, np.ones(2), 4e-20).x[0] == pytest.approx(2e-10, rel=1e-13)
    np.testing.assert_allclose(found, [0.5 / 2e-10, 0.0], rtol=1e-12)


def test_minimum_from_far_away() -> None:
    def objective(x, c):
        return (x - c) ** 2 + (x - c) ** 4

    assert float(minimize(objective, 1e8, 1.0).x) == pytest.approx(1.0, rel=1e-12)
    assert float(dl.grad(lambda c: minimize(objective, 1e8, c).x)(1.0)) == pytest.approx(1.0)


def test_fixed_point_from_far_away() -> None:
    def step(x, p):
        return 0.5 * x + p * np.cos(x)

    with mpmath.workdps(30):
        truth = mpmath.findroot(lambda x: x - mpmath.mpf("2e-3") * mpmath.cos(x), 0.002)
        slope = 2 * mpmath.cos(truth) / (1 + mpmath.mpf("2e-3") * mpmath.sin(truth))
    assert float(fixed_point(step, 1e13, 1e-3)) == pytest.approx(float(truth), rel=1e-12)
    found = dl.grad(lambda p: fixed_point(step, 1e13, p))(1e-3)
    assert float(found) == pytest.approx(float(slope), rel=1e-11)


@pytest.mark.parametrize("scale", [1e-200, 1e-170, 1e160, 1e200])
def test_vectors_whose_squares_leave_the_range_of_float64(scale: float) -> None:
    start = np.array([1.0, 3.0])
    equal = root(lambda x: scale * (x * x - 2), start).x
    np.testing.assert_allclose(equal, np.sqrt([2.0, 2.0]), rtol=1e-15)
    lowest = minimize(lambda x: scale * np.sum((x - 3) ** 2), start).x
    np.testing.assert_allclose(lowest, [3.0, 3.0], rtol=1e-15)
    fixed = fixed_point(lambda x: 0.5 * x + scale, np.zeros(2))
    np.testing.assert_allclose(fixed, [2 * scale, 2 * scale], rtol=1e-14)


def test_multiple_roots_are_found_to_the_accuracy_of_the_function() -> None:
    assert float(root(lambda x: (x - 1) ** 2, 3.0).x) == pytest.approx(1.0, abs=1e-14)
    assert float(root(lambda x: (x - 1) ** 3, 3.0).x) == pytest.approx(1.0, abs=1e-14)
    with pytest.raises(ConvergenceError, match="singular"):
        dl.grad(lambda a: root(lambda x: (x - a) ** 3, 3.0).x)(1.0)


def test_lists_of_numbers_are_arrays_as_in_scipy() -> None:
    def f(x):
        return [x[0] ** 2 + x[1] - 3, x[0] - x[1] ** 3]

    expected = optimize.root(f, [1, 1]).x
    for start in ([1, 1], [1.0, 1.0], np.array([1, 1])):
        found = root(f, start).x
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, expected, rtol=1e-7)
    assert root(lambda x: (x[0] - 1.0, x[1] - 2), np.zeros(2)).x.tolist() == [1.0, 2.0]
    assert minimize(lambda x: np.sum((x - 3) ** 2), [0, 0]).x.tolist() == [3.0, 3.0]
    assert linear(lambda x: 2 * x, [1, 4]).tolist() == [0.5, 2.0]
    assert root(lambda x: (x[0] - 1.0, x[1] - 2), (0.0, 0.0)).x == (1.0, 2.0)


def test_none_is_no_bound_inside_a_tree_too() -> None:
    def objective(x):
        return (x["a"] - 3) ** 2 + np.sum((x["b"] - 1) ** 2)

    start = {"a": 0.0, "b": np.zeros(2)}
    bounds = Bounds({"a": None, "b": 2.0}, {"a": 1.0, "b": None})
    found = minimize(objective, start, bounds=bounds).x
    assert (float(found["a"]), found["b"].tolist()) == (1.0, [2.0, 2.0])
    without = minimize(objective, start, bounds=Bounds({"a": None, "b": None}, None)).x
    assert (float(without["a"]), without["b"].tolist()) == (3.0, [1.0, 1.0])


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (Bounds(2.0, 1.0), "contradict"),
        (Bounds(np.nan, 1.0), "contradict"),
        ((2.0, 1.0), "contradict"),
        (3, "pairs"),
    ],
)
def test_impossible_bounds_are_refused(bounds: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        minimize(lambda x: x * x, 1.0, bounds=bounds)
    with pytest.raises(InputError, match="pairs"):
        minimize(lambda x: np.sum(x * x), np.ones(2), bounds=3)


@pytest.mark.parametrize(
    "call",
    [
        lambda: root(lambda x: x, 1.0, tol=-1),
        lambda: root(lambda x: x, 1.0, tol=np.nan),
        lambda: root(lambda x: x, 1.0, tol="1e-8"),
        lambda: root(lambda x: x, 1.0, maxiter=0),
        lambda: fixed_point(lambda x: x, 1.0, xtol=-1.0),
        lambda: fixed_point(lambda x: x, 1.0, maxiter=2.5),
        lambda: minimize(lambda x: x * x, 1.0, maxiter=-3),
        lambda: quad(lambda x: x, 0.0, 1.0, limit=0),
        lambda: quad(lambda x: x, 0.0, 1.0, epsabs=-1.0),
        lambda: ivp(lambda t, y: -y, (0, 1), 1.0, max_steps=True),
        lambda: ivp(lambda t, y: -y, (0, 1), 1.0, atol=np.array([1e-8])),
    ],
)
def test_options_that_mean_nothing_are_refused(call) -> None:
    with pytest.raises(InputError, match=r"at least|from 1 to"):
        call()


def test_options_may_be_numpys_numbers() -> None:
    found = root(lambda x: x * x - 2, 1.0, tol=np.float32(1e-6), maxiter=np.int64(50)).x
    assert float(found) == pytest.approx(np.sqrt(2), rel=1e-15)

    def decay(t, y):
        return -y

    found = ivp(decay, (0, 1), 1.0, rtol=np.float32(1e-8), max_steps=np.int64(1000)).y[-1]
    assert float(found) == pytest.approx(np.exp(-1), rel=1e-6)


@pytest.mark.parametrize("f", [lambda x: 2 * x + 1, lambda x: x * x + x, lambda x: x * (1 + x)])
def test_linear_refuses_a_function_that_is_not_linear(f) -> None:
    for right in (3.0, np.ones(2)):
        with pytest.raises(ConvergenceError, match="not linear"):
            linear(f, right)
    assert np.isnan(dl.jit(lambda b: linear(f, b))(3.0))


def test_linear_takes_an_ill_conditioned_function() -> None:
    hilbert = 1.0 / (np.arange(8)[:, None] + np.arange(8) + 1.0)
    found = linear(lambda x: hilbert @ x, np.ones(8))
    np.testing.assert_allclose(found, np.linalg.solve(hilbert, np.ones(8)), rtol=1e-4)


def test_infinite_bounds_of_quad() -> None:
    def f(x):
        return np.exp(-x) * np.cos(x)

    expected = integrate.quad(f, 0, np.inf)[0]
    for end in (np.inf, np.float64(np.inf), np.array(np.inf)):
        assert float(quad(f, 0.0, end)[0]) == pytest.approx(expected, rel=1e-9)
    with pytest.raises(InputError, match="infinite"):
        dl.grad(lambda b: quad(f, 0.0, b)[0])(np.inf)
    with pytest.raises(InputError, match="nan"):
        quad(f, 0.0, np.nan)
    assert np.isnan(dl.jit(lambda b: quad(f, 0.0, b)[0])(np.inf))


def test_an_integrand_without_numbers_is_refused() -> None:
    with pytest.raises(InputError, match="no numbers"):
        quad(lambda x: None, 0.0, 1.0)


@pytest.mark.parametrize("start", [1.0, np.ones(2)])
def test_steps_that_begin_at_the_solution_have_its_derivative(start: object) -> None:
    def found(a):
        return root(lambda x: x * x - a, start, derivative="unrolled").x

    def lowest(c):
        return minimize(lambda x: np.sum((x - c) ** 2), start, derivative="unrolled").x

    np.testing.assert_allclose(dl.jacobian(found)(1.0), 0.5, rtol=1e-15)
    np.testing.assert_allclose(dl.jacobian(lowest)(1.0), 1.0, rtol=1e-15)
    assert float(root(lambda x: x * x, 0.0).x) == 0.0


def test_bounds_are_lists_as_the_unknowns_are() -> None:
    for lower, upper in (([0, 0], [1, 2]), ([0, None], [1, 2.0]), (None, np.array([1.0, 2.0]))):
        found = minimize(lambda x: np.sum((x - 3) ** 2), [0, 0], bounds=Bounds(lower, upper)).x
        assert found.tolist() == [1.0, 2.0]


# --- integrands that are infinite at a bound ---------------------------------------------------


def half_disc(p: Any, derivative: Any = "implicit") -> Any:
    """Return the area π p²/2 under √(p² - x²), whose slope by p is infinite at both bounds."""
    y, _ = dl.solve.quad(lambda x, p: np.sqrt(p * p - x * x), -p, p, p, derivative=derivative)
    return y


@pytest.mark.parametrize("p", [0.3, 1.3, 250.0])
@pytest.mark.parametrize("derivative", ["implicit", "unrolled"])
def test_the_slope_of_an_integral_whose_integrands_is_infinite_at_bounds(
    p: float, derivative: str
) -> None:
    assert half_disc(p) == pytest.approx(math.pi * p**2 / 2, rel=1e-8)
    expected = pytest.approx(math.pi * p, rel=1e-8)
    assert dl.grad(half_disc)(p, derivative) == expected
    assert dl.jvp(lambda p: half_disc(p, derivative), (p,), (1.0,))[1] == expected
    t = dl.tensor(p, requires_grad=True)
    half_disc(t, derivative).backward()
    assert float(t.grad) == expected
    batch = dl.vmap(dl.grad(lambda p: half_disc(p, derivative)))(np.array([p, 2 * p]))
    np.testing.assert_allclose(batch, [math.pi * p, 2 * math.pi * p], rtol=1e-8)


def test_the_period_of_a_pendulum_by_its_amplitude() -> None:
    """4 K(sin(a/2)): the integrand 1/√(cos x - cos a) is infinite at the bound a."""

    def period(a: Any) -> Any:
        def time(x: Any, a: Any) -> Any:  # cos x - cos a without its cancellation
            return 1 / np.sqrt(np.sin((a + x) / 2) * np.sin((a - x) / 2))

        return 2 * dl.solve.quad(time, 0.0, a, a)[0]

    assert dl.jit(period)(1.0) == pytest.approx(
        float(4 * mpmath.ellipk(math.sin(0.5) ** 2)), rel=1e-8
    )


SINGULAR = [
    (lambda x: x**-0.5, 0.0, 1.0, 2.0),
    (lambda x: np.abs(x) ** -0.75, -1.0, 0.0, 4.0),
    (lambda x: (x * (1 - x)) ** -0.5, 0.0, 1.0, math.pi),
    (np.log, 0.0, 1.0, -1.0),
    (lambda x: x**-0.5, 1.0, 0.0, -2.0),
    (lambda x: x**-1.5, 1.0, np.inf, 2.0),
]


@pytest.mark.parametrize(("f", "a", "b", "expected"), SINGULAR)
def test_integrands_that_are_infinite_at_a_bound(
    f: Any, a: float, b: float, expected: float
) -> None:
    y, abserr = dl.solve.quad(f, a, b)
    assert abs(y - expected) <= max(abserr, 1e-13)
    assert abserr <= 1.5e-8 * abs(expected)


def test_a_singular_bound_takes_few_intervals() -> None:
    assert dl.solve.quad(lambda x: x**-0.5, 0.0, 1.0, limit=12)[0] == pytest.approx(2, rel=1e-12)


def _no_root(a: Any, derivative: Any) -> Any:
    return root(lambda x, a: x * x - a, 1.0, a, derivative=derivative).x


def _no_fixed_point(a: Any, derivative: Any) -> Any:
    return fixed_point(lambda x, a: (a - 5) * x + 1, 0.5, -a, derivative=derivative)


def _no_minimum(a: Any, derivative: Any) -> Any:
    return minimize(lambda x, a: a * (x - a) ** 2, 0.5, a, derivative=derivative).x


def _no_integral(a: Any, derivative: Any) -> Any:
    return quad(lambda x, a: np.exp(a) / x, 0.0, 1.0, a, derivative=derivative)[0]


@pytest.mark.parametrize("derivative", ["implicit", "unrolled"])
@pytest.mark.parametrize("solver", [_no_root, _no_fixed_point, _no_minimum, _no_integral])
def test_without_a_solution_every_derivative_is_nan(solver: Any, derivative: Any) -> None:
    """Compiled code and batches raise no error; 0 or inf would look like an answer."""

    def of(a: Any) -> Any:
        return solver(a, derivative)

    push = lambda a: dl.jvp(of, (a,), (1.0,))  # noqa: E731
    for call in (of, push, dl.grad(of), dl.hessian(of)):
        assert np.isnan(dl.jit(call)(-1.0)).all(), call
    assert np.isnan(dl.vmap(dl.grad(of))(np.array([-1.0, -2.0]))).all()


@pytest.mark.parametrize("derivative", ["implicit", "unrolled"])
@pytest.mark.parametrize("at", [(np.nan, 3.0), (0.5, np.nan)])
def test_derivatives_at_nan_in_bounds_are_nan(derivative: Any, at: tuple[float, float]) -> None:
    """By what the bounds hide as well: the derivative of a maximum of nan is 0."""

    def of(p: Any) -> Any:
        bounds = [(-3.0, 3.0), (-np.inf, 3.0 * p[1])]
        found = minimize(
            lambda x, p: np.sum((x - p[0]) ** 2 + x**4), np.array([1.0, 2.0]), p,
            derivative=derivative, bounds=bounds,
        )  # fmt: skip
        return np.sum(found.x)

    for transform in (dl.grad, dl.jacfwd, dl.hessian):
        found = dl.jit(transform(of))(np.array(at))
        assert np.isnan(found).all(), (transform, found)
        batch = dl.vmap(transform(of))(np.array([at, (0.5, 3.0)]))
        assert np.isnan(batch[0]).all()
        assert np.isfinite(batch[1]).all()


def test_the_derivatives_of_a_minimum_between_contradicting_bounds_are_nan() -> None:
    def of(p: Any, low: Any) -> Any:
        return minimize(lambda x, p: (x - p) ** 2, 0.5, p, bounds=Bounds(low, 10.0)).x

    gradient = dl.jit(dl.grad(of, argnums=(0, 1)))
    assert np.isnan(gradient(1.0, 11.0)).all()
    assert np.isnan(gradient(1.0, np.nan)).all()
    assert gradient(1.0, -np.inf) == (1.0, 0.0)


def test_a_function_that_is_not_linear_has_no_derivative_by_linear() -> None:
    def of(p: Any) -> Any:
        return np.sum(linear(lambda x, p: p * x * x, np.ones(2), p))

    assert np.isnan(dl.jit(dl.grad(of))(2.0))
