"""The memory of the reverse sweep: which arrays each operation keeps, and their bytes.

Nothing is listed by hand: an operation keeps the values that the maps of its row's rule read,
found by recording the maps (`plan`). So ``+`` keeps nothing, ``exp`` its output and ``sin`` its
input. The same plans decide what the tape of a tensor keeps, so both are accounted for alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from difflab.core.table import Column, Table
from difflab.core.wording import shape_text
from difflab.eager.recording.plan import BackwardPlan
from difflab.eager.recording.tape import Accumulation, TapeStep, history
from difflab.eager.tensors.tensor import Tensor
from difflab.errors import InputError
from difflab.graph.function import Function
from difflab.graph.ir import CONSTANT, INPUT, Shape

SHOWN = 40

KeptArray = tuple[Any, str, int]
"""The identity of the memory, its kind (computed, input or constant), and its bytes."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The arrays that one operation keeps.

    Attributes
    ----------
    node : int
        The operation's number in the graph, or on the tape.
    operation : str
        The name of its row in the table of primitives.
    shape : tuple of int
        The shape of its result at one point.
    keeps : tuple of str
        ``"output"``, ``"input"``, or ``"input 1"``, ``"input 2"``, … of several; ``"its own"``
        for values that a custom function or a checkpoint saves, of unknown size in a graph;
        empty if the rule reads none of them.
    nbytes : int
        The bytes of those arrays that no earlier operation keeps.
    """

    node: int
    operation: str
    shape: Shape
    keeps: tuple[str, ...]
    nbytes: int


@dataclass(frozen=True, slots=True)
class MemoryAccount:
    """The arrays that all operations keep together; each array counts once.

    Attributes
    ----------
    rows : tuple of Kept
        The operations through which a derivative flows, in order.
    computed, inputs, constants : int
        The bytes of kept arrays that are results, that are inputs, and that do not depend
        on the inputs.
    """

    rows: tuple[Kept, ...]
    computed: int
    inputs: int
    constants: int

    @property
    def total(self) -> int:
        """The bytes of all arrays that are kept."""
        return self.computed + self.inputs + self.constants

    def table(self, limit: int = SHOWN) -> str:
        """Return the rows as text; if there are more than `limit`, those with most bytes."""
        most = sorted(self.rows, key=lambda row: -row.nbytes)[:limit]
        columns = (
            *(Column("node", right=True), Column("operation"), Column("shape"), Column("keeps")),
            Column("bytes", right=True, format="{:,}".format),
        )
        rows = [
            (
                *(row.node, row.operation, shape_text(row.shape) or "number"),
                *(", ".join(row.keeps) or "nothing", row.nbytes),
            )
            for row in sorted(most, key=lambda row: row.node)
        ]
        text = [Table(columns, rows).text()]
        if len(self.rows) > limit:
            text.append(f"… and {len(self.rows) - limit:,} more operations that keep less")
        text.append(
            f"total {self.total:,} bytes: {self.computed:,} computed, {self.inputs:,} of inputs, "
            f"{self.constants:,} of constants\neach array counts where it is first kept"
        )
        return "\n".join(text)


def memory(subject: Function | Tensor, points: int = 1) -> MemoryAccount:
    """Return the memory that the reverse sweep of a function or a tensor keeps.

    Parameters
    ----------
    subject : Function or Tensor
        A function, whose input shapes give the sizes; or a tensor with a tape.
    points : int
        The number of points at which a function is evaluated; multiplies the size of each array.

    Returns
    -------
    MemoryAccount
        Its rows list the values that each operation keeps; ``total``, ``computed``, ``inputs`` and
        ``constants`` are bytes, in which each array counts once.

    Raises
    ------
    InputError
        The subject is neither, or is a tensor without a tape or with a freed tape.

    Examples
    --------
    >>> import difflab as dl
    >>> print(dl.memory(dl.parse("x: [1000]; sum(exp(x) + sin(x)*x)")).table())
    node  operation  shape   keeps             bytes
       1  exp        1000    output            8,000
       2  sin        1000    input             8,000
       3  multiply   1000    input 1, input 2  8,000
       4  add        1000    nothing               0
       5  sum        number  nothing               0
    total 24,000 bytes: 16,000 computed, 8,000 of inputs, 0 of constants
    each array counts where it is first kept
    """
    if not isinstance(points, int) or points < 1:
        raise InputError("points must be a positive integer, the number of points")
    if isinstance(subject, Function):
        return _account(_of_function(subject, points))
    if isinstance(subject, Tensor) and isinstance(subject._step, TapeStep):
        if subject._step.edges is None:
            raise InputError(
                "the tape of this tensor was freed by backward()",
                hint="call memory() before backward(), or pass retain_graph=True to it",
            )
        return _account(_of_tape(subject._step))
    what = "a tensor without a tape" if isinstance(subject, Tensor) else type(subject).__name__
    raise InputError(
        f"there is no reverse sweep from {what}",
        hint="pass a Function, or the result of operations on a tensor with requires_grad=True",
    )


StepEntry = tuple[int, str, Shape, list[tuple[str, KeptArray]]]


def _account(entries: Iterator[StepEntry]) -> MemoryAccount:
    """Add up the kept arrays; each counts at the first operation that keeps it."""
    seen: set[Any] = set()
    totals = {"computed": 0, "input": 0, "constant": 0}
    rows: list[Kept] = []
    for node, name, shape, kept in entries:
        new = 0
        for _, (identity, kind, nbytes) in kept:
            if identity not in seen:
                seen.add(identity)
                totals[kind] += nbytes
                new += nbytes
        rows.append(Kept(node, name, shape, tuple(role for role, _ in kept), new))
    return MemoryAccount(tuple(rows), totals["computed"], totals["input"], totals["constant"])


def _role(slot: int, arity: int) -> str:
    if slot == 1:
        return "output"
    return "input" if arity == 1 else f"input {slot - 1}"


def _of_function(function: Function, points: int) -> Iterator[StepEntry]:
    """Yield the residuals of each node through which a derivative flows."""
    graph = function.graph
    active = graph.reached_from(function.input_nodes)
    opcodes = graph.opcode.tolist()
    home = list(range(len(graph)))
    turned: set[int] = set()  # views that do not show all elements in order
    plans: dict[Any, BackwardPlan] = {}
    params = graph.param_ids.tolist()
    for node, (_, args) in enumerate(graph.rows()):
        row = graph.primitive(node)
        if row is None:
            continue
        if row.view and not (row.in_order and args[0] in turned):
            home[node] = home[args[0]]
            if not row.in_order:
                turned.add(node)
        if not active[node] or row.boolean:
            continue
        shapes = tuple(graph.shape(arg) for arg in args)
        needs = sum(1 << index for index, arg in enumerate(args) if active[arg])
        key = (row, needs, params[node], shapes)
        if key not in plans:
            plans[key] = BackwardPlan(row, needs, graph.params(node), shapes, graph.shape(node))
        values = [*args, node]
        kept = []
        for slot, source in plans[key].keep:
            held = home[values[source]]
            if opcodes[held] != CONSTANT:
                array = (held, _kind(function, held, active), _nbytes(function, held, points))
                kept.append((_role(slot, len(args)), array))
        if not plans[key].regular:
            kept = [("its own, not counted", (node, "computed", 0))]
        yield node, row.name, graph.shape(node), kept


def _kind(function: Function, node: int, active: bytearray) -> str:
    if function.graph.opcode[node] == INPUT:
        return "input"
    return "computed" if active[node] else "constant"


def _nbytes(function: Function, node: int, points: int) -> int:
    """Return the bytes of a node's value; all points share a constant array."""
    row = function.graph.primitive(node)
    size = 1 if row is not None and row.boolean else 8
    copies = 1 if row is not None and row.arity == 0 else points
    return copies * size * math.prod(function.graph.shape(node))


def _of_tape(last: TapeStep) -> Iterator[StepEntry]:
    """Yield the residuals of each step up to `last`, in creation order."""
    for step in history(last):
        arity = len(step.plan.shapes)
        kept = []
        for slot, value in enumerate(step.slots):
            if isinstance(value, np.ndarray | np.generic):
                role = _role(slot, arity) if step.plan.regular else "its own"
                kept.append((role, _memory_of(step, slot, value)))
        yield step.number, step.name, _shape_of(step), kept


def _shape_of(step: TapeStep) -> Shape:
    """Return the shape of a step's result."""
    plan = step.plan
    if plan.row.shape is None:
        return np.broadcast_shapes(*plan.shapes)
    return plan.row.shape(plan.shapes, **plan.params)


def _memory_of(step: TapeStep, slot: int, value: Any) -> KeptArray:
    """Return the memory of an array, or of the base array if it is a view."""
    whole = value
    while isinstance(getattr(whole, "base", None), np.ndarray):
        whole = whole.base
    edge = (step.edges or ())[slot - 2] if slot > 1 and step.plan.regular else step
    kind = "computed"
    if isinstance(edge, Accumulation):
        kind = "input"
    elif edge is None:
        kind = "constant"
    return id(whole), kind, whole.nbytes
