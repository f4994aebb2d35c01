"""Random expressions are programs of the language, defined everywhere, over the whole table."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings

from difflab.errors import DomainError
from difflab.language import parse
from difflab.primitives import TABLE
from difflab.testing.strategies import (
    around_kinks,
    arrays,
    cases,
    expressions,
    inside,
    points,
    shapes,
    trees,
)

Case = tuple[str, dict[str, float]]


@given(cases())
def test_a_case_is_defined_at_its_point(case: Case) -> None:
    text, at = case
    function = parse(text)
    assert function.inputs == ("x", "y")
    point = np.array([at[name] for name in function.inputs])
    assert np.isfinite(function.values(point)).all()


@given(expressions())
def test_an_expression_is_defined_at_every_point(text: str) -> None:
    function = parse(f"({text}) + 0*x + 0*y")
    grid = np.array(np.meshgrid(*[np.linspace(-2, 2, 5)] * 2)).reshape(2, -1).T
    assert np.isfinite(function.values(grid)).all()


@given(expressions(("a", "b2"), max_leaves=3), points(("a", "b2")))
def test_names_are_the_callers(text: str, at: dict[str, float]) -> None:
    assert set(parse(text).inputs) <= {"a", "b2"} == set(at)
    assert all(-2 <= value <= 2 for value in at.values())


def test_every_row_of_the_language_comes_up() -> None:
    spelled = {
        name
        for name, row in TABLE.items()
        if (row.names or row.infix) and row.samples and not row.boolean and name != "float32"
    }
    seen: set[str] = set()

    class AllSeen(Exception):
        """Ends the search early."""

    @settings(max_examples=4000, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(expressions())
    def collect(text: str) -> None:
        seen.update(row.name for row in parse(text).graph.primitives)
        if spelled <= seen:
            raise AllSeen

    with suppress(AllSeen):
        collect()
    assert spelled <= seen


# --- points of a given function ---------------------------------------------------------------

NARROW = "log(x - 5) + sqrt(9 - x^2/16) + asin(y/20)"  # 5 < x <= 12, |y| <= 20


@given(inside(parse(NARROW)))
def test_points_lie_inside_the_domain(point: dict[str, Any]) -> None:
    assert 5 < point["x"] <= 12
    assert abs(point["y"]) <= 20


def test_points_reach_every_part_of_a_domain() -> None:
    seen: list[float] = []

    @given(inside(parse("1/x + 0*y")))
    def collect(point: dict[str, Any]) -> None:
        seen.append(point["x"])

    collect()
    assert min(seen) < -1
    assert max(seen) > 1
    assert any(0 < abs(value) < 0.5 for value in seen)


def test_a_failure_shrinks_to_a_simple_point() -> None:
    assert find(inside(parse("log(x) + y")), lambda point: True) == {"x": 1.0, "y": 1.0}
    assert find(inside(parse("log(x) + y")), lambda point: point["x"] > 1.5) == {"x": 2.0, "y": 2.0}


def test_arrays_are_inputs_too() -> None:
    function = parse("x: [3]; sum(log(x)) + y")
    point = find(inside(function), lambda point: bool(np.all(point["x"] > 1)))
    assert point["x"].tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("text", "kink"),
    [
        ("abs(x - 3)", 3.0),
        ("max(2*x, x + 7)", 7.0),
        ("abs(log(x))", 1.0),
        ("abs(x^2 - 2)", math.sqrt(2)),
    ],
)
def test_points_lie_on_a_kink_and_on_both_sides(text: str, kink: float) -> None:
    near = around_kinks(parse(text))
    close = [
        find(near, lambda point, side=side: side * (abs(point["x"]) - kink) > 0)["x"]  # type: ignore[misc]
        for side in (-1, 1)
    ]
    assert abs(find(near, lambda point: True)["x"]) == pytest.approx(kink, abs=1e-12)
    assert max(abs(abs(x) - kink) for x in close) < 0.2


def test_a_smooth_function_has_no_kink() -> None:
    with pytest.raises(DomainError, match="no kink was found"):
        around_kinks(parse("sin(x)"))


@given(trees(max_leaves=4), shapes(2, 3))
def test_trees_have_arrays_as_leaves(tree: Any, shape: tuple[int, ...]) -> None:
    assert len(shape) <= 2
    assert all(1 <= side <= 3 for side in shape)
    pending = [tree]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            pending += part.values()
        elif isinstance(part, list | tuple):
            pending += part
        else:
            assert isinstance(part, np.ndarray)
            assert np.all(np.abs(part) <= 2)


def test_trees_and_arrays_shrink() -> None:
    assert find(trees(), lambda tree: True) == 0.0
    assert find(trees(), lambda tree: isinstance(tree, dict)) == {"a": 0.0}
    assert find(arrays(), lambda array: array.size == 2 and array.min() > 0).size == 2
