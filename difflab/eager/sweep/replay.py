"""The sweep over a tape that is built the same way again and again, as in a training loop.

The second time that a tape of one structure goes backward, the reverse sweep runs on graph nodes
in place of arrays. What it writes is a function of the seed and of what the steps keep; from then
on that function is computed, without deciding anything again. Rules, order and masks are those of
the sweep, which is the only place that knows them: the numbers are the same to the last bit.
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
from difflab.eager.sweep.script import SweepFunction, written
from difflab.eager.sweep.values import CarrierCalculator, Scattered
from difflab.graph.builder import Builder, Span
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node

__all__ = ["replayed"]

LONGEST = 1000
"""Steps of a tape that is recorded; longer ones are hardly ever built the same way again."""
LARGEST = 1 << 17
"""Numbers in all that a recorded sweep computes: it frees none of them before it ends."""
REMEMBERED = 256


class RecordedSweep(NamedTuple):
    """A recorded sweep, and the array module whose kernels it calls."""

    xp: Any
    sweep: SweepFunction


RECORDED_SWEEPS: dict[Any, RecordedSweep | int] = {}
"""By the structure of the tape; before there is a program, how often it may still be awaited.

By a plan, too: the program of the last tape whose last step had it, which is tried first.
"""
ONCE, NEVER = 1, 0


class WalkedTape(NamedTuple):
    """The steps in the order of the sweep, the leaves, and what makes the tape like another."""

    steps: list[TapeStep]
    leaves: list[Accumulation]
    key: Any


def replayed(root: TapeStep, seed: Any, *, keep: bool) -> list[tuple[Accumulation, Any]] | None:
    """Return what `pull_back` does, if the sweep over such a tape is recorded; else None."""
    xp = module_of(seed)
    latest = RECORDED_SWEEPS.get(root.plan)
    if type(latest) is RecordedSweep and latest.xp is xp:
        found = _quiet().run(latest.sweep, root, seed, keep)
        if found is not None:
            return found
    program = _recorded_sweep(root, seed.shape, xp)
    if program is None:
        return None
    RECORDED_SWEEPS[root.plan] = program
    return _quiet().run(program.sweep, root, seed, keep)


def _recorded_sweep(root: TapeStep, shape: Shape, xp: Any) -> RecordedSweep | None:
    """Return the recorded sweep over such a tape, which is recorded the second time it comes."""
    tape = _walk(root)
    if tape is None:
        return None
    key = (xp, tape.key)
    program = RECORDED_SWEEPS.get(key)
    if program is None:
        if len(RECORDED_SWEEPS) >= REMEMBERED:
            RECORDED_SWEEPS.clear()
        RECORDED_SWEEPS[key] = ONCE
    elif program is ONCE:
        program = RECORDED_SWEEPS[key] = _record_sweep(root, tape, shape, xp)
    return program if isinstance(program, RecordedSweep) else None


class _Quiet(threading.local):
    """For each thread a context in which NumPy does not warn of nan and infinity."""

    context: Context | None = None


_QUIET = _Quiet()


def _quiet() -> Context:
    """Return the thread's context; entering one is faster than changing NumPy's state twice."""
    if _QUIET.context is None:
        _QUIET.context = Context()
        _QUIET.context.run(np.seterr, all="ignore")
    return _QUIET.context


def _walk(root: TapeStep) -> WalkedTape | None:
    """Return a tape from `root` on; None where somebody looks at the sweep, or it is long."""
    steps: list[TapeStep] = []
    leaves: list[Accumulation] = []
    key: list[Any] = []
    places: dict[Any, int] = {root: 0}
    order: list[tuple[int, TapeStep]] = []
    following: TapeStep | None = root
    while following is not None:
        step, following = following, None
        edges, plan = step.edges, step.plan
        if edges is None or step.guards:
            step.check()
        watched = step.hooks or step.retained is not None
        if watched or not plan.regular or len(steps) == LONGEST:
            return None
        steps.append(step)
        key += (plan, step.numbers)
        for edge in edges or ():
            place = places.get(edge)
            if place is None and edge is not None:
                place = places[edge] = len(places)
                if isinstance(edge, Accumulation):
                    place = places[edge] = -place  # a leaf is not taken for a step
                    leaves.append(edge)
                    key.append(edge.dtype)
                elif following is None:
                    following = edge
                else:
                    heappush(order, (-edge.number, edge))
            key.append(place)
        if order:  # the step that was made last is the next, which a chain need not ask for
            if following is not None:
                heappush(order, (-following.number, following))
            _, following = heappop(order)
            key.append(places[following])
    return WalkedTape(steps, leaves, tuple(key))


class _PlainBuilder(Builder):
    """A builder that writes down what is computed as it is computed, and nothing else.

    No identity is applied and no operand is broadcast beforehand. A result that is laid out
    otherwise in memory may be rounded otherwise by a product of matrices.
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
    """A writer whose nodes are graph nodes: inputs for what the steps keep."""

    def __init__(self, tape: WalkedTape, shape: Shape) -> None:
        super().__init__(self._input)
        self.builder = _PlainBuilder()
        self.seed = Node(self.builder, self.builder.input("seed", shape))
        self.places = {step: place for place, step in enumerate(tape.steps)}
        self.reads: dict[tuple[int, int], Node] = {}

    def _input(self, value: Any, step: TapeStep, slot: int, edge: Any) -> Any:
        if type(value) in NUMBERS:
            return value
        read = (self.places[step], slot)
        if read not in self.reads:
            node = self.builder.input(f"{read}", value.shape)
            self.reads[read] = Node(self.builder, node)
        return self.reads[read]

    def zeros(self, shape: Shape, dtype: Any) -> Any:
        """Return zeros."""
        params = (("dtype", dtype), ("shape", shape))
        return Node(self.builder, self.builder.emit(zeros, (), params))

    def cast(self, value: Any, dtype: np.dtype[Any]) -> Any:
        """Write the change of type, which the nodes of a graph have none of."""
        if type(value) is Scattered:
            return super().cast(value, dtype)
        return self.emit(cast, (value,), (("dtype", dtype),))

    def reached(self, mask: Any, shape: Shape) -> Any:
        """Return the mask of `shape` that holds where any number of `mask` does."""
        return self.emit(reached, (mask,), (("shape", shape),))


def _record_sweep(root: TapeStep, tape: WalkedTape, shape: Shape, xp: Any) -> RecordedSweep | int:
    """Run the sweep on nodes; what it makes of the leaves is a program, unless it is large."""
    recorder = _Recorder(tape, shape)
    found = dict(pull_back(root, recorder.seed, keep=True, calculator=recorder, show=_no_hooks))
    outputs = [found[leaf].id for leaf in tape.leaves]
    names = [f"bar{place}" for place in range(len(outputs))]
    inputs = [recorder.seed.id, *(node.id for node in recorder.reads.values())]
    function = Function.build(recorder.builder, inputs, outputs, names)
    graph = function.graph
    if sum(math.prod(graph.shape(node)) for node in range(len(graph))) > LARGEST:
        return NEVER
    sweep = written(
        tape.steps, tape.leaves, list(recorder.reads), recipe_of(function, exact=True), xp
    )
    return RecordedSweep(xp, sweep)


def _no_hooks(step: TapeStep, bar: Any) -> Any:
    """Stand for the hooks and tensors that a recorded sweep has none of."""
    return bar
