"""Tokens of LaTeX's mathematics, and names with subscripts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from difflab.errors import ParseError
from difflab.interop.formats.latex.vocabulary import BLANKS, FONTS, GREEK

END = ""
_TOKEN = re.compile(
    r"""(?:\s|%[^\n]*)*+(?:
      (?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)
    | (?P<command>\\(?:[A-Za-z]+\*?|.|\Z))
    | (?P<letter>[^\W\d_])
    | (?P<symbol>.)
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_RAW = re.compile(r"\s*\{([^{}\\]*(?:\\[ _,][^{}\\]*)*)\}")


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its kind, its text and its position."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> tuple[int, int]:
        """The span in the source."""
        return self.start, max(self.end, self.start + 1)


class Lexer:
    r"""Reads one token at a time, because the kind of a token depends on its context.

    In LaTeX the argument of ``x^23`` is one digit.

    Examples
    --------
    >>> lexer = Lexer(r"\alpha x^23")
    >>> lexer.next().text, lexer.next().text, lexer.next().text, lexer.next(digit=True).text
    ('\\alpha', 'x', '^', '2')
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0

    def peek(self) -> Token:
        """Return the next token without consuming it."""
        place = self.place
        token = self.next()
        self.place = place
        return token

    def next(self, *, digit: bool = False) -> Token:
        """Consume a token; blanks and commands that only change how it looks are skipped."""
        while True:
            match = _TOKEN.match(self.text, self.place)
            assert match is not None, "one of the alternatives matches"
            kind = match.lastgroup or ""
            start, end = match.span(kind)
            if digit and kind == "number":
                end = start + 1
            self.place = end
            if self.text[start:end] not in BLANKS:
                return Token(kind, self.text[start:end], start, end)

    def raw(self, command: Token) -> Token:
        r"""Consume the text in braces behind a command, as for ``\text{…}``."""
        match = _RAW.match(self.text, self.place)
        if match is None:
            raise ParseError(
                f"{command.text} needs plain text in braces",
                text=self.text,
                span=command.span,
                hint=f"write {command.text}{{name}}",
            )
        self.place = match.end()
        return Token("raw", re.sub(r"\\(.)", r"\1", match[1]), *match.span(1))


def read_subscript(lexer: Lexer, base: str) -> str:
    r"""Consume the subscript of a name, and return the name with it.

    Examples
    --------
    >>> [read_subscript(Lexer(text), "x") for text in ("_1", "_{12}", "_{i,j}", r"_{\text{max}}")]
    ['x1', 'x12', 'x_i_j', 'x_max']
    """
    lexer.next()
    opener = lexer.next(digit=True)
    words = [""]
    token = lexer.next() if opener.text == "{" else opener
    while True:
        word = token.text.removeprefix("\\")
        if token.kind in ("number", "letter") or word in GREEK:
            words[-1] += token.text if token.kind != "command" else word
        elif word in FONTS:
            words[-1] += lexer.raw(token).text.strip().replace(" ", "_")
        elif token.text == ",":
            words.append("")
        elif token.text != "}" or opener.text != "{":
            raise ParseError(
                "a subscript is a part of a name: letters, digits and commas",
                text=lexer.text,
                span=token.span,
                hint=f"write {base}_{{1}} or {base}_{{\\text{{max}}}}",
            )
        if opener.text != "{" or token.text == "}":
            break
        token = lexer.next()
    below = "_".join(filter(None, words))
    return base + below if below.isdecimal() else f"{base}_{below}".rstrip("_")
