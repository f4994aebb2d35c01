"""Solutions in a trace: a function that solves an equation, differentiated by a rule of its own.

The node computes what the solver does. Its derivatives are Functions of the solution and the
arguments, which the rule states; they are recorded when a derivative is wanted and can be
differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from difflab.autodiff.control.rows import RULES, Rules, appended
from difflab.autodiff.engine.batching import Arg, batched
from difflab.graph.control import Solution
from difflab.graph.custom.rows import unpacked
from difflab.graph.evaluate import Interpreter
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.graph.node import Node
from difflab.graph.rewritten import composed, inlined

Solver = Callable[[], list[Any]]
"""Takes the steps of a solver, and returns its outputs."""


class Rule:
    """The derivatives of a solution; hashable, and equal for equal rules."""

    name: str
    """The name of the row, an identifier."""

    @property
    def written(self) -> bool:
        """Whether the language has a form for the solution."""
        return False

    def solved(
        self, on: Interpreter, solve: Solver, values: Sequence[Any], batch: Shape
    ) -> list[Any]:
        """Return the outputs on values of an interpreter, by the solver's steps on them."""
        return solve()

    def pushed(self, moving: tuple[int, ...]) -> Function:
        """Return the tangents of the outputs.

        Its inputs are the outputs, the arguments, and the tangents of the arguments `moving`.
        """
        raise NotImplementedError

    def pulled(self, wanted: tuple[int, ...]) -> Function:
        """Return the cotangents of the arguments `wanted`.

        Its inputs are the outputs, the arguments, and the cotangents of the outputs.
        """
        raise NotImplementedError


def solution(function: Function, rule: Rule, values: Sequence[Node]) -> list[Node]:
    """Append a solver to the graph of its arguments; return its outputs."""
    return appended(Solution(function, rule=rule), values)


@dataclass(frozen=True)
class _Mapped(Rule):
    """The rule of a stack of examples."""

    name: str
    rule: Rule
    mapped: tuple[bool, ...]
    size: int
    outputs: int

    def pushed(self, moving: tuple[int, ...]) -> Function:
        flags = [True] * self.outputs, self.mapped, [self.mapped[index] for index in moving]
        return batched(
            self.rule.pushed(moving), [flag for part in flags for flag in part], self.size
        )

    def pulled(self, wanted: tuple[int, ...]) -> Function:
        stacked = [True] * self.outputs
        flags = [*stacked, *self.mapped, *stacked]
        one = batched(self.rule.pulled(wanted), flags, self.size)
        alike = [not self.mapped[index] for index in wanted]

        def summed(nodes: list[Node]) -> list[Node]:
            pairs = zip(inlined(one, nodes), alike, strict=True)
            return [np.sum(bars, axis=0) if same else bars for bars, same in pairs]

        return composed(summed, one.input_shapes)


def _jvp(held: Solution, dots: Sequence[Node], y: Node, *args: Node) -> list[Node]:
    """Return the tangents of the outputs."""
    moving = tuple([k for k, dot in enumerate(dots) if dot.builder.number(dot.id) != 0])
    outputs = unpacked(y, held.output_shapes, held.single)
    return inlined(held.rule.pushed(moving), [*outputs, *args, *(dots[index] for index in moving)])


def _vjp(
    held: Solution, y_bar: Node, y: Node, *args: Node, wanted: Sequence[bool]
) -> list[Node | None]:
    """Return the cotangents of the arguments."""
    indices = tuple([index for index, flows in enumerate(wanted) if flows])
    outputs, bars = (unpacked(whole, held.output_shapes, held.single) for whole in (y, y_bar))
    cotangents = inlined(held.rule.pulled(indices), [*outputs, *args, *bars])
    by_index = dict(zip(indices, cotangents, strict=True))
    return [by_index.get(index) for index in range(len(args))]


def _batched(held: Solution, size: int, args: list[Arg]) -> list[Node]:
    """Return the outputs of a stack of examples, solved together."""
    mapped = tuple([is_mapped for _, is_mapped in args])
    rule = _Mapped(held.rule.name, held.rule, mapped, size, len(held.output_shapes))
    return solution(batched(held.function, mapped, size), rule, [node for node, _ in args])


RULES[Solution] = Rules(_jvp, _vjp, _batched, selective=True)
