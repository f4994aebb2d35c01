"""Statements of languages that write blocks in braces, such as C and JavaScript."""

from __future__ import annotations

from typing import ClassVar

from difflab.language.printers.straight import StraightLinePrinter

__all__ = ["BracesPrinter"]


class BracesPrinter(StraightLinePrinter):
    """A printer of loops and branches in braces.

    Attributes
    ----------
    counter : str
        What declares the counter of a loop.
    """

    counter: ClassVar[str]
    otherwise = "} else {"

    def loop(self, counter: str, size: int) -> str:
        """Return the head of a loop over a counter from 0."""
        return f"for ({self.counter} {counter} = 0; {counter} < {size}; {counter}++)"

    def assignment(self, target: str, sign: str, value: str) -> str:
        """Return a statement that assigns, or adds."""
        return f"{target} {sign} {value};"

    def counting(self, counter: str, steps: int, reverse: bool) -> str:
        """Begin a loop of so many steps."""
        if reverse:
            return f"for ({self.counter} {counter} = {steps}; {counter}-- > 0;) {{"
        return f"{self.loop(counter, steps)} {{"

    def going(self, condition: str) -> str:
        """Begin a loop that a condition continues."""
        return f"while ({condition}) {{"

    def leave(self, condition: str) -> str:
        """Return the statement that leaves a loop unless a condition holds."""
        return f"if (!({condition})) break;"

    def when(self, condition: str) -> str:
        """Begin a branch."""
        return f"if ({condition}) {{"

    def close(self, *, branch: bool = False) -> None:
        """End a block."""
        self.add("}")
