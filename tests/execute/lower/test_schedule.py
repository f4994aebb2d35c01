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
