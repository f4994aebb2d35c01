"""Base classes of printers: functions of one vector that fill another, and functions of lists."""

from __future__ import annotations

import math
import unicodedata
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

from difflab.graph.ir import Shape
from difflab.graph.names import shortened
from difflab.language.printers.statements import Change, TapeVariables, in_sequence, store_outputs
from difflab.language.printers.straight import StraightLinePrinter
from difflab.primitives import as_number


class PackedPrinter(StraightLinePrinter):
    """Printer of a function whose inputs are one vector `x`, and whose outputs are one `y`.

    Parameters
    ----------
    function : Function
        The function to print.
    name : str
        The name of the printed function.
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
        """Write the statement that copies the elements of an array to another."""

    def advance(self, changes: Sequence[Change]) -> None:
        """Write assignments as if at once."""
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
        store_outputs(self, self.result)


def _spelled(character: str) -> str:
    words = unicodedata.name(character, "").split()
    greek = words[:1] == ["GREEK"] and len(words) == 4
    return words[3].lower() if greek else f"u{ord(character):04x}"


def _unused(name: str, used: list[str], suffix: str) -> str:
    while name in used:
        name += suffix
    return name


# --- languages that spell C's expressions by a notation: Fortran, Rust and others ----------------


class TranslatedPrinter(PackedPrinter):
    """Printer of a language that differs from C in its notation and its statements.

    Truth values are not floats: expressions of either are converted to the other where needed.
    """

    @abstractmethod
    def copied(self, name: str, value: str, size: int, *, changes: bool = True) -> str:
        """Return the line that creates an array from the elements of another."""

    @abstractmethod
    def module(self) -> list[str]:
        """Return the lines of the source, around those of the function's statements."""

    def source(self) -> str:
        """Return the source of the function and of those that it calls."""
        self.unpack()
        self.compute()
        self.pack()
        return "\n".join(self.module())

    def unpacked(self, name: str, array: str, start: int, size: int | None) -> str:
        """Return the line that names a slice, whose end is included, or one element."""
        first = str(start + self.base)
        part = first if size is None else f"{first}:{start + size}"
        return f"{name} {self.assigns} {array}{part.join(self.subscript)}{self.end}"

    def part(self, name: str, array: str, counter: str, size: int) -> str:
        """Return the line that names the elements of one step of a loop."""
        part = f"{size}*{counter} - {size - 1}:{size}*{counter}"
        return f"{name} {self.assigns} {array}{part.join(self.subscript)}{self.end}"

    def variable(self, name: str, value: str) -> str:
        """Return the line that creates a scalar that changes."""
        return self.definition(truth=False) % (name, value)

    def value(self, node: int, text: str) -> str:
        """Return the text of a node as a number, 1 or 0 for a truth value."""
        row = self.view.rows[node]
        if row is None or not row.boolean:
            return text
        return self.notation.template(as_number).format(text)

    def truth(self, text: str) -> str:
        """Return whether a number is not 0."""
        return self.notation.unequal.format(text, self.notation.literal(0.0))

    def condition(self, node: int) -> str:
        """Return the text of a node as a truth value; a number is compared with 0."""
        row, text = self.view.rows[node], self.expression(node)
        return text if row is not None and row.boolean else self.truth(text)

    def when(self, condition: str) -> str:
        """Return the head of a branch; `condition` is a number."""
        return super().when(self.truth(condition))

    def when_true(self, condition: str) -> str:
        """Return the head of a branch, given a truth value."""
        return super().when(condition)

    def carry(self, name: str, value: str, size: int | None) -> None:
        """Write a variable that changes, and its first value."""
        self.add(
            self.variable(name, value) if size is None else self.copied(name, value, size),
        )

    def saved(self, value: str, size: int | None) -> str:
        """Write a copy of a value and return its name."""
        if size is None:
            return super().saved(value, size)
        name = self.fresh.numbered("t")
        self.add(self.copied(name, value, size, changes=False))
        return name

    def assign_array(self, name: str, value: str, size: int) -> None:
        """Write the statement that gives an array the elements of another."""
        self.add(self.replaced(name, value))

    def replaced(self, name: str, value: str) -> str:
        """Return the statement that gives an array the elements of another."""
        return self.assignment(name, "=", value)

    def unwind(self, tape: TapeVariables) -> tuple[str, list[str]]:
        """Return the head of a loop over a tape, and the names of its values in an iteration."""
        record, start = self.fresh.numbered("t"), 0
        names = [self.fresh.numbered("t") for _ in tape.shapes]
        head, *lines = self.turned(tape, record)
        for name, shape in zip(names, tape.shapes, strict=True):
            size = math.prod(shape)
            lines.append(self.unpacked(name, record, start, size if shape else None))
            start += size
        return f"\n{self.indent * 2}".join([head, *lines]), names

    def turned(self, tape: TapeVariables, record: str) -> list[str]:
        """Return the head of a loop over a tape in reverse order, and the loop variable."""
        raise NotImplementedError


# --- languages whose arrays are lists, which are replaced and never changed by another name ------


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

    empty_array = "[]"
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

    def part(self, name: str, array: str, counter: str, size: int) -> str:
        """Return the line that names the elements of one step of a loop."""
        first = f"{size}*{counter}"
        return self._defined(name, self.slice_of.format(array, first, f"{first} + {size}"))
