"""Loops, and reverse sweeps of them, as text: ``iterate(y = x; 100 times; 4*y*(1 - y))``.

Roots are written alike, ``root(x^2 - a, x, 1)``: their expression is a step of a name of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from difflab.autodiff.solutions.written import written_root
from difflab.graph.control import Loop, WhileLoop, WhileLoopVjp
from difflab.graph.function import Function
from difflab.graph.ir import Shape
from difflab.language.printers.expressions import ANYTHING, Part
from difflab.language.printers.view import PrintedGraph
from difflab.primitives import index, reshape

WrittenLoop = Loop | WhileLoop | WhileLoopVjp
"""What rows hold that is written as a loop of the language."""

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
    alias : callable
        Gives a value that has a name another one.

    Attributes
    ----------
    nodes : dict of int to Loop, WhileLoop or WhileLoopVjp
        The loops that are printed.
    """

    def __init__(
        self,
        view: PrintedGraph,
        names: dict[int, str],
        step: Callable[[Function, Sequence[str]], tuple[list[str], Step]],
        alias: Callable[[str], str],
    ) -> None:
        self.view = view
        self.names = names
        self.step = step
        self.alias = alias
        self.nodes: dict[int, WrittenLoop] = {}
        self.roots: dict[int, Function] = {}
        for node, row in enumerate(view.rows):
            held = None if row is None else row.holds
            if held is None or not view.uses[node]:
                continue
            if isinstance(held, WrittenLoop):
                self.nodes[node] = held
            elif (residual := written_root(held)) is not None:
                self.roots[node] = residual

    def constants(self) -> set[int]:
        """Return the arguments that steps read by name."""
        used: set[int] = set()
        for node, loop in self.nodes.items():
            used.update(self.view.children[node][_bound(loop) : len(_forward(loop).body.inputs)])
        for node in self.roots:
            used.update(self.view.children[node][1:])
        return used - set(self.names)

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
        if node in self.roots:
            return self._root(node)
        child = node
        for row in (reshape, index):  # an array is unpacked by both
            if self.view.rows[child] is row and (child == node or child not in self.names):
                (child,) = self.view.children[child]
        loop = self.nodes.get(child)
        if loop is None or child in self.names:
            return None
        sole: list[Shape] = [self.view.graph.shape(node)]
        return self._parts(child) if list(loop.output_shapes) == sole else None

    def _root(self, node: int) -> list[Part]:
        """Return the arguments of a root: the expression, its unknown, the first value."""
        residual, (first, *rest) = self.roots[node], self.view.children[node]
        (name,), step = self.step(residual, [self.names[argument] for argument in rest])
        definitions, (value,) = step(residual, lines=True)
        clauses = "; ".join([*definitions, value])
        if definitions:
            inner = ";\n".join([*definitions, value]).replace("\n", "\n    ")
            clauses = f"\n    {inner}"
        return ["root(", f"{clauses}, {name}, ", (first, ANYTHING), ")"]

    def _parts(self, node: int) -> list[Part]:
        """Return the clauses of a loop."""
        held, arguments = self.nodes[node], self.view.children[node]
        loop, bound = _forward(held), _bound(held)
        body = loop.body
        constants = [self.names[argument] for argument in arguments[bound : len(body.inputs)]]
        back: list[Part] = []
        if isinstance(held, WhileLoopVjp):
            constants = self._distinct(constants)
        names, step = self.step(body, constants)
        head: list[Part] = []
        for place, (name, argument) in enumerate(zip(names, arguments[:bound], strict=True)):
            over = isinstance(loop, Loop) and place >= loop.carries
            head += [", " if place else "", f"{name} in " if over else f"{name} = "]
            head.append((argument, ANYTHING))
        if isinstance(loop, WhileLoop):
            turns = f"while {step(loop.test, lines=False)[1][0]}"
        else:
            turns = f"{loop.steps} times{' backwards' * loop.reverse}"
        definitions, values = step(body, lines=True)
        clauses = [turns, *definitions, ", ".join(values)]
        if isinstance(held, WhileLoopVjp):
            clauses.append(f"back to {', '.join([*names, *constants])} from ")
            for bar in arguments[len(body.inputs) :]:
                back += [", " if back else "", (bar, ANYTHING)]
        if not definitions and sum(map(len, clauses)) < LONGEST_LINE:
            return ["iterate(", *head, "; ", "; ".join(clauses), *back, ")"]
        inner = ";\n".join(clauses).replace("\n", "\n    ")
        return ["iterate(", *head, f";\n    {inner}", *back, ")"]

    def _distinct(self, names: Sequence[str]) -> list[str]:
        """Return another name for each that is repeated: each has a cotangent of its own."""
        return [self.alias(name) if name in names[:k] else name for k, name in enumerate(names)]


def _forward(loop: WrittenLoop) -> Loop | WhileLoop:
    """Return a loop itself, or the one whose reverse sweep it is."""
    return loop.loop if isinstance(loop, WhileLoopVjp) else loop


def _bound(loop: WrittenLoop) -> int:
    """Return how many inputs of a step differ between iterations."""
    if isinstance(loop, Loop):
        return loop.carries + loop.arrays
    return len(_forward(loop).output_shapes)
