"""Values that share slots."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from difflab.execute.lower.plan import assign_slots


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
    for k, operands in enumerate(reads):
        for value in operands:
            if value in slots:
                assert held[slots[value]] == value
        value = k + 2
        if value in slots:
            assert slots[value][0] == kinds[k]
            if not in_place[k]:
                assert slots[value] not in [slots.get(read) for read in operands]
            held[slots[value]] = value
