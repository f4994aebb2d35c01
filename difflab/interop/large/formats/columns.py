"""The columns of a table that hold the inputs of a function."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from difflab.errors import PointError
from difflab.graph.names import shortened

__all__ = ["chosen_columns"]


def chosen_columns(columns: Sequence[str], wanted: Sequence[str], table: str) -> list[int]:
    """Return the position of each wanted column; a table may have others.

    Raises
    ------
    PointError
        A column is missing, or there are two of its name.

    Examples
    --------
    >>> chosen_columns(["t", "y", "x"], ["x", "y"], "points.csv")
    [2, 1]
    >>> chosen_columns(["x", "angel"], ["x", "angle"], "points.csv")
    Traceback (most recent call last):
        ...
    difflab.errors.PointError: points.csv has no column 'angle'; did you mean 'angel'?
    hint: its columns are x, angel; each input needs one
    """
    for name in wanted:
        if name not in columns:
            near = get_close_matches(name, [other for other in columns if other not in wanted], 1)
            guess = f"; did you mean {near[0]!r}?" if near else ""
            hint = f"its columns are {shortened(columns)}; each input needs one"
            raise PointError(f"{table} has no column {name!r}{guess}", hint=hint)
        if columns.count(name) > 1:
            raise PointError(f"{table} has several columns {name!r}")
    return [columns.index(name) for name in wanted]
