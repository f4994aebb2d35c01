"""Functions in languages that spell C's expressions by a notation: Fortran, Rust and others."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from difflab.errors import UnsupportedError
from difflab.graph.ir import Shape
from difflab.language.printers.expressions import PRODUCT
from difflab.language.printers.packed import PackedPrinter
from difflab.language.printers.statements import TapeVariables, in_sequence
from difflab.primitives import as_number

__all__ = ["TranslatedPrinter"]


class TranslatedPrinter(PackedPrinter):
    """Printer of a language that differs from C in its notation and its statements.

    Truth values are not numbers: an expression of one is turned into the other where needed.

    Attributes
    ----------
    end : str
        What ends a statement.
    adds, added : str, int
        How ``{1}`` is added to ``{0}``, and the precedence that ``{1}`` needs there.
    for_loop, backwards : str
        The head of a loop of the counter ``{0}`` from ``{1}`` to ``{2}``, or from there back;
        ``{3}`` is behind the last.
    while_loop, leaving, branch : str
        The heads of a loop and of a branch under the condition ``{0}``, and the statement that
        leaves a loop unless it holds.
    end_loop, end_branch : str
        The ends of loops and branches.
    listing : (str, str)
        What is around the elements of an array.
    """

    end: ClassVar[str] = ""
    adds: ClassVar[str] = "{0} = {0} + {1}"
    added = PRODUCT
    for_loop: ClassVar[str]
    backwards: ClassVar[str]
    while_loop: ClassVar[str]
    leaving: ClassVar[str]
    branch: ClassVar[str]
    end_branch: ClassVar[str]
    listing: ClassVar[tuple[str, str]] = ("[", "]")

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
        return f"{name} = {array}{part.join(self.subscript)}{self.end}"

    def part(self, name: str, array: str, counter: str, size: int) -> str:
        """Return the line that names the elements of one step of a loop."""
        part = f"{size}*{counter} - {size - 1}:{size}*{counter}"
        return f"{name} = {array}{part.join(self.subscript)}{self.end}"

    def definition(self, *, truth: bool) -> str:
        """Return the line that defines a scalar."""
        return f"%s = %s{self.end}"

    def variable(self, name: str, value: str) -> str:
        """Return the line that creates a scalar that changes."""
        return self.definition(truth=False) % (name, value)

    def number(self, value: float, name: str | None) -> str:
        """Return a constant."""
        return self.notation.literal(value)

    def value(self, node: int, text: str) -> str:
        """Return the text of a node as a number, 1 or 0 for a truth value."""
        row = self.view.rows[node]
        if row is None or not row.boolean:
            return text
        return self.notation.template(as_number).format(text)

    def truth(self, text: str) -> str:
        """Return whether a number is not 0."""
        return f"{text} {self.notation.unequal} {self.notation.literal(0.0)}"

    def condition(self, node: int) -> str:
        """Return the text of a node as a truth value; a number is compared with 0."""
        row, text = self.view.rows[node], self.expression(node)
        return text if row is not None and row.boolean else self.truth(text)

    def loop(self, counter: str, size: int) -> str:
        """Return the head of a loop."""
        return self._counted(self.for_loop, counter, size)

    def counting(self, counter: str, steps: int, reverse: bool) -> str:
        """Return the head of a block that is repeated."""
        return self._counted(self.backwards if reverse else self.for_loop, counter, steps)

    def _counted(self, head: str, counter: str, size: int) -> str:
        first, behind = self.base, self.base + size
        return head.format(counter, first, behind - 1, behind)

    def assignment(self, target: str, sign: str, value: str) -> str:
        """Return a statement that assigns, or adds."""
        return (
            f"{target} = {value}" if sign == "=" else self.adds.format(target, value)
        ) + self.end

    def going(self, condition: str) -> str:
        """Return the head of a block that is repeated while a condition holds."""
        return self.while_loop.format(condition)

    def leave(self, condition: str) -> str:
        """Return the statement that leaves a loop unless a condition holds."""
        return self.leaving.format(condition)

    def when(self, condition: str) -> str:
        """Return the head of a branch; `condition` is a number."""
        return self.branch.format(self.truth(condition))

    def when_true(self, condition: str) -> str:
        """Return the head of a branch, given a truth value."""
        return self.branch.format(condition)

    def close(self, *, branch: bool = False) -> None:
        """Write the end of a loop, or of a branch."""
        self.add(self.end_branch if branch else self.end_loop)

    def ignore(self, name: str) -> None:
        """Most compilers do not warn."""

    def carry(self, name: str, value: str, size: int | None) -> None:
        """Write a variable that changes, and its first value."""
        self.add(
            self.variable(name, value) if size is None else self.copied(name, value, size),
        )

    def collected(self, elements: Sequence[str]) -> str:
        """Return an array of elements."""
        return ", ".join(elements).join(self.listing)

    def advance(self, changes: Sequence[tuple[str, str, int | None]]) -> None:
        """Write the assignments as if at once."""
        ordered = changes if len(changes) < 2 else in_sequence(changes)
        changes = ordered or changes
        values = [value for _, value, _ in changes]
        if ordered is None:
            values = [self.fresh.numbered("t") for _ in changes]
            for name, (_, value, size) in zip(values, changes, strict=True):
                if size is None:
                    self.add(self.scalar(name, value, None))
                else:
                    self.add(self.copied(name, value, size, changes=False))
        for (name, _, size), value in zip(changes, values, strict=True):
            if size is None:
                self.add(self.assignment(name, "=", value))
            else:
                self.add(self.replaced(name, value))

    def replaced(self, name: str, value: str) -> str:
        """Return the statement that gives an array the elements of another."""
        return self.assignment(name, "=", value)

    def zeros(self, shape: Shape) -> str:
        """Return a value of zeros."""
        if not shape:
            return self.notation.literal(0.0)
        name = self.fresh.numbered("t")
        self.add(self.array(name, math.prod(shape)))
        return name

    def tape(self, shapes: Sequence[Shape]) -> TapeVariables:
        """Write the beginning of a tape."""
        raise UnsupportedError(
            f"{self.language} has no array that grows, which the derivative of a while loop needs; "
            "use a loop of a fixed number of steps, or another language"
        )

    def keep(self, tape: TapeVariables, names: Sequence[str]) -> None:
        """Write the statements that append to a tape."""
        raise NotImplementedError

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
