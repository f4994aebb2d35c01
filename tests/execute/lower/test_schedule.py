"""The schedule: constant folding, and the cells of scalar programs."""

from __future__ import annotations

import numpy as np
import pytest

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.execute.lower.schedule import ScalarProgram, Schedule


def test_constants_are_folded() -> None:
    schedule = Schedule.of(dl.parse("x*(sin(1) + 2^0.5)"))
    assert [step.row.name for step in schedule.steps] == ["multiply"]
    assert np.sin(1) + np.sqrt(2) in schedule.known.values()


def test_moves_are_done_once_on_the_cells() -> None:
    program = ScalarProgram.of(dl.jacobian(dl.parse("a: [3]; [a[2]*a[0], a[1]]")))
    assert program.steps == []
    zero, one = (
        next(cell for cell, value in program.known.items() if value == wanted)
        for wanted in (0.0, 1.0)
    )
    assert program.outputs[0].tolist() == [[2, zero, 0], [zero, one, zero]]


def test_sums_over_arrays_are_no_scalar_program() -> None:
    f = dl.trace(lambda x: np.sum(np.sin(x)), np.ones(3))
    with pytest.raises(UnsupportedError, match="arrays"):
        ScalarProgram.of(f)


@pytest.mark.parametrize(
    ("text", "products"),
    [
        ("sin(x*x) + cos(x^2)", 1),
        ("cos(x^2) + exp(x^3) + sin(x^4)", 3),
        ("x^2 + y^2 + sin(y*x)", 3),
        ("sin(x^2)*sin(x*x) + y*x^-1", 3),
    ],
)
def test_products_of_powers_are_computed_once(text: str, products: int) -> None:
    steps = Schedule.of(dl.parse(text)).steps
    assert [step.row.name for step in steps].count("multiply") == products
    assert len({(step.row, step.args) for step in steps}) == len(steps)
