"""Tables indexed by the kind of a token, the precedence of each operator among them.

From lowest to highest precedence::

    or < and < not < comparisons < + - < * / @ < unary minus < ^ < √

``^`` is right-associative and comparisons do not chain. A prefix operator may follow any
operator of lower precedence, and unary minus and ``√`` any operator: ``2^-3``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from difflab.core.primitive import Primitive
from difflab.language.lexer import TokenKind
from difflab.primitives import TABLE

if TYPE_CHECKING:
    from difflab.language.parser import Parser


Handler = Callable[["Parser", int, int, int], None]
"""What the parser does with a token of a kind, from a start to an end."""

KINDS = tuple(map(int, TokenKind))
"""Plain integers: looking a member up on the enumeration costs more than using it."""

NEGATE = len(TokenKind)
"""Unary minus on the operator stack; as tokens both minuses are `TokenKind.MINUS`."""

COMPARISONS = range(int(TokenKind.LESS), int(TokenKind.NOT_EQUAL) + 1)

_LEVELS: tuple[dict[int, str], ...] = (
    {TokenKind.OR: "logical_or"},
    {TokenKind.AND: "logical_and"},
    {TokenKind.NOT: "logical_not"},
    {
        TokenKind.LESS: "less",
        TokenKind.LESS_EQUAL: "less_equal",
        TokenKind.GREATER: "greater",
        TokenKind.GREATER_EQUAL: "greater_equal",
        TokenKind.EQUAL: "equal",
        TokenKind.NOT_EQUAL: "not_equal",
    },
    {TokenKind.PLUS: "add", TokenKind.MINUS: "subtract"},
    {TokenKind.TIMES: "multiply", TokenKind.DIVIDE: "divide", TokenKind.MATMUL: "matmul"},
    {NEGATE: "negative"},
    {TokenKind.POWER: "power"},
    {TokenKind.ROOT: "sqrt", TokenKind.CUBE_ROOT: "cbrt"},
)

LEVEL: list[int] = [0] * (NEGATE + 1)
"""The precedence of each kind; 0 for kinds that are no operators, such as parentheses."""

PRIMITIVE: list[Primitive | None] = [None] * (NEGATE + 1)
"""The primitive that each kind applies."""

LEVEL_OF: dict[str, int] = {}
"""The precedence of each primitive that is printed as an operator, by name."""

for _level, _rows in enumerate(_LEVELS, 1):
    for _kind, _name in _rows.items():
        LEVEL[_kind] = _level
        PRIMITIVE[_kind] = TABLE[_name]
        LEVEL_OF[_name] = _level
del LEVEL_OF["sqrt"], LEVEL_OF["cbrt"]

UNARY = [
    kind in {NEGATE, TokenKind.NOT, TokenKind.ROOT, TokenKind.CUBE_ROOT}
    for kind in range(NEGATE + 1)
]

FLOOR = [level + (kind == TokenKind.POWER) for kind, level in enumerate(LEVEL)]
"""Lowest precedence that a new operator reduces first; ``^`` is right-associative."""


def table(handlers: dict[int, Handler], otherwise: Handler) -> list[Handler]:
    """Return the handlers of a state of the parser as a list indexed by token kind."""
    return [handlers.get(kind, otherwise) for kind in KINDS]
