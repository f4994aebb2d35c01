"""`Tape`: the recorded graph of a tensor as a picture and as a table, with values and gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from difflab.core.apply import module_of, on_host
from difflab.core.table import Column, Table
from difflab.core.wording import shape_text
from difflab.eager.recording.tape import Accumulation, TapeStep, history, no_grad
from difflab.eager.sweep.backward import Calculator, Route, pull_back
from difflab.errors import TapeError
from difflab.graph.builder import Builder
from difflab.graph.function import Function

if TYPE_CHECKING:
    from difflab.drawing import Drawing


SHOWN = 100
"""Most steps of a table."""
UNKNOWN = "…"
"""Stands for a value that the tape does not keep."""

Edge = TapeStep | Accumulation


@dataclass(frozen=True, eq=False, repr=False)
class Tape:
    """The steps recorded while a tensor was computed; made by `Tensor.tape`.

    A value is shown if the tape keeps it, if a leaf has it, or if it follows from those; an
    operation whose derivative does not depend on a value keeps none.

    Attributes
    ----------
    data : array
        The value of the tensor.
    root : TapeStep
        The operation whose result it is.

    Examples
    --------
    >>> import numpy as np
    >>> import difflab as dl
    >>> x = dl.tensor([1.0, 2.0], requires_grad=True)
    >>> print(np.sum(x * x).tape().table())
    name  operation         shape   value   gradient
    x1    leaf              2       [1, 2]  [2, 4]
    v1    multiply(x1, x1)  2       [1, 4]  [1, 1]
    v2    sum(v1)           number  5       1
    """

    data: Any
    root: TapeStep

    @cached_property
    def steps(self) -> list[TapeStep]:
        """The operations, in the order in which they were recorded."""
        steps = history(self.root)
        if any(step.edges is None for step in steps):
            raise TapeError(
                "the tape of this tensor was freed by backward()",
                hint="call tape() before backward(), or pass retain_graph=True to it",
            )
        return steps

    @cached_property
    def leaves(self) -> list[Accumulation]:
        """The leaves, in the order of their first use."""
        edges = [edge for step in self.steps for edge in step.edges or ()]
        return list(dict.fromkeys(edge for edge in edges if isinstance(edge, Accumulation)))

    @cached_property
    def names(self) -> dict[Edge, str]:
        """The name of every leaf and of the result of every operation."""
        leaves = {leaf: f"x{number}" for number, leaf in enumerate(self.leaves, 1)}
        return leaves | {step: f"v{number}" for number, step in enumerate(self.steps, 1)}

    @cached_property
    def values(self) -> dict[Edge, Any]:
        """The known values."""
        known: dict[Edge, Any] = {self.root: self.data}
        for leaf in self.leaves:
            owner = leaf.owner and leaf.owner()
            if owner is not None:
                known[leaf] = owner._data
        for step in self.steps:
            for slot, value in enumerate(step.slots if step.plan.regular else ()):
                edge = step if slot == 1 else (step.edges or ())[slot - 2] if slot > 1 else None
                if edge is not None and value is not None:
                    known[edge] = value
        for step in self.steps:
            if step not in known and (operands := self._operands(step, known)) is not None:
                kernel = step.plan.row.computer(module_of(operands[0]))
                with np.errstate(all="ignore"):
                    known[step] = kernel(*operands, **step.plan.params)
        return known

    @staticmethod
    def _operands(step: TapeStep, known: Mapping[Edge, Any]) -> list[Any] | None:
        """Return the operands of a step, or None if one of them is not known."""
        if not step.plan.regular:
            return None
        slots = step.slots[2:] or [None] * len(step.plan.shapes)
        operands = [
            slot if edge is None else known.get(edge)
            for edge, slot in zip(step.edges or (), slots, strict=True)
        ]
        return None if any(operand is None for operand in operands) else operands

    @cached_property
    def gradients(self) -> dict[Edge, Any]:
        """The cotangents of this tensor's sum, before any hooks change them; nothing is freed."""
        # The cotangents of a step with several outputs are those of its output steps.
        shown = {step for step in self.steps if "pull_back" not in step.plan.params}
        xp, data = module_of(self.data), self.data
        seed, route = xp.ones(data.shape, dtype=data.dtype), Route(shown, set(), set())
        with np.errstate(all="ignore"), no_grad():
            cotangents = pull_back(
                self.root,
                seed,
                keep=True,
                calculator=Calculator(xp),
                show=lambda step, bar: bar,
                route=route,
            )
        return dict(cotangents)

    def draw(self, *, values: bool = True) -> Drawing:
        """Return the picture of the recorded graph; a large one is summarised.

        Parameters
        ----------
        values : bool
            Whether the arrows carry the known values and, below them, the gradients.
        """
        from difflab.drawing import Drawing, diagram

        function, nodes = self._pictured()
        shown: list[Any] = [None] * len(function.graph)
        bars: dict[int, Any] = {}
        for edge, node in nodes.items() if values else ():
            shown[node] = None if edge not in self.values else on_host(self.values[edge])
            if edge in self.gradients:
                bars[node] = on_host(self.gradients[edge])
        title = f"tape of {self.names[self.root]} = {self._formula(self.root)}"
        picture = diagram(
            function,
            shown if values else None,
            cotangents=bars if values else None,
            title=title,
        )
        return Drawing(picture)

    def _pictured(self) -> tuple[Function, dict[Edge, int]]:
        """Return the tape as a graph to be drawn, and its nodes; unknown operands are constants."""
        builder = Builder()
        nodes: dict[Edge, int] = {leaf: builder.input(self.names[leaf]) for leaf in self.leaves}
        for step in self.steps:
            operands = [
                builder.constant(*_constant(step, place)) if edge is None else nodes[edge]
                for place, edge in enumerate(step.edges or ())
            ]
            params = tuple(step.plan.params.items())
            nodes[step] = builder.append(step.plan.row, operands, params)
            builder.labels[nodes[step]] = self.names[step]
        inputs = list(builder.names)
        return Function.build(builder, inputs, [nodes[self.root]], ["y"]), nodes

    def table(self) -> str:
        """Return the leaves and the operations as text, with their values and gradients."""
        columns = [Column(name) for name in ("name", "operation", "shape", "value", "gradient")]
        rows: list[tuple[str, ...]] = [self._row(leaf, "leaf") for leaf in self.leaves]
        first = self.steps[: SHOWN - SHOWN // 3]
        last = self.steps[len(first) :][-(SHOWN // 3) :]
        rows += [self._row(step, self._formula(step)) for step in first]
        hidden = len(self.steps) - len(first) - len(last)
        if hidden:
            rows.append(("…", f"{hidden:,} more", "", "", ""))
        rows += [self._row(step, self._formula(step)) for step in last]
        return Table(columns, rows).text()

    def _row(self, edge: Edge, operation: str) -> tuple[str, ...]:
        value, bar = self.values.get(edge), self.gradients.get(edge)
        known = next((np.shape(each) for each in (value, bar) if each is not None), None)
        shape = UNKNOWN if known is None else shape_text(known) or "number"
        return self.names[edge], operation, shape, _text(value), _text(bar)

    def _formula(self, step: TapeStep) -> str:
        """Return an operation and its operands."""
        operands = [
            _constant(step, place)[1] or _text(_constant(step, place)[0])
            if edge is None
            else self.names[edge]
            for place, edge in enumerate(step.edges or ())
        ]
        return f"{step.name}({', '.join(operands)})"

    def _repr_svg_(self) -> str:
        """Return the picture that notebooks display."""
        return self.draw().svg()

    def __repr__(self) -> str:
        return self.table()


def _constant(step: TapeStep, place: int) -> tuple[Any, str | None]:
    """Return the number that an operand is, or a name for it."""
    value = step.slots[place + 2] if len(step.slots) > place + 2 and step.plan.regular else None
    if value is None:
        return 0.0, "constant"
    if np.ndim(value):
        return 0.0, f"array {shape_text(np.shape(value))}"
    return float(value), None


def _text(value: Any) -> str:
    from difflab.drawing.order import compact

    return UNKNOWN if value is None else compact(on_host(value))
