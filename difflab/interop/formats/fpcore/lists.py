"""S-expressions: nested lists of atoms with their locations."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

from difflab.errors import ParseError

_TOKEN = re.compile(r'(?:\s|;[^\n]*)*+(?:([(\[])|([)\]])|("[^"]*")|([^\s()\[\]";]+)|(\Z)|(.))')


@dataclass(frozen=True, slots=True)
class Atom:
    """A symbol, a number or a string."""

    text: str
    span: tuple[int, int]


@dataclass(slots=True)
class Listed:
    """A list in brackets."""

    span: tuple[int, int]
    items: list[Expression] = field(default_factory=list)


Expression = Atom | Listed


def fail(text: str, at: Expression, message: str, hint: str | None = None) -> NoReturn:
    """Raise an error that names the location of an expression."""
    raise ParseError(message, text=text, span=at.span, hint=hint)


def read(text: str) -> list[Expression]:
    """Return the expressions of a text.

    Raises
    ------
    ParseError
        The brackets do not fit.

    Examples
    --------
    >>> (expression,) = read("(+ x [1])  ; a comment")
    >>> [type(item).__name__ for item in expression.items]
    ['Atom', 'Atom', 'Listed']
    """
    whole = Listed((0, 1))
    stack = [whole]
    for match in _TOKEN.finditer(text):
        group = match.lastindex or 6
        start, end = match.span(group)
        if group == 1:
            stack.append(Listed((start, end)))
        elif group == 2:
            closed = stack.pop()
            if not stack or {"(": ")", "[": "]"}[text[closed.span[0]]] != text[start]:
                raise ParseError(f"{text[start]} closes nothing", text=text, span=(start, end))
            closed.span = (closed.span[0], end)
            stack[-1].items.append(closed)
        elif group in (3, 4):
            stack[-1].items.append(Atom(text[start:end], (start, end)))
        elif group == 5:
            break
        else:
            raise ParseError("a string is not closed", text=text, span=(start, end))
    if len(stack) > 1:
        raise ParseError("a bracket is not closed", text=text, span=stack[-1].span)
    return whole.items
