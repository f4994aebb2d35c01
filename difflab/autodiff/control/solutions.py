"""Solutions in a trace: a function that solves an equation, differentiated by a rule of its own.

The node computes what the solver does. Its derivatives are Functions of the solution and the
arguments, which the rule states; they are recorded when a derivative is wanted and can be
differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from difflab.autodiff.control.rows import function_row
from difflab.autodiff.engine.batching import Arg, batched
from difflab.autodiff.recording import Contents
from difflab.core.primitive import Primitive
from difflab.graph.composition import composed, inlined
from difflab.graph.control import Solution
from difflab.graph.custom.rows import packed, unpacked
from difflab.graph.evaluate import Interpreter
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node

__all__ = ["Rule", "Solver", "solution"]

Solver = Callable[[], list[Any]]
"""Takes the steps of a solver, and returns its outputs."""


class Rule(Protocol):
    """The derivatives of a solution; hashable, and equal for equal rules."""

    @property
    def name(self) -> str:
        """The name of the row, an identifier."""

    @property
    def written(self) -> bool:
        """Whether the language has a form for the solution."""

    def __hash__(self) -> int: ...

    def solved(
        self, on: Interpreter, solve: Solver, values: Sequence[Any], batch: Shape
    ) -> list[Any]:
        """Return the outputs on values of a kind, given what takes the solver's steps on them."""

    def pushed(self, moving: tuple[int, ...]) -> Function:
        """Return the tangents of the outputs.

        Its inputs are the outputs, the arguments, and the tangents of the arguments `moving`.
        """

    def pulled(self, wanted: tuple[int, ...]) -> Function:
        """Return the cotangents of the arguments `wanted`.

        Its inputs are the outputs, the arguments, and the cotangents of the outputs.
        """


def solution(function: Function, rule: Rule, values: Sequence[Node]) -> list[Node]:
    """Append what a solver computes to the graph of its arguments; return its outputs."""
    row = _row(Contents(function), rule)
    return unpacked(row(*values), function.output_shapes, len(function.outputs) == 1)


@dataclass(frozen=True)
class _Mapped:
    """The rule of a stack of examples."""

    rule: Rule
    mapped: tuple[bool, ...]
    size: int
    outputs: int

    @property
    def name(self) -> str:
        return self.rule.name

    @property
    def written(self) -> bool:
        return False

    def solved(
        self, on: Interpreter, solve: Solver, values: Sequence[Any], batch: Shape
    ) -> list[Any]:
        return solve()

    def pushed(self, moving: tuple[int, ...]) -> Function:
        flags = [True] * self.outputs, self.mapped, [self.mapped[place] for place in moving]
        return batched(
            self.rule.pushed(moving), [flag for part in flags for flag in part], self.size
        )

    def pulled(self, wanted: tuple[int, ...]) -> Function:
        stacked = [True] * self.outputs
        flags = [*stacked, *self.mapped, *stacked]
        one = batched(self.rule.pulled(wanted), flags, self.size)
        alike = [not self.mapped[place] for place in wanted]

        def summed(nodes: list[Node]) -> list[Node]:
            found = zip(inlined(one, nodes), alike, strict=True)
            return [np.sum(bars, axis=0) if same else bars for bars, same in found]

        return composed(summed, one.input_shapes)


def _jvp(held: Solution, dots: Sequence[Node], y: Node, *args: Node) -> Node:
    """Return the tangent of the outputs."""
    moving = tuple([k for k, dot in enumerate(dots) if dot.builder.number(dot.id) != 0])
    outputs = unpacked(y, held.output_shapes, held.single)
    found = inlined(held.rule.pushed(moving), [*outputs, *args, *(dots[place] for place in moving)])
    y_dot: Node = packed(found, held.single)
    return y_dot


def _vjp(
    held: Solution, y_bar: Node, y: Node, *args: Node, wanted: Sequence[bool]
) -> list[Node | None]:
    """Return the cotangents of the arguments."""
    places = tuple([place for place, flows in enumerate(wanted) if flows])
    outputs, bars = (unpacked(whole, held.output_shapes, held.single) for whole in (y, y_bar))
    found = inlined(held.rule.pulled(places), [*outputs, *args, *bars])
    by_place = dict(zip(places, found, strict=True))
    return [by_place.get(place) for place in range(len(args))]


def _batched(held: Solution, size: int, args: list[Arg]) -> list[Node]:
    """Return the outputs of a stack of examples, solved together."""
    mapped = tuple([is_mapped for _, is_mapped in args])
    rule = _Mapped(held.rule, mapped, size, len(held.output_shapes))
    return solution(batched(held.function, mapped, size), rule, [node for node, _ in args])


@lru_cache(maxsize=512)
def _row(contents: Contents, rule: Rule) -> Primitive:
    """Return the row of a solution; equal ones have one row."""
    held = Solution(contents.function, rule=rule)
    return function_row(
        rule.name,
        held,
        _jvp,
        _vjp,
        _batched,
        single=held.single,
        selective=True,
        holding=lambda other: _row(Contents(other.function), other.rule),
    )
