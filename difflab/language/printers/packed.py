"""Functions of one packed vector that fill another: the common part of C and its like."""

from __future__ import annotations

import math
import unicodedata
from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

from difflab.graph.names import shortened
from difflab.language.printers.statements import in_sequence
from difflab.language.printers.straight import StraightLinePrinter


class PackedPrinter(StraightLinePrinter):
    """Printer of a function whose inputs are one vector `x`, and whose outputs are one `y`.

    Parameters
    ----------
    function : Function
        The function to print.
    name : str
        What the printed function is called.
    outer : PackedPrinter, optional
        The printer of the function around, if this is a block in it.
    helpers : Helpers, optional
        The functions that the code defines so far, if this is one of them.
    """

    @property
    def root(self) -> Self:
        """The printer of the function itself."""
        return self if self.outer is None else self.outer.root

    def _begin(self) -> None:
        self.writes_outputs = self.outer is None
        if not self.main:
            return
        inputs = self.view.function.inputs
        plain = [self.spelled(each) for each in inputs]
        pointers = ("x", "y") if not {"x", "y"} & set(inputs) else ("point", "result")
        self.point, self.result = (_unused(each, plain, self.suffix) for each in pointers)
        for pointer in (self.point, self.result):
            self.fresh.fresh(pointer)
        for node, each in zip(self.view.function.input_nodes, plain, strict=True):
            self.names[node] = self.fresh.fresh(each)

    @abstractmethod
    def unpacked(self, name: str, array: str, start: int, size: int | None) -> str:
        """Return the line that names `size` elements of an array, or one."""

    @abstractmethod
    def assign_array(self, name: str, value: str, size: int) -> None:
        """Write what gives an array the elements of another."""

    def advance(self, changes: Sequence[tuple[str, str, int | None]]) -> None:
        """Write the assignments (variable, value, array's size) as if at once."""
        following = changes if len(changes) < 2 else in_sequence(changes)
        if following is None:
            following = [(name, self.saved(value, size), size) for name, value, size in changes]
        for name, value, size in following:
            if size is None:
                self.add(self.assignment(name, "=", value))
            else:
                self.assign_array(name, value, size)

    def saved(self, value: str, size: int | None) -> str:
        """Write a copy of a value, an array's of a size, and return its name."""
        name = self.fresh.numbered("t")
        self.add(self.scalar(name, value, None))
        return name

    def contents(self) -> str:
        """Return the names of the inputs and outputs in both vectors, for a comment."""
        inputs = shortened(self.view.function.inputs) or "nothing"
        outputs = shortened(self.view.function.output_names)
        return f"{self.point}: {inputs}; {self.result}: {outputs}"

    def spelled(self, name: str) -> str:
        """Return an ASCII name: Greek letters by name, others by code point."""
        return "".join(each if each.isascii() else _spelled(each) for each in name)

    def unpack(self) -> None:
        """Name the used inputs; compilers warn about unused variables."""
        start = 0
        for node in self.view.function.input_nodes:
            shape = self.graph.shape(node)
            size = math.prod(shape)
            if self.view.uses[node] and size:
                length = size if shape else None
                self.add(self.unpacked(self.names[node], self.point, start, length))
            start += size

    def pack(self) -> None:
        """Write the outputs into the result, one after the other."""
        start = 0
        for node in self.view.outputs:
            size = math.prod(self.graph.shape(node))
            if self.graph.shape(node) and node not in self.listed:
                target = self.at(self.result, (start, (1,)), ["i"])
                value = self.value(node, self.at_place(node, "i"))
                self.loops([("i", size)], target, "=", value)
            else:
                for position, element in enumerate(self.elements(node), start):
                    target = self.element(self.result, position)
                    self.add(self.assignment(target, "=", element))
            start += size


def _spelled(character: str) -> str:
    words = unicodedata.name(character, "").split()
    greek = words[:1] == ["GREEK"] and len(words) == 4
    return words[3].lower() if greek else f"u{ord(character):04x}"


def _unused(name: str, used: list[str], suffix: str) -> str:
    while name in used:
        name += suffix
    return name
