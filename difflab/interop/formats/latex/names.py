"""Names with subscripts."""

from __future__ import annotations

from difflab.errors import ParseError
from difflab.interop.formats.latex.lexer import Lexer
from difflab.interop.formats.latex.vocabulary import FONTS, GREEK

__all__ = ["read_subscript"]


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
