"""Sparse Jacobians and Hessians, against published values, dense ones, and known matrices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

import difflab as dl
from difflab.autodiff.sparsity import SparseDerivative
from difflab.autodiff.sparsity.compressed import compressed
from difflab.errors import InputError, PointError
from difflab.graph.function import Function
from tests.support.rows import for_each

Array = NDArray[np.float64]
MODES = pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
PROBLEMS = json.loads((Path(__file__).parents[2] / "data" / "mgh.json").read_text(encoding="utf-8"))
BY_ID = {problem["id"]: problem for problem in PROBLEMS}


def colors(derivative: SparseDerivative) -> int:
    count: int = derivative.function.output_shapes[0][0]
    return count


def point(problem: dict[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in problem["point"].items()}


def broyden(n: int) -> Function:
    """Broyden's tridiagonal function (Moré, Garbow and Hillstrom, 1981, problem 30)."""

    def residuals(x: Any) -> Any:
        wide = np.concatenate([np.zeros(1), x, np.zeros(1)])
        return (3 - 2 * x) * x - wide[:-2] - 2 * wide[2:] + 1

    return dl.trace(residuals, np.zeros(n))


def rosenbrock(n: int) -> Function:
    return dl.trace(
        lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), np.zeros(n)
    )


def rosenbrock_hessian(x: Array) -> Any:
    """The second derivatives of the formula, by hand."""
    middle = np.zeros(len(x))
    middle[:-1] += 1200 * x[:-1] ** 2 - 400 * x[1:] + 2
    middle[1:] += 200
    beside = -400 * x[:-1]
    return sparse.diags_array([beside, middle, beside], offsets=[-1, 0, 1])


@MODES
@for_each("name", ["mgh30", "mgh31", "mgh21", "mgh22", "mgh34", "mgh28"])
def test_jacobians_of_published_problems(name: str, mode: Any) -> None:
    text = f"[{', '.join(BY_ID[f'{name}_x0']['residuals'])}]"
    function = dl.parse(text)
    for case in ("x0", "generic"):
        problem = BY_ID[f"{name}_{case}"]
        order = [problem["vars"].index(name) for name in function.inputs]
        expected = np.array(problem["jacobian"], dtype=np.float64)[:, order]
        found = dl.sparse_jacobian(function, mode)(
            **{name: point(problem)[name] for name in function.inputs}
        )
        assert isinstance(found, sparse.csr_array)
        np.testing.assert_allclose(found.toarray(), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", ["mgh13", "mgh14", "mgh16", "mgh24"])
def test_hessians_of_published_problems(name: str) -> None:
    problem = BY_ID[f"{name}_generic"]
    found = dl.sparse_hessian(dl.parse(problem["expr"]))(**point(problem)).toarray()
    expected = np.array(problem["hess"], dtype=np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-9)


def test_sweeps_are_as_many_as_the_band_is_wide() -> None:
    banded = dl.parse(f"[{', '.join(BY_ID['mgh31_x0']['residuals'])}]")
    assert colors(dl.sparse_jacobian(banded)) == 7  # five variables before, one after
    for n in (10, 1000):
        assert colors(dl.sparse_jacobian(broyden(n))) == 3
        assert colors(dl.sparse_hessian(rosenbrock(n))) == 3


def test_the_derivative_of_an_array_program_does_not_grow_with_the_array() -> None:
    small, large = (dl.sparse_jacobian(broyden(n)).function for n in (10, 20_000))
    assert len(small.graph) == len(large.graph)
    small, large = (dl.sparse_hessian(rosenbrock(n)).function for n in (10, 20_000))
    assert len(small.graph) == len(large.graph)


def test_the_derivative_of_scalars_has_an_expression_for_each_nonzero() -> None:
    """Each entry is -1, -2, or 3 - 4x, so the operations grow as n does and not as n²."""
    n = 400
    terms = (f"(3 - 2*x{i})*x{i} - x{i - 1} - 2*x{i + 1} + 1" for i in range(1, n - 1))
    derivative = dl.sparse_jacobian(dl.parse(f"[{', '.join(terms)}]"))
    assert dl.count(derivative.function).operations <= 4 * n
    x = np.linspace(-1.0, 1.0, n)
    found = derivative(*x)
    ones = np.ones(n - 2)
    expected = sparse.diags_array(
        [-ones, 3 - 4 * x[1:-1], -2 * ones], offsets=[0, 1, 2], shape=(n - 2, n)
    )
    assert abs(found - expected).max() < 1e-14


def test_the_hessian_of_repeated_terms_is_that_of_vectors() -> None:
    """Beside the inputs, which are scalars, there are as many operations as for any n."""
    sizes = []
    for n in (400, 800):
        terms = (f"100*(x{i + 1} - x{i}^2)^2 + (1 - x{i})^2" for i in range(n - 1))
        derivative = dl.sparse_hessian(dl.parse(" + ".join(terms)))
        sizes.append(len(derivative.function.graph) - n)
        x = np.linspace(-1.0, 1.0, n)
        assert abs(derivative(*x) - rosenbrock_hessian(x)).max() < 1e-12
    assert sizes[0] == sizes[1]


def test_entries_of_an_array_named_one_by_one() -> None:
    n = 40
    terms = (f"sin(x[{i}])*x[{i + 1}]" for i in range(n - 1))
    derivative = dl.sparse_jacobian(dl.parse(f"x: [{n}]\n[{', '.join(terms)}]"))
    x = np.linspace(-1.0, 1.0, n)
    expected = sparse.diags_array(
        [np.cos(x[:-1]) * x[1:], np.sin(x[:-1])], offsets=[0, 1], shape=(n - 1, n)
    )
    assert abs(derivative(x) - expected).max() < 1e-15
    assert dl.count(derivative.function).operations == 3 * (n - 1)


def test_a_hundred_thousand_variables() -> None:
    """A step that is quadratic in them would need 10^10 numbers."""
    n = 100_000
    x = np.linspace(-1.0, 1.0, n)
    found = dl.sparse_jacobian(broyden(n))(x)
    ones = np.ones(n - 1)
    expected = sparse.diags_array([-ones, 3 - 4 * x, -2 * ones], offsets=[-1, 0, 1])
    assert found.nnz == 3 * n - 2
    assert abs(found - expected).max() < 1e-14
    second = dl.sparse_hessian(rosenbrock(n))(x)
    assert second.nnz == 3 * n - 2
    assert abs(second - rosenbrock_hessian(x)).max() < 1e-12


def test_auto_takes_the_side_with_fewer_colors() -> None:
    wide = dl.trace(lambda x: np.stack([np.sum(x**2), np.sum(np.sin(x))]), np.ones(50))
    assert dl.sparse_jacobian(wide).mode == "reverse"
    assert colors(dl.sparse_jacobian(wide)) == 2
    tall = dl.trace(lambda x: np.sin(x[0] * np.arange(50.0)) + x[1], np.ones(2))
    assert dl.sparse_jacobian(tall).mode == "forward"
    assert colors(dl.sparse_jacobian(tall)) == 2
    arrow = dl.trace(
        lambda x: np.concatenate([np.sum(x**2, keepdims=True), x[1:] ** 2]), np.ones(9)
    )
    assert (dl.sparse_jacobian(arrow).mode, colors(dl.sparse_jacobian(arrow))) == ("reverse", 2)


@MODES
def test_several_inputs_and_outputs_of_different_shapes(mode: Any) -> None:
    function = dl.trace(
        lambda a, b, c: (a @ b, c * b[1:], c * 2.0, a[0], b),
        np.ones((3, 4)),
        np.ones(4),
        np.float64(1.0),
    )
    rng = np.random.default_rng(5)
    values = [rng.standard_normal(shape) for shape in function.input_shapes]
    found = dl.sparse_jacobian(function, mode)(*values)
    dense = dl.jacobian(function)(*values)
    assert found.shape == dense.shape == (3 + 3 + 1 + 4 + 4, 12 + 4 + 1)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-14)


@MODES
@pytest.mark.parametrize("text", ["3", "[1, 2]", "x: [3]; [1, x[0], x[0]]", "x: [3]; floor(x)"])
def test_few_or_no_entries(text: str, mode: Any) -> None:
    function = dl.parse(text)
    values = [np.ones(shape) for shape in function.input_shapes]
    found = dl.sparse_jacobian(function, mode)(*values)
    assert found.shape == (function.m, function.n)
    assert np.array_equal(found.toarray(), dl.jacobian(function)(*values))


def test_hessian_of_an_arrow_takes_two_directions() -> None:
    function = dl.trace(lambda x: np.sum(np.sin(x[0] * x[1:])) + x[0] ** 3, np.ones(500))
    derivative = dl.sparse_hessian(function)
    assert colors(derivative) == 2
    x = np.linspace(0.5, 1.5, 500)
    expected = np.zeros((500, 500))
    inside = x[0] * x[1:]
    expected[0, 0] = np.sum(-np.sin(inside) * x[1:] ** 2) + 6 * x[0]
    expected[0, 1:] = expected[1:, 0] = np.cos(inside) - np.sin(inside) * inside
    expected[range(1, 500), range(1, 500)] = -np.sin(inside) * x[0] ** 2
    np.testing.assert_allclose(derivative(x).toarray(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["mgh21", "mgh22", "mgh30", "mgh31"])
def test_hessians_of_larger_problems_are_the_dense_ones(name: str) -> None:
    problem = BY_ID[f"{name}_generic"]
    function = dl.parse(problem["expr"])
    found = dl.sparse_hessian(function)
    assert colors(found) < function.n
    dense = dl.hessian(function)(**point(problem))
    np.testing.assert_allclose(found(**point(problem)).toarray(), dense, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_hessians_of_random_sums_are_the_dense_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 12
    pairs = rng.integers(0, n, (int(rng.integers(4, 20)), 2))
    text = " + ".join(f"sin(x{i}*x{j})*x{i}" for i, j in pairs)
    function = dl.parse(text)
    values = rng.standard_normal(len(function.inputs))
    found = dl.sparse_hessian(function)(*values).toarray()
    np.testing.assert_allclose(found, dl.hessian(function)(*values), rtol=1e-12, atol=1e-12)


@MODES
def test_untaken_branches_stay_zero(mode: Any) -> None:
    function = dl.trace(lambda x: np.where(x[1:] > 0, np.sqrt(x[1:]), 0) + x[:-1], np.ones(4))
    found = dl.sparse_jacobian(function, mode)(np.array([1.0, 0.0, 4.0, 0.0])).toarray()
    assert found.tolist() == [[1.0, 0, 0, 0], [0, 1.0, 0.25, 0], [0, 0, 1.0, 0]]


@MODES
def test_a_singular_point_adds_no_entries(mode: Any) -> None:
    function = dl.trace(lambda x: np.sqrt(x[1:]) + x[:-1], np.ones(4))
    found = dl.sparse_jacobian(function, mode)(np.array([1.0, 0.0, 4.0, np.inf]))
    assert found.nnz == 6
    assert found[0, 1] == np.inf
    assert (found.toarray() == 0).sum() >= 6


def test_the_compressed_derivative_is_a_function() -> None:
    derivative = dl.sparse_jacobian(broyden(30))
    x = np.linspace(0.0, 1.0, 30)
    compiled = dl.compile(derivative.function)
    assert abs(derivative.expand(compiled(x)) - derivative(x)).max() == 0
    assert derivative.function(np.stack([x, 2 * x, -x])).shape == (3, 3, 30)
    second = dl.sparse_jacobian(derivative.function)(x)
    assert second.shape == (90, 30)
    assert second.data[second.data != 0].tolist() == [-4.0] * 30


def test_bad_calls_say_what_to_do() -> None:
    derivative = dl.sparse_jacobian(broyden(5))
    with pytest.raises(PointError, match=r"at one point, not at a batch of the shape \(2,\)"):
        derivative(np.ones((2, 5)))
    with pytest.raises(PointError, match="no value is given for the input x"):
        derivative()
    with pytest.raises(InputError, match="unknown mode 'sideways'"):
        dl.sparse_jacobian(broyden(5), "sideways")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="sparse_jacobian takes a Function, not function"):
        dl.sparse_jacobian(lambda x: x)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="sparse_hessian needs a function with one output number"):
        dl.sparse_hessian(broyden(5))
    with pytest.raises(PointError, match="floating-point or complex"):
        dl.sparse_jacobian(dl.parse("x^2"))(_symbol())


def _symbol() -> Any:
    import sympy

    return sympy.Symbol("x")


def test_complex_points_and_results_of_their_own() -> None:
    derivative = dl.sparse_jacobian(dl.parse("[x^2, x*y]"))
    assert derivative(1j, 2.0).toarray().tolist() == [[2j, 0], [2.0, 1j]]
    found = derivative(1.0, 2.0)
    found.indices[:] = 0
    assert derivative(1.0, 2.0).toarray().tolist() == [[2.0, 0], [2.0, 1.0]]


class Cube(dl.CustomFunction):
    """x³, with a reverse rule alone."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, y_bar: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * y_bar


def test_a_custom_function_without_a_forward_rule_takes_reverse_sweeps() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0])
    first = dl.sparse_jacobian(
        dl.trace(lambda x: np.concatenate([Cube.apply(x[:2]), x[2:] ** 2]), x)
    )
    assert (first.mode, first.pattern.nnz) == ("reverse", 6)
    assert np.array_equal(first(x).toarray(), np.diag([3.0, 12.0, 6.0, 8.0]))
    second = dl.sparse_hessian(dl.trace(lambda x: np.sum(Cube.apply(x[:2])) + x[2] * x[3], x))
    expected = np.diag([6.0, 12.0, 0.0, 0.0])
    expected[2, 3] = expected[3, 2] = 1.0
    assert np.array_equal(second(x).toarray(), expected)


def test_a_hessian_is_symmetric_where_its_gradient_is_opaque_on_one_side() -> None:
    """∂/∂y is the custom function itself, which may mix anything; ∂/∂x is its rule, which not."""
    function = dl.trace(lambda x, y: np.sum(Cube.apply(x) * y), np.ones(3), np.ones(3))
    derivative = dl.sparse_hessian(function)
    pattern = derivative.pattern.toarray()
    assert np.array_equal(pattern, pattern.T)
    x, y = np.array([1.0, 2.0, 3.0]), np.array([5.0, 7.0, 11.0])
    mixed = np.diag(3 * x**2)
    expected = np.block([[np.diag(6 * x * y), mixed], [mixed, np.zeros((3, 3))]])
    assert np.array_equal(derivative(x, y).toarray(), expected)


def test_outputs_that_are_the_same_add_up_in_one_sweep() -> None:
    twice = compressed(dl.parse("[x*y, x*y]"), None, np.array([0, 0]))
    assert twice(2.0, 3.0).tolist() == [[6.0, 4.0]]
