"""Custom functions on tensors: the user's forward computes, the user's backward pulls back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from difflab.arrays.given import shape_of
from difflab.autodiff.engine.masked import either
from difflab.core.place import FramePosition, user_position
from difflab.eager.multi_output import OutputCotangents, make_multi_output_step, make_output
from difflab.eager.recording.mode import MODE, WATCHED
from difflab.eager.recording.record import TapedArray
from difflab.eager.recording.tape import TapeStep, require_recordable
from difflab.eager.sweep.backward import Contributions
from difflab.eager.sweep.values import Calculator
from difflab.errors import UnsupportedError
from difflab.graph.custom.call import Context, CustomCall, ForwardResult, read_only


def record_custom(
    kind: type[TapedArray], call: CustomCall, args: Sequence[Any]
) -> tuple[list[Any], bool]:
    """Return the outputs of a custom function on tensors, and whether there is a single one."""
    data = [_distinct(arg._data if isinstance(arg, TapedArray) else arg) for arg in args]
    edges = [arg._step if isinstance(arg, TapedArray) else None for arg in args]
    flows = any(edge is not None for edge in edges)
    ran = call.run(data, [edge is not None for edge in edges])
    values = [_own(output) for output in ran.outputs]
    if not (flows and MODE.enabled):
        MODE.saw_grad |= flows
        return [kind(value) for value in values], ran.single
    watched = WATCHED and MODE.watch is not None
    custom = _CustomPullBack(kind, call, ran, data, user_position() if watched else None)
    # Saved values are kept in slots, which are dropped when the tape is freed.
    slots = [ran.context, *custom.needed(data), *ran.context.kept]
    shapes = tuple([shape_of(value) for value in data])
    producer = make_multi_output_step(call.name, edges, slots, custom.pull, shapes)
    made = [
        make_output(kind, producer, index, value) if value.dtype.kind == "f" else kind(value)
        for index, value in enumerate(values)
    ]
    kept = {id(value) for value in ran.context.kept}
    seen = zip([*data, *ran.outputs], [*args, *made], strict=True)
    found = [t for v, t in seen if id(v) in kept and isinstance(t, TapedArray)]
    for tensor in found:
        require_recordable(tensor, call.name)
    return made, ran.single


def _distinct(value: Any) -> Any:
    """Return an argument as a distinct object, so that its id identifies it when it is saved."""
    return value.copy() if isinstance(value, np.generic) else read_only(value)


def _own(output: Any) -> Any:
    """Return a copy for a tensor to hold: the user's function may keep the array it returns."""
    value = _array(output)
    return value.copy() if isinstance(value, np.ndarray) else value


class _CustomPullBack:
    """One call of a custom function, and its pull-back.

    The saved values that are arguments or outputs are identified by their ``id``.
    """

    def __init__(
        self,
        kind: type[TapedArray],
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
        self.inputs = {id(v): index for index, v in enumerate(data) if id(v) in self.kept}
        self.made = {id(v): index for index, v in enumerate(ran.outputs) if id(v) in self.kept}

    def needed(self, data: Sequence[Any]) -> list[Any]:
        """Return the arguments that derivatives of the gradient may need, None for the others.

        These are the saved ones; or all, if forward may have to be run again: if it saved an
        intermediate value, or one of several outputs, which may be unused.
        """
        found = self.inputs.keys() | self.made.keys() if len(self.outputs) == 1 else self.inputs
        known = self.kept <= set(found)
        return [None if known and id(value) not in self.kept else value for value in data]

    def pull(
        self, producer: TapeStep, cotangents: OutputCotangents, calculator: Calculator
    ) -> Contributions:
        """Run the user's backward, on tensors if the sweep is recorded."""
        bars = [
            calculator.masked(*cotangents[index][:2])
            if index in cotangents
            else calculator.zeros(shape, dtype)
            for index, (shape, dtype) in enumerate(self.outputs)
        ]
        context: Context = producer.slots[0]
        if calculator.kernels is None:
            context = self._on_tensors(producer, cotangents, context)
            bars = [self._tensor(bar) for bar in bars]
        else:
            bars = [read_only(bar) for bar in bars]
        shapes = producer.plan.shapes
        found = self.call.pull(context, bars, shapes)
        if WATCHED and MODE.watch is not None:
            MODE.watch.check_custom(producer, self.spot, bars, found)
        masks = [mask for _, mask, _ in cotangents.values()]
        contributions: Contributions = []
        for edge, bar, shape in zip(producer.edges or (), found, shapes, strict=True):
            if edge is None or bar is None:
                continue
            bar = self._tensor(bar) if calculator.kernels is None else _own(bar)
            live = None
            if all(mask is not None for mask in masks):
                reached = [calculator.reached(mask, shape) for mask in masks]
                live = either(calculator, reached)
            if live is not None and type(edge) is not TapeStep:
                bar, live = calculator.masked(bar, live), None
            contributions.append((edge, bar, live))
        return contributions

    def _on_tensors(
        self, producer: TapeStep, cotangents: OutputCotangents, context: Context
    ) -> Context:
        """Return the context with its saved values as tensors, to differentiate the gradient."""
        edges = producer.edges or ()
        inputs = [
            self.kind(data, edge) for data, edge in zip(producer.slots[1:], edges, strict=False)
        ]
        known: dict[int, Any] = {}
        for value in context.kept:
            index = self.made.get(id(value))
            if index in cotangents:
                known[id(value)] = self.kind(value, cotangents[index][2])
        known |= {key: inputs[index] for key, index in self.inputs.items()}
        if all(id(value) in known for value in context.kept):
            return context.replaced(known)
        try:
            ran = self.call.run(inputs)
        except Exception as error:
            raise UnsupportedError(
                f"{self.call.name}.forward saves what it computes inside, and cannot be recorded"
                f" ({type(error).__name__}: {error}), so its gradient cannot be differentiated"
                " again: save only arguments or outputs, and compute the rest in backward"
            ) from error
        outputs = {id(output): index for index, output in enumerate(ran.outputs)}
        outputs_as_tensors = {
            id(value): self.kind(value._data, cotangents[outputs[id(value)]][2])
            for value in ran.context.kept
            if outputs.get(id(value)) in cotangents
        }
        return ran.context.replaced(outputs_as_tensors)

    def _tensor(self, value: Any) -> Any:
        """Return a value as a tensor."""
        return value if isinstance(value, TapedArray) else self.kind(value)


def _array(value: Any) -> Any:
    """Return the array of a tensor, or any other value unchanged."""
    return value._data if isinstance(value, TapedArray) else value
