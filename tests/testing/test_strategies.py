"""Random expressions are programs of the language, defined everywhere, over the whole table."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings

from difflab.language import parse
from difflab.primitives import TABLE
from difflab.testing.strategies import cases, expressions, points

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
        if (row.names or row.infix) and row.samples and not row.boolean
    }
    seen: set[str] = set()

    @settings(max_examples=1000, suppress_health_check=list(HealthCheck))
    @given(expressions())
    def collect(text: str) -> None:
        seen.update(row.name for row in parse(text).graph.primitives)

    collect()
    assert spelled <= seen
