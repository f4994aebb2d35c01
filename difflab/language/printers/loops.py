"""Loops as text: ``iterate(y = x; 100 times; 4*y*(1 - y))``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from difflab.graph.control import Loop, WhileLoop
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.language.printers.forms import ANYTHING
from difflab.language.printers.view import PrintedGraph
from difflab.language.printers.writer import Part
from difflab.primitives import index, reshape

__all__ = ["LoopForms", "Step"]

LONGEST_LINE = 60
"""Characters above which the parts of a loop have lines of their own."""


class Step(Protocol):
    """Printer of a function of a loop's inputs: its definitions, if wanted, and its outputs."""

    def __call__(self, inner: Function, *, lines: bool) -> tuple[list[str], list[str]]:
        """Return both as text."""


class LoopForms:
    """Printer of loops, as parts of text.

    Parameters
    ----------
    view : PrintedGraph
        The graph that is printed.
    names : dict of int to str
        The nodes that are written as a name, when a loop is described.
    step : callable
        Returns, for a function and the names of its last inputs, names of the others and the
        printer of such functions.

    Attributes
    ----------
    nodes : dict of int to Loop or WhileLoop
        The loops that are printed.
    """

    def __init__(
        self,
        view: PrintedGraph,
        names: dict[int, str],
        step: Callable[[Function, Sequence[str]], tuple[list[str], Step]],
    ) -> None:
        self.view = view
        self.names = names
        self.step = step
        self.nodes: dict[int, Loop | WhileLoop] = {}
        for node, row in enumerate(view.rows):
            held = None if row is None else row.holds
            if view.uses[node] and isinstance(held, Loop | WhileLoop):
                self.nodes[node] = held

    def constants(self) -> set[int]:
        """Return the arguments that steps read by name."""
        found: set[int] = set()
        for node, loop in self.nodes.items():
            found.update(self.view.children[node][_bound(loop) :])
        return found - set(self.names)

    def describe(self, node: int) -> list[Part] | None:
        """Return the parts of a loop, or of the only output of one; None for other nodes.

        A loop of one output is that output in the language, and the vector of its elements in a
        graph.
        """
        if node in self.nodes:
            (shape, *more) = self.nodes[node].output_shapes
            parts = self._parts(node)
            if more or len(shape) == 1:
                return parts
            return ["reshape(", *parts, f", [{math.prod(shape)}])"]
        row = self.view.rows[node]
        if row is not index and row is not reshape:
            return None
        (child,) = self.view.children[node]
        if row is reshape and self.view.rows[child] is index and child not in self.names:
            (child,) = self.view.children[child]  # an array is unpacked by both
        loop = self.nodes.get(child)
        if loop is None or child in self.names:
            return None
        sole: list[Shape] = [self.view.graph.shape(node)]
        return self._parts(child) if list(loop.output_shapes) == sole else None

    def _parts(self, node: int) -> list[Part]:
        """Return the clauses of a loop."""
        loop, arguments = self.nodes[node], self.view.children[node]
        bound = _bound(loop)
        body = loop.body
        names, step = self.step(body, [self.names[argument] for argument in arguments[bound:]])
        head: list[Part] = []
        for place, (name, argument) in enumerate(zip(names, arguments, strict=False)):
            over = isinstance(loop, Loop) and place >= loop.carries
            head += [", " if place else "", f"{name} in " if over else f"{name} = "]
            head.append((argument, ANYTHING))
        if isinstance(loop, WhileLoop):
            turns = f"while {step(loop.test, lines=False)[1][0]}"
        else:
            turns = f"{loop.steps} times{' backwards' * loop.reverse}"
        definitions, values = step(body, lines=True)
        clauses = [turns, *definitions, ", ".join(values)]
        if not definitions and sum(map(len, clauses)) < LONGEST_LINE:
            return ["iterate(", *head, "; ", "; ".join(clauses), ")"]
        inner = ";\n".join(clauses).replace("\n", "\n    ")
        return ["iterate(", *head, f";\n    {inner})"]


def _bound(loop: Loop | WhileLoop) -> int:
    """Return how many inputs of a step have values of their own at each turn."""
    if isinstance(loop, WhileLoop):
        return len(loop.output_shapes)
    return loop.carries + loop.arrays
