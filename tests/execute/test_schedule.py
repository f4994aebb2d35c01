"""The schedule: what is computed beforehand, what becomes cells, and who shares a place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import difflab as dl
from difflab.errors import UnsupportedError
from difflab.execute.schedule import Program, Schedule, assign_slots


def test_constants_are_computed_beforehand() -> None:
    schedule = Schedule.of(dl.parse("x*(sin(1) + 2^0.5)"))
    assert [step.row.name for step in schedule.steps] == ["multiply"]
    assert np.sin(1) + np.sqrt(2) in schedule.known.values()


def test_moves_are_done_once_on_the_cells() -> None:
    program = Program.of(Schedule.of(dl.jacobian(dl.parse("a: [3]; [a[2]*a[0], a[1]]"))))
    assert program.steps == []
    zero, one = (
        next(cell for cell, value in program.known.items() if value == wanted)
        for wanted in (0.0, 1.0)
    )
    assert program.outputs[0].tolist() == [[2, zero, 0], [zero, one, zero]]


def test_sums_over_arrays_are_no_program_on_numbers() -> None:
    f = dl.trace(lambda x: np.sum(np.sin(x)), np.ones(3))
    with pytest.raises(UnsupportedError, match="arrays"):
        Program.of(Schedule.of(f))


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[list[int]], list[str], list[bool], frozenset[int]]:
    count = draw(st.integers(1, 25))
    reads = [draw(st.lists(st.integers(0, 1 + k), max_size=3)) for k in range(count)]
    kinds = [draw(st.sampled_from("ab")) for _ in range(count)]
    in_place = [draw(st.booleans()) for _ in range(count)]
    kept = frozenset(draw(st.sets(st.integers(2, count + 1))))
    return reads, kinds, in_place, kept


@given(runs())
def test_no_value_is_overwritten_while_it_is_needed(
    run: tuple[list[list[int]], list[str], list[bool], frozenset[int]],
) -> None:
    reads, kinds, in_place, kept = run
    # The values 0 and 1 are inputs; operation k gives the value k + 2.
    slots = assign_slots(range(2, len(reads) + 2), reads, kinds, in_place, kept)
    assert slots.keys() == set(range(2, len(reads) + 2)) - kept
    held: dict[object, int] = {}
    for k, taken in enumerate(reads):
        for value in taken:
            if value in slots:
                assert held[slots[value]] == value
        value = k + 2
        if value in slots:
            assert slots[value][0] == kinds[k]
            if not in_place[k]:
                assert slots[value] not in [slots.get(read) for read in taken]
            held[slots[value]] = value
