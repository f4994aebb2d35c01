"""A part of the tape that is made when the backward sweep comes to it.

The values that come out of such a part are *portals* to one *gate*. The sweep comes to the
portals first, which hand their cotangents to the gate, and then to the gate, which records the
part and sends the cotangents on to the steps that are new. Those are numbered above all others,
so the sweep goes through them next, and everything arrives everywhere in the order in which it
would without a gate: the gradients are the same bit for bit. Nothing recurses, however gates
nest. May import `backward`, `plan`, `tape`, `tensors`, `values`, `primitives`, `core`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from difflab.core.primitive import Primitive, linear
from difflab.eager.backward import SPREAD, Contributions, Narrow
from difflab.eager.plan import Plan
from difflab.eager.tape import Accumulation, Memory, Step, next_number
from difflab.eager.tensors import Tensor
from difflab.eager.values import Calculator

__all__ = ["Again", "Edge", "make_gate", "make_portal"]

Edge = Step | Accumulation | None
Again = Callable[[Step, bool], Sequence[Edge]]
"""Records the part: ``(gate, differentiable) -> `` where each portal's value comes from, None
where nothing flows; `differentiable` says that the sweep itself is recorded."""

_NOTHING = np.float64(0.0)  # what a gate is called with; the cotangents wait in its mailbox


class _Gate:
    """The kind of a gate's plan."""


class _Portal:
    """The kind of a portal's plan."""


class _Mailbox:
    """The cotangents that have arrived at a gate in one sweep, by the place of their portal."""

    __slots__ = ("arrived", "sweep")

    def __init__(self) -> None:
        self.sweep: Calculator | None = None
        self.arrived: dict[int, tuple[Any, Any]] = {}


# Shown as the step's name; the sweep goes by the plan, never by this row.
_ROW = Primitive(
    name="checkpoint",
    arity=1,
    kernel=lambda xp, x: x,
    rule=linear(lambda t, position, shapes: t),
)
_GATE_PLAN = Plan(_Gate, (), (), 0)
_PORTAL_PLAN = Plan(_Portal, (), (), 0)


def make_gate(inputs: Sequence[Tensor], again: Again) -> Step:
    """Return a gate to a part that starts from `inputs`, which it keeps.

    Parameters
    ----------
    inputs : sequence of Tensor
        Their arrays are the gate's slots, where they came from its edges.
    again : callable
        Records the part; see `Again`.
    """
    gate = _step(_GATE_PLAN, tuple(tensor._step for tensor in inputs))
    gate.params = {"again": again, "mailbox": _Mailbox()}
    gate.slots = [tensor._data for tensor in inputs]
    return gate


def make_portal(gate: Step, place: int, data: Any, memory: Memory | None = None) -> Tensor:
    """Return the tensor of a value that comes out of a gate."""
    portal = _step(_PORTAL_PLAN, (gate,))
    portal.params = {"place": place}
    return Tensor(data, portal, memory)


def _step(plan: Plan, edges: tuple[Edge, ...]) -> Step:
    step = Step()
    step.number = next_number()
    step.row = _ROW
    step.plan = plan
    step.edges = edges
    step.shapes, step.slots, step.numbers, step.guards = [], [], (), ()
    step.hooks = step.retained = None
    return step


def _deliver(
    step: Step, value: Any, mask: Any, calculator: Calculator, narrow: Narrow
) -> Contributions:
    """Put a portal's cotangent into its gate's mailbox."""
    (gate,) = step.edges or ()
    mailbox: _Mailbox = gate.params["mailbox"]  # type: ignore[union-attr]
    if mailbox.sweep is not calculator:  # what a sweep that was broken off left there is void
        mailbox.sweep, mailbox.arrived = calculator, {}
    mailbox.arrived[step.params["place"]] = (value, mask)
    return [(gate, _NOTHING, None)]


def _open(
    step: Step, value: Any, mask: Any, calculator: Calculator, narrow: Narrow
) -> Contributions:
    """Record a gate's part and send what has arrived to its steps."""
    mailbox: _Mailbox = step.params["mailbox"]
    arrived, mailbox.sweep, mailbox.arrived = mailbox.arrived, None, {}
    edges = step.params["again"](step, calculator.revive is not None)
    contributions: Contributions = []
    for place in sorted(arrived, reverse=True):  # the last first, as the sweep would come to them
        if edges[place] is not None:
            contributions.append((edges[place], *arrived[place]))
    return contributions


SPREAD[_Gate] = _open
SPREAD[_Portal] = _deliver
