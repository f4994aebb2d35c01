"""`explore`: the page of a function at a point, with the verdict on every method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from difflab.core.files import write_whole
from difflab.core.quantities import error
from difflab.diagnose.point_check import checked_point
from difflab.errors import DifflabError
from difflab.explore.content import Content, content
from difflab.explore.page import page
from difflab.explore.while_loops import SPARE_TURNS
from difflab.graph.function import Function
from difflab.lab.compare import compare, parsed
from difflab.lab.record import Comparison, MethodRow
from difflab.report.comparison.view import ComparisonView, view
from difflab.report.heading import point_text

__all__ = ["TIMEOUT", "ExplorePage", "explore", "filled", "row_texts", "verdicts"]

JUDGED = 400
"""Most nodes of a function whose derivatives are judged by every method."""
TIMEOUT = 5.0
"""Seconds of each method."""
FRAME = 900
"""Height of the page in a notebook, in pixels."""


@dataclass(frozen=True, eq=False, repr=False)
class ExplorePage:
    """A page on which value and derivative of a function are followed step by step.

    Attributes
    ----------
    text : str
        The function.
    at : str
        The point.
    """

    text: str
    at: str
    page: str

    def html(self) -> str:
        """Return the page, which stands alone: it loads nothing."""
        return self.page

    def save(self, path: str | Path) -> None:
        """Write the page to a file.

        Raises
        ------
        InputError
            The file cannot be written.
        """
        write_whole({Path(path): self.page.encode()})

    def _repr_html_(self) -> str:
        """Return a frame with the page, which may run nothing but its own script."""
        return (
            f'<iframe sandbox="allow-scripts" title="{escape(self.text[:200], quote=True)}" '
            f'style="width:100%;height:{FRAME}px;border:0" '
            f'srcdoc="{escape(self.page, quote=True)}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<page of {' '.join(self.text.split())[:60]} at {self.at}>"


def explore(
    function: Function, at: Mapping[str, Any] | None = None, *, verdicts: bool = True
) -> ExplorePage:
    """Return the page of ``difflab explore``, on which the derivative is followed by steps.

    Arrays are followed element by element. The page computes in the browser, at any point, with
    the JavaScript that difflab prints; the verdicts on the methods are those at `at`.

    Parameters
    ----------
    at : mapping, optional
        A value for every input; by default a point inside the domain is chosen.
    verdicts : bool
        Whether the methods are compared at the point, and the page shows their verdicts.

    Returns
    -------
    ExplorePage
        Shows itself in a notebook; ``html()`` is the page, and ``save("page.html")`` writes it.

    Raises
    ------
    InputError
        An operation on arrays or a loop cannot be followed on numbers, or the page would be
        too large.
    PointError
        A value is missing, unknown, not finite or of the wrong shape.
    UnsupportedError
        JavaScript has no function for an operation, such as ``digamma``.

    Examples
    --------
    >>> import difflab as dl
    >>> dl.parse("x*sin(y)").explore({"x": 2, "y": 0})
    <page of x*sin(y) at x = 2, y = 0>
    >>> explore(dl.parse("x*sin(y)"), {"x": 2, "y": 1}, verdicts=False)
    <page of x*sin(y) at x = 2, y = 1>
    """
    point = checked_point(function, at, inside=False)
    found = filled(function, point)
    if verdicts:
        found.data["verdicts"] = _judged(function, point)
    return ExplorePage(found.data["text"], point_text(point), page(found))


def filled(function: Function, point: Mapping[str, Any]) -> Content:
    """Return the content of a page without verdicts.

    Raises
    ------
    InputError
        The function has no input, or cannot be written as operations on numbers.
    """
    parsed(function, 1, TIMEOUT)
    found = content(function, point)
    found.data["lead"] = ""
    found.data["key"] = (
        f"{found.data['picture']['summary']}. In a box: its value and, below, its derivative. "
        "Dashed: a branch that is not taken. Point at a box, a row, a line of code or a part of "
        "the formula to find it in the others; click to go there."
    )
    if turns := found.data["turns"]:
        found.data["key"] += (
            f" A loop with a condition is written out for up to {turns} turns, {SPARE_TURNS} more"
            " than at the point of the page: where a point needs more, the result is NaN."
        )
    return found


def _judged(function: Function, point: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the verdict on every method at a point; None for a large or undefined function."""
    if len(function.graph) > JUDGED:
        return None
    try:
        return verdicts(compare(function, point, timing=False, timeout=TIMEOUT))
    except DifflabError:
        return None


def verdicts(comparison: Comparison) -> dict[str, Any]:
    """Return the verdicts of a comparison as texts."""
    shown: ComparisonView = view(comparison)
    return {
        "at": shown.point,
        "referee": shown.referee,
        "rows": [row_texts(row) for row in shown.rows],
        "notes": [list(note) for note in shown.notes],
        "sentence": shown.sentence,
    }


def row_texts(row: MethodRow) -> dict[str, str]:
    """Return the verdict on one method as texts."""
    return {"name": row.name, "outcome": str(row.outcome), "error": error(row.max_abs_error)}
