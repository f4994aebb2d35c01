"""Languages whose arrays are lists, which are replaced and never changed by another name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from difflab.graph.ir import Shape
from difflab.language.printers.statements import TapeVariables
from difflab.language.printers.straight import StraightLinePrinter


class ListPrinter(StraightLinePrinter):
    """Printer of a function whose parameters are its inputs, and whose results are returned.

    Attributes
    ----------
    variable : str
        The line that creates the variable ``{0}`` of value ``{1}``, which changes.
    list_of_zeros, copy_of, slice_of : str
        A list of ``{0}`` zeros, a copy of the list ``{0}``, and its elements from ``{1}`` to the
        one before ``{2}``.
    """

    variable: ClassVar[str]
    list_of_zeros: ClassVar[str]
    copy_of: ClassVar[str]
    slice_of: ClassVar[str]

    def _begin(self) -> None:
        if self.main:
            inputs = self.view.function.inputs
            for node, each in zip(self.view.function.input_nodes, inputs, strict=True):
                self.names[node] = self.fresh.fresh(each)

    def parameters(self) -> list[str]:
        """Return the names of the inputs."""
        return [self.names[node] for node in self.view.function.input_nodes]

    def results(self) -> list[str]:
        """Return the expressions of the outputs."""
        return list(map(self._result, self.view.outputs))

    def _result(self, node: int) -> str:
        if not self.graph.shape(node):
            return self.expression(node)
        if node in self.listed:
            return self.collected(self.elements(node))
        name = self.names[node]
        return self.copy_of.format(name) if self.view.leaf(node) else name

    def _defined(self, name: str, value: str) -> str:
        return self.definition(truth=False) % (name, value)

    def array(self, name: str, size: int, *, truths: bool = False) -> str:
        """Return the line that creates a list of zeros."""
        return self._defined(name, self.list_of_zeros.format(size))

    def table(self, name: str, values: str, size: int, *, places: bool) -> str:
        """Return the line that creates a constant list."""
        return self._defined(name, f"[{values}]")

    def carry(self, name: str, value: str, size: int | None) -> None:
        """Write a variable that changes, and its first value."""
        self.add(self.variable.format(name, value))

    def zeros(self, shape: Shape) -> str:
        """Return a value of zeros."""
        return self.list_of_zeros.format(math.prod(shape)) if shape else "0.0"

    def tape(self, shapes: Sequence[Shape]) -> TapeVariables:
        """Declare a tape, a list of what each iteration keeps."""
        name = self.fresh.numbered("t")
        self.add(self._defined(name, "[]"))
        return TapeVariables(name, "", "", shapes)

    def part(self, name: str, array: str, counter: str, size: int) -> str:
        """Return the line that names the elements of one step of a loop."""
        first = f"{size}*{counter}"
        return self._defined(name, self.slice_of.format(array, first, f"{first} + {size}"))
