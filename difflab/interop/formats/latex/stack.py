"""The stack of open brackets and arguments in LaTeX, and the operands read in each."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NoReturn

from difflab.errors import ParseError
from difflab.interop.formats.latex.lexer import (
    AMBIGUOUS,
    DELIMITERS,
    INVERSES,
    Lexer,
    Token,
    functions,
)

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
    """Kinds of open brackets, commands and environments."""

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
    r"""An open bracket, command or environment: its closing token and its operands so far.

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
        """The translation of the operands so far."""
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
        """Map a span of the program to the span in the LaTeX source."""
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


_DEFINES = re.compile(r"\s*&?\s*=")


class FrameStack:
    """Appends operands, and opens and closes the frames that contain them."""

    def __init__(self, text: str, variables: Collection[str] = ()) -> None:
        self.text = text
        self.given = frozenset(variables)
        self.lexer = Lexer(text)
        start = Token("start", "", 0, 1)
        self.frames = [Frame(FrameKind.STATEMENTS, start, lambda frame: None)]

    @property
    def top(self) -> Frame:
        """The innermost frame."""
        return self.frames[-1]

    def fail(self, message: str, token: Token, hint: str | None = None) -> NoReturn:
        """Raise an error that marks the location."""
        raise ParseError(message, text=self.text, span=token.span, hint=hint)

    # --- operands -------------------------------------------------------------------------

    def operand(self, operand: Operand, token: Token) -> None:
        """Append a value; behind another one it is a factor."""
        top = self.top
        if top.last is not None:
            if operand.inner is not None:
                self._check_bracket(top.last, operand, token)
            if top.divided:
                self.fail(
                    "what '/' divides by is ambiguous: 1/2x is read as (1/2)x and as 1/(2x)",
                    token,
                    "write \\frac{1}{2x}, or 1/(2x)",
                )
            top.items.append(("*", token.start, token.end))
        top.items.append(operand)

    def _check_bracket(self, before: Operand, operand: Operand, token: Token) -> None:
        """Raise if brackets behind a value may be the argument of a function."""
        if self.top.kind is FrameKind.FACTORS:
            name = self.top.opener
            hint = f"put the whole argument of {name.text} in brackets"
            self.fail(f"the argument of {name.text} is ambiguous", token, hint)
        defines = self.top.kind is FrameKind.STATEMENTS and _DEFINES.match(
            self.text, self.lexer.position
        )
        symbol = before.symbol
        if symbol and (operand.is_call or symbol in AMBIGUOUS) and not defines:
            function = AMBIGUOUS.get(symbol, "")
            hint = f"write {symbol} \\cdot (…) for a product"
            if function:
                hint += f", \\operatorname{{{function}}}(…) for the function"
            shown = f"{symbol}^…(…)" if before.powered else f"{symbol}(…)"
            self.fail(f"is '{shown}' a function or a product?", token, hint)

    # --- brackets -------------------------------------------------------------------------

    def open(self, token: Token, finish: Callable[[Frame], None], closer: str) -> None:
        """Open braces or brackets."""
        self.frames.append(Frame(FrameKind.GROUP, token, finish, closer))

    def argument(self, token: Token, finish: Callable[[Frame], None]) -> None:
        """Open the argument of a command: braces, or the one operand that follows."""
        following = self.lexer.peek()
        if following.text == "{":
            self.open(self.lexer.next(), finish, "}")
        elif following.kind == "end" or following.text in ("}", "&", "\\\\", ")"):
            self.fail(f"{token.text} needs an argument", token)
        else:
            self.frames.append(Frame(FrameKind.SINGLE, token, finish))

    def bracket(self, token: Token, closer: str, function: str, *, left: bool = False) -> None:
        """Open brackets around a value, or around the argument of the function that they are."""

        def finish(frame: Frame) -> None:
            content = self.content(frame)
            start, end = token.start, self.lexer.position
            around = [(f"{function}(", start, token.end), content, (")", end - 1, end)]
            plain = not function
            only = frame.only
            numbered = plain and only is not None and only.literal
            named = only is not None and bool(only.name)
            is_call = plain and (named or numbered or frame.commas > 0)
            inner = content if plain else None
            operand = Operand(around, inner=inner, is_call=is_call, numbered=numbered)
            self.operand(operand, token)

        self.frames.append(Frame(FrameKind.GROUP, token, finish, closer, left))

    def close(self, token: Token, closer: str, *, left: bool) -> None:
        """Close the brackets that were opened last."""
        self.end_factors(token)
        top = self.top
        if top.kind is not FrameKind.GROUP or top.closer != closer or top.left is not left:
            right = ("", "\\right")
            message = f"{right[left]}{token.text} closes nothing that is open"
            if top.kind is FrameKind.GROUP:
                message += f"; {right[top.left]}{top.closer} is expected"
            self.fail(message, token)
        self.frames.pop()
        top.finish(top)

    def closes_bar(self) -> bool:
        """Whether ``|`` closes: one is open, and a value stands before it."""
        below = next(
            frame for frame in reversed(self.frames) if frame.kind is not FrameKind.FACTORS
        )
        open_bar = below.kind is FrameKind.GROUP and below.closer == "|" and not below.left
        return open_bar and self.top.last is not None

    def finish_braces(self, frame: Frame) -> None:
        """Braces only group: one operand in them is that operand."""
        if frame.only is not None:
            self.operand(frame.only, frame.opener)
        elif frame.items:
            where = (frame.opener.start, frame.opener.end)
            self.operand(Operand([("(", *where), frame.rope, (")", *where)]), frame.opener)

    def content(self, frame: Frame) -> Rope:
        """Return the content of a pair of brackets, which must not be empty."""
        if not frame.items:
            self.fail("nothing stands between the brackets", frame.opener)
        return frame.rope

    def atom(self, frame: Frame) -> Rope:
        """Return the content of a frame, in brackets unless it is one number or name."""
        content = self.content(frame)
        while len(content) == 1 and isinstance(content[0], list):
            content = content[0]
        if len(content) == 1 and not content[0][0].startswith("("):
            return content
        where = (frame.opener.start, frame.opener.end)
        return [("(", *where), content, (")", *where)]

    def settle(self) -> None:
        """Close the arguments without braces that have their operand."""
        while self.top.kind is FrameKind.SINGLE and self.top.last is not None:
            frame = self.frames.pop()
            frame.finish(frame)

    def end_factors(self, token: Token) -> None:
        """Close the arguments of functions that had no brackets."""
        self.settle()
        while self.top.kind in (FrameKind.FACTORS, FrameKind.FUNCTION):
            frame = self.frames.pop()
            if frame.last is None:
                self.fail(f"the argument of {frame.opener.text} is missing", frame.opener)
            self._apply(frame, frame.rope)
            self.settle()

    # --- functions ------------------------------------------------------------------------

    def open_function(self, name: str, token: Token) -> None:
        """Begin a function, whose exponent and argument follow."""
        if self.top.kind is FrameKind.FACTORS and self.top.last is not None:
            self.end_factors(token)  # \\sin x \\cos y is a product
        self.frames.append(Frame(FrameKind.FUNCTION, token, lambda frame: None, function=name))

    def before_argument(self, token: Token) -> bool:
        """Read an exponent, index or bracket of a call; return whether `token` begins one."""
        call = self.top
        if token.text in ("^", "_"):
            if (call.power if token.text == "^" else call.base) is not None:
                what = "exponents" if token.text == "^" else "indices"
                self.fail(f"two {what} on one function", token)

            def keep(frame: Frame) -> None:
                if token.text == "^":
                    call.power = self.atom(frame)
                else:
                    call.base = self.content(frame)

            self.argument(token, keep)
            return True
        if token.text in ("(", "[", "{", "\\{") or self._left_bracket(token):
            opener = self.lexer.next() if token.text == "\\left" else token
            closer = "}" if token.text == "{" else DELIMITERS[opener.text][0]
            left = token.text == "\\left"
            self.frames.append(Frame(FrameKind.GROUP, opener, self._call_closed, closer, left))
            return True
        call.kind = FrameKind.FACTORS
        return False

    def _left_bracket(self, token: Token) -> bool:
        r"""Whether brackets begin that are not those of another function, as ``\left|`` is."""
        delimiter = DELIMITERS.get(self.lexer.peek().text)
        return token.text == "\\left" and delimiter is not None and not delimiter[1]

    def _call_closed(self, frame: Frame) -> None:
        """Apply the function below to the brackets that were closed; braces may be around them."""
        only = frame.only
        inner = only.inner if only is not None and only.inner is not None else None
        self._apply(self.frames.pop(), self.content(frame) if inner is None else inner)

    def _apply(self, call: Frame, argument: Rope) -> None:
        """Append a function of its argument."""
        opener, name = call.opener, call.function
        where = (opener.start, opener.end)
        power = "" if call.power is None else translation(call.power).text
        if power == "(-1)":
            if name not in INVERSES:
                self.fail(f"difflab has no inverse function of {opener.text}", opener)
            name, power = INVERSES[name], ""
        rope: Rope = [(f"{name}(", *where), argument, (")", *where)]
        if call.base is not None:
            rope = self._based(call, argument)
        if power:
            rope += [("^", *where), call.power]
        self.operand(Operand(rope, powered=bool(power)), opener)

    def _based(self, call: Frame, argument: Rope) -> Rope:
        """Return a function with a subscript: the base of a logarithm, or a part of its name."""
        opener, base = call.opener, call.base or []
        where = (opener.start, opener.end)
        text = translation(base).text
        if call.function != "log":
            name = functions().get(f"{call.function}{text}") or functions().get(
                f"a{call.function.removeprefix('a')}{text}"
            )
            if name is None:
                self.fail(f"difflab has no function {opener.text} with the index {text}", opener)
            return [(f"{name}(", *where), argument, (")", *where)]
        if text in ("2", "10"):
            return [(f"log{text}(", *where), argument, (")", *where)]
        below = [("/log(", *where), base, ("))", *where)]
        return [("(log(", *where), argument, (")", *where), *below]
