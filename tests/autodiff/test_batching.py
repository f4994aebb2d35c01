"""Stacks of examples through the rows of arrays: one node stays one node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.autodiff.engine.batching import batched
from difflab.graph.builder import Builder
from difflab.graph.function import Function
from difflab.graph.node import Node
from tests.primitives.test_arrays import CASES, PLACES, SQUARE, VECTOR, applied, indices_of
from tests.support.rows import for_each

MOVING: dict[str, Any] = {
    "transpose": lambda x: x.T * 2.0,
    "concatenate": lambda x: dl.arrays.concatenate([x, x[:1]], axis=0),
    "take": lambda x: dl.arrays.take(x, [2, 0, 2], axis=1),
    "put": dl.jacobian(dl.trace(lambda x: dl.arrays.take(x, [2, 0, 2], axis=1), SQUARE)),
    "diag": lambda x: dl.arrays.diag(x[0]),
    "diagonal": lambda x: np.diagonal(x) * 1.0,
    "cumsum": lambda x: np.cumsum(x, axis=1),
    "argmax": lambda x: np.argmax(x, axis=0),
    "layer": lambda x: np.mean(np.maximum(x @ SQUARE + VECTOR[:3], 0.0) @ x[0]),
}


def stacks(values: Any, flags: tuple[bool, ...], size: int) -> tuple[list[Any], list[list[Any]]]:
    """Return what a function of stacks takes, and the examples one by one."""
    scales = 1.0 + 0.1 * np.arange(size)
    given = [
        np.multiply.outer(scales, value) if flag else value
        for value, flag in zip(values, flags, strict=True)
    ]
    examples = [
        [value[place] if flag else value for value, flag in zip(given, flags, strict=True)]
        for place in range(size)
    ]
    return given, examples


def hold(function: Function, values: Any, flags: tuple[bool, ...]) -> None:
    given, examples = stacks(values, flags, 3)
    small, large = batched(function, flags, 3), batched(function, flags, 40)
    assert len(small.graph) == len(large.graph)  # nothing is unrolled
    expected = [function(*example) for example in examples]
    assert np.allclose(small(*given), expected, rtol=1e-12, atol=1e-14)


@for_each(("name", "case"), PLACES)
def test_rows_take_stacks_whole(name: str, case: int) -> None:
    values, params = CASES[name][case]
    builder = Builder()
    nodes = [Node(builder, builder.input(f"a{k}", v.shape)) for k, v in enumerate(values)]
    result = applied(name, [*nodes, *indices_of(name, case)], params)
    function = Function.build(builder, [node.id for node in nodes], [result.id], ["y"])
    choices = [(True,)] if len(values) == 1 else [(True, True), (True, False), (False, True)]
    for flags in choices:
        hold(function, values, flags)
        for mode in ("forward", "reverse"):
            hold(dl.jacobian(function, mode=mode), values, flags)


@pytest.mark.parametrize("name", MOVING)
def test_what_moves_data_takes_stacks_whole(name: str) -> None:
    found = MOVING[name]
    function = found if isinstance(found, Function) else dl.trace(found, SQUARE)
    hold(function, (SQUARE,), (True,))
    hold(dl.jacobian(function), (SQUARE,), (True,))


def test_maps_inside_a_trace_keep_their_rows() -> None:
    def energy(points: Any) -> Any:
        return np.sum(dl.vmap(lambda x: np.max(SQUARE @ x) + np.linalg.norm(x))(points) ** 2)

    points = np.outer(np.arange(1.0, 6.0), VECTOR[:3])
    few, many = (dl.trace(energy, points[:size]) for size in (2, 5))
    assert len(few.graph) == len(many.graph)
    expected = sum((np.max(SQUARE @ x) + np.linalg.norm(x)) ** 2 for x in points)
    assert np.isclose(many(points), expected, rtol=1e-14)
    assert np.allclose(
        dl.grad(energy)(points),
        dl.differentiate(many, points.ravel(), method="richardson").value.reshape(points.shape),
        rtol=1e-8,
    )


def test_jacobians_inside_a_trace_keep_their_rows() -> None:
    def spread(x: Any) -> Any:
        return np.sum(dl.jacfwd(lambda y: np.cumsum(SQUARE[:1, :1] * y) ** 2)(x) ** 2)

    few, many = (dl.trace(spread, np.ones(size)) for size in (3, 30))
    assert len(few.graph) == len(many.graph)
    x = VECTOR[:3]
    total = 2.0 * np.cumsum(x)
    slopes = 2.0 * total[:, None] * 2.0 * np.tri(3)
    assert np.isclose(few(x), np.sum(slopes**2), rtol=1e-14)
