"""Several values that go backward together.

The values that come out of one place are *portals* to one *gate*. The sweep comes to the portals
first, which hand their cotangents to the gate, and then to the gate, which goes on with all of
them: through the user's own backward, or through a part of the tape that is made only now. The
steps of such a part are numbered above all others, so the sweep goes through them next, and
everything arrives everywhere in the order in which it would without a gate: the gradients are the
same bit for bit. Nothing recurses, however gates nest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive
from difflab.eager.recording.plan import BackwardPlan
from difflab.eager.recording.record import TapedArray
from difflab.eager.recording.tape import Accumulation, Storage, TapeStep
from difflab.eager.sweep.backward import SPREAD, Contributions, Narrow
from difflab.eager.sweep.values import Calculator

__all__ = [
    "Edge",
    "OutputCotangents",
    "PullBack",
    "make_multi_output_step",
    "make_output",
    "recomputed",
]

Edge = TapeStep | Accumulation | None
OutputCotangents = dict[int, tuple[Any, Any, TapeStep]]
"""By the place of each portal that was come to: its cotangent, its mask, its step."""
PullBack = Callable[[TapeStep, OutputCotangents, Calculator], Contributions]
"""Goes on from a gate."""

_NOTHING = np.float64(0.0)  # what a gate is called with; the cotangents wait in its mailbox


class _MultiOutputRule:
    """What stands for the rule of a gate."""


class _OutputRule:
    """What stands for the rule of a portal."""


class _PendingCotangents:
    """The cotangents that have arrived at a gate in one sweep, by the place of their portal."""

    __slots__ = ("arrived", "sweep")

    def __init__(self) -> None:
        self.sweep: Calculator | None = None
        self.arrived: OutputCotangents = {}


@cache
def _row(kind: type, name: str) -> Primitive:
    """Return what is shown as the name of a step; it is never computed."""
    return Primitive(name=name, arity=1, kernel=lambda xp, x: x, rule=kind())


def make_multi_output_step(
    name: str, edges: Sequence[Edge], slots: Sequence[Any], opened: PullBack, shapes: Any = ()
) -> TapeStep:
    """Return a gate.

    Parameters
    ----------
    name : str
        What the steps are called.
    edges : sequence
        Where the gate's inputs came from.
    slots : sequence
        What it keeps until the tape is freed.
    opened : callable
        What the sweep does when it comes to the gate.
    shapes : tuple of tuple of int
        The inputs' shapes, where `opened` asks for them.
    """
    params = {"opened": opened, "mailbox": _PendingCotangents()}
    gate = TapeStep(BackwardPlan(_row(_MultiOutputRule, name), 0, params, shapes, ()), tuple(edges))
    gate.slots = list(slots)
    return gate


def make_output(
    kind: type[TapedArray], gate: TapeStep, place: int, data: Any, storage: Storage | None = None
) -> Any:
    """Return the tensor of a value that comes out of a gate."""
    plan = BackwardPlan(_row(_OutputRule, gate.name), 0, {"place": place}, (), (), data.dtype)
    return kind(data, TapeStep(plan, (gate,)), storage)


def recomputed(again: Callable[[TapeStep, bool], Sequence[Edge]]) -> PullBack:
    """Return what opens a gate to a part of the tape that `again` records.

    Parameters
    ----------
    again : callable
        ``(gate, differentiable) -> edges``: where each portal's value comes from, None where
        nothing flows; `differentiable` says that the sweep itself is recorded.
    """

    def opened(gate: TapeStep, arrived: OutputCotangents, calculator: Calculator) -> Contributions:
        edges = again(gate, calculator.kernels is None)
        return [
            (edges[place], bar, mask)
            for place, (bar, mask, _) in arrived.items()
            if edges[place] is not None
        ]

    return opened


def _deliver(
    step: TapeStep, value: Any, mask: Any, calculator: Calculator, narrow: Narrow
) -> Contributions:
    """Put a portal's cotangent into its gate's mailbox."""
    (gate,) = step.edges or ()
    mailbox: _PendingCotangents = gate.plan.params["mailbox"]  # type: ignore[union-attr]
    if mailbox.sweep is not calculator:  # what a sweep that was broken off left there is void
        mailbox.sweep, mailbox.arrived = calculator, {}
    mailbox.arrived[step.plan.params["place"]] = (value, mask, step)
    return [(gate, _NOTHING, None)]


def _open(
    step: TapeStep, value: Any, mask: Any, calculator: Calculator, narrow: Narrow
) -> Contributions:
    """Go on from a gate with what has arrived."""
    mailbox: _PendingCotangents = step.plan.params["mailbox"]
    arrived, mailbox.sweep, mailbox.arrived = mailbox.arrived, None, {}
    opened: PullBack = step.plan.params["opened"]
    return opened(step, arrived, calculator)


SPREAD[_MultiOutputRule] = _open
SPREAD[_OutputRule] = _deliver
