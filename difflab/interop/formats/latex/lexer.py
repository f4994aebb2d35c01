"""Tokens of LaTeX's mathematics, names with subscripts, and the words of difflab's language.

A function's command is found in the column `latex` of its row; the words below are those that no
row prints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from difflab.arrays import trigonometric
from difflab.errors import ParseError
from difflab.language.calls import CALLS
from difflab.primitives import TABLE

_GREEK = """
alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho
varrho sigma varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma
Upsilon Phi Psi Omega ell hbar
"""
GREEK = frozenset(_GREEK.split())
"""Commands that are names of variables."""
AMBIGUOUS = {"sigma": "sigmoid", "psi": "digamma", "phi": "", "varphi": "", "f": ""}
"""Letters that before a bracket may be a function or a factor, and the function."""
_BLANKS = r"""
\, \; \: \! \> \quad \qquad \displaystyle \textstyle \limits \nonumber \notag \big \Big \bigl \bigr
\Bigl \Bigr \bigg \Bigg \biggl \biggr \Biggl \Biggr \( \) \[ \] ~ $
"""
BLANKS = frozenset([*_BLANKS.split(), "\\ "])
"""What only changes how a formula looks."""
_FONTS = "mathbf mathit mathsf mathcal boldsymbol bm mathrm text textrm textit mathnormal"
FONTS = frozenset(_FONTS.split())
_ACCENTS = "hat bar tilde vec dot ddot overline widehat widetilde"
ACCENTS = frozenset(_ACCENTS.split())
OPERATORS: Mapping[str, str] = {
    "+": "+",
    "-": "-",
    "−": "-",
    "*": "*",
    "/": "/",
    "\\cdot": "*",
    "\\times": "*",
    "\\ast": "*",
    "·": "*",
    "×": "*",
    "\\div": "/",
}
RELATIONS: Mapping[str, str] = {
    "<": "<",
    ">": ">",
    "\\lt": "<",
    "\\gt": ">",
    "\\le": "<=",
    "\\leq": "<=",
    "\\leqslant": "<=",
    "\\ge": ">=",
    "\\geq": ">=",
    "\\geqslant": ">=",
    "\\ne": "!=",
    "\\neq": "!=",
    "\\wedge": " and ",
    "\\land": " and ",
    "\\vee": " or ",
    "\\lor": " or ",
}
DELIMITERS: Mapping[str, tuple[str, str]] = {
    "(": (")", ""),
    "[": ("]", ""),
    "\\{": ("\\}", ""),
    "\\lbrace": ("\\rbrace", ""),
    "\\lvert": ("\\rvert", "abs"),
    "\\lfloor": ("\\rfloor", "floor"),
    "\\lceil": ("\\rceil", "ceil"),
    "|": ("|", "abs"),
}
"""Opening brackets, the closing one of each, and the function that they are."""
INVERSES: Mapping[str, str] = {
    **{name: f"a{name}" for name in ("sin", "cos", "tan", "sec", "csc", "cot")},
    **{name: f"a{name}" for name in ("sinh", "cosh", "tanh", "sech", "csch", "coth")},
    "erf": "erfinv",
    "erfc": "erfcinv",
}
_SYNONYMS: Mapping[str, str] = {
    "lg": "log10",
    "lb": "log2",
    "sgn": "sign",
    "tg": "tan",
    "ctg": "cot",
    **{f"arc{name}": f"a{name}" for name in ("sec", "csc", "cot")},
    **{f"arc{name}": f"a{name}" for name in ("sinh", "cosh", "tanh", "sech", "csch", "coth")},
    **{f"ar{name}": f"a{name}" for name in ("sech", "csch", "coth")},
}
_COMMAND = re.compile(r"\\(?:operatorname\{\{(\w+)\}\}|([A-Za-z]+))\\left\(")


@cache
def functions() -> Mapping[str, str]:
    r"""Return the functions of difflab's language by the word of their command.

    They are written ``\operatorname{word}``, or upright before a bracket.

    Examples
    --------
    >>> functions()["arcsin"], functions()["Gamma"], functions()["erf"]
    ('asin', 'gamma', 'erf')
    """
    names = {name: name for name in CALLS} | dict(commands())
    return names | {name: name for row in TABLE.values() for name in row.names}


@cache
def commands() -> Mapping[str, str]:
    r"""Return the functions that have a command of their own, such as ``\sin``.

    ``\sum`` and ``\prod`` are none of them: they are sums over an index.

    Examples
    --------
    >>> commands()["ln"], "sum" in commands()
    ('ln', False)
    """
    names = {name: name for name in (*trigonometric.__all__, "det")}
    for row in TABLE.values():
        match = _COMMAND.match(row.latex or "")
        if row.shape is None and match and row.names:
            names.setdefault(match[1] or match[2], row.names[0])
        if row.shape is None:
            names |= {name: name for name in row.names}
    names |= {word: name for word, name in _SYNONYMS.items() if name in names}
    letters = {word for word in GREEK if word[0].islower()}
    return {word: name for word, name in names.items() if word not in {*letters, "sqrt"}}


# --- tokens -----------------------------------------------------------------------------------

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
        self.position = 0

    def peek(self) -> Token:
        """Return the next token without consuming it."""
        start = self.position
        token = self.next()
        self.position = start
        return token

    def next(self, *, digit: bool = False) -> Token:
        """Consume a token; blanks and commands that only change how it looks are skipped."""
        while True:
            match = _TOKEN.match(self.text, self.position)
            assert match is not None, "one of the alternatives matches"
            kind = match.lastgroup or ""
            start, end = match.span(kind)
            if digit and kind == "number":
                end = start + 1
            self.position = end
            if self.text[start:end] not in BLANKS:
                return Token(kind, self.text[start:end], start, end)

    def raw(self, command: Token) -> Token:
        r"""Consume the text in braces behind a command, as for ``\text{…}``."""
        match = _RAW.match(self.text, self.position)
        if match is None:
            raise ParseError(
                f"{command.text} needs plain text in braces",
                text=self.text,
                span=command.span,
                hint=f"write {command.text}{{name}}",
            )
        self.position = match.end()
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
