"""The schedule of binomial checkpointing: counts as published, and every action as it must be."""

import json
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from difflab.eager.chains import beta, forward_steps, kept_states, repetitions
from difflab.errors import InputError

TABLE = json.loads((Path(__file__).parents[1] / "data" / "checkpointing.json").read_text())["rows"]


class Action(NamedTuple):
    """An action of the schedule: keep or return to the state before `step`, run, or reverse."""

    kind: str
    step: int
    until: int


def revolve(steps: int, snapshots: int) -> Iterator[Action]:
    """Yield the actions that reverse a chain whose states are kept where `kept_states` says."""
    kept = [0]
    yield Action("snapshot", 0, 0)
    for end in range(steps, 0, -1):
        while kept[-1] >= end:
            kept.pop()
        here = kept[-1]
        if end < steps:
            yield Action("restore", here, here)
        for step in kept_states(here, end, snapshots - len(kept)):
            yield Action("advance", here, step)
            yield Action("snapshot", step, step)
            kept.append(step)
            here = step
        if here < end - 1:
            yield Action("advance", here, end - 1)
        yield Action("reverse", end - 1, end)


def test_the_table_is_whole():
    assert len(TABLE) == 512


@pytest.mark.parametrize("snapshots", sorted({row[1] for row in TABLE}))
def test_closed_form_and_schedule_have_the_published_counts(snapshots):
    for steps, kept, fewest, repeats in TABLE:
        if kept != snapshots:
            continue
        assert forward_steps(steps, kept) == fewest
        assert repetitions(steps, kept) == repeats
        run = [0] * steps
        for action in revolve(steps, kept):
            if action.kind == "advance":
                for k in range(action.step, action.until):
                    run[k] += 1
        assert sum(run) == fewest
        assert max(run) <= repeats


@pytest.mark.parametrize(("steps", "snapshots"), [(1, 1), (2, 1), (7, 1), (10, 3), (57, 4), (9, 9)])
def test_every_action_is_possible_and_every_step_is_reversed_once(steps, snapshots):
    kept, here, reversed_steps = set(), 0, []
    for kind, step, until in revolve(steps, snapshots):
        if kind == "snapshot":
            assert step == here
            kept.add(step)
            assert len(kept) <= snapshots
        elif kind == "restore":
            assert step in kept
            here = step
        elif kind == "advance":
            assert step == here < until
            here = until
        else:
            assert (step, until) == (here, here + 1)
            reversed_steps.append(step)
            kept = {place for place in kept if place < step or place == 0}
    assert reversed_steps == list(range(steps))[::-1]
    # A state whose step is recorded at once is not kept; the initial one is there anyway.
    actions = list(revolve(steps, snapshots))
    for action, after in pairwise(actions[1:]):
        assert (action.kind, after.kind) != ("snapshot", "reverse")


def test_beta_is_the_longest_chain():
    assert [beta(s, 2) for s in (1, 2, 3, 4)] == [3, 6, 10, 15]
    assert repetitions(beta(5, 3), 5) == 3
    assert repetitions(beta(5, 3) + 1, 5) == 4


def test_long_chains_are_scheduled_step_by_step():
    assert repetitions(10**9, 20) == 14  # C(33, 13) < 10⁹ ≤ C(34, 14)
    assert sum(1 for _ in islice(revolve(10**9, 20), 50)) == 50
    advanced = sum(a.until - a.step for a in revolve(100_000, 10) if a.kind == "advance")
    assert advanced == forward_steps(100_000, 10)


@pytest.mark.parametrize(("steps", "snapshots"), [(0, 1), (3, 0), (-1, 2)])
def test_numbers_below_one_are_refused(steps, snapshots):
    with pytest.raises(InputError, match="at least 1 step and 1 snapshot"):
        forward_steps(steps, snapshots)
