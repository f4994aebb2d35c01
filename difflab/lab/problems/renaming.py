"""Other names in the text of a formula, token by token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from difflab.language.lexer import TokenKind, clean_name, tokens

_NAMED = (TokenKind.NAME, TokenKind.ELEMENT)


def names(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield every name in `text`, normalised, with its position.

    Examples
    --------
    >>> list(names("x₁ + n*y[2]"))
    [('x1', 0, 2), ('n', 5, 6), ('y', 7, 8)]
    """
    for kind, start, end in tokens(text):
        if kind in _NAMED:
            bracket = text.find("[", start, end) if kind == TokenKind.ELEMENT else end
            stop = len(text[:bracket].rstrip())
            yield clean_name(text, start, stop), start, stop


def renamed(text: str, replacements: Mapping[str, str]) -> str:
    """Return `text` with some names replaced by other names or literals.

    Examples
    --------
    >>> renamed("x: [n]; sum(x)/n", {"n": "4"})
    'x: [4]; sum(x)/4'
    >>> renamed("2n", {"n": "4"})  # an operator is missing, and remains so
    '2 4'
    """
    parts, position = [], 0
    for name, start, end in names(text):
        if name in replacements:
            apart = " " * text[start - 1 : start].isdigit()
            parts += [text[position:start], apart, replacements[name]]
            position = end
    return "".join([*parts, text[position:]])
