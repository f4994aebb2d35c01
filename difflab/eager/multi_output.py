"""Operations with several outputs: one multi-output step, and an output step for each value.

The reverse sweep reaches the output steps first, which store their cotangents as pending, and
then the multi-output step, which pulls all of them back: through the user's own backward, or
through a part of the tape that is recorded only then. The steps of such a part have higher
numbers than all others, so the sweep visits them next, and cotangents are added in the order of a
plain tape: the gradients are the same bit for bit. Nothing recurses, however such steps nest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive
from difflab.eager.recording.plan import REMEMBERED, BackwardPlan
from difflab.eager.recording.record import TapedArray
from difflab.eager.recording.tape import Accumulation, TapeStep
from difflab.eager.sweep.backward import SPREAD, Contributions, Narrow
from difflab.eager.sweep.values import Calculator

Edge = TapeStep | Accumulation | None
OutputCotangents = dict[int, tuple[Any, Any, TapeStep]]
"""By index of each output that the sweep reached: its cotangent, its mask, its step."""
PullBack = Callable[[TapeStep, OutputCotangents, Calculator], Contributions]
"""Pulls the cotangents of the outputs back through a multi-output step."""

_NOTHING = np.float64(0.0)  # contributed to a multi-output step; its cotangents are pending


class _MultiOutputRule:
    """The rule of a multi-output step, by which `SPREAD` finds its function."""


class _OutputRule:
    """The rule of an output step, by which `SPREAD` finds its function."""


class _PendingCotangents:
    """The cotangents that one sweep has stored for a multi-output step, by index of the output."""

    __slots__ = ("cotangents", "sweep")

    def __init__(self) -> None:
        self.sweep: Calculator | None = None
        self.cotangents: OutputCotangents = {}


@cache
def _row(kind: type, name: str) -> Primitive:
    """Return a row that gives a step its name and rule; it is never computed."""
    return Primitive(name=name, arity=1, kernel=lambda xp, x: x, rule=kind())


def make_multi_output_step(
    name: str, edges: Sequence[Edge], slots: Sequence[Any], pull_back: PullBack, shapes: Any = ()
) -> TapeStep:
    """Return a multi-output step.

    Parameters
    ----------
    name : str
        The name of the step and of its output steps.
    edges : sequence
        The steps and leaves that the inputs came from.
    slots : sequence
        The values kept until the tape is freed.
    pull_back : callable
        Called by the sweep when it reaches the step.
    shapes : tuple of tuple of int
        The shapes of the inputs, if `pull_back` needs them.
    """
    params = {"pull_back": pull_back, "pending": _PendingCotangents()}
    producer = TapeStep(
        BackwardPlan(_row(_MultiOutputRule, name), 0, params, shapes, ()), tuple(edges)
    )
    producer.slots = list(slots)
    return producer


def make_output(
    kind: type[TapedArray],
    producer: TapeStep,
    index: int,
    data: Any,
) -> Any:
    """Return the tensor of one output of a multi-output step, with an output step."""
    return kind(data, TapeStep(_output_plan(producer.name, index, data.dtype), (producer,)))


@lru_cache(REMEMBERED)
def _output_plan(name: str, index: int, dtype: np.dtype[Any]) -> BackwardPlan:
    return BackwardPlan(_row(_OutputRule, name), 0, {"index": index}, (), (), dtype)


@dataclass(frozen=True)
class Recomputed:
    """The pull-back through a part of the tape that `rerun` records.

    Attributes
    ----------
    rerun : callable
        ``producer -> edges``: the step that computes each output, None if nothing flows.
    """

    rerun: Callable[[TapeStep], Sequence[Edge]]

    def __call__(
        self, producer: TapeStep, cotangents: OutputCotangents, calculator: Calculator
    ) -> Contributions:
        """Record the part, and pass the cotangents of its outputs on to it."""
        edges = self.rerun(producer)
        return [
            (edges[index], bar, mask)
            for index, (bar, mask, _) in cotangents.items()
            if edges[index] is not None
        ]


def leads_beyond_its_edges(step: TapeStep) -> bool:
    """Whether leaves may be found behind a step only when it is recomputed."""
    return isinstance(step.plan.params.get("pull_back"), Recomputed)


def _store(
    step: TapeStep, value: Any, mask: Any, calculator: Calculator, narrow: Narrow
) -> Contributions:
    """Store the cotangent of an output as pending at its multi-output step."""
    (producer,) = step.edges or ()
    pending: _PendingCotangents = producer.plan.params["pending"]  # type: ignore[union-attr]
    if pending.sweep is not calculator:  # left by an interrupted sweep
        pending.sweep, pending.cotangents = calculator, {}
    pending.cotangents[step.plan.params["index"]] = (value, mask, step)
    return [(producer, _NOTHING, None)]


def _pull_back(
    step: TapeStep, value: Any, mask: Any, calculator: Calculator, narrow: Narrow
) -> Contributions:
    """Pull the pending cotangents back through a multi-output step."""
    pending: _PendingCotangents = step.plan.params["pending"]
    cotangents, pending.sweep, pending.cotangents = pending.cotangents, None, {}
    pull_back: PullBack = step.plan.params["pull_back"]
    return pull_back(step, cotangents, calculator)


SPREAD[_MultiOutputRule] = _pull_back
SPREAD[_OutputRule] = _store
