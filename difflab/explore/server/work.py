"""Computation of a request, in a process that is stopped at its limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from difflab.diagnose.point_check import checked_point
from difflab.errors import DifflabError, InputError
from difflab.explore.shown import TIMEOUT, filled, page, refused, row_texts, verdicts
from difflab.graph.function import Function
from difflab.lab.compare import compare
from difflab.language import parse
from difflab.report.summary import point_text

LONGEST = 10_000
"""Most characters of a formula or of a point."""
POLICY = "connect-src 'self'; form-action 'self'; base-uri 'none'"
EXAMPLE = ("ln(x1) + x1*x2 - sin(x2)", "x1=2,x2=5")
"""The formula and the point of a page that was asked for without one."""

Send = Callable[[dict[str, Any]], None]
PointReader = Callable[[str], dict[str, Any] | None]


@dataclass(frozen=True)
class Request:
    """A formula and a point, as text.

    Attributes
    ----------
    text, at : str
    read_point : callable
        Returns the values that a text such as ``x=2,y=[1,2]`` names; it must read no file.
    """

    text: str
    at: str
    read_point: PointReader

    def function(self) -> Function:
        """Return the function of the formula."""
        for name, given in (("formula", self.text), ("point", self.at)):
            if len(given) > LONGEST:
                raise InputError(
                    f"the {name} has {len(given):,} characters; the server takes {LONGEST:,}",
                    hint="difflab explore, on the command line, takes longer ones",
                )
        return parse(self.text)

    def point(self, function: Function) -> dict[str, Any]:
        """Return the values of the inputs; a point inside the domain if none is given."""
        given = self.read_point(self.at) if self.at.strip() else None
        return dict(checked_point(function, given, inside=False))


def page_of(request: Request, send: Send) -> None:
    """Send the page of a function, or the page that says why there is none."""
    form = _form(request)
    try:
        function = request.function()
        point = request.point(function)
        found = filled(function, point)
        if function.n:
            found.data["verdicts"] = {
                "at": point_text(point),
                "referee": "",
                "rows": [],
                "notes": [],
                "sentence": "judging …",
            }
        text = page(found, above=form, policy=POLICY, served=True)
        send({"status": 200, "page": text})
    except DifflabError as error:
        send({"status": 422, "page": refused(refusal(error), form, POLICY)})


def rows_of(request: Request, send: Send) -> None:
    """Send the row of each method as it is judged, then the whole."""
    try:
        function = request.function()
        point = request.point(function)
        found = compare(
            function,
            point,
            timing=False,
            timeout=TIMEOUT,
            reported=lambda row: send(row_texts(row)),
        )
    except DifflabError as error:
        send({"refused": refusal(error)})
        return
    send({"whole": verdicts(found)})


def refusal(error: Exception) -> str:
    """Return the message of the command line."""
    return f"difflab: {error.render() if isinstance(error, InputError) else error}"


def _form(request: Request) -> str:
    text, at = (escape(given[:LONGEST], quote=True) for given in (request.text, request.at))
    return (
        '<form class="asked" method="get" action="/">'
        f'<label>Formula<input name="f" value="{text}" placeholder="{EXAMPLE[0]}" required '
        'autocomplete="off" spellcheck="false"></label>'
        f'<label>Point<input name="at" value="{at}" placeholder="{EXAMPLE[1]}" '
        'autocomplete="off" spellcheck="false"></label><button>Show</button></form>'
    )
