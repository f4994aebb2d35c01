"""Custom functions on tensors: the user's forward computes, the user's backward goes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from difflab.arrays.given import shape_of
from difflab.autodiff.engine.masked import either
from difflab.core.place import FramePosition, user_position
from difflab.eager.multi_output import Arrived, make_gate, make_portal
from difflab.eager.recording.mode import MODE, WATCHED
from difflab.eager.recording.record import Recorded
from difflab.eager.recording.tape import Step, storage_of
from difflab.eager.sweep.backward import Contributions
from difflab.eager.sweep.values import Calculator
from difflab.errors import UnsupportedError
from difflab.graph.custom.call import Context, CustomCall, ForwardResult, read_only

__all__ = ["record_custom"]


def record_custom(
    kind: type[Recorded], call: CustomCall, args: Sequence[Any]
) -> tuple[list[Any], bool]:
    """Return the outputs of a custom function on tensors, and whether they are one."""
    data = [_given(arg._data if isinstance(arg, Recorded) else arg) for arg in args]
    edges = [arg._step if isinstance(arg, Recorded) else None for arg in args]
    flows = any(edge is not None for edge in edges)
    ran = call.run(data, [edge is not None for edge in edges])
    values = [_own(output) for output in ran.outputs]
    if not (flows and MODE.enabled):
        MODE.met |= flows
        return [kind(value) for value in values], ran.single
    watched = WATCHED and MODE.watch is not None
    visit = _Visit(kind, call, ran, data, user_position() if watched else None)
    # What is kept is in slots, which are let go when the tape is freed.
    slots = [ran.context, *visit.needed(data), *ran.context.kept]
    shapes = tuple([shape_of(value) for value in data])
    gate = make_gate(call.name, edges, slots, visit.pull, shapes)
    made = [
        make_portal(kind, gate, place, value) if value.dtype.kind == "f" else kind(value)
        for place, value in enumerate(values)
    ]
    kept = {id(value) for value in ran.context.kept}
    seen = zip([*data, *ran.outputs], [*args, *made], strict=True)
    storages = [storage_of(t) for v, t in seen if id(v) in kept and isinstance(t, Recorded)]
    gate.guards = tuple([(storage, storage.changes) for storage in storages])
    return made, ran.single


def _given(value: Any) -> Any:
    """Return an argument as an object of its own, by which it is known when it is saved."""
    return value.copy() if isinstance(value, np.generic) else read_only(value)


def _own(output: Any) -> Any:
    """Return an array that a tensor may hold: the user's function may keep the one it returns."""
    value = _array(output)
    return value.copy() if isinstance(value, np.ndarray) else value


class _Visit:
    """A custom function that was computed, and what goes back through it.

    Of the values that are saved it knows which argument or output they are, by their ``id``.
    """

    def __init__(
        self,
        kind: type[Recorded],
        call: CustomCall,
        ran: ForwardResult,
        data: Sequence[Any],
        spot: FramePosition | None,
    ) -> None:
        self.kind = kind
        self.call = call
        self.spot = spot
        self.outputs = [(shape_of(value), value.dtype) for value in ran.outputs]
        self.kept = {id(value) for value in ran.context.kept}
        self.inputs = {id(v): place for place, v in enumerate(data) if id(v) in self.kept}
        self.made = {id(v): place for place, v in enumerate(ran.outputs) if id(v) in self.kept}

    def needed(self, data: Sequence[Any]) -> list[Any]:
        """Return the arguments that derivatives of the gradient may need, None for others.

        Those are the saved ones; all of them, if forward may have to be run again: where it saved
        what it computed inside, or one of several outputs, which need not take part.
        """
        found = self.inputs.keys() | self.made.keys() if len(self.outputs) == 1 else self.inputs
        known = self.kept <= set(found)
        return [None if known and id(value) not in self.kept else value for value in data]

    def pull(self, gate: Step, arrived: Arrived, calculator: Calculator) -> Contributions:
        """Run the user's backward, on tensors if the sweep is recorded."""
        bars = [
            calculator.settled(*arrived[place][:2])
            if place in arrived
            else calculator.zeros(shape, dtype)
            for place, (shape, dtype) in enumerate(self.outputs)
        ]
        context: Context = gate.slots[0]
        if calculator.kernels is None:
            context = self._on_tensors(gate, arrived, context)
            bars = [self._tensor(bar) for bar in bars]
        else:
            bars = [read_only(bar) for bar in bars]
        shapes = gate.plan.shapes
        found = self.call.pull(context, bars, shapes)
        if WATCHED and MODE.watch is not None:
            MODE.watch.check_custom(gate, self.spot, bars, found)
        masks = [mask for _, mask, _ in arrived.values()]
        contributions: Contributions = []
        for edge, bar, shape in zip(gate.edges or (), found, shapes, strict=True):
            if edge is None or bar is None:
                continue
            bar = self._tensor(bar) if calculator.kernels is None else _own(bar)
            live = None
            if all(mask is not None for mask in masks):
                reached = [calculator.reached(mask, shape) for mask in masks]
                live = either(calculator, reached)
            if live is not None and type(edge) is not Step:
                bar, live = calculator.settled(bar, live), None
            contributions.append((edge, bar, live))
        return contributions

    def _on_tensors(self, gate: Step, arrived: Arrived, context: Context) -> Context:
        """Return the context with tensors, through which derivatives of the gradient flow."""
        edges = gate.edges or ()
        inputs = [self.kind(data, edge) for data, edge in zip(gate.slots[1:], edges, strict=False)]
        known: dict[int, Any] = {}
        for value in context.kept:
            place = self.made.get(id(value))
            if place in arrived:
                known[id(value)] = self.kind(value, arrived[place][2])
        known |= {key: inputs[place] for key, place in self.inputs.items()}
        if all(id(value) in known for value in context.kept):
            return context.replaced(known)
        try:
            ran = self.call.run(inputs)
        except Exception as error:
            raise UnsupportedError(
                f"{self.call.name}.forward saves what it computes inside and cannot be recorded"
                f" ({type(error).__name__}: {error}), so its gradient cannot be differentiated"
                " again: save arguments or outputs, and compute the rest in backward"
            ) from error
        outputs = {id(output): place for place, output in enumerate(ran.outputs)}
        portals = {
            id(value): self.kind(value._data, arrived[outputs[id(value)]][2])
            for value in ran.context.kept
            if outputs.get(id(value)) in arrived
        }
        return ran.context.replaced(portals)

    def _tensor(self, value: Any) -> Any:
        """Return numbers as a tensor."""
        return value if isinstance(value, Recorded) else self.kind(value)


def _array(value: Any) -> Any:
    """Return a tensor's numbers, or numbers as they are."""
    return value._data if isinstance(value, Recorded) else value
