"""Factorisations, norms and products of several matrices, under NumPy's names on every carrier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab import arrays
from difflab.errors import DifflabError, ShapeError, TraceError
from tests.support.rows import for_each

RNG = np.random.default_rng(5)
TALL, WIDE, SQUARE = RNG.normal(size=(5, 3)), RNG.normal(size=(2, 4)), RNG.normal(size=(3, 3))
EVEN = SQUARE + SQUARE.T
STACK = RNG.normal(size=(2, 4, 3))

CALLS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "eigenvalues": (lambda a: np.linalg.eigh(a)[0], EVEN),
    "eigenvectors": (lambda a: np.linalg.eigh(a).eigenvectors, EVEN),
    "eigvalsh": (lambda a: np.linalg.eigvalsh(a, UPLO="U"), EVEN),
    "svd": (lambda a: np.linalg.svd(a, full_matrices=False).U, TALL),
    "svd of a wide matrix": (lambda a: np.linalg.svd(a, full_matrices=False).Vh, WIDE),
    "svd of a square matrix": (lambda a: np.linalg.svd(a)[2], SQUARE),
    "svd of a stack": (lambda a: np.linalg.svd(a, False)[0], STACK),
    "singular values": (lambda a: np.linalg.svd(a, compute_uv=False), STACK),
    "svdvals": (lambda a: np.linalg.svdvals(a), WIDE),
    "qr": (lambda a: np.linalg.qr(a).Q, TALL),
    "qr, R": (lambda a: np.linalg.qr(a, mode="r"), WIDE),
    "slogdet": (lambda a: np.stack(np.linalg.slogdet(a)), SQUARE),
    "pinv": (lambda a: np.linalg.pinv(a), STACK),
    "lstsq": (lambda a: np.linalg.lstsq(a, TALL[:, 0] ** 2)[0], TALL),
    "lstsq, residuals": (lambda a: np.linalg.lstsq(a, TALL[:, :2] ** 2)[1], TALL),
    "lstsq, rank": (lambda a: np.linalg.lstsq(a, WIDE)[2], WIDE),
    "lstsq, singular values": (lambda a: np.linalg.lstsq(a, WIDE)[3], WIDE),
    "matrix_rank": (lambda a: np.linalg.matrix_rank(a), np.stack([EVEN, np.ones((3, 3))])),
    "matrix_power": (lambda a: np.linalg.matrix_power(a, 6), SQUARE),
    "matrix_power 0": (lambda a: np.linalg.matrix_power(a, 0), SQUARE),
    "matrix_power -2": (lambda a: np.linalg.matrix_power(a, -2), SQUARE),
    "multi_dot": (lambda a: np.linalg.multi_dot([a, SQUARE, TALL.T, TALL[:, 0]]), TALL),
    "trace": (lambda a: np.trace(a), TALL),
    "trace above": (lambda a: np.trace(a, 1), TALL),
    "trace below": (lambda a: np.trace(a, offset=-2), TALL),
    "trace of a stack": (lambda a: np.trace(a, 1, -1, 0), STACK),
    "norm of a stack": (lambda a: np.linalg.norm(a, 2, axis=(0, 2), keepdims=True), STACK),
    "norm along two axes": (lambda a: np.linalg.norm(a, 1, axis=(2, 0)), STACK),
    "number of nonzeros": (lambda a: np.linalg.norm(a, 0), TALL[0] * [1, 0, 1]),
}


@for_each("name", CALLS)
def test_every_carrier_computes_what_numpy_does(name: str) -> None:
    code, example = CALLS[name]
    expected = code(example)
    traced = dl.trace(code, example)
    for found in (
        traced(example),
        dl.parse(str(traced))(example),
        dl.jit(code)(example),
        code(dl.tensor(example, requires_grad=True)).detach().numpy(),
        dl.vmap(code)(np.stack([example, example]))[1],
    ):
        assert np.shape(found) == np.shape(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@for_each("name", CALLS)
def test_derivatives_of_every_carrier_are_those_of_central_differences(name: str) -> None:
    code, example = CALLS[name]
    weights = np.cos(np.arange(np.size(code(example)))).reshape(np.shape(code(example)))
    total = lambda a: np.sum(code(a) * weights)  # noqa: E731
    step, expected = 1e-6, np.empty(example.shape)
    for place in np.ndindex(example.shape):
        unit = np.zeros(example.shape)
        unit[place] = step
        if example is EVEN:  # NumPy reads one triangle
            unit = (unit + unit.T) / 2
        expected[place] = (total(example + unit) - total(example - unit)) / (2 * step)
    if name == "number of nonzeros":
        expected[...] = 0.0
    leaf = dl.tensor(example, requires_grad=True)
    if (value := total(leaf)).requires_grad:
        value.backward()
    slope = np.zeros(example.shape) if leaf.grad is None else leaf.grad.numpy()
    for found in (dl.grad(total)(example), slope, dl.jacfwd(total)(example)):
        np.testing.assert_allclose(found, expected, atol=2e-7 * max(1, np.abs(expected).max()))


# --- eigenvalues and singular values that coincide ---------------------------------------------

TWICE = np.linalg.qr(SQUARE)[0] @ np.diag([2.0, 2.0, 5.0]) @ np.linalg.qr(SQUARE)[0].T
EXACT = np.diag([2.0, 2.0, 5.0])
SUMS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sum of eigenvalues": (lambda a: np.sum(np.linalg.eigh(a)[0]), lambda a: np.eye(3)),
    "sum of squares": (lambda a: np.sum(np.linalg.eigvalsh(a) ** 2), lambda a: 2 * a),
    "logarithms": (lambda a: np.sum(np.log(np.linalg.eigvalsh(a))), np.linalg.inv),
    "Frobenius": (lambda a: np.sum(np.linalg.svd(a)[1] ** 2), lambda a: 2 * a),
    "nuclear": (lambda a: np.linalg.norm(a, "nuc"), lambda a: np.eye(3)),
    "pinv": (lambda a: np.trace(np.linalg.pinv(a)), lambda a: -np.linalg.inv(a @ a)),
}


@for_each("name", SUMS)
@pytest.mark.parametrize("matrix", [EXACT, TWICE])
def test_symmetric_functions_have_derivatives_where_values_coincide(
    name: str, matrix: np.ndarray[Any, Any]
) -> None:
    code, slope = SUMS[name]
    leaf = dl.tensor(matrix, requires_grad=True)
    code(leaf).backward()
    for found in (dl.grad(code)(matrix), leaf.grad.numpy(), dl.jacfwd(code)(matrix)):
        np.testing.assert_allclose(found, slope(matrix), atol=1e-12)


@pytest.mark.parametrize("part", [0, 2])
def test_singular_vectors_have_no_derivative_where_values_coincide(part: int) -> None:
    for code in (lambda a: np.linalg.svd(a)[part], lambda a: np.linalg.eigh(a)[1]):
        found = dl.grad(lambda a: np.sum(code(a) ** 3))(EXACT)  # noqa: B023
        assert not np.isfinite(found).all()


def test_projections_on_a_part_of_the_spectrum_need_its_gap_only() -> None:
    """∂ tr(P B) for the projection P on two eigenvectors, by perturbation theory."""

    def projected(a: Any) -> Any:
        vector = np.linalg.eigh(a)[1][:, 1:]
        return np.sum((vector @ vector.T) * TALL[:3])

    values, vectors = np.linalg.eigh(EVEN)
    inner = vectors.T @ (TALL[:3] + TALL[:3].T) @ vectors
    turn = np.zeros((3, 3))
    turn[0, 1:] = inner[0, 1:] / (values[1:] - values[0]) / 2
    expected = vectors @ (turn + turn.T) @ vectors.T
    np.testing.assert_allclose(dl.grad(projected)(EVEN), expected, rtol=1e-12)


def test_a_matrix_that_has_no_number_is_nan_and_its_neighbours_are_not() -> None:
    for code in (arrays.eigvalsh, arrays.svdvals, arrays.pinv):
        function = dl.trace(code, EVEN)
        found = function(np.stack([EVEN, np.full((3, 3), np.nan)]))
        assert np.isfinite(found[0]).all()
        assert np.isnan(found[1]).all()


# --- norms at kinks, orders of products ---------------------------------------------------------


@pytest.mark.parametrize("order", [None, 1, 1.5, 3, 0, np.inf])
def test_norms_at_the_origin_have_derivative_zero(order: Any) -> None:
    code = lambda x: np.linalg.norm(x, order)  # noqa: E731
    np.testing.assert_array_equal(dl.grad(code)(np.zeros(3)), np.zeros(3))


def test_multi_dot_multiplies_in_the_cheapest_order() -> None:
    shapes = [(30, 35), (35, 15), (15, 5), (5, 10), (10, 20), (20, 25)]  # Cormen et al.
    code = lambda *factors: np.linalg.multi_dot(factors)  # noqa: E731
    function = dl.trace(code, *(np.ones(shape) for shape in shapes))
    costs, graph = 0, function.graph
    for node in range(len(graph)):
        if getattr(graph.primitive(node), "name", "") == "matmul":
            a, b = (graph.shape(arg) for arg in graph.arguments(node))
            costs += a[0] * a[1] * b[1]
    assert costs == 15_125


WRONG: dict[str, tuple[Callable[[Any], Any], type[DifflabError], str]] = {
    "eigh": (lambda a: np.linalg.eigh(a), ShapeError, "square"),
    "full svd": (lambda a: np.linalg.svd(a), TraceError, "full_matrices=False"),
    "qr": (lambda a: np.linalg.qr(a, mode="complete"), TraceError, "mode='reduced'"),
    "norm": (lambda a: np.linalg.norm(a, 3), TraceError, "no norm of order 3"),
    "norm by name": (lambda a: np.linalg.norm(a, "L2"), TraceError, "'nuc'"),
    "norm of a stack": (lambda a: np.linalg.norm(a[None], 1), ShapeError, "one axis or two"),
    "power": (lambda a: np.linalg.matrix_power(a @ a.T, 0.5), ShapeError, "integer"),
    "product": (lambda a: np.linalg.multi_dot([a]), ShapeError, "two or more"),
    "lstsq": (lambda a: np.linalg.lstsq(a, np.ones(3)), ShapeError, "combine the shapes"),
    "rcond": (lambda a: np.linalg.lstsq(a, np.ones(2), rcond=0.1), TraceError, "rcond"),
}


@for_each("name", WRONG)
def test_what_has_no_derivative_is_refused(name: str) -> None:
    code, kind, message = WRONG[name]
    with pytest.raises(kind, match=message):
        dl.trace(code, WIDE)
    with pytest.raises(kind, match=message):
        code(dl.tensor(WIDE, requires_grad=True))
