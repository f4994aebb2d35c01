"""Rows that mix the numbers of arrays: every rule against the referee, in both modes and orders.

A row is made a number by fixed weights. The referee differentiates mpmath values by differences
and knows no rule; SymPy differentiates its own expressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy
from numpy.typing import NDArray

from difflab.autodiff import jacobian, jvp, vjp
from difflab.core.primitive import ByArgument, LinearMap, Primitive, Transpose
from difflab.errors import IndexingError, UnsupportedError
from difflab.graph.builder import Builder
from difflab.graph.function import Function, evaluate
from difflab.graph.interpreters import MpmathInterpreter, SympyInterpreter
from difflab.graph.node import Node
from difflab.primitives import TABLE, as_number, where
from difflab.referee.referee import refer
from tests.support.rows import for_each, replaced_rule

Array = NDArray[np.float64]
MODES = pytest.mark.parametrize("mode", ["forward", "reverse"])

ALL = {"axes": (-1,), "rank": 1}
ROWWISE = {"axes": (-1,), "rank": 2}
COLUMNWISE = {"axes": (-2,), "rank": 2}
WHOLE = {"axes": (-2, -1), "rank": 2}
VECTOR = np.array([0.7, -1.2, 0.4, 2.1, 1.3])
MATRIX = np.array([[1.5, -0.3, 0.8], [0.2, 2.5, -1.1]])
SQUARE = np.array([[2.0, 0.3, -0.4], [0.5, 1.8, 0.2], [-0.1, 0.6, 1.4]])
POSITIVE = SQUARE @ SQUARE.T + np.eye(3)
RIGHT = np.array([0.4, -1.0, 2.2])

Case = tuple[tuple[Array, ...], dict[str, Any]]
REDUCED: list[Case] = [((VECTOR,), ALL), ((MATRIX,), COLUMNWISE), ((MATRIX,), ROWWISE)]
CASES: dict[str, list[Case]] = {
    "prod": [*REDUCED, ((MATRIX,), WHOLE), ((VECTOR[:1],), ALL), ((VECTOR[:2],), ALL)],
    "max": [*REDUCED, ((MATRIX,), WHOLE)],
    "min": [*REDUCED, ((MATRIX,), WHOLE)],
    "norm": [*REDUCED, ((MATRIX,), WHOLE)],
    "logsumexp": [*REDUCED, ((MATRIX,), WHOLE)],
    "softmax": [*REDUCED, ((MATRIX,), WHOLE)],
    "log_softmax": [*REDUCED, ((MATRIX,), WHOLE)],
    "matmul": [
        ((VECTOR, VECTOR[::-1].copy()), {"ranks": (1, 1)}),
        ((MATRIX, RIGHT), {"ranks": (2, 1)}),
        ((RIGHT, SQUARE), {"ranks": (1, 2)}),
        ((MATRIX, SQUARE), {"ranks": (2, 2)}),
        ((np.stack([MATRIX, -MATRIX]), np.stack([SQUARE, POSITIVE])), {"ranks": (3, 3)}),
    ],
    "solve": [
        ((SQUARE, RIGHT), {"ranks": (2, 1)}),
        ((SQUARE, MATRIX.T.copy()), {"ranks": (2, 2)}),
    ],
    "inv": [((SQUARE,), {})],
    "det": [((SQUARE,), {}), ((np.stack([SQUARE, POSITIVE]),), {})],
    "cofactor": [((SQUARE,), {}), ((np.stack([SQUARE, POSITIVE]),), {})],
    "logdet": [((POSITIVE,), {})],
    "cholesky": [((POSITIVE,), {})],
    "eigh": [((POSITIVE,), {}), ((np.stack([POSITIVE[:2, :2], POSITIVE[1:, 1:]]),), {})],
    "eigenvalues": [((POSITIVE,), {}), ((np.stack([POSITIVE, SQUARE + SQUARE.T]),), {})],
    "svd": [((MATRIX,), {}), ((MATRIX.T.copy(),), {}), ((SQUARE,), {})],
    "singular_values": [((MATRIX,), {}), ((MATRIX.T.copy(),), {}), ((SQUARE,), {})],
    "qr": [((MATRIX.T.copy(),), {}), ((np.stack([SQUARE, POSITIVE]),), {})],
    "slogdet": [((SQUARE,), {}), ((np.stack([SQUARE, -POSITIVE]),), {})],
    "pinv": [((MATRIX,), {}), ((MATRIX.T.copy(),), {}), ((SQUARE,), {})],
    "expm": [((0.3 * SQUARE,), {}), ((np.stack([0.2 * SQUARE, -0.3 * SQUARE.T]),), {})],
    "expm_frechet": [((0.3 * SQUARE[:2, :2], 0.4 * MATRIX[:, :2]), {})],
    "cumprod": [*REDUCED, ((VECTOR[:1],), ALL)],
    "linear_recurrence": [
        ((RIGHT, VECTOR[:4]), ALL),
        ((MATRIX[:1], MATRIX), COLUMNWISE),
        ((VECTOR[:0], VECTOR[:1]), ALL),
    ],
    "convolve": [((VECTOR, RIGHT), {}), ((RIGHT[:1], VECTOR), {})],
    "correlate": [((VECTOR, RIGHT), {}), ((RIGHT, RIGHT[::-1].copy()), {})],
    "fft": [
        ((MATRIX.T.copy(),), {"axes": (-2, -1), "rank": 2, "transposed": False}),
        ((MATRIX.reshape(3, 1, 2),), {"axes": (-3, -1), "rank": 3, "transposed": True}),
    ],
    "rfft": [
        ((VECTOR,), {"axes": (-1,), "rank": 1, "transposed": False}),
        ((MATRIX.T.copy(),), {"axes": (-2,), "rank": 2, "transposed": True}),
    ],
    "irfft": [
        ((MATRIX.T.copy(),), {"axes": (-2, -1), "rank": 2, "size": 4, "transposed": False}),
        (
            (MATRIX.reshape(3, 1, 2),),
            {"axes": (-3, -1), "rank": 3, "size": 5, "transposed": True},
        ),
    ],
    "take_along": [((VECTOR,), {"axis": -1, "rank": 1}), ((MATRIX,), {"axis": -2, "rank": 2})],
    "put_along": [
        ((VECTOR,), {"axis": -1, "rank": 1, "size": 4}),
        ((MATRIX,), {"axis": -1, "rank": 2, "size": 2}),
    ],
}
OF_FACTORS = {"eigenvalues": "eigh", "singular_values": "svd"}
"""Rows of a matrix and its factors, which are functions of the matrix alone."""
VALUES_ONLY = {
    "expm",
    "expm_frechet",
    "eigh",
    "eigenvalues",
    "pinv",
    "qr",
    "singular_values",
    "slogdet",
    "svd",
}
"""Rows that neither SymPy nor ball arithmetic has: the referee has values by mpmath."""
COMPUTED: dict[str, list[Array]] = {
    "take_along": [np.array([2.0, 0.0, -1.0, 0.0]), np.array([[1.0, 0.0, 1.0]])],
    "put_along": [np.array([3.0, 0.0, 3.0, -1.0, 1.0]), np.array([[0.0, 1, 1], [1.0, 0, 1]])],
}
"""The indices of each case, which have no derivative."""


def indices_of(name: str, case: int) -> list[Array]:
    """Return the operands of a case that follow its values."""
    return COMPUTED.get(name, [])[case : case + 1]


PLACES = [(name, k) for name, cases in CASES.items() for k in range(len(cases))]
EACH = for_each(("name", "case"), PLACES)


def test_every_row_that_mixes_numbers_has_cases() -> None:
    mixing = {name for name, row in TABLE.items() if isinstance(row.rule, ByArgument)}
    assert mixing == set(CASES)
    flat = {name for name, row in TABLE.items() if not row.samples} - mixing
    assert {name for name in flat if not isinstance(TABLE[name].rule, LinearMap)} == {
        "argmax",
        "argsort",
        "is_maximum",
        "constant_array",
        "random_keys",
        "random_normal",
        "random_uniform",
        "stop_gradient",
    }


def applied(name: str, values: Sequence[Any], params: dict[str, Any]) -> Any:
    """Apply a row to values; one that takes a matrix and its factors to both."""
    factors = [TABLE[OF_FACTORS[name]](*values)] if name in OF_FACTORS else []
    return TABLE[name](*values, *factors, **params)


def function_of(name: str, case: int, *, weighted: bool = True) -> Function:
    """Return the row's function of arrays, its numbers added up under fixed weights."""
    values, params = CASES[name][case]
    builder = Builder()
    nodes = [Node(builder, builder.input(f"a{k}", v.shape)) for k, v in enumerate(values)]
    result = applied(name, [*nodes, *indices_of(name, case)], params)
    if weighted and result.shape:
        result = (result * np.cos(np.arange(np.prod(result.shape))).reshape(result.shape)).sum()
    inputs = [node.id for node in nodes[: len(values)]]
    return Function.build(builder, inputs, [result.id], ["y"])


def point_of(name: str, case: int) -> Array:
    return np.concatenate([value.ravel() for value in CASES[name][case][0]])


@cache
def truth(name: str, case: int, order: int) -> Array:
    """Return the referee's derivative."""
    point = point_of(name, case).tolist()
    found = refer(function_of(name, case), point, order=order, timeout=60.0)
    assert found.status == "smooth"
    return np.array(found.jacobian, dtype=float)


def check(name: str, case: int, mode: str, order: int) -> None:
    expected = truth(name, case, order)
    derivative = jacobian(function_of(name, case), mode)
    if order == 2:
        derivative = jacobian(derivative, mode)
    found = derivative.values(point_of(name, case)).reshape(expected.shape)
    scale = max(1e-3, float(np.max(np.abs(expected))))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * scale)


@EACH
@MODES
def test_derivative_agrees_with_the_referee(name: str, case: int, mode: str) -> None:
    check(name, case, mode, 1)


@EACH
@MODES
def test_second_derivative_agrees_with_the_referee(name: str, case: int, mode: str) -> None:
    if function_of(name, case).n > 10:
        pytest.skip("the referee takes second differences of every pair; smaller cases do")
    check(name, case, mode, 2)


@EACH
def test_second_derivatives_of_both_modes_agree(name: str, case: int) -> None:
    function, point = function_of(name, case), point_of(name, case)
    found = [
        jacobian(jacobian(function, outer), inner).values(point)
        for outer in ("forward", "reverse")
        for inner in ("forward", "reverse")
    ]
    scale = 1 + np.max(np.abs(found[0]))
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=0, atol=1e-13 * scale)
    matrix = found[0].reshape(function.n, function.n)
    np.testing.assert_allclose(matrix, matrix.T, rtol=0, atol=1e-13 * scale)


@EACH
def test_forward_and_reverse_are_each_others_transpose(name: str, case: int) -> None:
    function = function_of(name, case, weighted=False)
    point, rng = point_of(name, case), np.random.default_rng(7)
    x_dot, y_bar = rng.normal(size=function.n), rng.normal(size=function.m)
    y_dot = jvp(function).values(np.concatenate([point, x_dot]))[function.m :]
    x_bar = vjp(function).values(np.concatenate([point, y_bar]))[function.m :]
    np.testing.assert_allclose(y_bar @ y_dot, x_bar @ x_dot, rtol=1e-12)


@EACH
def test_value_agrees_with_mpmath(name: str, case: int) -> None:
    function = function_of(name, case, weighted=False)
    exactly = np.frompyfunc(mpmath.mpf, 1, 1)
    with mpmath.workdps(50):
        (exact,) = evaluate(function, list(map(exactly, CASES[name][case][0])), MpmathInterpreter())
    found = function(*CASES[name][case][0])
    np.testing.assert_allclose(found, np.array(exact, dtype=float), rtol=2e-14, atol=1e-14)


@EACH
def test_derivative_agrees_with_sympy(name: str, case: int) -> None:
    function, point = function_of(name, case), point_of(name, case)
    if name in VALUES_ONLY:
        pytest.skip("SymPy has no such function")
    if function.n > 12:
        pytest.skip("smaller cases do")
    symbols = sympy.symbols(f"s0:{function.n}", real=True)
    values = function.split(np.array(symbols, dtype=object))
    (expression,) = evaluate(function, values, SympyInterpreter())
    at = dict(zip(symbols, map(sympy.Float, point), strict=True))
    expected = [float(sympy.diff(expression, s).subs(at).evalf()) for s in symbols]
    found = jacobian(function, "reverse").values(point)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@EACH
def test_batches_are_leading_axes(name: str, case: int) -> None:
    function, point = function_of(name, case, weighted=False), point_of(name, case)
    scales = np.linspace(1.0, 1.2, 6).reshape(2, 3, 1)
    points = (point * scales).reshape(6, -1)
    for made in (function, jacobian(function, "reverse"), jacobian(function, "forward")):
        one_by_one = np.stack([made.values(p) for p in points])
        np.testing.assert_allclose(made.values(points), one_by_one, rtol=1e-12, atol=1e-14)
    first, *others = CASES[name][case][0]
    mixed = function(np.stack([first, 1.1 * first]), *others)
    for found, scale in zip(mixed, (1.0, 1.1), strict=True):
        np.testing.assert_allclose(found, function(scale * first, *others), rtol=1e-13)


@EACH
def test_analytic_rows_take_a_complex_step(name: str, case: int) -> None:
    if not TABLE[name].analytic:
        pytest.skip("not analytic")
    function, point = function_of(name, case), point_of(name, case)
    found = function.values(point + 1e-30j * np.eye(point.size))[:, 0].imag / 1e-30
    np.testing.assert_allclose(
        found, jacobian(function, "reverse").values(point), rtol=1e-12, atol=1e-14
    )


# --- a wrong rule is caught -------------------------------------------------------------------


def wrong_rules(row: Primitive) -> Iterator[ByArgument]:
    """Yield the row's rule with one argument's part made slightly wrong."""
    assert isinstance(row.rule, ByArgument)
    entries = row.rule.entries
    for place, entry in enumerate(entries):
        if entry is None:
            continue
        yield ByArgument((*entries[:place], _wrong(entry), *entries[place + 1 :]))


def _wrong(entry: Any) -> Any:
    if isinstance(entry, Transpose):
        return Transpose(lambda t, *a, **p: entry.map(t, *a, **p) * 1.0001)
    return lambda t, y, *a, **p: entry(t, y, *a, **p) * 1.0001


@MODES
@for_each("name", CASES)
def test_a_wrong_rule_is_caught(name: str, mode: str) -> None:
    for rule in wrong_rules(TABLE[name]):
        if mode == "forward" and any(isinstance(entry, Transpose) for entry in rule.entries):
            continue  # Where a row is linear, forward mode uses the row itself.
        truth(name, 0, 1)
        with replaced_rule(TABLE[name], rule), pytest.raises(AssertionError):
            check(name, 0, mode, 1)


# --- conventions and edges --------------------------------------------------------------------


def of_vector(name: str, size: int, **params: Any) -> Function:
    builder = Builder()
    x = Node(builder, builder.input("x", (size,)))
    result = TABLE[name](x, **(params or ALL))
    return Function.build(builder, [x.id], [result.id], ["y"])


@MODES
def test_zeros_in_a_product_have_the_product_of_the_others(mode: str) -> None:
    derivative = jacobian(of_vector("prod", 4), mode)
    np.testing.assert_array_equal(derivative(np.array([2.0, 0.0, 3.0, 5.0])), [[0, 30, 0, 0]])
    np.testing.assert_array_equal(derivative(np.array([2.0, 0.0, 0.0, 5.0])), [[0, 0, 0, 0]])
    second = jacobian(derivative, mode)(np.array([2.0, 0.0, 0.0, 5.0])).reshape(4, 4)
    assert second[1, 2] == second[2, 1] == 10.0


@MODES
@pytest.mark.parametrize("name", ["max", "min"])
def test_the_last_of_equal_extremes_has_the_derivative(name: str, mode: str) -> None:
    found = jacobian(of_vector(name, 3), mode)(np.array([2.0, 2.0, 2.0]))
    np.testing.assert_array_equal(found, [[0.0, 0.0, 1.0]])


@MODES
def test_a_singular_slope_beside_the_maximum_does_not_count(mode: str) -> None:
    builder = Builder()
    x = Node(builder, builder.input("x", (2,)))
    result = TABLE["max"](np.sqrt(x), **ALL)
    function = Function.build(builder, [x.id], [result.id], ["y"])
    np.testing.assert_array_equal(jacobian(function, mode)(np.array([0.0, 4.0])), [[0.0, 0.25]])


@MODES
def test_an_untaken_matrix_product_counts_exactly_zero(mode: str) -> None:
    builder = Builder()
    x, w = (Node(builder, builder.input(n, s)) for n, s in (("x", (2,)), ("w", (3, 2))))
    c = Node(builder, builder.input("c"))
    result = where(c > 0, (w @ np.sqrt(x)).sum(), 0.0)
    function = Function.build(builder, [x.id, w.id, c.id], [result.id], ["y"])
    found = jacobian(function, mode)(np.zeros(2), np.ones((3, 2)), -1.0)
    np.testing.assert_array_equal(found, np.zeros((1, 9)))


@MODES
def test_norm_at_the_origin_has_derivative_zero(mode: str) -> None:
    np.testing.assert_array_equal(jacobian(of_vector("norm", 3), mode)(np.zeros(3)), [[0, 0, 0]])


@MODES
def test_argmax_and_its_derivative(mode: str) -> None:
    function = of_vector("argmax", 3)
    assert function(np.array([1.0, 5.0, 5.0])) == 1.0
    np.testing.assert_array_equal(jacobian(function, mode)(np.arange(3.0)), [[0, 0, 0]])


@MODES
def test_the_order_is_stable_and_has_derivative_0(mode: str) -> None:
    function = of_vector("argsort", 5)
    point = np.array([2.0, np.nan, 1.0, 2.0, -np.inf])
    np.testing.assert_array_equal(function(point), [4, 2, 0, 3, 1])
    np.testing.assert_array_equal(jacobian(function, mode)(point), np.zeros((5, 5)))
    long = np.random.default_rng(1).integers(0, 200, size=(2, 1000)) / 4.0
    for values in (long, long + np.arange(1000) * 1e-3):
        builder = Builder()
        x = Node(builder, builder.input("x", values.shape))
        order = TABLE["argsort"](x, axes=(-1,), rank=2)
        made = Function.build(builder, [x.id], [order.id], ["y"])(values)
        np.testing.assert_array_equal(made, np.argsort(values, axis=-1, kind="stable"))


@MODES
def test_zeros_in_running_products_have_the_products_of_the_others(mode: str) -> None:
    derivative = jacobian(of_vector("cumprod", 4), mode)
    expected = [[1, 0, 0, 0], [0, 2, 0, 0], [0, 6, 0, 0], [0, 0, 0, 0]]
    np.testing.assert_array_equal(derivative(np.array([2.0, 0.0, 3.0, 0.0])), expected)
    second = jacobian(derivative, mode)(np.array([2.0, 0.0, 3.0, 0.0])).reshape(4, 4, 4)
    assert second[3, 1, 3] == second[3, 3, 1] == 6.0


def test_computed_indices_are_inside() -> None:
    builder = Builder()
    x, i = (Node(builder, builder.input(name, (3,))) for name in "xi")
    taken = TABLE["take_along"](x, i, axis=-1, rank=1)
    function = Function.build(builder, [x.id, i.id], [taken.id], ["y"])
    values = np.array([5.0, 6.0, 7.0])
    np.testing.assert_array_equal(function(values, np.array([-1.0, 0.0, 2.0])), [7, 5, 7])
    with pytest.raises(IndexingError, match="outside an axis of size 3"):
        function(values, np.array([0.0, 3.0, 1.0]))


def test_the_place_of_the_maximum_is_the_last_along_any_axes() -> None:
    builder = Builder()
    x = Node(builder, builder.input("x", (2, 3)))
    marks = [as_number(TABLE["is_maximum"](x, **params)).id for params in (COLUMNWISE, WHOLE)]
    function = Function.build(builder, [x.id], marks, ["a", "b"])
    rows, whole = function(np.array([[1.0, 7.0, 3.0], [1.0, 2.0, 7.0]]))
    np.testing.assert_array_equal(rows, [[0, 1, 0], [1, 0, 1]])
    np.testing.assert_array_equal(whole, [[0, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_norms_neither_overflow_nor_underflow(size: float) -> None:
    function = of_vector("norm", 2)
    point = np.array([3.0, -4.0]) * size
    np.testing.assert_allclose(function(point), 5.0 * size, rtol=1e-15)
    np.testing.assert_allclose(jacobian(function)(point), [[0.6, -0.8]], rtol=1e-15)


def test_exponentials_of_huge_numbers_are_finite() -> None:
    point = np.array([1000.0, -1000.0, 999.0])
    total = 1000 + np.log1p(np.exp(-1.0))
    shares = [1 / (1 + np.exp(-1.0)), 0.0, np.exp(-1.0) / (1 + np.exp(-1.0))]
    np.testing.assert_allclose(of_vector("logsumexp", 3)(point), total, rtol=1e-15)
    np.testing.assert_allclose(of_vector("softmax", 3)(point), shares, rtol=1e-15)
    np.testing.assert_allclose(jacobian(of_vector("logsumexp", 3))(point), [shares], rtol=1e-15)
    np.testing.assert_allclose(
        of_vector("log_softmax", 3)(point), point - 1000 - np.log1p(np.exp(-1.0)), rtol=1e-15
    )
    assert of_vector("logsumexp", 2)(np.array([-np.inf, -np.inf])) == -np.inf


@pytest.mark.parametrize("name", ["inv", "cholesky", "logdet"])
def test_a_singular_matrix_is_nan_and_its_neighbours_in_a_batch_are_not(name: str) -> None:
    builder = Builder()
    a = Node(builder, builder.input("a", (2, 2)))
    function = Function.build(builder, [a.id], [TABLE[name](a).id], ["y"])
    found = function(np.stack([np.eye(2), np.diag([-1.0, 0.0]), np.eye(2)]))
    assert np.isfinite(found[[0, 2]]).all()
    assert not np.isfinite(found[1]).any()


IN_ORDER, TURNED = [0, 1, 2], [2, 1, 0]
EXCHANGES = [(IN_ORDER, IN_ORDER, 1), (IN_ORDER, TURNED, -1), (TURNED, IN_ORDER, -1)]


@MODES
def test_the_determinant_has_a_derivative_at_a_singular_matrix(mode: str) -> None:
    """The cofactors, by hand: of rank 2, 1 and 0, alone and in a batch, and of a number."""
    rank_two = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0]])
    cofactors = [[12.0, -6.0, 0.0], [-6.0, 3.0, 0.0], [0.0, 0.0, 0.0]]
    rank_one = np.outer([1.0, 2.0, 0.0], [1.0, -1.0, 2.0])
    builder = Builder()
    a = Node(builder, builder.input("a", (3, 3)))
    slope = jacobian(Function.build(builder, [a.id], [TABLE["det"](a).id], ["y"]), mode)
    found = slope(np.stack([rank_two, np.eye(3), rank_one, np.zeros((3, 3))])).reshape(4, 3, 3)
    expected = [cofactors, np.eye(3), np.zeros((3, 3)), np.zeros((3, 3))]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    # Exchanged columns or rows change the sign, and are exchanged in the cofactors.
    for rows, columns, sign in EXCHANGES:
        expected = sign * np.array(cofactors)[rows][:, columns]
        found = slope(rank_two[rows][:, columns]).reshape(3, 3)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    builder = Builder()
    a = Node(builder, builder.input("a", (1, 1)))
    slope = jacobian(Function.build(builder, [a.id], [TABLE["det"](a).id], ["y"]), mode)
    np.testing.assert_array_equal(slope(np.zeros((1, 1))), [[1.0]])


def test_solving_with_a_singular_matrix_is_nan() -> None:
    function = function_of("solve", 0, weighted=False)
    assert np.isnan(function(np.zeros((3, 3)), RIGHT)).all()


@MODES
@pytest.mark.parametrize("name", ["inv", "det", "cofactor", "logdet"])
def test_an_untaken_singular_matrix_counts_exactly_zero(name: str, mode: str) -> None:
    builder = Builder()
    a, c = Node(builder, builder.input("a", (2, 2))), Node(builder, builder.input("c"))
    result = where(c > 0, TABLE[name](a).sum(), 0.0)
    function = Function.build(builder, [a.id, c.id], [result.id], ["y"])
    found = jacobian(function, mode)(np.zeros((2, 2)), -1.0)
    np.testing.assert_array_equal(found, np.zeros((1, 5)))


def test_sympy_takes_arrays_up_to_a_stated_size() -> None:
    for name, size, limit in (("det", 7, "36"), ("cumsum", 101, "10,000")):
        builder = Builder()
        a = Node(builder, builder.input("a", (size, size)))
        params = ROWWISE if name == "cumsum" else {}
        function = Function.build(builder, [a.id], [TABLE[name](a, **params).id], ["y"])
        symbols = np.array(sympy.symbols(f"s0:{size * size}")).reshape(size, size)
        with pytest.raises(UnsupportedError, match=f"up to {limit} elements"):
            evaluate(function, [symbols], SympyInterpreter())
