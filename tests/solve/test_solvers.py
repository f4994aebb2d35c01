"""`fixed_point`, `minimize`, `linear` and `quad`, against formulas, SciPy and mpmath."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.random import Generator
from scipy import integrate, optimize

import difflab as dl
from difflab.errors import ConvergenceError, InputError, ShapeError
from difflab.solve import Bounds, fixed_point, linear, minimize, quad

HOW = ["implicit", "unrolled"]


@pytest.mark.parametrize("derivative", HOW)
def test_a_fixed_point_is_christiansons_derivative(rng: Generator, derivative: Any) -> None:
    a, b = rng.normal(size=(3, 3)) / 4, rng.normal(size=3)
    step = lambda x, a, b: np.tanh(a @ x + b)  # noqa: E731
    x = fixed_point(step, np.zeros(3), a, b)
    np.testing.assert_allclose(x, np.tanh(a @ x + b), rtol=1e-14)
    found = dl.grad(lambda a: np.sum(fixed_point(step, np.zeros(3), a, b, derivative=derivative)))(
        a
    )
    slope = np.diag(1 - x**2)
    weights = np.linalg.solve((np.eye(3) - slope @ a).T, np.ones(3))
    np.testing.assert_allclose(found, np.outer(slope @ weights, x), rtol=1e-9)


def test_slow_and_diverging_iterations() -> None:
    assert fixed_point(lambda x, r: r * x + (1 - r), 0.0, 0.99) == pytest.approx(1, rel=1e-12)
    with pytest.raises(ConvergenceError, match="fixed_point does not converge in 50 steps"):
        fixed_point(lambda x: 0.99 * x + 1, 0.0, maxiter=50)
    with pytest.raises(ConvergenceError, match="contraction"):
        fixed_point(lambda x: 2 * x + 1, 1.0)


def valley(x: Any, p: Any) -> Any:
    return (p["a"] - x[0]) ** 2 + p["b"] * (x[1] - x[0] ** 2) ** 2


@pytest.mark.parametrize("derivative", HOW)
def test_a_minimum_follows_its_parameters(derivative: Any) -> None:
    start, p = np.array([-1.2, 1.0]), {"a": 1.0, "b": 100.0}
    solve = lambda p: minimize(valley, start, p, derivative=derivative).x  # noqa: E731
    np.testing.assert_allclose(solve(p), [1, 1], rtol=1e-12)
    slope = dl.jacrev(solve)(p)
    np.testing.assert_allclose(slope["a"], [1, 2], rtol=1e-9)  # the minimum is (a, a²)
    np.testing.assert_allclose(slope["b"], [0, 0], atol=1e-9)
    second = dl.jacfwd(dl.jacrev(lambda a: solve({"a": a, "b": 100.0})))(1.0)
    np.testing.assert_allclose(second, [0, 2], atol=1e-6)


def test_active_bounds_carry_the_derivative(rng: Generator) -> None:
    f = lambda x, c: np.sum((x - c) ** 2) + x[0] * x[1]  # noqa: E731
    c, start = np.array([2.0, 1.0]), np.zeros(2)
    solve = lambda c, top: minimize(f, start, c, bounds=Bounds(None, top)).x  # noqa: E731
    top = np.array([0.5, 9.0])
    expected = [0.5, 0.75]  # at x = ½ the slope 2(y - 1) + ½ vanishes
    np.testing.assert_allclose(solve(c, top), expected, rtol=1e-12)
    by_top = dl.jacrev(lambda top: solve(c, top))(top)
    np.testing.assert_allclose(by_top, [[1, 0], [-0.5, 0]], atol=1e-12)
    by_c = dl.jacfwd(lambda c: solve(c, top))(c)
    np.testing.assert_allclose(by_c, [[0, 0], [0, 1]], atol=1e-12)
    pairs = minimize(f, start, c, bounds=[(None, 0.5), (None, None)]).x
    np.testing.assert_allclose(pairs, expected, rtol=1e-12)
    scipys = minimize(f, start, c, bounds=optimize.Bounds([-9, -9], [0.5, 9])).x
    np.testing.assert_allclose(scipys, expected, rtol=1e-12)


def test_no_minimum_is_an_error() -> None:
    saddle = lambda x: x[0] ** 2 - x[1] ** 2 + x[1] ** 4  # noqa: E731
    with pytest.raises(ConvergenceError, match="not positive definite"):
        minimize(saddle, np.array([1.0, 0.0]))
    beside = minimize(saddle, np.array([1.0, 0.1]))
    np.testing.assert_allclose(beside.x, [0, np.sqrt(0.5)], atol=1e-9)
    assert beside.fun == pytest.approx(-0.25, rel=1e-12)
    with pytest.raises(ConvergenceError, match="minimize does not converge"):
        minimize(lambda x: x, 1.0)
    with pytest.raises(ShapeError, match="returns a number"):
        minimize(lambda x: x, np.ones(2))
    with pytest.raises(ShapeError, match="3 bounds"):
        minimize(lambda x: np.sum(x**2), np.ones(2), bounds=[(0, 1)] * 3)
    with pytest.raises(InputError, match="pairs"):
        minimize(lambda x: np.sum(x**2), np.ones(2), bounds=[0, 1])


def test_batches_of_minima() -> None:
    f = lambda x, c: np.sum((x - c) ** 2) + 0.5 * np.sum(x**4)  # noqa: E731
    solve = lambda c: minimize(f, np.zeros(2), c).x  # noqa: E731
    rows = np.array([[0.0, 1.0], [2.0, -3.0]])
    np.testing.assert_allclose(dl.vmap(solve)(rows), [solve(row) for row in rows], rtol=1e-12)
    expected = np.stack([np.diag(1 / (1 + 3 * solve(row) ** 2)) for row in rows])
    np.testing.assert_allclose(dl.vmap(dl.jacrev(solve))(rows), expected, atol=1e-12)


def test_linear_systems_of_matrices_functions_and_trees(rng: Generator) -> None:
    a, b = rng.normal(size=(3, 3)) + 3 * np.eye(3), rng.normal(size=3)
    inverse = np.linalg.inv(a)
    np.testing.assert_allclose(linear(a, b), inverse @ b, rtol=1e-12)
    by_b = dl.jacrev(lambda b: linear(a, b))(b)
    np.testing.assert_allclose(by_b, inverse, rtol=1e-12)
    by_a = dl.grad(lambda a: np.sum(linear(lambda x, a: a @ x, b, a)))(a)
    np.testing.assert_allclose(by_a, -np.outer(inverse.T @ np.ones(3), inverse @ b), rtol=1e-10)
    tree = linear(lambda x, k: (k * x[0] + x[1], x[1] - x[0]), (1.0, 2.0), 3.0)
    np.testing.assert_allclose(tree, (-0.25, 1.75))
    with pytest.raises(ConvergenceError, match="singular"):
        linear(np.zeros((2, 2)), np.ones(2))
    with pytest.raises(InputError, match="this is a matrix"):
        linear(a, b, 1.0)


@pytest.mark.parametrize("derivative", HOW)
@mpmath.workdps(30)
def test_integrals_by_parameters_and_bounds(derivative: Any) -> None:
    f = lambda x, p: p[0] * np.exp(-p[1] * x**2)  # noqa: E731
    area = lambda a, b, p: quad(f, a, b, p, derivative=derivative)[0]  # noqa: E731
    p = np.array([1.5, 0.7])
    by_a, by_b, by_p = dl.grad(area, argnums=(0, 1, 2))(-0.5, 2.0, p)
    assert by_a == pytest.approx(-f(-0.5, p), rel=1e-10)
    assert by_b == pytest.approx(f(2.0, p), rel=1e-10)

    def exact(c: Any, k: Any) -> Any:
        return mpmath.quad(lambda x: c * mpmath.exp(-k * x * x), [-0.5, 0, 2])

    expected = [mpmath.diff(exact, tuple(p), order) for order in ((1, 0), (0, 1))]
    np.testing.assert_allclose(by_p, np.array(expected, float), rtol=1e-10)
    second = dl.jacfwd(dl.grad(lambda k: area(-0.5, 2.0, np.stack([1.5, k]))))(0.7)
    assert second == pytest.approx(float(mpmath.diff(exact, tuple(p), (0, 2))), rel=1e-8)


def test_the_estimate_is_quadpacks() -> None:
    y, error = quad(lambda x: np.exp(-2 * x * x), 0.0, 1.0)
    expected = integrate.quad(lambda x: np.exp(-2 * x * x), 0.0, 1.0)
    assert (y, error) == pytest.approx(expected, rel=1e-13)


def test_infinite_reversed_and_array_valued_integrals() -> None:
    gauss = lambda x: np.exp(-(x**2))  # noqa: E731
    half = np.sqrt(np.pi) / 2
    assert quad(gauss, -np.inf, np.inf)[0] == pytest.approx(2 * half, rel=1e-8)
    assert quad(gauss, 0.0, np.inf)[0] == pytest.approx(half, rel=1e-8)
    assert quad(gauss, -np.inf, 0.0)[0] == pytest.approx(half, rel=1e-8)
    assert quad(gauss, np.inf, 0.0)[0] == pytest.approx(-half, rel=1e-8)
    assert quad(gauss, 1.0, 0.0)[0] == pytest.approx(-quad(gauss, 0.0, 1.0)[0], rel=1e-14)
    rates = np.array([1.0, 2.0, 4.0])
    total = lambda w: quad(lambda x: np.exp(-w * x), 0.0, np.inf)[0]  # noqa: E731
    np.testing.assert_allclose(total(rates), 1 / rates, rtol=1e-7)
    np.testing.assert_allclose(dl.jacrev(total)(rates), np.diag(-1 / rates**2), atol=1e-7)
    by_end = dl.grad(lambda c: quad(lambda x: np.exp(-x), c, np.inf)[0])(0.3)
    assert by_end == pytest.approx(-np.exp(-0.3), rel=1e-7)
    tree = quad(lambda x: {"s": np.sin(x), "c": np.cos(x)}, 0.0, np.pi / 2)[0]
    assert tree == pytest.approx({"s": 1.0, "c": 1.0}, rel=1e-12)


def test_divergent_integrals_are_errors() -> None:
    with pytest.raises(ConvergenceError, match="quad does not converge"):
        quad(lambda x: 1 / x, 0.0, 1.0)
    with pytest.raises(ConvergenceError, match="not finite"):
        quad(lambda x: np.log(x), -1.0, 1.0)
    with pytest.raises(ShapeError, match="bounds"):
        quad(lambda x: x, np.zeros(2), 1.0)
    assert np.isnan(dl.jit(lambda b: quad(lambda x: 1 / x, 0.0, b)[0])(1.0))


def test_kinks_are_integrated_and_singular_edges() -> None:
    by_kink = dl.grad(lambda p: quad(lambda x: np.abs(x - p), 0.0, 1.0)[0])(0.3)
    assert by_kink == pytest.approx(2 * 0.3 - 1, abs=1e-7)
    assert quad(lambda x: 1 / np.sqrt(x), 0.0, 1.0)[0] == pytest.approx(2, rel=1e-6)
