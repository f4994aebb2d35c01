"""Evaluation of a step many times: from some turns on as Python code of the same operations."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import difflab as dl
from difflab.graph.control import WORTH_CODE, prepared
from difflab.graph.evaluate import ArrayInterpreter, Fold

PROGRAMS = (
    "x*sin(y) + where(x > y, x, y)*pi - 2",
    "w: [4, 3]; v: [3]; sum(tanh(w @ v)[1:]) + v[0]*w[:, 1]",
    "[y, x, 3]",
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_code_computes_the_same_bits(program: str) -> None:
    function = dl.parse(program)
    rng = np.random.default_rng(0)
    values = [rng.uniform(0.1, 1.0, shape) for shape in function.input_shapes]
    fold = Fold(function.graph, function.outputs, ArrayInterpreter())
    step = fold.straight(function.input_nodes)
    for _ in range(2):
        expected = fold(dict(zip(function.input_nodes, values, strict=True)))
        for found, wanted in zip(step(values), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("turns", [WORTH_CODE - 1, WORTH_CODE, WORTH_CODE + 1, 5 * WORTH_CODE])
def test_a_loop_of_any_length_is_that_of_python(turns: int) -> None:
    y = 0.3
    for _ in range(turns):
        y = 4.0 * y * (1.0 - y)
    assert float(dl.parse(f"iterate(y = x; {turns} times; 4*y*(1 - y))")(0.3)) == y


def test_arrays_are_dropped_after_their_last_use() -> None:
    alive: list[Any] = []

    class Watched(ArrayInterpreter):
        def operation(self, primitive: Any) -> Any:
            compute = super().operation(primitive)

            def watched(*args: Any, **params: Any) -> Any:
                alive[:] = [ref for ref in alive if ref() is not None]
                assert len(alive) <= 2, "a value outlives its last use"
                result = compute(*args, **params)
                alive.append(weakref.ref(result))
                return result

            return watched

    function = dl.parse("x: [5]; sin(cos(exp(tanh(sin(x)))))")
    step = Fold(function.graph, function.outputs, Watched()).straight(function.input_nodes)
    assert np.shape(step([np.ones(5)])[0]) == (5,)


def test_a_step_counts_its_evaluations() -> None:
    calls: list[Sequence[Any]] = []
    function = dl.parse("2*x")
    step = prepared(function, ArrayInterpreter())
    calls += [step([float(number)]) for number in range(WORTH_CODE + 5)]
    assert [float(value) for (value,) in calls] == [2.0 * k for k in range(WORTH_CODE + 5)]
