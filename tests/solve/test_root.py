"""`root`: derivatives of every mode and order, trees, batches, and what cannot be solved."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.random import Generator

import difflab as dl
from difflab.errors import ConvergenceError, InputError, ShapeError


def square(x: Any, a: Any) -> Any:
    return x**2 - a


def square_root(a: Any, derivative: Any = "implicit") -> Any:
    return dl.solve.root(square, 1.0, a, derivative=derivative).x


def test_the_result_has_scipys_names() -> None:
    found = dl.solve.root(square, 1.0, 2.0)
    assert found.x == pytest.approx(np.sqrt(2), rel=1e-15)
    assert (found.success, found.nit, found.message) == (True, 5, "converged")
    assert abs(found.fun) < 1e-15
    traced = dl.jit(lambda a: dl.solve.root(square, 1.0, a))(2.0)
    assert bool(traced.success)
    assert traced.x == pytest.approx(np.sqrt(2), rel=1e-15)


@pytest.mark.parametrize("derivative", ["implicit", "unrolled"])
def test_three_orders_in_both_modes(derivative: Any) -> None:
    f = lambda a: square_root(a, derivative)  # noqa: E731
    assert dl.grad(f)(4.0) == pytest.approx(0.25, rel=1e-12)
    assert dl.jacfwd(f)(4.0) == pytest.approx(0.25, rel=1e-12)
    assert dl.grad(dl.grad(f))(4.0) == pytest.approx(-1 / 32, rel=1e-10)
    assert dl.jacfwd(dl.grad(f))(4.0) == pytest.approx(-1 / 32, rel=1e-10)
    if derivative == "implicit":
        assert dl.taylor(f, 4.0, order=3)[3] == pytest.approx(1 / 512, rel=1e-10)


def test_batches_jit_and_tensors_agree() -> None:
    at = np.array([1.0, 4.0, 9.0])
    slopes = 0.5 / np.sqrt(at)
    np.testing.assert_allclose(dl.vmap(square_root)(at), np.sqrt(at), rtol=1e-14)
    np.testing.assert_allclose(dl.vmap(dl.grad(square_root))(at), slopes, rtol=1e-14)
    np.testing.assert_allclose(dl.grad(lambda a: np.sum(dl.vmap(square_root)(a)))(at), slopes)
    assert dl.jit(dl.grad(square_root))(4.0) == pytest.approx(0.25, rel=1e-14)
    a = dl.tensor(4.0, requires_grad=True)
    square_root(a).backward()
    assert float(a.grad) == pytest.approx(0.25, rel=1e-14)
    (slope,) = dl.eager.grad(square_root(a), [a], create_graph=True)
    slope.backward()
    assert float(a.grad) == pytest.approx(0.25 - 1 / 32, rel=1e-12)


@pytest.mark.parametrize("target", ["auto", "numpy"])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_root_depends_on_nothing_else_in_its_batch_or_in_other_threads(
    target: Any, mode: Any, rng: Generator
) -> None:
    """Its bits are those of a batch of its own, whatever threads compute at the same time."""
    slope = dl.compile(dl.jacobian(dl.parse("root(x^3 - a, x, 1)"), mode), target, threads=2)
    points = rng.uniform(1.0, 3.0, 400)
    alone = np.array([np.ravel(slope(points[k : k + 1]))[0] for k in range(len(points))])
    np.testing.assert_allclose(alone, 1 / (3 * np.cbrt(points) ** 2), rtol=2e-15)
    batches = [rng.integers(0, len(points), size) for size in [1, 2, 7, 24, 24, 33, 400] * 12]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda chosen: np.ravel(slope(points[chosen])), batches))
    finally:
        sys.setswitchinterval(before)
    for chosen, values in zip(batches, found, strict=True):
        assert values.tolist() == alone[chosen].tolist()


def test_a_mapped_parameter_beside_a_shared_one() -> None:
    f = lambda a, b: dl.solve.root(lambda x: x**3 - a * b, 1.0).x  # noqa: E731
    total = lambda b: np.sum(dl.vmap(lambda a: f(a, b))(np.array([1.0, 8.0])))  # noqa: E731
    # The cube roots of b and 8 b, whose slopes are (1 + 2)/3 b^(-2/3).
    assert dl.grad(total)(8.0) == pytest.approx(0.25, rel=1e-12)


def test_trees_dictionaries_and_captured_parameters() -> None:
    def meet(x: Any, p: Any) -> Any:
        return {"u": x["u"] * x["v"] - p["product"], "v": x["u"] + x["v"] - p["sum"]}

    first, p = {"u": 1.0, "v": 5.0}, {"product": 6.0, "sum": 5.0}
    slope = dl.grad(lambda p: dl.solve.root(meet, first, p).x["u"])(p)
    # u solves u² - s u + q = 0: u_q = -1/(2u - s), u_s = u/(2u - s) at u = 2, s = 5.
    assert slope["product"] == pytest.approx(1.0, rel=1e-12)
    assert slope["sum"] == pytest.approx(-2.0, rel=1e-12)
    captured = dl.grad(lambda a: dl.solve.root(lambda x: x**3 - a, 1.0).x)
    assert captured(8.0) == pytest.approx(1 / 12, rel=1e-12)
    w = dl.tensor(8.0, requires_grad=True)
    dl.solve.root(lambda x: x**3 - w, 1.0).x.backward()
    assert float(w.grad) == pytest.approx(1 / 12, rel=1e-12)


def test_float32_stays_float32() -> None:
    found = dl.solve.root(square, np.ones(2, np.float32), np.float32(2)).x
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.float32(np.sqrt(2)), rtol=1e-7)


def solves(function: dl.Function) -> int:
    """Return how many linear systems the graph solves outside the solver's own steps."""
    return sum(int(function.graph.applies(row).sum()) for row in function.graph.primitives
               if row.name in ("solve", "inv"))  # fmt: skip


@pytest.mark.parametrize("count", [1, 2])
def test_a_hundred_unknowns_take_one_linear_solve(rng: Generator, count: int) -> None:
    n = 100
    a = rng.normal(size=(n, n)) / 20 + 2 * np.eye(n)
    b = rng.normal(size=n)
    f = lambda x, b: a @ x + np.sin(x) - b  # noqa: E731
    x = dl.solve.root(f, np.zeros(n), b).x
    traced = dl.trace(lambda b: np.sum(dl.solve.root(f, np.zeros(n), b).x ** count), b)
    gradient = dl.gradient(traced, mode="reverse")
    assert solves(gradient) == 1
    whole = dl.trace(lambda b: dl.jacfwd(lambda b: dl.solve.root(f, np.zeros(n), b).x)(b), b)
    assert solves(whole) == 1  # with a column for each tangent
    jacobian = a + np.diag(np.cos(x))
    weights = np.ones(n) if count == 1 else 2 * x
    np.testing.assert_allclose(gradient(b), np.linalg.solve(jacobian.T, weights), rtol=1e-10)


@mpmath.workdps(30)
def test_a_root_inside_a_scan() -> None:
    def newton(c: Any, a: Any) -> Any:
        c = dl.solve.root(lambda x: x**3 + x - a - c, 0.5).x
        return c, c

    f = lambda a: dl.scan(newton, 0.0, a)[0]  # noqa: E731
    at = np.array([1.0, 2.0, 3.0])
    found = dl.grad(f)(at)

    def exact(*a: Any) -> Any:
        c = mpmath.mpf(0)
        for one in a:
            c = mpmath.findroot(lambda x, r=one + c: x**3 + x - r, 0.5)
        return c

    for k in range(3):
        order = tuple(int(k == j) for j in range(3))
        assert found[k] == pytest.approx(float(mpmath.diff(exact, tuple(at), order)), rel=1e-9)


def test_what_has_no_solution_is_an_error_and_nan_in_compiled_code() -> None:
    with pytest.raises(ConvergenceError, match="root does not converge"):
        dl.solve.root(lambda x: x * x + 1, 1.0)
    f = lambda a: dl.solve.root(square, 1.0, a)  # noqa: E731
    found = dl.jit(f)(-1.0)
    assert np.isnan(found.x)
    assert not bool(found.success)
    np.testing.assert_array_equal(
        np.isnan(dl.vmap(lambda a: f(a).x)(np.array([-1.0, 1.0]))), [1, 0]
    )
    with pytest.raises(ConvergenceError, match="not converge in 3 steps"):
        dl.solve.root(lambda x, a: np.exp(x) - a, 0.0, 1e6, maxiter=3)


def test_a_double_root_has_a_value_and_no_derivative() -> None:
    assert abs(dl.solve.root(square, 1.0, 0.0).x) < 1e-7
    with pytest.raises(ConvergenceError, match="no derivative"):
        dl.grad(square_root)(0.0)
    with pytest.raises(ConvergenceError, match="no derivative"):
        square_root(dl.tensor(0.0, requires_grad=True))
    assert np.isnan(dl.jit(dl.grad(square_root))(0.0))
    with pytest.raises(ConvergenceError, match="singular"):
        dl.solve.root(lambda x: x @ np.ones((2, 2)) - 1, np.ones(2))


def test_a_line_search_finds_what_plain_newton_does_not() -> None:
    assert dl.solve.root(lambda x, p: np.arctan(x) - p, 3.0, 0.1).x == pytest.approx(np.tan(0.1))


def test_misuse_is_explained() -> None:
    with pytest.raises(ShapeError, match="as many equations"):
        dl.solve.root(lambda x: x[:1], np.ones(2))
    with pytest.raises(InputError, match="one of implicit, unrolled"):
        dl.solve.root(square, 1.0, 2.0, derivative="adjoint")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="first value"):
        dl.solve.root(square, (), 2.0)
