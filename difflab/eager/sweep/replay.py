"""Recorded sweeps, for tapes that are built the same way again and again, as in a training loop.

At the second `backward` over tapes of one structure, the reverse sweep runs on graph nodes
instead of arrays. The resulting graph is a function of the seed and of the values that the steps
keep; from then on that function is evaluated, without the decisions of the sweep. Rules, order
and masks are those of the sweep itself, so the gradients are the same to the last bit.
"""

from __future__ import annotations

import math
import threading
from contextvars import Context
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from difflab.core.devices import module_of
from difflab.core.primitive import Primitive
from difflab.eager.recording.plan import NUMBERS, recipe_of
from difflab.eager.recording.rows import cast, reached, zeros
from difflab.eager.recording.tape import Accumulation, TapeStep
from difflab.eager.sweep.backward import pull_back
from difflab.eager.sweep.script import SweepFunction, sweep_function
from difflab.eager.sweep.values import CarrierCalculator, Scattered
from difflab.graph.builder import Builder, Span
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node

__all__ = ["replayed"]

LONGEST = 1000
"""Most steps of a tape whose sweep is recorded; longer tapes rarely recur."""
LARGEST = 1 << 17
"""Most elements that a recorded sweep computes: it frees none of them before it ends."""
REMEMBERED = 256


class RecordedSweep(NamedTuple):
    """A recorded sweep, and the array module whose kernels it calls."""

    xp: Any
    sweep: SweepFunction


RECORDED_SWEEPS: dict[Any, RecordedSweep | int] = {}
"""By the structure of the tape: the recorded sweep, or `ONCE` or `NEVER` before it is recorded.

Also by plan: the recorded sweep of the latest tape whose last step has this plan, tried first.
"""
ONCE, NEVER = 1, 0


class WalkedTape(NamedTuple):
    """The steps in the order of the sweep, the leaves, and a key of the structure."""

    steps: list[TapeStep]
    leaves: list[Accumulation]
    key: Any


def replayed(root: TapeStep, seed: Any, *, keep: bool) -> list[tuple[Accumulation, Any]] | None:
    """Return the result of `pull_back` by a recorded sweep; None if there is none for this tape."""
    xp = module_of(seed)
    latest = RECORDED_SWEEPS.get(root.plan)
    if type(latest) is RecordedSweep and latest.xp is xp:
        found = _quiet().run(latest.sweep, root, seed, keep)
        if found is not None:
            return found
    recorded = _recorded_sweep(root, seed.shape, xp)
    if recorded is None:
        return None
    RECORDED_SWEEPS[root.plan] = recorded
    return _quiet().run(recorded.sweep, root, seed, keep)


def _recorded_sweep(root: TapeStep, shape: Shape, xp: Any) -> RecordedSweep | None:
    """Return the recorded sweep for a tape; it is recorded at the second tape of its structure."""
    tape = _walk(root)
    if tape is None:
        return None
    key = (xp, tape.key)
    recorded = RECORDED_SWEEPS.get(key)
    if recorded is None:
        if len(RECORDED_SWEEPS) >= REMEMBERED:
            RECORDED_SWEEPS.clear()
        RECORDED_SWEEPS[key] = ONCE
    elif recorded is ONCE:
        recorded = RECORDED_SWEEPS[key] = _record_sweep(root, tape, shape, xp)
    return recorded if isinstance(recorded, RecordedSweep) else None


class _Quiet(threading.local):
    """A context per thread in which NumPy does not warn of nan and infinity."""

    context: Context | None = None


_QUIET = _Quiet()


def _quiet() -> Context:
    """Return the thread's context; entering it is faster than changing NumPy's state twice."""
    if _QUIET.context is None:
        _QUIET.context = Context()
        _QUIET.context.run(np.seterr, all="ignore")
    return _QUIET.context


def _walk(root: TapeStep) -> WalkedTape | None:
    """Return the tape from `root` on; None if it has hooks or irregular steps, or is too long."""
    steps: list[TapeStep] = []
    leaves: list[Accumulation] = []
    key: list[Any] = []
    indices: dict[Any, int] = {root: 0}
    order: list[tuple[int, TapeStep]] = []
    following: TapeStep | None = root
    while following is not None:
        step, following = following, None
        edges, plan = step.edges, step.plan
        if edges is None or step.guards:
            step.check()
        observed = step.hooks or step.retained is not None
        if observed or not plan.regular or len(steps) == LONGEST:
            return None
        steps.append(step)
        key += (plan, step.numbers)
        for edge in edges or ():
            index = indices.get(edge)
            if index is None and edge is not None:
                index = indices[edge] = len(indices)
                if isinstance(edge, Accumulation):
                    index = indices[edge] = -index  # a leaf differs from a step
                    leaves.append(edge)
                    key.append(edge.dtype)
                elif following is None:
                    following = edge
                else:
                    heappush(order, (-edge.number, edge))
            key.append(index)
        if order:  # the newest step is next; a chain needs no heap
            if following is not None:
                heappush(order, (-following.number, following))
            _, following = heappop(order)
            key.append(indices[following])
    return WalkedTape(steps, leaves, tuple(key))


class _PlainBuilder(Builder):
    """A builder that records each operation unchanged.

    It applies no identity and broadcasts no operand in advance: a matrix product may round
    differently if its operands have another memory layout.
    """

    def __init__(self) -> None:
        super().__init__()
        self.commutes = False

    def _aligned(
        self, primitive: Primitive, args: tuple[int, ...], span: Span | None
    ) -> tuple[int, tuple[int, ...]]:
        shape = np.broadcast_shapes(*self._shapes(args))
        return self._shape_id(shape), self._as_truths(primitive, args)


class _Recorder(CarrierCalculator):
    """A calculator on graph nodes, with an input for each value that the steps keep."""

    def __init__(self, tape: WalkedTape, shape: Shape) -> None:
        super().__init__(self._input)
        self.builder = _PlainBuilder()
        self.seed = Node(self.builder, self.builder.input("seed", shape))
        self.indices = {step: index for index, step in enumerate(tape.steps)}
        self.reads: dict[tuple[int, int], Node] = {}

    def _input(self, value: Any, step: TapeStep, slot: int, edge: Any) -> Any:
        if type(value) in NUMBERS:
            return value
        read = (self.indices[step], slot)
        if read not in self.reads:
            node = self.builder.input(f"{read}", value.shape)
            self.reads[read] = Node(self.builder, node)
        return self.reads[read]

    def zeros(self, shape: Shape, dtype: Any) -> Any:
        """Return zeros."""
        params = (("dtype", dtype), ("shape", shape))
        return Node(self.builder, self.builder.emit(zeros, (), params))

    def cast(self, value: Any, dtype: np.dtype[Any]) -> Any:
        """Emit a cast; graph nodes have no dtype to compare with."""
        if type(value) is Scattered:
            return super().cast(value, dtype)
        return self.emit(cast, (value,), (("dtype", dtype),))

    def reached(self, mask: Any, shape: Shape) -> Any:
        """Return the mask of `shape` that holds where any number of `mask` does."""
        return self.emit(reached, (mask,), (("shape", shape),))


def _record_sweep(root: TapeStep, tape: WalkedTape, shape: Shape, xp: Any) -> RecordedSweep | int:
    """Record the sweep by running it on nodes; `NEVER` if it computes too many elements."""
    recorder = _Recorder(tape, shape)
    found = dict(pull_back(root, recorder.seed, keep=True, calculator=recorder, show=_no_hooks))
    outputs = [found[leaf].id for leaf in tape.leaves]
    names = [f"bar{index}" for index in range(len(outputs))]
    inputs = [recorder.seed.id, *(node.id for node in recorder.reads.values())]
    function = Function.build(recorder.builder, inputs, outputs, names)
    graph = function.graph
    if sum(math.prod(graph.shape(node)) for node in range(len(graph))) > LARGEST:
        return NEVER
    sweep = sweep_function(
        tape.steps, tape.leaves, list(recorder.reads), recipe_of(function, exact=True), xp
    )
    return RecordedSweep(xp, sweep)


def _no_hooks(step: TapeStep, bar: Any) -> Any:
    """Return the cotangent: a recorded sweep has no hooks and no retained gradients."""
    return bar
