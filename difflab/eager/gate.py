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

from difflab.core.primitive import Primitive
from difflab.eager.backward import SPREAD, Contributions, Narrow
from difflab.eager.plan import Plan
from difflab.eager.tape import Accumulation, Memory, Step
from difflab.eager.tensors import Tensor
from difflab.eager.values import Calculator

__all__ = ["Again", "Edge", "make_gate", "make_portal"]

Edge = Step | Accumulation | None
Again = Callable[[Step, bool], Sequence[Edge]]
"""Records the part: ``(gate, differentiable) -> `` where each portal's value comes from, None
where nothing flows; `differentiable` says that the sweep itself is recorded."""

_NOTHING = np.float64(0.0)  # what a gate is called with; the cotangents wait in its mailbox


class _Gate:
    """What stands for the rule of a gate."""


class _Portal:
    """What stands for the rule of a portal."""


class _Mailbox:
    """The cotangents that have arrived at a gate in one sweep, by the place of their portal."""

    __slots__ = ("arrived", "sweep")

    def __init__(self) -> None:
        self.sweep: Calculator | None = None
        self.arrived: dict[int, tuple[Any, Any]] = {}


def _row(rule: Any) -> Primitive:
    """Return what is shown as the name of a step; it is never computed."""
    return Primitive(name="checkpoint", arity=1, kernel=lambda xp, x: x, rule=rule)


_GATE_ROW, _PORTAL_ROW = _row(_Gate()), _row(_Portal())


def make_gate(inputs: Sequence[Tensor], again: Again) -> Step:
    """Return a gate to a part that starts from `inputs`, which it keeps.

    Parameters
    ----------
    inputs : sequence of Tensor
        Their arrays are the gate's slots, where they came from its edges.
    again : callable
        Records the part; see `Again`.
    """
    plan = Plan(_GATE_ROW, 0, {"again": again, "mailbox": _Mailbox()}, (), ())
    gate = Step(plan, tuple(tensor._step for tensor in inputs))
    gate.slots = [tensor._data for tensor in inputs]
    return gate


def make_portal(gate: Step, place: int, data: Any, memory: Memory | None = None) -> Tensor:
    """Return the tensor of a value that comes out of a gate."""
    return Tensor(data, Step(Plan(_PORTAL_ROW, 0, {"place": place}, (), ()), (gate,)), memory)


def _deliver(
    step: Step, value: Any, mask: Any, calculator: Calculator, narrow: Narrow
) -> Contributions:
    """Put a portal's cotangent into its gate's mailbox."""
    (gate,) = step.edges or ()
    mailbox: _Mailbox = gate.plan.params["mailbox"]  # type: ignore[union-attr]
    if mailbox.sweep is not calculator:  # what a sweep that was broken off left there is void
        mailbox.sweep, mailbox.arrived = calculator, {}
    mailbox.arrived[step.plan.params["place"]] = (value, mask)
    return [(gate, _NOTHING, None)]


def _open(
    step: Step, value: Any, mask: Any, calculator: Calculator, narrow: Narrow
) -> Contributions:
    """Record a gate's part and send what has arrived to its steps."""
    mailbox: _Mailbox = step.plan.params["mailbox"]
    arrived, mailbox.sweep, mailbox.arrived = mailbox.arrived, None, {}
    edges = step.plan.params["again"](step, calculator.xp is None)
    contributions: Contributions = []
    for place in sorted(arrived, reverse=True):  # the last first, as the sweep would come to them
        if edges[place] is not None:
            contributions.append((edges[place], *arrived[place]))
    return contributions


SPREAD[_Gate] = _open
SPREAD[_Portal] = _deliver
