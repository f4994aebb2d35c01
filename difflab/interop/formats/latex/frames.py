"""What the reader holds of LaTeX while it reads: open brackets and their operands."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from difflab.interop.formats.latex.lexer import Token

__all__ = ["Frame", "FrameKind", "Operand", "Rope", "Translation", "translation"]

Rope = list[Any]
"""Pieces ``(text, start, end)`` of the translation and where they come from, in nested lists."""


@dataclass(slots=True)
class Operand:
    """A value that was read.

    Attributes
    ----------
    rope : list
        Its translation.
    name : str
        The name, if it is a variable.
    inner : list or None
        What stands between its brackets, if it is in brackets.
    is_call : bool
        Whether it would be read as the arguments of a function behind the name of one.
    powered : bool
        Whether it has an exponent.
    symbol : str
        The name, also with an exponent.
    numbered : bool
        Whether it is one number in brackets.
    """

    rope: Rope
    name: str = ""
    inner: Rope | None = None
    is_call: bool = False
    powered: bool = False
    symbol: str = ""
    numbered: bool = False

    @property
    def literal(self) -> bool:
        """Whether it is a number as it stands."""
        only = self.rope[0] if len(self.rope) == 1 else None
        return isinstance(only, tuple) and only[0][:1] in "0123456789."


class FrameKind(Enum):
    """What is open."""

    STATEMENTS = auto()
    GROUP = auto()
    SINGLE = auto()
    """The argument of a command without braces: one operand."""
    FUNCTION = auto()
    """A function whose argument has not begun."""
    FACTORS = auto()
    """The argument of a function without brackets: the factors that follow."""
    TABLE = auto()


@dataclass(slots=True)
class Frame:
    r"""Something open: what closes it, and what was read in it.

    Attributes
    ----------
    kind : FrameKind
    opener : Token
    finish : callable
        What becomes of the frame when it is closed.
    closer : str
        The bracket that closes it, behind ``\right`` if `left`.
    items : list
        Operands, and operators between them as pieces.
    commas : int
    divided : bool
        Whether the last operator is ``/``.
    rows : list
        The cells of a table.
    """

    kind: FrameKind
    opener: Token
    finish: Callable[[Frame], None]
    closer: str = ""
    left: bool = False
    items: list[Operand | tuple[str, int, int]] = field(default_factory=list)
    commas: int = 0
    divided: bool = False
    rows: list[list[Frame]] = field(default_factory=list)
    function: str = ""
    power: Rope | None = None
    base: Rope | None = None

    @property
    def last(self) -> Operand | None:
        """The operand that was read last; None behind an operator and at the start."""
        last = self.items[-1] if self.items else None
        return last if isinstance(last, Operand) else None

    @property
    def rope(self) -> Rope:
        """The translation of what was read."""
        return [item.rope if isinstance(item, Operand) else item for item in self.items]

    @property
    def only(self) -> Operand | None:
        """The operand that is all there is."""
        return self.last if len(self.items) == 1 else None


@dataclass(frozen=True)
class Translation:
    """A program of difflab's language, and where in the LaTeX each part of it stands."""

    text: str
    offsets: list[int]
    spans: list[tuple[int, int]]

    def source(self, span: tuple[int, int]) -> tuple[int, int]:
        """Return the place in the LaTeX of a place in the program."""
        first = max(bisect_right(self.offsets, span[0]) - 1, 0)
        last = max(bisect_right(self.offsets, max(span[1] - 1, span[0])) - 1, first)
        covered = self.spans[first : last + 1] or [(0, 1)]
        start, stop = min(s for s, _ in covered), max(e for _, e in covered)
        return start, max(stop, start + 1)


def translation(rope: Rope) -> Translation:
    """Join the pieces, in time linear in their number."""
    texts: list[str] = []
    offsets: list[int] = []
    spans: list[tuple[int, int]] = []
    stack: list[Any] = [rope]
    length = 0
    while stack:
        piece = stack.pop()
        if isinstance(piece, list):
            stack.extend(reversed(piece))
            continue
        text, start, end = piece
        texts.append(text)
        offsets.append(length)
        spans.append((start, end))
        length += len(text)
    return Translation("".join(texts), offsets, spans)
