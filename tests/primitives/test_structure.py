"""Rows that move data are linear: their rules are held to the map itself, on unit vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from difflab.autodiff import jacobian, jvp, vjp
from difflab.core.primitive import LinearMap, Shapes
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.node import Node
from difflab.primitives import TABLE, concatenate, sum_in_order
from tests.support.rows import for_each, replaced_rule

MOVING = [name for name, row in TABLE.items() if isinstance(row.rule, LinearMap)]
MODES = pytest.mark.parametrize("mode", ["forward", "reverse"])
VECTOR, MATRIX = (3,), (2, 3)
MOVES: dict[str, list[tuple[tuple[tuple[int, ...], ...], dict[str, Any]]]] = {
    "broadcast": [
        ((VECTOR,), {"shape": MATRIX, "rank": 1}),
        (((1, 3),), {"shape": MATRIX, "rank": 2}),
    ],
    "reshape": [((MATRIX,), {"shape": (3, 2), "rank": 2})],
    "index": [
        ((VECTOR,), {"key": (1,), "rank": 1}),
        ((MATRIX,), {"key": (1, (0, 3, 2)), "rank": 2}),
    ],
    "scatter": [
        (((), ()), {"keys": ((0,), (2,)), "shape": VECTOR}),
        (((),), {"keys": ((1,),), "shape": VECTOR}),
        (((2,),), {"keys": ((1, (2, None, -2)),), "shape": MATRIX}),
    ],
    "pack": [(((), VECTOR), {"ranks": (0, 1)})],
    "transpose": [
        ((MATRIX,), {"axes": (-1, -2)}),
        (((2, 3, 4),), {"axes": (-2, -1, -3)}),
    ],
    "concatenate": [
        ((VECTOR, (2,)), {"axis": -1, "rank": 1}),
        ((MATRIX, (1, 3)), {"axis": -2, "rank": 2}),
    ],
    "take": [
        ((MATRIX,), {"places": (2, 0, 2), "axis": -1, "rank": 2}),
        ((VECTOR,), {"places": np.array([2, 0, 2]).tobytes(), "axis": -1, "rank": 1}),
    ],
    "put": [
        ((MATRIX,), {"places": (3, 3), "axis": -2, "rank": 2, "size": 5}),
        ((VECTOR,), {"places": np.array([3, 0, 3]).tobytes(), "axis": -1, "rank": 1, "size": 4}),
    ],
    "diag": [((VECTOR,), {}), ((MATRIX,), {})],
    "diagonal": [(((3, 3),), {}), (((2, 2, 2),), {})],
    "cumsum": [((VECTOR,), {"axes": (-1,), "rank": 1}), ((MATRIX,), {"axes": (-2,), "rank": 2})],
    "replace": [
        ((VECTOR, ()), {"key": (1,), "ranks": (1, 0)}),
        ((MATRIX, ()), {"key": ((0, 2, 1), 2), "ranks": (2, 0)}),
        ((MATRIX, (2,)), {"key": (0, (2, None, -2)), "ranks": (2, 1)}),
    ],
    "sum_in_order": [
        (((2,), (1,)), {"places": ((0, 3, 2), (1, 2, 1)), "length": 3}),
        ((MATRIX, (2, 1)), {"places": ((1, 4, 1), (0, 1, 1)), "length": 4}),
    ],
    "sum": [((MATRIX,), {"axes": (-2,), "rank": 2}), ((MATRIX,), {"axes": (-2, -1), "rank": 2})],
}


def moving_function(
    name: str, shapes: tuple[tuple[int, ...], ...], params: dict[str, Any]
) -> Function:
    builder = Builder()
    nodes = [Node(builder, builder.input(f"a{k}", shape)) for k, shape in enumerate(shapes)]
    result = TABLE[name](*nodes, **params)
    return Function.build(builder, [node.id for node in nodes], [result.id], ["y"])


def check_move(name: str, mode: str) -> None:
    """Fail unless the rule is the linear map, or its transpose, found by moving unit vectors."""
    rng = np.random.default_rng(3)
    for shapes, params in MOVES[name]:
        function = moving_function(name, shapes, params)
        matrix = np.stack([function.values(unit) for unit in np.eye(function.n)], axis=-1)
        point = rng.normal(size=function.n)
        if mode == "forward":
            x_dot = rng.normal(size=function.n)
            found = jvp(function).values(np.concatenate([point, x_dot]))[function.m :]
            np.testing.assert_allclose(found, matrix @ x_dot, rtol=1e-14)
        else:
            y_bar = rng.normal(size=function.m)
            found = vjp(function).values(np.concatenate([point, y_bar]))[function.m :]
            np.testing.assert_allclose(found, matrix.T @ y_bar, rtol=1e-14)


@MODES
@for_each("name", MOVING)
def test_moving_data_is_linear(name: str, mode: str) -> None:
    check_move(name, mode)


@MODES
@for_each("name", MOVING)
def test_jacobian_of_moved_data_is_the_map(name: str, mode: str) -> None:
    for shapes, params in MOVES[name]:
        function = moving_function(name, shapes, params)
        matrix = np.stack([function.values(unit) for unit in np.eye(function.n)], axis=-1)
        found = jacobian(function, mode).values(np.arange(1.0, function.n + 1))
        np.testing.assert_array_equal(found.reshape(matrix.shape), matrix)


@for_each("name", MOVING)
def test_kernels_without_batch_axes_give_the_bits_of_those_with_them(name: str) -> None:
    for dtype in (np.float32, np.float64):
        for shapes, params in MOVES[name]:
            row, items = TABLE[name], tuple(params.items())
            args = [
                -np.arange(float(np.prod(shape))).reshape(shape).astype(dtype) for shape in shapes
            ]
            expected = row.computer(np)(*args, **params)
            kept = [arg.copy() for arg in args]
            found = row.unbatched_computer(np, items)(*args)
            assert all(map(np.array_equal, args, kept))
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            assert found.tobytes() == expected.tobytes()


@for_each("name", MOVING)
def test_a_wrong_transpose_is_caught(name: str) -> None:
    rule = TABLE[name].rule
    assert isinstance(rule, LinearMap)
    transpose = rule.transpose
    wrong = LinearMap(lambda t, *a, **p: transpose(t, *a, **p) * 1.0001)
    with replaced_rule(TABLE[name], wrong), pytest.raises(AssertionError):
        check_move(name, "reverse")


def test_going_back_through_many_parts_looks_at_each_shape_once() -> None:
    class Counted(Shapes):
        seen = 0

        def __getitem__(self, place: Any) -> Any:
            taken = super().__getitem__(place)
            Counted.seen += len(taken) if isinstance(place, slice) else 1
            return taken

    for rank, shape in ((1, (2,)), (2, (3, 2))):
        parts = Counted([shape] * 1000)
        builder = Builder()
        total = concatenate.shape(parts, axis=-1, rank=rank)
        bar = Node(builder, builder.input("t", total))
        Counted.seen = 0
        keys = [
            builder.params(concatenate.rule.transpose(bar, k, parts, axis=-1, rank=rank).id)["key"]
            for k in range(1000)
        ]
        assert Counted.seen <= 2000
        assert [key[-1] for key in keys] == [(2 * k, 2 * k + 2, 1) for k in range(1000)]


@for_each("length", range(2, 20))
def test_sums_in_order_of_points_whose_terms_lie_any_bytes_apart(length: int) -> None:
    first = np.array([10.0])
    rest = np.arange(3.0 * (length - 1)).reshape(3, length - 1)
    compute = sum_in_order.computer(np)
    found = compute(first, rest, length=length, places=((0, 1, 1), (1, length, 1)))
    assert found.tolist() == (10.0 + rest.sum(axis=1)).tolist()
