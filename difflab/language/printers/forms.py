"""The statements of a language: templates, and methods for what templates do not say."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from difflab.core.primitive import Primitive
from difflab.errors import UnsupportedError
from difflab.graph.ir import Shape
from difflab.graph.names import FreshNames
from difflab.language.printers.array_loops import flat_index
from difflab.language.printers.expressions import ANYTHING, Notation
from difflab.language.printers.statements import TapeVariables


class StatementForms(ABC):
    """The forms of a language's statements; `lines` are those written so far.

    Attributes
    ----------
    end, assigns : str
        What ends a statement, and what is between a variable and its value.
    adds, added : str, int
        How ``{1}`` is added to ``{0}``, and the precedence that ``{1}`` needs there.
    for_loop, backwards : str
        The head of a loop of the counter ``{0}`` from ``{1}`` to ``{2}``, or from there back;
        ``{3}`` is behind the last.
    while_loop, leaving, branch : str
        The heads of a loop and of a branch under the condition ``{0}``, and the statement that
        leaves a loop unless it holds.
    otherwise : str
        The head of the other branch.
    opening : str
        What opens a block behind such a head; a loop over one statement does without.
    end_loop, end_branch : str
        The ends of loops and branches.
    """

    language: str
    notation: ClassVar[Notation]
    indent = "    "
    base = 0
    """The index of the first element of an array, from which loops count as well."""
    subscript = ("[", "]")
    end: ClassVar[str] = ""
    assigns: ClassVar[str] = "="
    adds: ClassVar[str] = "{0} += {1}"
    added = ANYTHING
    for_loop: ClassVar[str]
    backwards: ClassVar[str]
    while_loop: ClassVar[str]
    leaving: ClassVar[str]
    branch: ClassVar[str]
    otherwise: ClassVar[str]
    opening: ClassVar[str] = ""
    end_loop: ClassVar[str] = ""
    end_branch: ClassVar[str] = ""
    lines: list[str]
    fresh: FreshNames

    def add(self, *lines: str, indent: str | None = None) -> None:
        """Append lines, or, with their further indentation, those of a block."""
        for line in lines:
            if indent is None:
                self.lines.append(self.indent + line)
            else:
                self.lines.append("\n".join(indent + each for each in line.split("\n")))

    def number(self, value: float, name: str | None) -> str:
        """Return a constant."""
        return self.notation.literal(value)

    def definition(self, *, truth: bool) -> str:
        """Return the line that defines a number, with ``%s`` for its name and its value."""
        return f"%s {self.assigns} %s{self.end}"

    def declare_scalars(self, names: Sequence[str], *, truths: bool) -> None:  # noqa: B027
        """Declare scalars, in a language with separate declarations."""

    def scalar(self, name: str, value: str, row: Primitive | None) -> str:
        """Return the line that defines the result of a row."""
        truth = row is not None and row.boolean
        self.declare_scalars([name], truths=truth)
        return self.definition(truth=truth) % (name, value)

    @abstractmethod
    def array(self, name: str, size: int, *, truths: bool = False) -> str:
        """Return the line that creates an array of zeros, or of truth values."""

    @abstractmethod
    def table(self, name: str, values: str, size: int, *, places: bool) -> str:
        """Return the line that creates a constant array, of indices if `places`."""

    def loop(self, counter: str, size: int) -> str:
        """Return the head of a loop over one statement."""
        return self._counted(self.for_loop, counter, size)

    def _counted(self, head: str, counter: str, size: int) -> str:
        first, behind = self.base, self.base + size
        return head.format(counter, first, behind - 1, behind)

    def assignment(self, target: str, sign: str, value: str) -> str:
        """Return the line ``target = value`` or ``target += value``."""
        new = f"{target} {self.assigns} {value}"
        written = new if sign == "=" else self.adds.format(target, value)
        return written + self.end

    @abstractmethod
    def carry(self, name: str, value: str, size: int | None) -> None:
        """Write a variable that changes, and its first value; `size` is an array's."""

    def assigned_later(self, name: str) -> None:
        """Declare a number that branches assign."""
        self.carry(name, self.number(0.0, None), None)

    def ignore(self, name: str) -> None:  # noqa: B027
        """Write that a value is not used, where compilers warn."""

    def collected(self, elements: Sequence[str]) -> str:
        """Return an array of elements."""
        return f"[{', '.join(elements)}]"

    @abstractmethod
    def advance(self, changes: Sequence[tuple[str, str, int | None]]) -> None:
        """Write the assignments (variable, value, array's size) as if at once."""

    @abstractmethod
    def part(self, name: str, array: str, counter: str, size: int) -> str:
        """Return the line that names the `size` elements of an array at a step of a loop."""

    def counting(self, counter: str, steps: int, reverse: bool) -> str:
        """Return the head of a block that is repeated."""
        head = self.backwards if reverse else self.for_loop
        return self._counted(head, counter, steps) + self.opening

    def zeros(self, shape: Shape) -> str:
        """Return a value of zeros."""
        if not shape:
            return self.notation.literal(0.0)
        name = self.fresh.numbered("t")
        self.add(self.array(name, math.prod(shape)))
        return name

    def tape(self, shapes: Sequence[Shape]) -> TapeVariables:
        """Declare a tape that stores values of these shapes in each iteration."""
        raise UnsupportedError(
            f"{self.language} has no array that grows, which the derivative of a while loop needs; "
            "use a loop of a fixed number of steps, or another language"
        )

    def keep(self, tape: TapeVariables, names: Sequence[str]) -> None:
        """Write the statements that append the current values to a tape."""
        raise NotImplementedError

    @abstractmethod
    def unwind(self, tape: TapeVariables) -> tuple[str, list[str]]:
        """Return the head of a loop over a tape in reverse order, and the names of its values."""

    def going(self, condition: str) -> str:
        """Return the head of a block that is repeated while a condition holds."""
        return self.while_loop.format(condition) + self.opening

    def leave(self, condition: str) -> str:
        """Return the line that leaves a loop unless a condition holds."""
        return self.leaving.format(condition)

    def when(self, condition: str) -> str:
        """Return the head of a branch."""
        return self.branch.format(condition) + self.opening

    def when_true(self, condition: str) -> str:
        """Return the head of a branch, given a truth value."""
        return self.when(condition)

    def close(self, *, branch: bool = False) -> None:
        """Write the end of a loop, or of a branch."""
        end = self.end_branch if branch else self.end_loop
        if end:
            self.add(end)

    def at(self, name: str, affine: tuple[int, Shape], counters: Sequence[str]) -> str:
        """Return the element of an array at an offset and strides, counted from 0."""
        return self.element(name, self.place(affine, counters))

    def place(self, affine: tuple[int, Shape], counters: Sequence[str]) -> str:
        """Return an index, at an offset and strides, counted from 0."""
        offset, strides = affine
        first = offset + self.base * (1 - sum(strides))
        return flat_index((first, strides), counters)

    def element(self, name: str, place: int | str) -> str:
        """Return the element of an array at an index from 0, or at one written in counters."""
        written = place if isinstance(place, str) else str(place + self.base)
        return f"{name}{self.subscript[0]}{written}{self.subscript[1]}"
