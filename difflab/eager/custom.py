"""Operations with several outputs on the tape, and the user's custom functions, which are such."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from difflab.arrays.given import shape_of
from difflab.autodiff.engine.masked import either
from difflab.core.place import FramePosition, user_position
from difflab.core.primitive import Primitive
from difflab.eager.recording.plan import REMEMBERED, BackwardPlan
from difflab.eager.recording.record import TapedArray
from difflab.eager.recording.tape import MODE, WATCHED, Accumulation, TapeStep, require_recordable
from difflab.eager.sweep.backward import SPREAD, Calculator, Contributions, Narrow
from difflab.errors import UnsupportedError
from difflab.graph.custom.call import Context, CustomCall, ForwardResult, read_only

# --- operations with several outputs -------------------------------------------------------------
# One multi-output step, and an output step for each value. The reverse sweep reaches the output
# steps first, which store their cotangents as pending, and then the multi-output step, which pulls
# all of them back: through the user's own backward, or through a part of the tape that is recorded
# only then. The steps of such a part have higher numbers than all others, so the sweep visits them
# next, and cotangents are added in the order of a plain tape: the gradients are the same bit for
# bit. Nothing recurses, however such steps nest.

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


# --- custom functions ----------------------------------------------------------------------------
# The user's forward computes, and the user's backward pulls back.


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
    saved = [t for v, t in seen if id(v) in kept and isinstance(t, TapedArray)]
    for tensor in saved:
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
        at_hand = self.inputs.keys() | self.made.keys() if len(self.outputs) == 1 else self.inputs
        known = self.kept <= set(at_hand)
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
        gradients = self.call.pull(context, bars, shapes)
        if WATCHED and MODE.watch is not None:
            MODE.watch.check_custom(producer, self.spot, bars, gradients)
        masks = [mask for _, mask, _ in cotangents.values()]
        contributions: Contributions = []
        for edge, bar, shape in zip(producer.edges or (), gradients, shapes, strict=True):
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
