"""The operators: how tightly each binds, and its row of the table.

From loose to tight::

    or < and < not < comparisons < + - < * / @ < unary minus < ^ < √

``^`` is right-associative and comparisons do not chain. A prefix operator may follow any
operator that binds looser, and unary minus and ``√`` any at all: ``2^-3``.
"""

from __future__ import annotations

from difflab.core.primitive import Primitive
from difflab.language.lexer import Kind
from difflab.primitives import TABLE

__all__ = ["COMPARISONS", "FLOOR", "LEVEL", "LEVEL_OF", "NEGATE", "ROW", "UNARY"]

NEGATE = len(Kind)
"""Unary minus on the operator stack; as tokens both minuses are `Kind.MINUS`."""

COMPARISONS = range(int(Kind.LESS), int(Kind.NOT_EQUAL) + 1)

_LEVELS: tuple[dict[int, str], ...] = (
    {Kind.OR: "logical_or"},
    {Kind.AND: "logical_and"},
    {Kind.NOT: "logical_not"},
    {
        Kind.LESS: "less",
        Kind.LESS_EQUAL: "less_equal",
        Kind.GREATER: "greater",
        Kind.GREATER_EQUAL: "greater_equal",
        Kind.EQUAL: "equal",
        Kind.NOT_EQUAL: "not_equal",
    },
    {Kind.PLUS: "add", Kind.MINUS: "subtract"},
    {Kind.TIMES: "multiply", Kind.DIVIDE: "divide", Kind.MATMUL: "matmul"},
    {NEGATE: "negative"},
    {Kind.POWER: "power"},
    {Kind.ROOT: "sqrt", Kind.CUBE_ROOT: "cbrt"},
)

LEVEL: list[int] = [0] * (NEGATE + 1)
"""How tightly each kind binds; 0 for what is no operator, such as a parenthesis."""

ROW: list[Primitive | None] = [None] * (NEGATE + 1)
"""The row that each kind applies."""

LEVEL_OF: dict[str, int] = {}
"""The level of each row that is printed as an operator, by its name."""

for _level, _rows in enumerate(_LEVELS, 1):
    for _kind, _name in _rows.items():
        LEVEL[_kind] = _level
        ROW[_kind] = TABLE[_name]
        LEVEL_OF[_name] = _level
del LEVEL_OF["sqrt"], LEVEL_OF["cbrt"]

UNARY = [kind in {NEGATE, Kind.NOT, Kind.ROOT, Kind.CUBE_ROOT} for kind in range(NEGATE + 1)]

FLOOR = [level + (kind == Kind.POWER) for kind, level in enumerate(LEVEL)]
"""What a new operator reduces first: everything of its level, but ``^`` leaves ``^`` open."""
