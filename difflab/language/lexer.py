"""The lexer: text to tokens ``(kind, start, end)``, lazily.

A token is three integers, not an object: inputs of a million tokens are ordinary. Tokens are
produced one at a time, so that ten megabytes of noise fail at the first wrong token. The
notation of papers is accepted: ``×``, ``·``, ``−``, ``≤``, ``x₁`` (the name ``x1``), ``x²``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from enum import IntEnum

from difflab.errors import ParseError

NAME_LIMIT = 1000
"""Maximum length of a name: longer ones would fill every table and picture."""

_FLOAT_DIGITS = 309
"""No float64 has more digits before its decimal point."""


class TokenKind(IntEnum):
    """The kind of a token. Every operator is a kind, so that tables can be indexed by kind."""

    END = 0
    BAD = 1
    NUMBER = 2
    NAME = 3
    SUPERSCRIPT = 4
    NEWLINE = 5
    SEMICOLON = 6
    COMMA = 7
    COLON = 8
    ASSIGN = 9
    OPEN = 10
    CLOSE = 11
    BRACKET = 12
    UNBRACKET = 13
    PLUS = 14
    MINUS = 15
    TIMES = 16
    DIVIDE = 17
    POWER = 18
    MATMUL = 19
    LESS = 20
    LESS_EQUAL = 21
    GREATER = 22
    GREATER_EQUAL = 23
    EQUAL = 24
    NOT_EQUAL = 25
    AND = 26
    OR = 27
    NOT = 28
    ROOT = 29
    CUBE_ROOT = 30
    ELEMENT = 31


_SPELLINGS = {
    TokenKind.SEMICOLON: ";",
    TokenKind.COMMA: ",",
    TokenKind.COLON: ":",
    TokenKind.ASSIGN: "=",
    TokenKind.OPEN: "(",
    TokenKind.CLOSE: ")",
    TokenKind.BRACKET: "[",
    TokenKind.UNBRACKET: "]",
    TokenKind.PLUS: "+ ＋",
    TokenKind.MINUS: "- − – — ‐ ‑ ﹣ －",
    TokenKind.TIMES: "* × · ⋅ ∗ ∙",
    TokenKind.DIVIDE: "/ ÷ ∕ ⁄",
    TokenKind.POWER: "^ **",
    TokenKind.MATMUL: "@",
    TokenKind.LESS: "<",
    TokenKind.LESS_EQUAL: "<= ≤ ⩽",
    TokenKind.GREATER: ">",
    TokenKind.GREATER_EQUAL: ">= ≥ ⩾",
    TokenKind.EQUAL: "==",
    TokenKind.NOT_EQUAL: "!= ≠",
    TokenKind.AND: "∧",
    TokenKind.OR: "∨",
    TokenKind.NOT: "¬",
    TokenKind.ROOT: "√",
    TokenKind.CUBE_ROOT: "∛",
}
_SYMBOLS = {symbol: int(kind) for kind, symbols in _SPELLINGS.items() for symbol in symbols.split()}
_WORDS = {"and": int(TokenKind.AND), "or": int(TokenKind.OR), "not": int(TokenKind.NOT)}

# The pattern matches at every position: the blanks before a token are possessive, and one of
# the alternatives always matches. A search that could fail would be repeated at every blank.
# Spaces of every width, the byte-order mark, and the invisible marks that MathML pastes in.
_BLANKS = " \t\xa0\u1680\u2000-\u200b\u202f\u205f\u2060\u2061\u3000\ufeff"
_RAISED_DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_RAISED_LETTERS = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ"
_RAISED = _RAISED_DIGITS + _RAISED_LETTERS

_NAME = rf"[^\W\d{_RAISED}][^\W{_RAISED}]*"
# ``np.sin(x)`` is sin(x): a module's name is read only before a call or a constant.
_MODULE = r"(?:(?:np|numpy|math|jnp)\.(?=[A-Za-z]\w*[ \t]*\(|(?:pi|e)\b))?"
_LONGEST_FIRST = sorted(_SYMBOLS, key=len, reverse=True)
_TOKEN = re.compile(
    rf"""[{_BLANKS}]*+(?:
      ((?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | {_MODULE}({_NAME})(\[[0-9]{{1,15}}\])?
    | ({"|".join(re.escape(symbol) for symbol in _LONGEST_FIRST)})
    | ([\r\n\u2028\u2029][{_BLANKS}\r\n\u2028\u2029]*+)
    | ([⁺⁻{_RAISED}]+)
    | (\#[^\n\r\u2028\u2029]*)
    | (\Z)
    | (.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_EXPONENT = re.compile(rf"[⁺⁻]?(?:[{_RAISED_DIGITS}]+|[{_RAISED_LETTERS}]+)")
_NUMBER, _NAMED, _ELEMENT, _SYMBOL, _LINE, _SUPERSCRIPT, _COMMENT, _END, _STRAY = range(1, 10)


def tokens(
    text: str, start: int = 0, jumps: list[int] | None = None
) -> Iterator[tuple[int, int, int]]:
    """Yield ``(kind, start, end)`` for each token of `text`; the last is ``TokenKind.END``.

    An element of a vector, such as ``x[12]``, is one token, since large programs consist of them.
    If a position is appended to `jumps` after a symbol, the text before that position is skipped.

    Examples
    --------
    >>> [(TokenKind(kind).name, start) for kind, start, end in tokens("x₁·2")]
    [('NAME', 0), ('TIMES', 2), ('NUMBER', 3), ('END', 4)]
    """
    symbols, words = _SYMBOLS, _WORDS
    # Plain integers: looking a member up on the enumeration costs more than the match.
    number, name, newline = int(TokenKind.NUMBER), int(TokenKind.NAME), int(TokenKind.NEWLINE)
    element = int(TokenKind.ELEMENT)
    while True:
        for match in _TOKEN.finditer(text, start):
            group = match.lastindex or _STRAY
            start, end = match.span(group)
            if group == _SYMBOL:
                yield symbols[text[start:end]], start, end
                if jumps:
                    start = jumps.pop()
                    break
            elif group == _ELEMENT:
                yield element, match.start(_NAMED), end
            elif group == _NUMBER:
                yield number, start, end
            elif group == _NAMED:
                yield words.get(text[start:end], name), start, end
            elif group == _LINE:
                yield newline, start, end
            elif group == _END:
                yield TokenKind.END, start, end
                return
            elif group != _COMMENT:
                kind = TokenKind.SUPERSCRIPT if group == _SUPERSCRIPT else TokenKind.BAD
                yield kind, start, end


def clean_name(text: str, start: int, end: int) -> str:
    """Return the normalized name at ``text[start:end]``: ``x₁`` is ``x1``.

    Raises
    ------
    ParseError
        If the name is too long, or contains anything other than letters, digits and ``_``.

    Examples
    --------
    >>> clean_name("x₁₂ + 1", 0, 3)
    'x12'
    """
    if end - start > NAME_LIMIT:
        message = f"a name of {end - start:,} characters; at most {NAME_LIMIT:,} are allowed"
        raise ParseError(message, text=text, span=(start, start + 1))
    name = text[start:end]
    if name.isascii():
        return name
    for position, character in enumerate(name, start):
        if not is_name("x" + unicodedata.normalize("NFKC", character)):
            message = f"'{character}' cannot be part of a name"
            hint = "names contain letters, digits and _"
            raise ParseError(message, text=text, span=(position, position + 1), hint=hint)
    name = unicodedata.normalize("NFKC", name)
    if is_name(name):
        return name
    raise ParseError("a name begins with a letter or _", text=text, span=(start, end))


def is_name(name: str) -> bool:
    """Return whether `name` is a valid name of the language.

    Examples
    --------
    >>> is_name("x_1"), is_name("2x"), is_name("a.b")
    (True, False, False)
    """
    return name.isidentifier() and all(c == "_" or c.isalpha() or c.isdecimal() for c in name)


def number(text: str, start: int, end: int) -> float | int:
    """Return the value of the literal at ``text[start:end]``, an int for an integer.

    Raises
    ------
    ParseError
        If it is outside the range of float64: ``1e999`` is too large, ``1e-999`` would become zero.

    Examples
    --------
    >>> number("12", 0, 2), number("1e3", 0, 3), number(".5", 0, 2)
    (12, 1000.0, 0.5)
    """
    literal = text[start:end]
    whole = literal.isdigit()
    digits = literal.lstrip("0") if whole else ""
    # int() refuses thousands of digits, and would be quadratic in their number.
    value = float("inf") if len(digits) > _FLOAT_DIGITS else float(literal)
    if value == float("inf"):
        problem = "too large for a float64, whose largest value is 1.797e308"
    elif value == 0.0 and re.match(r"[0.]*[1-9]", literal):
        problem = "too small for a float64 and would become zero"
    else:
        return int(digits or "0") if whole else value
    shown = literal if len(literal) <= 40 else f"a literal of {len(literal):,} characters"
    raise ParseError(f"{shown} is {problem}", text=text, span=(start, end))


def superscript(text: str, start: int, end: int) -> tuple[bool, str]:
    """Return whether the exponent at ``text[start:end]`` is negative, and its plain spelling.

    Raises
    ------
    ParseError
        If it is more than a signed number or name, such as ``ⁿ⁻¹``.

    Examples
    --------
    >>> superscript("x⁻¹²", 1, 4)
    (True, '12')
    """
    raised = text[start:end]
    if _EXPONENT.fullmatch(raised) is None:
        hint = "write the exponent with ^, as in x^(n - 1)"
        message = "a superscript must be a number or a name"
        raise ParseError(message, text=text, span=(start, end), hint=hint)
    return raised[0] == "⁻", unicodedata.normalize("NFKC", raised.lstrip("⁺⁻"))
