"""Pull-backs of tapes that are built the same way again and again, as in a training loop.

At the second `backward` over tapes of one structure, the reverse sweep is run on the nodes of a
graph; from then on the code of this graph is run, without the decisions of the sweep.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from difflab.core.apply import module_of, on_host
from difflab.core.primitive import Params, Primitive, Shape
from difflab.eager.recording.plan import NUMBERS, cast, zeros
from difflab.eager.recording.tape import Accumulation, TapeStep
from difflab.eager.sweep.backward import Calculator, Scattered, pull_back
from difflab.graph.builder import KernelBuilder
from difflab.graph.evaluate import Fold, KernelInterpreter
from difflab.graph.ir import FIRST_ROW
from difflab.primitives import broadcast

# --- the sweep as a graph, from the seed and the kept values to the cotangents -------------------
# The sweep is run once on nodes. Its graph has the kernel calls of a sweep on arrays and nothing
# else, so it computes the same.


class GraphValue:
    """A value of a sweep on nodes."""

    __slots__ = ("calculator", "node", "shape")

    def __init__(self, calculator: GraphCalculator, node: int) -> None:
        self.calculator = calculator
        self.node = node
        self.shape: Shape = calculator.builder.shape(node)

    def __difflab_held__(self) -> Any:
        return self.calculator.sources[0]

    def __difflab_apply__(
        self, primitive: Primitive, args: tuple[Any, ...], params: Mapping[str, Any]
    ) -> GraphValue:
        return self.calculator.emit(primitive, args, tuple(sorted(params.items())))


class GraphCalculator(Calculator):
    """A calculator on the nodes of a graph.

    Attributes
    ----------
    builder : KernelBuilder
        The graph.
    sources : list
        For each input where its value comes from: the seed, the index of a step and a slot, or an
        array that a rule writes, such as a triangle of ones.
    seed : GraphValue
        The first input.
    """

    def __init__(self, steps: Sequence[TapeStep], seed: Any, xp: Any) -> None:
        super().__init__(xp)
        self.kernels = None
        self.builder = KernelBuilder()
        self.sources: list[Any] = []
        self.seed = self._input(seed, seed.shape)
        self._indices = {step: index for index, step in enumerate(steps)}
        self._arrays: dict[tuple[Shape, bytes], GraphValue] = {}

    def _input(self, source: Any, shape: Shape) -> GraphValue:
        node = self.builder.input(f"x{len(self.sources)}", shape)
        self.sources.append(source)
        return GraphValue(self, node)

    def slots(self, step: TapeStep) -> list[Any]:
        """Return the values that the maps of a step read; each is read from its own slot."""
        slots = super().slots(step)
        for slot, _ in step.plan.keep:
            if type(slots[slot]) not in NUMBERS:
                slots[slot] = self._input((self._indices[step], slot), slots[slot].shape)
        return slots

    def emit(self, primitive: Primitive, args: Sequence[Any], params: Params = ()) -> GraphValue:
        """Append the call of a row's kernel; equal calls are made once."""
        operands = [self._node(self.dense(arg) if type(arg) is Scattered else arg) for arg in args]
        if primitive.shape is None:
            self._narrow(operands)
        return GraphValue(self, self.builder.emit(primitive, operands, params))

    def computed_elements(self) -> int:
        """Return the number of elements of all results."""
        builder = self.builder
        results = [node for node, opcode in enumerate(builder.opcode) if opcode >= FIRST_ROW]
        return sum(map(math.prod, map(builder.shape, results)))

    def _node(self, operand: Any) -> int:
        if getattr(operand, "ndim", 0):
            key = operand.shape, on_host(operand).tobytes()
            if key not in self._arrays:
                self._arrays[key] = self._input(operand, operand.shape)
            operand = self._arrays[key]
        # NumPy is faster with a float than with an integer.
        own = type(operand) is GraphValue
        return operand.node if own else self.builder.constant(float(operand))

    def _narrow(self, operands: list[int]) -> None:
        """Replace an array that repeats one element by that element, if a kernel repeats it too.

        Beside an array of the full shape this affects neither the result nor its memory layout.
        """
        builder = self.builder
        for index, operand in enumerate(operands):
            if builder.primitive(operand) is broadcast:
                (element,) = builder.arguments(operand)
                others = [builder.shape(other) for other in operands]
                shape = others.pop(index)
                if math.prod(builder.shape(element)) == 1 and np.broadcast_shapes(*others) == shape:
                    operands[index] = element

    def zeros(self, shape: Shape, dtype: Any) -> Any:
        """Return zeros, the contribution of a map without derivative."""
        return self.emit(zeros, (), (("dtype", dtype), ("shape", shape)))

    def cast(self, value: Any, dtype: np.dtype[Any]) -> Any:
        """Return a cotangent converted to the dtype of its primal; the call is always appended."""
        if type(value) is Scattered:
            return super().cast(value, dtype)
        return self.emit(cast, (value,), (("dtype", dtype),))


# --- recorded sweeps -----------------------------------------------------------------------------

LONGEST = 1000
"""Most steps of a tape whose sweep is recorded; longer tapes rarely recur."""
LARGEST = 1 << 17
"""Most elements of a recorded sweep's values: a replay frees few of them before it ends."""
REMEMBERED = 256

SweepFunction = Callable[[TapeStep, Any, bool], "list[tuple[Accumulation, Any]] | None"]
"""``(root, seed, keep)``: the leaves with their cotangents; None if the structure differs."""
ONCE, NEVER = 1, 0
RECORDED_SWEEPS: dict[Any, SweepFunction | int] = {}
"""By the structure of the tape: the recorded sweep, or `ONCE` or `NEVER` before it is recorded.

Also by plan and array module: the latest sweep over a tape whose last step has this plan, tried
first.
"""


class WalkedTape(NamedTuple):
    """The steps in the order of the sweep, the leaves, and a key of the structure."""

    steps: list[TapeStep]
    leaves: list[Accumulation]
    key: Any


def replayed(root: TapeStep, seed: Any, *, keep: bool) -> list[tuple[Accumulation, Any]] | None:
    """Return the result of `pull_back` by a recorded sweep; None if there is none for this tape.

    The sweep is recorded at the second tape of a structure.
    """
    xp = module_of(seed)
    latest: Any = RECORDED_SWEEPS.get((root.plan, xp))
    if latest is not None:
        cotangents: Any = _quiet().run(latest, root, seed, keep)
        if cotangents is not None:
            return cotangents  # type: ignore[no-any-return]
    tape = _walk(root)
    if tape is None:
        return None
    key = (tape.key, xp)
    recorded = RECORDED_SWEEPS.get(key)
    if recorded is None:
        if len(RECORDED_SWEEPS) >= REMEMBERED:
            RECORDED_SWEEPS.clear()
        RECORDED_SWEEPS[key] = ONCE
    elif recorded == ONCE:
        recorded = RECORDED_SWEEPS[key] = _pull_back_of(tape, seed, xp)
    if callable(recorded):
        RECORDED_SWEEPS[root.plan, xp] = recorded
        return _quiet().run(recorded, root, seed, keep)
    return None


def _pull_back_of(tape: WalkedTape, seed: Any, xp: Any) -> SweepFunction | int:
    """Return the pull-back of tapes of this structure; `NEVER` if it computes too much."""
    on = GraphCalculator(tape.steps, seed, xp)
    cotangents = dict(pull_back(tape.steps[0], on.seed, keep=True, calculator=on, show=_no_hooks))
    if on.computed_elements() > LARGEST:
        return NEVER
    # A leaf may be on the tape by an index alone, which has no derivative.
    leaves = {leaf: cotangents[leaf] for leaf in tape.leaves if leaf in cotangents}
    return _sweep_function(tape.steps, leaves, on) if len(leaves) == len(tape.leaves) else NEVER


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
        if edges is None:
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


def _no_hooks(step: TapeStep, bar: Any) -> Any:
    """Return the cotangent: no step has hooks or a retained gradient."""
    return bar


# --- the code of a recorded sweep ----------------------------------------------------------------
# Straight-line Python, which checks a tape's structure and computes its gradients: without
# collecting, looking up or looping over steps. Its source consists of fixed text and numbered
# names; the objects that the names stand for are its globals.


def _sweep_function(
    steps: Sequence[TapeStep],
    leaves: Mapping[Accumulation, GraphValue],
    calculator: GraphCalculator,
) -> SweepFunction:
    """Return the sweep over tapes with the structure of a given tape.

    Parameters
    ----------
    steps : sequence
        The steps of the tape, the root first, in the order of the sweep.
    leaves : mapping
        Its leaves in the order in which the steps reach them, with their cotangents.
    calculator : GraphCalculator
        The graph of the cotangents.
    """
    scope: dict[str, Any] = {"Accumulation": Accumulation}
    graph, bars = calculator.builder.graph().pruned([bar.node for bar in leaves.values()])
    scope["d"] = [None, *calculator.sources[1:]]
    reads = {*graph.args.tolist(), *bars}
    lines = ["def sweep(s0, seed, keep):", *_checks(steps, list(leaves), scope)]
    for k, (node, source) in enumerate(zip(graph.names, calculator.sources, strict=True)):
        if node in reads:
            kept = isinstance(source, tuple)
            where = "s{}.slots[{}]".format(*source) if kept else f"d[{k}]" if k else "seed"
            lines.append(f" v{node} = {where}")
    fold = Fold(graph, bars, KernelInterpreter(calculator.xp))
    results = [f"(a{leaf}, v{node})" for leaf, node in enumerate(bars)]
    lines += [
        *(f" {line}" for line in fold.statements(scope, frees=False)),
        " if not keep:",
        *(f"  s{index}.edges = None; s{index}.slots = ()" for index in range(len(steps))),
        f" return [{', '.join(results)}]",
    ]
    code = compile("\n".join(lines), "<difflab.backward>", "exec", dont_inherit=True)
    exec(code, scope)  # noqa: S102 - the source holds only numbers of steps and slots
    sweep: SweepFunction = scope["sweep"]
    return sweep


def _checks(
    steps: Sequence[TapeStep], leaves: Sequence[Accumulation], scope: dict[str, Any]
) -> list[str]:
    """Return the statements that name the steps and leaves, and refuse other structures.

    A plan fixes the active arguments, so an edge is None in all tapes or in none. Steps with
    decreasing numbers are distinct and in the order of the sweep.
    """
    names: dict[Any, str] = {step: f"s{index}" for index, step in enumerate(steps)}
    names |= {leaf: f"a{index}" for index, leaf in enumerate(leaves)}
    known: set[Any] = {steps[0]}
    lines: list[str] = []
    for index, step in enumerate(steps):
        s, edges = f"s{index}", step.edges or ()
        scope[f"p{index}"], scope[f"n{index}"] = step.plan, step.numbers
        refused = [f"{s}.plan is not p{index}", f"{s}.numbers != n{index}"]
        refused += [f"{s}.hooks", f"{s}.retained is not None"]
        if index and step not in (steps[index - 1].edges or ()):
            refused.append(f"s{index - 1}.number < {s}.number")
        lines.append(f" if {' or '.join(refused)}: return")
        targets, refused = [], []
        for position, edge in enumerate(edges):
            if edge is None or edge in known:
                targets.append(f"e{position}")
                refused += [] if edge is None else [f"e{position} is not {names[edge]}"]
                continue
            known.add(edge)
            targets.append(names[edge])
            if isinstance(edge, Accumulation):
                a = names[edge]
                scope[f"d{a}"] = edge.dtype
                refused.append(f"type({a}) is not Accumulation or {a}.dtype is not d{a}")
        lines.append(f" {', '.join(targets)}, = {s}.edges or {s}.check()")
        lines += [f" if {' or '.join(refused)}: return"] if refused else []
    if len(leaves) > 1:
        every = ", ".join(names[leaf] for leaf in leaves)
        lines.append(f" if len({{{every}}}) < {len(leaves)}: return")
    return lines
