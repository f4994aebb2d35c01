"""Cases and matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from difflab.interop.formats.latex.stack import Frame, Rope

if TYPE_CHECKING:
    from difflab.interop.formats.latex.stack import FrameStack


def chosen(stack: FrameStack, table: Frame) -> Rope:
    """Return cases as nested choices; where no condition holds the value is nan."""
    rows = [row for row in table.rows if row]
    where = (table.opener.start, table.opener.end)
    rope: Rope = []
    for number, row in enumerate(rows):
        value, *conditions = row
        if value.last is None and not value.items:
            stack.fail("a case has no value", value.opener)
        otherwise = not conditions or conditions[0].function == "otherwise"
        if otherwise and number + 1 < len(rows):
            hint = "write value & condition"
            stack.fail("only the last case may have no condition", value.opener, hint)
        if otherwise:
            return [*rope, value.rope, (")" * number, *where)]
        condition = [*conditions[0].rope, (", ", *where)]
        rope += [("where(", *where), condition, value.rope, (", ", *where)]
    if not rows:
        stack.fail("there is no case", table.opener)
    return [*rope, ("(0/0)", *where), (")" * len(rows), *where)]


def listed(stack: FrameStack, table: Frame) -> Rope:
    """Return a matrix as a list of rows, or a column as a list."""
    rows = [row for row in table.rows if row]
    where = (table.opener.start, table.opener.end)
    if len({len(row) for row in rows}) != 1:
        stack.fail("the rows of a matrix have different lengths", table.opener)
    column = len(rows[0]) == 1
    rope: Rope = [("[", *where)]
    for row in rows:
        cells: Rope = []
        for cell in row:
            cells += [cell.rope, (", ", *where)]
        cells.pop()
        rope += [cells] if column else [("[", *where), cells, ("]", *where)]
        rope.append((", ", *where))
    return [*rope[:-1], ("]", *where)]
