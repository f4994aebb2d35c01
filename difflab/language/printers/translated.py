"""Functions in languages that spell C's expressions by a notation: Fortran, Rust and others."""

from __future__ import annotations

import math
from abc import abstractmethod

from difflab.language.printers.packed import PackedPrinter
from difflab.language.printers.statements import TapeVariables
from difflab.primitives import as_number


class TranslatedPrinter(PackedPrinter):
    """Printer of a language that differs from C in its notation and its statements.

    Truth values are not numbers: an expression of one is turned into the other where needed.
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
        turn, start = self.fresh.numbered("t"), 0
        names = [self.fresh.numbered("t") for _ in tape.shapes]
        head, *lines = self.turned(tape, turn)
        for name, shape in zip(names, tape.shapes, strict=True):
            size = math.prod(shape)
            lines.append(self.unpacked(name, turn, start, size if shape else None))
            start += size
        return f"\n{self.indent * 2}".join([head, *lines]), names

    def turned(self, tape: TapeVariables, turn: str) -> list[str]:
        """Return the head of a loop over a tape in reverse order, and the loop variable."""
        raise NotImplementedError
