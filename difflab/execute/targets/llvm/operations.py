"""Operations in LLVM IR, on values that are numbers, truth values, or both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from difflab.execute.targets.llvm.functions import Functions, types
from difflab.execute.targets.llvm.spelling import SPELLINGS


class OperationWriter:
    """Writes operations on vectors of one width; values are converted where that is needed.

    Parameters
    ----------
    functions : Functions
        The functions of the module.
    width : int
        The lanes of a vector; 1 for scalars.
    lines : list of str
        The lines that instructions are appended to.

    Attributes
    ----------
    numbers, bits : dict
        The names of values as numbers and as truth values.
    """

    def __init__(self, functions: Functions, width: int, lines: list[str]) -> None:
        self.functions = functions
        self.width = width
        self.lines = lines
        self.types = types(width, functions.real)
        self.numbers: dict[Any, str] = {}
        self.bits: dict[Any, str] = {}

    def loaded(self, value: Any) -> str:
        """Return the name of a number that no operation has made."""
        raise NotImplementedError

    def name(self, key: Any, kind: str) -> str:
        """Return a new name for a value: an operation's result is of kind ``"t"``."""
        raise NotImplementedError

    def operation(self, name: str, operands: Sequence[Any], key: Any, *, truth: bool) -> None:
        """Write an operation, whose result is a number or a truth value."""
        spelling, v = SPELLINGS[name], self.types["v"]
        names = [
            self.bit(operand) if place in spelling.truths else self.number(operand)
            for place, operand in enumerate(operands)
        ]
        result = self.name(key, "t")
        if spelling.function:
            function = self.functions.function(spelling.function, len(names), self.width)
            typed = ", ".join([f"{v} {operand}" for operand in names])
            self.lines.append(f"{result} = call {v} @{function}({typed})")
        else:
            called = self.functions.called(spelling.template, self.width)
            text = spelling.template.format(*names, r=result, **self.types, **called)
            self.lines.append(text)
        (self.bits if truth else self.numbers)[key] = result

    def number(self, key: Any) -> str:
        """Return a value as a number."""
        found = self.numbers.get(key)
        if found is None:
            if key in self.bits:
                found = self.name(key, "n")
                b, v = self.types["b"], self.types["v"]
                self.lines.append(f"{found} = uitofp {b} {self.bits[key]} to {v}")
            else:
                found = self.loaded(key)
            self.numbers[key] = found
        return found

    def bit(self, key: Any) -> str:
        """Return a value as a truth value; every number except 0 is true, nan included."""
        found = self.bits.get(key)
        if found is None:
            number, found = self.number(key), self.name(key, "b")
            v, zero = self.types["v"], self.types["zero"]
            self.lines.append(f"{found} = fcmp une {v} {number}, {zero}")
            self.bits[key] = found
        return found
